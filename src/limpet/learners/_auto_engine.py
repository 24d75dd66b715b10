"""Engine of `Detector`: kernels, changes, re-initializations."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from limpet._format import plural
from limpet._jit.compile import announce_compilation, unchecked_entry_point
from limpet._validation import invalid_param_error
from limpet.auto import reinitialization
from limpet.auto.ar1 import reset_ar1
from limpet.auto.initialization import fit_robust_mixture, init_auto_batch, match_component_order
from limpet.auto.model_selection import ComponentSelection, select_n_components
from limpet.auto.residual_diagnostics import reset_after_change
from limpet.auto.stream_kernel import (
    CHANGE_SCORE,
    DISTANCE,
    DOMINANT_VARIABLE,
    N_RESULTS,
    P_VALUE,
    SCORE,
    make_auto_stream_kernels,
)
from limpet.core.algorithm import (
    MAX_ABS_VALUE,
    OUTCOME_ANOMALY,
    OUTCOME_CHANGE,
    OUTCOME_INVALID,
    OUTCOME_NEEDS_REINIT,
    OUTCOME_REJECTED,
)
from limpet.core.memory_profile import MEMORY_PROFILES, MIN_POINTS_PER_COMPONENT
from limpet.core.state import N_SEEN, StreamBuffer, Vector
from limpet.core.threshold import gamma_for_rate
from limpet.detection import ChangeReport, log_threshold
from limpet.detection.alarm import Alarm
from limpet.detection.anomaly_detector import min_anomaly_distance
from limpet.learners._engine import Engine, FastPath
from limpet.learners.results import AutoStep, Step, Trace
from limpet.models.mixture import GaussianMixture

# Rejection rates of clean points: of the ensemble with one component, and with more, …
SINGLE_REJECTION_RATE, MIXTURE_REJECTION_RATE = 1e-4, 1e-7
CORE_REJECTION_RATE = 1e-4  # … of the density scorers, and of the ensemble if outliers are common
MIN_EVIDENCE_SHARE = 0.25  # of the evidence: from here on a variable is listed in the alarm
MAX_FINITE_SIZE_SD = 1e8  # beyond, sizes are infinite: the spread was negligible
REINIT_COUNT_POINTS = 12.0  # effective sample size of re-initialized experts


class AutoEngine(Engine):
    """Automatic learner with its decisions on one stream."""

    model: GaussianMixture
    self_recovering = True

    def __init__(
        self,
        model: GaussianMixture,
        width: int,
        far: float,
        n_init: int,
        seed: int,
        lags: int = 0,
        season: int = 0,
        beta: float = 0.0,
        select_components: bool = False,
        memory: str = "full",
    ) -> None:
        self.profile = MEMORY_PROFILES[memory]
        self.lags, self.season, self.far, self.beta = lags or int(season > 0), season, far, beta
        self.buffers_missing = season > 0
        buffer = self._allocate(model, width, n_init)
        super().__init__(model, width, self.title, buffer, seed)
        self._row, self._results, self._outcomes = np.empty((1, width)), np.empty((1, N_RESULTS)), np.empty(1, np.int8)
        self.count_missing, self.first_invalid = self.kernels.count_missing, self.kernels.first_invalid
        self.needs_model_selection = select_components  # one component until then
        self.selection: ComponentSelection | None = None

    def _allocate(self, model: GaussianMixture, width: int, n_init: int) -> StreamBuffer:
        """Select the compiled functions for this model, and allocate their buffer."""
        K = int(model.n_components)
        self.kernels = make_auto_stream_kernels(model.covariance, K, width, self.lags, self.season, self.profile)
        self.layout = self.kernels.layout
        options = {"lags": self.lags, "season": self.season}
        options_text = "".join(f", {name}={value}" for name, value in options.items() if value)
        self.title = f"Detector with {plural(K, 'component')} ({plural(width, 'variable')}{options_text})"
        self.K, self.width = K, width
        settings, start_shape = self._make_settings(self.far), (int(n_init), width)
        return StreamBuffer(settings, self.kernels.work_size, self.layout.size, start_shape, self.profile.dtype)

    def _make_settings(self, far: float) -> Vector:
        gamma = gamma_for_rate(SINGLE_REJECTION_RATE if self.K == 1 else MIXTURE_REJECTION_RATE, self.width)
        core_gamma = gamma_for_rate(CORE_REJECTION_RATE, self.width)
        min_distance = min_anomaly_distance(far, self.width)
        return np.array([gamma**2, self.beta, core_gamma**2, core_gamma**2, far, min_distance**2, log_threshold(far)])

    def set_n_components(self, selection: ComponentSelection) -> None:
        """Reallocate for the selected number of components; keep the buffered points."""
        self.needs_model_selection, self.selection = False, selection
        previous, self.model = self.buffer, dataclasses.replace(self.model, n_components=selection.n_components)
        self.buffer = self._allocate(self.model, self.width, self.n_init)
        self.buffer.header[:], self.buffer.start[:] = previous.header, previous.start

    def process(self, rows: Vector, record: str | None = None) -> Trace:
        n, first_row, done = len(rows), int(self.buffer.header[N_SEEN]), 0
        results, outcomes = np.empty((n, N_RESULTS)), np.empty(n, np.int8)
        alarms: list[Alarm] = []
        while done < n and not self.started:
            outcomes[done] = self._buffer_point(rows[done])
            done += 1
        results[:done] = math.nan  # the kernel writes all other results
        buffer, shape = self.buffer, (int(self.model.n_components), self.width)  # selected by the initialization
        estimates = np.empty((n if record else 0, math.prod(shape)))
        estimates[:done] = math.nan
        if record and done > 0 and self.started:
            estimates[done - 1] = self.estimate("means").reshape(-1)
        while done < n:
            outputs = (results[done:], outcomes[done:], estimates[done:])
            with announce_compilation(self.title):
                done += self.kernels.run(buffer.state, rows[done:], buffer.settings, buffer.work, *outputs, False)
            if change := self._handle_event(int(outcomes[done - 1])):
                alarms.append(change)
            if record and outcomes[done - 1] & OUTCOME_NEEDS_REINIT:
                estimates[done - 1] = self.estimate("means").reshape(-1)
        for index in np.flatnonzero(outcomes & OUTCOME_ANOMALY):
            alarms += self._anomaly(results[index].tolist(), first_row + int(index))
        return Trace(
            results[:, SCORE],
            outcomes,
            {record: estimates.reshape(-1, *shape)} if record else {},
            (results[:, CHANGE_SCORE], results[:, P_VALUE]),
            sorted(alarms, key=lambda alarm: alarm.row),  # at the same row the change comes first
            first_row,
        )

    def _handle_event(self, outcome: int) -> Alarm | None:
        """Handle what the kernels leave to Python; return the alarm of a change."""
        if outcome & OUTCOME_NEEDS_REINIT:
            self._reinitialize()
        if not outcome & OUTCOME_CHANGE:
            return None
        layout, theta, row = self.layout, self.buffer.theta, int(self.buffer.header[N_SEEN]) - 1
        change = self.kernels.detector.describe_change(layout.view(theta, "change_detector"))
        self._reset_residual_model()
        if self.profile.is_full:
            has_ratio = change.direction in ("wider", "narrower") and 0.0 < change.spread_ratio < math.inf
            ratio = change.spread_ratio if has_ratio else 1.0
            reset_after_change(layout.view(theta, "residual_autocorrelation"), change.variable, ratio)
        return self._with_variable_names(alarm_from_change(change, row))

    def _reset_residual_model(self) -> None:
        """Reset the residual model after a change; keep φ."""
        if not self.profile.is_full:
            return
        layout, theta = self.layout, self.buffer.theta
        if self.lags:
            layout.view(theta, "clock")[2] = 0.0
            return
        weights, means = self._standardized_estimate(theta, "weights"), self._standardized_estimate(theta, "means")
        center, spread = (weights[:, None] * means).sum(axis=0), np.zeros(self.width)
        for share, expert in zip(layout.view(theta, "trust"), layout.view(theta, "experts"), strict=True):
            components = expert[len(weights) :].reshape(len(weights), -1)
            for weight, component in zip(share * expert[: len(weights)], components, strict=True):
                self.kernels.auto.component.add_variances(component, 0, self.width, spread, weight)
                spread += weight * (component[: self.width] - center) ** 2
        reset_ar1(layout.view(theta, "ar1"), center, spread)

    def _anomaly(self, results: list[float], row: int) -> list[Alarm]:
        """Return the alarm of an anomalous row if it is the first of consecutive ones."""
        dominant = int(results[DOMINANT_VARIABLE])
        if not dominant:
            return []
        direction, variables = "up" if dominant > 0 else "down", (abs(dominant) - 1,)
        size = results[DISTANCE] if results[DISTANCE] < MAX_FINITE_SIZE_SD else math.inf
        return [self._with_variable_names(Alarm("anomaly", row, row, size, direction, variables, results[P_VALUE]))]

    def _with_variable_names(self, alarm: Alarm) -> Alarm:
        """Return the alarm with names of variables instead of indices, if there are any."""
        if self.names is None:
            return alarm
        return dataclasses.replace(alarm, variables=tuple(self.names[int(i)] for i in alarm.variables))

    def _reinitialize(self) -> None:
        """Re-initialize all experts from the latest points if these are a new regime."""
        layout, theta, K = self.layout, self.buffer.theta, int(self.model.n_components)
        auto, d = self.kernels.auto, self.width
        points = self.kernels.reinit_points(theta)
        experts, trust = layout.view(theta, "experts"), layout.view(theta, "trust")
        best_expert = experts[np.argmax(trust)].astype(np.float64)
        variances = np.zeros(d)
        auto.component.add_variances(best_expert, K, d, variances, 1.0)
        if len(points) < MIN_POINTS_PER_COMPONENT * K - 2 * (K == 1):
            return
        deviation = np.sqrt(variances)
        reinitialization.impute_missing(points, best_expert[K : K + d], deviation)
        if K == 1 and not reinitialization.is_stable_regime(layout, theta, points, deviation):
            return
        # slow: the components before the change
        core_estimate = layout.view(theta, "value_scorer")[: len(best_expert)].astype(np.float64)
        fit = match_component_order(auto.component, core_estimate, fit_robust_mixture(auto, points, self.seed), K, d)
        if K == 1:
            fit[1 + d :] = 0.5 * (fit[1 + d :] + best_expert[1 + d :])
        else:
            scores, fit_scores = (auto.score_under_fit(estimate, points)[0] for estimate in (best_expert, fit))
            if not reinitialization.improves_likelihood(scores, fit_scores):
                return
        if self.profile.is_float32:
            self._recenter(fit)
        experts[:], trust[:] = fit, 1.0 / len(experts)
        layout.view(theta, "counts")[:] = min(len(points), REINIT_COUNT_POINTS * K)
        layout.view(theta, "lead")[:] = 0.0
        reinitialization.clear_evidence(layout, theta)
        self._reset_residual_model()

    def _recenter(self, fit: Vector) -> None:
        """Move the origin to the mean of the fit, and shift the fit."""
        K, d = int(self.model.n_components), self.width
        means = fit[K:].reshape(K, -1)[:, :d]
        for i, shift in enumerate((fit[:K, None] * means).sum(axis=0).astype(np.float32).tolist()):
            self.kernels.shift_origin(self.buffer.theta, i, shift)
            means[:, i] -= shift

    def _start_model(self) -> None:
        if self.needs_model_selection:
            points = self.buffered_points(self.buffer.start)
            points = points[~np.isnan(points).all(axis=1)]
            self.set_n_components(select_n_components(self.model.covariance, points, self.seed))
        super()._start_model()

    def _init_theta(self, buffered: Vector, theta: Vector) -> None:
        points = self.buffered_points(buffered)
        with announce_compilation(self.title):
            init_auto_batch(self.kernels.auto, points[None], theta[None, : self.kernels.auto.layout.size], self.seed)
            if theta is self.buffer.theta:
                self._learn_buffered(self.buffer.state, points)

    def _learn_buffered(self, state: Vector, points: Vector) -> None:
        """Let scorers and detectors learn from the points of the initialization."""
        no_output = (np.empty((1, N_RESULTS)), np.empty(0, np.int8), np.empty((0, 0)))
        self.kernels.run(state, points, self.buffer.settings, self.buffer.work, *no_output, True)

    def score_only(self, rows: Vector, far: float | None = None, independent: bool = False) -> Trace:
        """Score each row as the next one, without learning: score, p-value and outcome."""
        if independent and self.lags:
            raise invalid_param_error("independent", "must be False with lags or a season", independent)
        state, work = self._scoring_state(), self.buffer.work.copy()  # copies: several threads may score
        if not self.started:
            self._learn_buffered(state, self.buffered_points(self._buffered_so_far()))
        settings = self.buffer.settings if far is None else self._make_settings(far)
        score_rows = self.kernels.score_isolated if independent else self.kernels.score
        scores, p_values, outcomes = np.empty(len(rows)), np.empty(len(rows)), np.empty(len(rows), np.int8)
        with announce_compilation(self.title):
            score_rows(state, rows, settings, work, scores, p_values)
            self.kernels.classify_rows(state, rows, settings, work, p_values, outcomes)
        return Trace(scores, outcomes, auto_scores=(np.full(len(rows), math.nan), p_values))

    def score(self, rows: Vector) -> Vector:
        scores, buffer = np.empty(len(rows)), self.buffer
        state, work = self._scoring_state(), buffer.work.copy()
        with announce_compilation(self.title):
            self.kernels.score(state, rows, buffer.settings, work, scores, np.empty(len(rows)))
        return scores

    def log_evidence_margin(self) -> float:
        """Return the log-evidence for a change minus the limit of an alarm."""
        if not self.started:
            return -math.inf
        with announce_compilation(self.title):
            return float(self.kernels.log_evidence_margin(self.buffer.state, self.buffer.settings))

    def fast_path(self) -> FastPath:
        buffer, kernels, score_and_p_value = self.buffer, self.kernels, np.zeros(2)
        inputs = (buffer.state, self._row, buffer.settings, buffer.work)
        learn = (kernels.run, (*inputs, self._results, self._outcomes, np.zeros((0, 0)), False))
        score_only = (kernels.score, (*inputs, score_and_p_value[:1], score_and_p_value[1:]))
        log_evidence_margin = (kernels.log_evidence_margin, (buffer.state, buffer.settings))
        with announce_compilation(self.title):
            return FastPath(self._row, score_and_p_value, self._outcomes, learn, score_only, log_evidence_margin)

    def estimate(self, name: str) -> Vector:
        """Return `weights`, `means` or `covariances`, averaged over experts."""
        theta = self.theta()
        estimate, scale = self._standardized_estimate(theta, name), self.layout.view(theta, "scale").view(np.float64)
        if name == "means":
            return np.asarray(self.layout.view(theta, "reference").view(np.float64) + scale * estimate)
        return estimate if name == "weights" else np.asarray(estimate * np.outer(scale, scale))

    def _standardized_estimate(self, theta: Vector, name: str) -> Vector:
        """Return the same in standardized units."""
        layout, K, d = self.layout, int(self.model.n_components), self.width
        trust, experts = (layout.view(theta, name).astype(np.float64) for name in ("trust", "experts"))
        shares = trust[:, None] * experts[:, :K]
        weights = shares.sum(axis=0)
        if name == "weights":
            return np.asarray(weights / weights.sum())
        means = np.empty((K, d))
        values = np.zeros(layout.size)
        layout.view(values, "trust")[:], layout.view(values, "experts")[:] = trust, experts
        self.kernels.auto.compute_means(values, means.reshape(-1))
        if name == "means":
            return means
        components = experts[:, K:].reshape(len(trust), K, -1)
        off = components[:, :, :d] - means
        values = np.array([[self.model.component_covariance(c, d) for c in expert] for expert in components])
        return np.asarray(np.einsum("ek,ekij->kij", shares / weights, values + off[..., :, None] * off[..., None, :]))

    def compiled_update(self) -> Callable[[Vector, Any], float]:
        row, buffer = self._row, self.buffer
        arguments = (row, buffer.settings, buffer.work, self._results, self._outcomes, np.empty((0, 0)), False)
        with announce_compilation(self.title):
            run = unchecked_entry_point(self.kernels.run, buffer.state, *arguments)

        state, outcomes = buffer.state, self._outcomes
        first_invalid, is_multivariate = self.first_invalid, self.width > 1

        def update(vector: Vector, y: Any) -> float:
            row[0] = y
            if first_invalid(row) == 0 if is_multivariate else not abs(y) <= MAX_ABS_VALUE:
                outcomes[0] = OUTCOME_INVALID  # not counted, so that the caller can still raise
            else:
                run(state, *arguments)
            return math.nan

        return update

    def result_of_last_update(self) -> tuple[int, Step]:
        outcome, results = int(self._outcomes[0]), self._results[0].tolist()
        score, change_score, p_value = results[SCORE], results[CHANGE_SCORE], results[P_VALUE]
        if outcome <= OUTCOME_REJECTED:  # the most common case
            return outcome, AutoStep(score, p_value, change_score, outcome == OUTCOME_REJECTED)
        if outcome == OUTCOME_INVALID:
            return outcome, AutoStep(math.nan, math.nan, math.nan, invalid=True)
        change = self._handle_event(outcome)
        alarms = [change] if change else []
        if outcome & OUTCOME_ANOMALY:
            alarms += self._anomaly(results, int(self.buffer.header[N_SEEN]) - 1)
        flags = (bool(outcome & OUTCOME_REJECTED), bool(outcome & OUTCOME_ANOMALY), bool(outcome & OUTCOME_CHANGE))
        return outcome, AutoStep(score, p_value, change_score, *flags, alarms=tuple(alarms))


def alarm_from_change(change: ChangeReport, row: int) -> Alarm:
    """Return the alarm of a change."""
    order = sorted(range(len(change.evidence_shares)), key=lambda i: -change.evidence_shares[i])
    variables = tuple(i for i in order if i == change.variable or change.evidence_shares[i] >= MIN_EVIDENCE_SHARE)
    shift, ratio, direction = change.shift_sd, change.spread_ratio, change.direction
    size = {"up": shift, "down": -shift, "wider": ratio, "narrower": ratio}[direction]
    is_consistent = {"up": size > 0.0, "down": size > 0.0, "wider": size > 1.0, "narrower": size < 1.0}[direction]
    return Alarm("change", row, row - change.delay, size if is_consistent else math.nan, direction, variables)
