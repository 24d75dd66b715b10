"""The machine room of a learner on autopilot."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.alarms import Change, threshold_for
from holdfast.alarms.alarm import Alarm
from holdfast.autopilot import rescue
from holdfast.autopilot.choosing import Choice, choose_components
from holdfast.autopilot.memory import recentre_lag
from holdfast.autopilot.robust_fit import in_order_of, robust_fit
from holdfast.autopilot.sizes import FEWEST, SIZES
from holdfast.autopilot.start import start_pilot
from holdfast.autopilot.whiteness import pause_whiteness
from holdfast.errors import BadInputError
from holdfast.learners.engine import Engine
from holdfast.learners.in_place import InPlace
from holdfast.learners.step import Step, WatchedStep
from holdfast.learners.trace import Trace
from holdfast.learners.watching import (
    CARRIER,
    CHANGE_SCORE,
    DISTANCE,
    P_VALUE,
    RESULTS,
    SCORE,
    make_watch,
)
from holdfast.models.gaussian_mixture import GaussianMixture
from holdfast.scheme.algorithm import ANOMALOUS, CHANGED, FATE, LARGEST, LOOK, REJECTED, UNUSABLE
from holdfast.scheme.compiling import announced, direct
from holdfast.scheme.state import SEEN, Cell, Vector
from holdfast.scheme.threshold import gamma_for_rate

RATE_OF_ONE, RATE_OF_MANY = 1e-4, 1e-7  # of clean points that the bank drops, with one component and with more
RATE_OF_CORE = 1e-4  # of clean points that the slow views drop, and the bank where outliers are common
ODD = 10.0  # times far: what is more usual than this by the latest estimate is no anomaly
CARRIES = 0.25  # share of the evidence that makes a variable one of those that carry a change
BEYOND = 1e8  # standard deviations: what was usual before had no spread to speak of
FRESH = 12.0  # points that experts begun anew go by


class PilotEngine(Engine):
    """The autopilot with its decisions on one stream of points of `width` numbers."""

    model: GaussianMixture
    rescues = True

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
        choose: bool = False,
        memory: str = "full",
    ) -> None:
        self.sizes = SIZES[memory]
        self.lags, self.season, self.far, self.beta = lags or int(season > 0), season, far, beta
        self.holds_gaps = season > 0
        cell = self._fitted_out(model, width, n_init)
        super().__init__(model, width, self.title, cell, seed)
        self._row, self._results, self._fates = np.empty((1, width)), np.empty((1, RESULTS)), np.empty(1, np.int8)
        self.missing_coordinates, self.first_unusable = self.watch.missing_coordinates, self.watch.first_unusable
        self.undecided = choose  # until then one stands for it
        self.choice: Choice | None = None

    def _fitted_out(self, model: GaussianMixture, width: int, n_init: int) -> Cell:
        """The compiled functions for this model, and a memory of the size they need."""
        K = int(model.n_components)
        self.watch = make_watch(model.covariance, K, width, self.lags, self.season, self.sizes)
        self.layout = self.watch.layout
        told = "".join(f", {name}={value}" for name, value in (("lags", self.lags), ("season", self.season)) if value)
        self.title = f"the autopilot for {K} component{'s' * (K > 1)} ({width} variable{'s' * (width > 1)}{told})"
        self.K, self.width = K, width
        return Cell(
            self._settings(self.far), self.watch.work_size, self.layout.size, (int(n_init), width), self.sizes.number
        )

    def _settings(self, far: float) -> Vector:
        """What the compiled code is told, for a rate of false alarms."""
        gamma = gamma_for_rate(RATE_OF_ONE if self.K == 1 else RATE_OF_MANY, self.width)
        core = gamma_for_rate(RATE_OF_CORE, self.width)
        odd = gamma_for_rate(min(ODD * far, 0.5), self.width)
        return np.array([gamma**2, self.beta, core**2, core**2, far, odd**2, threshold_for(far)])

    def decide(self, choice: Choice) -> None:
        """From now on there are as many components as chosen; what has been held stays."""
        self.undecided, self.choice = False, choice
        before, self.model = self.cell, dataclasses.replace(self.model, n_components=choice.n_components)
        self.cell = self._fitted_out(self.model, self.width, self.n_init)
        self.cell.header[:], self.cell.start[:] = before.header, before.start

    def process(self, rows: Vector, record: str | None = None) -> Trace:
        """Learns row after row; `record` is the name under which the estimate after each row is kept."""
        n, first_row, done = len(rows), int(self.cell.header[SEEN]), 0
        results, fates = np.empty((n, RESULTS)), np.empty(n, np.int8)
        alarms: list[Alarm] = []
        while done < n and not self.started:
            fates[done] = self._hold(rows[done])
            done += 1
        results[:done] = math.nan  # of the others the compiled code writes every number
        cell, shape = self.cell, (int(self.model.n_components), self.width)  # which the start may have chosen
        estimates = np.empty((n if record else 0, math.prod(shape)))
        estimates[:done] = math.nan
        if record and done > 0 and self.started:
            estimates[done - 1] = self.estimate("means").reshape(-1)
        while done < n:
            rest = (rows[done:], cell.settings, cell.work, results[done:], fates[done:], estimates[done:], False)
            with announced(self.title):
                done += self.watch.run(cell.state, *rest)
            change = self._step_in(int(fates[done - 1]))
            if change:
                alarms.append(change)
            if record and fates[done - 1] & LOOK:
                estimates[done - 1] = self.estimate("means").reshape(-1)
        for begun in np.flatnonzero(fates & ANOMALOUS):
            alarms += self._anomaly(results[begun].tolist(), first_row + int(begun))
        return Trace(
            results[:, SCORE],
            fates,
            {record: estimates.reshape(-1, *shape)} if record else {},
            (results[:, CHANGE_SCORE], results[:, P_VALUE]),
            sorted(alarms, key=lambda alarm: alarm.row),  # where a row has both, the change comes first
            first_row,
        )

    def _step_in(self, fate: int) -> Alarm | None:
        """What the compiled code leaves to Python: to begin anew, and to tell of a change."""
        if fate & LOOK:
            self._begin_anew()
        if fate & CHANGED:
            memory = self.layout.view(self.cell.theta, "changes")
            row = int(self.cell.header[SEEN]) - 1
            change = self.watch.detector.tell(memory)
            self._look_anew_at_the_past()
            if self.sizes.whole:
                ratio = change.ratio if change.kind in ("wider", "narrower") and 0.0 < change.ratio < math.inf else 1.0
                pause_whiteness(self.layout.view(self.cell.theta, "whiteness"), change.variable, ratio)
            return self._named(as_alarm(change, row))
        return None

    def _look_anew_at_the_past(self) -> None:
        """What was known of the memory is of another stream: from now on it goes by few points."""
        layout, theta = self.layout, self.cell.theta
        if not self.sizes.whole:
            return
        if self.lags:
            layout.view(theta, "clock")[2] = 0.0
            return
        weights, means = self._in_frame(theta, "weights"), self._in_frame(theta, "means")
        middle, spread = weights @ means, np.zeros(self.width)
        for share, expert in zip(layout.view(theta, "trust"), layout.view(theta, "experts"), strict=True):
            for weight, own in zip(
                share * expert[: len(weights)], expert[len(weights) :].reshape(len(weights), -1), strict=True
            ):
                self.watch.pilot.component.spread(own, 0, self.width, spread, weight)
                spread += weight * (own[: self.width] - middle) ** 2
        recentre_lag(layout.view(theta, "lag"), middle, spread)

    @property
    def contamination(self) -> float:
        """The share of points rejected, as it has been lately."""
        return float(self.layout.view(self.theta(), "rescue")[rescue.CONTAMINATION])

    def _anomaly(self, results: list[float], row: int) -> list[Alarm]:
        """The alarm of an anomalous row, if it is the first of several."""
        carrier = int(results[CARRIER])
        if not carrier:
            return []
        direction, variables = "up" if carrier > 0 else "down", (abs(carrier) - 1,)
        size = results[DISTANCE] if results[DISTANCE] < BEYOND else math.inf
        return [self._named(Alarm("anomaly", row, row, size, direction, variables, results[P_VALUE]))]

    def _named(self, alarm: Alarm) -> Alarm:
        """With the names of the variables, where the data had any."""
        names = self.names
        return (
            alarm
            if names is None
            else dataclasses.replace(alarm, variables=tuple(names[int(i)] for i in alarm.variables))
        )

    def _begin_anew(self) -> None:
        """All experts from the latest points, if these are a regime of their own."""
        layout, theta, K = self.layout, self.cell.theta, int(self.model.n_components)
        pilot, d = self.watch.pilot, self.width
        points = self.watch.latest_points(theta)
        experts, trust = layout.view(theta, "experts"), layout.view(theta, "trust")
        trusted = experts[np.argmax(trust)].astype(np.float64)
        variances = np.zeros(d)
        pilot.component.spread(trusted, K, d, variances, 1.0)
        if len(points) < FEWEST * K - 2 * (K == 1):
            return
        deviation = np.sqrt(variances)
        rescue.fill_silent(points, trusted[K : K + d], deviation)
        if K == 1 and not rescue.settled(layout, theta, points, deviation):
            return
        core = layout.view(theta, "value")[: len(trusted)].astype(
            np.float64
        )  # slow, and so what the components were before
        fit = in_order_of(pilot.component, core, robust_fit(pilot, points, self.seed), K, d)
        if K == 1:
            fit[1 + d :] = 0.5 * (fit[1 + d :] + trusted[1 + d :])
        elif not rescue.better(pilot.judge(trusted, points)[0], pilot.judge(fit, points)[0]):
            return
        if self.sizes.short:
            self._move_frame(fit)
        experts[:], trust[:] = fit, 1.0 / len(experts)
        layout.view(theta, "counts")[:] = min(len(points), FRESH * K)
        layout.view(theta, "lead")[:] = 0.0
        rescue.clear(layout, theta)
        self._look_anew_at_the_past()

    def _move_frame(self, fit: Vector) -> None:
        """The origin goes to the middle of the fit, which is told about it from now on."""
        K, d = int(self.model.n_components), self.width
        means = fit[K:].reshape(K, -1)[:, :d]
        for i, by in enumerate(np.asarray(fit[:K] @ means, np.float32).tolist()):
            self.watch.move(self.cell.theta, i, by)
            means[:, i] -= by

    def _begin(self) -> None:
        if self.undecided:
            points = self._held_points(self.cell.start)
            points = points[~np.isnan(points).all(axis=1)]
            self.decide(choose_components(self.model.covariance, points, self.seed))
        super()._begin()

    def _start(self, held: Vector, theta: Vector) -> None:
        points = self._held_points(held)
        with announced(self.title):
            start_pilot(self.watch.pilot, points, theta[: self.watch.pilot.layout.size], self.seed)
            if theta is self.cell.theta:
                self._learn_of_start(self.cell.state, points)

    def _learn_of_start(self, state: Vector, points: Vector) -> None:
        """What else there is to learn from the points that the start was made of."""
        nothing = (np.empty((1, RESULTS)), np.empty(0, np.int8), np.empty((0, 0)))
        self.watch.run(state, points, self.cell.settings, self.cell.work, *nothing, True)

    def _state_to_assess_with(self) -> Vector:
        """A copy of the state; before the start, as it would be if there were no more points to start with."""
        state = self._state_to_score_with()
        if not self.started:
            self._learn_of_start(state, self._held_points(self._held_so_far()))
        return state

    def assess(self, rows: Vector, far: float | None = None, alone: bool = False) -> Trace:
        """Score, p-value and fate of each row, as if it came next; learns nothing."""
        if alone and self.lags:
            raise BadInputError("with lags or a season, a row tells nothing without those before it")
        state, work = self._state_to_assess_with(), self.cell.work.copy()  # its own: several threads may ask
        settings = self.cell.settings if far is None else self._settings(far)
        score = self.watch.score_alone if alone else self.watch.score
        scores, p_values, fates = np.empty(len(rows)), np.empty(len(rows)), np.empty(len(rows), np.int8)
        with announced(self.title):
            score(state, rows, settings, work, scores, p_values)
            self.watch.judge(state, rows, settings, work, p_values, fates)
        return Trace(scores, fates, watched=(np.full(len(rows), math.nan), p_values))

    def score(self, rows: Vector) -> Vector:
        """The score of each row, as if it came next; learns nothing."""
        scores, cell = np.empty(len(rows)), self.cell
        state, work = self._state_to_score_with(), cell.work.copy()
        with announced(self.title):
            self.watch.score(state, rows, cell.settings, work, scores, np.empty(len(rows)))
        return scores

    def certainty(self) -> float:
        """The logarithm of the evidence for a change, less that at which an alarm is raised."""
        if not self.started:
            return -math.inf
        with announced(self.title):
            return float(self.watch.certainty(self.cell.state, self.cell.settings))

    def in_place(self) -> InPlace:
        """One point after another, at one place; `answer` has what became of the last."""
        cell, row = self.cell, self._row
        both = np.zeros(2)  # score, p-value
        learn = (cell.state, row, cell.settings, cell.work, self._results, self._fates, np.zeros((0, 0)), False)
        assess = (cell.state, row, cell.settings, cell.work, both[:1], both[1:])
        certainty = (self.watch.certainty, (cell.state, cell.settings))
        with announced(self.title):
            return InPlace(row, both, self._fates, (self.watch.run, learn), (self.watch.score, assess), certainty)

    def estimate(self, name: str) -> Vector:
        """`weights` (K,), `means` (K, d) or `covariances` (K, d, d): of the experts' statistics, averaged by trust."""
        theta = self.theta()
        estimate, scale = self._in_frame(theta, name), self.layout.view(theta, "scale").view(np.float64)
        if name == "means":
            return np.asarray(self.layout.view(theta, "reference").view(np.float64) + scale * estimate)
        return estimate if name == "weights" else np.asarray(estimate * np.outer(scale, scale))

    def _in_frame(self, theta: Vector, name: str) -> Vector:
        """The same in the coordinates of the frame."""
        layout, K, d = self.layout, int(self.model.n_components), self.width
        trust, experts = (layout.view(theta, name).astype(np.float64) for name in ("trust", "experts"))
        shares = trust[:, None] * experts[:, :K]
        weights = shares.sum(axis=0)
        if name == "weights":
            return np.asarray(weights / weights.sum())
        means = np.empty((K, d))
        own = np.zeros(layout.size)
        layout.view(own, "trust")[:], layout.view(own, "experts")[:] = trust, experts
        self.watch.pilot.means(own, means.reshape(-1))
        if name == "means":
            return means
        components = experts[:, K:].reshape(len(trust), K, -1)
        off = components[:, :, :d] - means
        own = np.array([[self.model.component_covariance(c, d) for c in expert] for expert in components])
        return np.asarray(np.einsum("ek,ekij->kij", shares / weights, own + off[..., :, None] * off[..., None, :]))

    def compiled_update(self) -> Callable[[Vector, Any], float]:
        """The short way for one point: `run` on a row that is always the same place; `answer` has what it found."""
        row, cell = self._row, self.cell
        arguments = (row, cell.settings, cell.work, self._results, self._fates, np.empty((0, 0)), False)
        with announced(self.title):
            run = direct(self.watch.run, cell.state, *arguments)

        state, fates, first_unusable, wide = cell.state, self._fates, self.first_unusable, self.width > 1

        def update(vector: Vector, y: Any) -> float:
            row[0] = y
            if first_unusable(row) == 0 if wide else not abs(y) <= LARGEST:
                fates[0] = UNUSABLE  # left alone, so that it can still be refused
            else:
                run(state, *arguments)
            return math.nan

        return update

    def answer(self) -> tuple[int, Step]:
        """What became of the point that the compiled update has just had, and the step to tell."""
        fate, results = int(self._fates[0]), self._results[0].tolist()
        if fate <= REJECTED:  # the usual case
            return fate, WatchedStep(results[SCORE], results[CHANGE_SCORE], results[P_VALUE], fate == REJECTED)
        return fate & FATE, self._told(fate, results)

    def _told(self, fate: int, results: list[float]) -> Step:
        if fate == UNUSABLE:
            return WatchedStep(math.nan, math.nan, math.nan, bad=True)
        change = self._step_in(fate)
        alarms = [change] if change else []
        if fate & ANOMALOUS:
            alarms += self._anomaly(results, int(self.cell.header[SEEN]) - 1)
        return WatchedStep(
            results[SCORE],
            results[CHANGE_SCORE],
            results[P_VALUE],
            dropped=fate & FATE == REJECTED,
            anomaly=bool(fate & ANOMALOUS),
            change=bool(fate & CHANGED),
            alarms=tuple(alarms),
        )


def as_alarm(change: Change, row: int) -> Alarm:
    """A change as it is told."""
    order = sorted(range(len(change.shares)), key=lambda i: -change.shares[i])
    carriers = tuple(i for i in order if i == change.variable or change.shares[i] >= CARRIES)
    shift, ratio = change.shift_in_spreads, change.ratio
    size = {"up": shift, "down": -shift, "wider": ratio, "narrower": ratio}[change.kind]
    shown = {"up": size > 0.0, "down": size > 0.0, "wider": size > 1.0, "narrower": size < 1.0}[change.kind]
    return Alarm("change", row, row - change.onset_ago, size if shown else math.nan, change.kind, carriers)
