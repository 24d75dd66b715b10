"""Step of the automatic learner: scorers, ensemble, re-initialization."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from limpet._jit.compile import jit_entry_point, kernel
from limpet._jit.math import log
from limpet.auto import expert_ensemble
from limpet.auto.density_scorer import DensityScorer, make_density_scorer
from limpet.auto.expert_ensemble import (
    REVIEW_INTERVAL_POINTS,
    SLOWEST_EXPERT,
    ExpertEnsemble,
    ensemble_fields,
    make_ensemble_kernels,
)
from limpet.auto.reinitialization import make_reinit_kernel, missing_sentinel, reinit_fields
from limpet.auto.residual_scoring import make_residual_scorer, residual_fields
from limpet.core.memory_profile import FULL, MemoryProfile
from limpet.core.state import Layout, Vector
from limpet.models._standardization import MAX_ABS_COORDINATE
from limpet.models.components.base import Component
from limpet.models.mixture import COMPONENT_BY_COVARIANCE, standardized_mixture_kernels

# settings = [ those of the ensemble | squared distance beyond which the density scorers reject ]
CORE_GAMMA_SQUARED, N_SETTINGS = expert_ensemble.N_SETTINGS, expert_ensemble.N_SETTINGS + 1
MAX_VARIABLES_IN_NATS = 8  # up to which surprises in nats fit into the bins of the histogram
RECENTER_THRESHOLD_SD = 256.0  # standard deviations from the origin, beyond which it moves
MAX_FLOAT32_COORDINATE = 1e15  # in standardized units: squares of larger numbers overflow in 32 bits


@dataclass(frozen=True, eq=False)
class AutoKernels:
    """Compiled functions of the automatic learner for one type of stream."""

    K: int
    lags: int
    season: int
    profile: MemoryProfile
    component: Component
    value_scorer: DensityScorer
    residual_scorer: DensityScorer
    layout: Layout
    work_size: int
    # (theta, y, settings, work, n_missing) → (score, surprise, …) as of `step`, without learning; then the squared
    # distances of the point and of its residual, of the density scorers
    score: Callable[..., Any]
    score_isolated: Callable[..., Any]  # The same for a point with unknown predecessors
    # (theta, y, settings, work, n_missing) → (score, change score, surprise, squared distance, rejected, reinit).
    # surprise: the excess of the score over its minimum, in nats up to d = 8; with more variables all points are
    # farther out, and the unit grows with d. squared distance: from the estimate. reinit: whether a re-initialization
    # must be checked. Learns from the point.
    step: Callable[..., Any]
    # (theta, y, settings, work, n_missing) → (whether the ensemble would reject the point, squared distance); updates
    # only the tail scale
    check_rejection: Callable[..., Any]
    observe_only: Callable[..., Any]  # (theta, work): right after `score`, for a point that is not learned from
    tick: Callable[..., Any]  # (theta): count an invalid point
    compute_means: Callable[..., Any]  # (theta, out): the means of the ensemble, in standardized units
    location_scale: Callable[..., Any]  # (theta, i, work) → center and spread of variable i, in standardized units
    # (theta, i, work) → by how much the origin of variable i must move now, 0 if it may remain; for 32 bits
    recentering_offset: Callable[..., Any]
    shift_origin: Callable[..., Any]  # (theta, i, shift): move the origin of variable i
    # (theta, work) → ±(1 + the coordinate of the point that is farthest out), + if it is above its expectation
    dominant_variable: Callable[..., Any]
    point_offset: int  # Where `step` stores the standardized point in `work` …
    residual_offset: int  # … and its residual
    # (fits (m, …), points (m, n, d), work, losses (m, n), distances (m, n)): an entry point; −log-density and q of each
    # standardized point
    score_fits: Callable[..., Any]

    def score_under_fit(self, fit: Vector, points: Vector) -> tuple[Vector, Vector]:
        """Return −log-density and squared distance of standardized points under a fit."""
        losses, distances = self.score_under_fits(fit[None], points[None])
        return losses[0], distances[0]

    def score_under_fits(self, fits: Vector, points: Vector) -> tuple[Vector, Vector]:
        """Return (m, n): the same for m streams, each with its fit; points (m, n, d)."""
        losses, distances = np.empty(points.shape[:2]), np.empty(points.shape[:2])
        self.score_fits(fits, np.ascontiguousarray(points), np.empty(self.work_size), losses, distances)
        return losses, distances


@cache
def make_auto_kernels(
    covariance: str,
    K: int,
    d: int,
    lags: int = 0,
    season: int = 0,
    has_ring: bool = True,
    profile: MemoryProfile = FULL,
) -> AutoKernels:
    """Return the automatic learner for K components in d dimensions.

    0 `lags` is the lag-1 autoregression. With `has_ring`, the latest points are stored for re-initialization; otherwise
    the change detector stores them.
    """
    component, mixture = COMPONENT_BY_COVARIANCE[covariance], standardized_mixture_kernels(covariance, K, d)
    scorer = make_density_scorer(covariance, K, d)
    float64_slots = profile.float64_slots(d)
    layout = Layout(
        {
            "reference": (float64_slots,),
            "scale": (float64_slots,),
            **({"inverse_scale": (float64_slots,)} if profile.is_full else {}),
            "log_scale": (1,),
            **ensemble_fields(mixture, profile),
            **reinit_fields(K, d, has_ring, profile),
            "value_scorer": (scorer.layout.size,),
            **residual_fields(covariance, d, lags, season, profile),
        }
    )
    ensemble = make_ensemble_kernels(component, mixture, layout, K, d, profile)
    residual_kernels = make_residual_scorer(layout, covariance, d, lags, season, profile)
    reference, scale, is_full = layout.offset("reference"), layout.offset("scale"), profile.is_full
    inverse_scale = layout.offset("inverse_scale") if is_full else -1
    log_scale, value, experts = (layout.offset(name) for name in ("log_scale", "value_scorer", "experts"))
    score_value, learn_value = scorer.score, scorer.learn
    replace_core, swap_value = scorer.replace_core, scorer.swap_core
    check_ensemble_rejection, learn_ensemble = ensemble.check_rejection, ensemble.learn
    best_expert, update_reinit_evidence = ensemble.best_expert, make_reinit_kernel(layout, K, d, profile)
    deseason, learn_residual = residual_kernels.deseason, residual_kernels.learn
    observe_residual_only, share = residual_kernels.observe_only, residual_kernels.share
    expert_size, surprise_factor = layout.fields["experts"][1], min(1.0, MAX_VARIABLES_IN_NATS / d)
    size, add_variances, distance_offset = component.n_parameters(d), component.add_variances, mixture.distance_offset
    max_coordinate = MAX_FLOAT32_COORDINATE if profile.is_float32 else MAX_ABS_COORDINATE
    # Offsets in the workspace.
    point_offset, residual_offset, value_work_offset = 0, d, 2 * d
    residual_work_offset = value_work_offset + scorer.work_size
    ensemble_work_offset = residual_work_offset + residual_kernels.work_size
    variances_offset = ensemble_work_offset + ensemble.work_size
    work_size = variances_offset + d

    @kernel
    def standardize_point(theta: Vector, y: Vector, work: Vector, n_missing: int) -> float:
        """Standardize and deseasonalize a point; return the log unit of its density."""
        origin = theta[reference : reference + float64_slots].view(np.float64)
        scales = theta[scale : scale + float64_slots].view(np.float64)
        unit = 1.0 * theta[log_scale]
        for i in range(d):
            x = (y[i] - origin[i]) * theta[inverse_scale + i] if is_full else (y[i] - origin[i]) / scales[i]
            work[point_offset + i] = max(min(x, max_coordinate), -max_coordinate)
            if n_missing > 0 and y[i] != y[i]:
                work[point_offset + i] = math.nan
                unit -= log(scales[i])
        deseason(theta, work[point_offset : point_offset + d])
        return unit

    def make_score(score_residual: Callable[..., Any]) -> Callable[..., Any]:
        @kernel
        def score_point(
            theta: Vector, y: Vector, settings: Vector, work: Vector, n_missing: int
        ) -> tuple[float, float, float, float]:
            unit = standardize_point(theta, y, work, n_missing)
            point, residual = work[point_offset : point_offset + d], work[residual_offset : residual_offset + d]
            missing, observed = n_missing > 0, d - n_missing
            first, excess, q = score_value(theta[value:], point, settings, work[value_work_offset:], missing, observed)
            second, residual_excess, p = score_residual(
                theta, point, residual, settings, work[residual_work_offset:], missing, observed
            )
            score = first + share * second + (1.0 + share) * unit
            return score, (excess + share * residual_excess) * surprise_factor, q, p

        return score_point

    score_point = make_score(residual_kernels.score_residual)

    @kernel
    def step(
        theta: Vector, y: Vector, settings: Vector, work: Vector, n_missing: int
    ) -> tuple[float, float, float, float, bool, bool]:
        score, surprise, q, p = score_point(theta, y, settings, work, n_missing)
        point, residual = work[point_offset : point_offset + d], work[residual_offset : residual_offset + d]
        missing, ensemble_work, takeover = n_missing > 0, work[ensemble_work_offset:], False
        rejected, squared_distance = check_ensemble_rejection(theta, point, settings, ensemble_work, missing)
        if not rejected:
            takeover = learn_ensemble(theta, point, settings, ensemble_work, missing)
        needs_reinit = update_reinit_evidence(theta, point, rejected, takeover)
        out_of_core, residual_out_of_core = q > settings[CORE_GAMMA_SQUARED], p > settings[CORE_GAMMA_SQUARED]
        if learn_value(theta[value:], point, settings, work[value_work_offset:], out_of_core, missing):
            if K == 1:
                swap_value(theta[value:])
            else:
                replace_core(theta[value:], theta[experts + best_expert(theta) * expert_size :])
        residual_work = work[residual_work_offset:]
        change_score = learn_residual(
            theta, point, residual, settings, residual_work, residual_out_of_core, out_of_core, missing
        )
        return score, change_score, surprise, squared_distance, rejected, needs_reinit

    @kernel
    def check_rejection(theta: Vector, y: Vector, settings: Vector, work: Vector, n_missing: int) -> tuple[bool, float]:
        standardize_point(theta, y, work, n_missing)
        point = work[point_offset : point_offset + d]
        return check_ensemble_rejection(theta, point, settings, work[ensemble_work_offset:], n_missing > 0)

    @kernel
    def observe_only(theta: Vector, work: Vector) -> None:
        observe_residual_only(theta, work[point_offset : point_offset + d], work[residual_work_offset:])

    @kernel
    def dominant_variable(theta: Vector, work: Vector) -> float:
        """Return the dominant variable, by the nearest component of the core."""
        nearest = 0
        for k in range(1, K):
            if work[value_work_offset + distance_offset + k] < work[value_work_offset + distance_offset + nearest]:
                nearest = k
        variances = work[variances_offset : variances_offset + d]
        base = value + K + nearest * size
        for i in range(d):
            variances[i] = 0.0
        add_variances(theta, base, d, variances, 1.0)
        max_ratio, result = -1.0, 1.0
        for i in range(d):
            delta = work[point_offset + i] - theta[base + i]
            if delta * delta / variances[i] > max_ratio:
                max_ratio = delta * delta / variances[i]
                result = (1.0 + i) if delta > 0.0 else -(1.0 + i)
        return result

    evaluate, whitened = mixture.evaluate, mixture.norms["whitened"]

    def score_fits(fits, points, work, losses, distances):  # type: ignore[no-untyped-def]
        for s in range(len(points)):
            fit = fits[s]
            for t in range(points.shape[1]):
                has_missing = False
                for i in range(d):
                    has_missing = has_missing or math.isnan(points[s, t, i])
                losses[s, t] = evaluate(fit, points[s, t], fit, work, has_missing)
                distances[s, t] = whitened(fit, points[s, t], fit, work, has_missing)

    return AutoKernels(
        K,
        lags,
        season,
        profile,
        component,
        scorer,
        residual_kernels.scorer,
        layout,
        work_size,
        score_point,
        make_score(residual_kernels.score_isolated_residual),
        step,
        check_rejection,
        observe_only,
        residual_kernels.tick,
        ensemble.compute_means,
        ensemble.location_scale,
        *make_recentering_kernels(ensemble, component, layout, K, d, profile),
        dominant_variable,
        point_offset,
        residual_offset,
        jit_entry_point(score_fits, releases_gil=True),
    )


def make_recentering_kernels(
    ensemble: ExpertEnsemble, component: Component, layout: Layout, K: int, d: int, profile: MemoryProfile
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return `recentering_offset` and `shift_origin` of `AutoKernels`.

    Numbers of 32 bits cannot resolve points far from the origin. If the estimate is far from the origin in its standard
    deviations, the origin is moved there, and all standardized values are shifted. Spreads remain, because their
    relative precision does not depend on their size.
    """
    n_experts, expert_size = layout.fields["experts"]
    reference, scale, experts, value = map(layout.offset, ("reference", "scale", "experts", "value_scorer"))
    float64_slots, size, counts = profile.float64_slots(d), component.n_parameters(d), layout.offset("counts")
    has_ring = "recent_points" in layout.fields
    ring, ring_length = (layout.offset("recent_points"), layout.fields["recent_points"][0]) if has_ring else (0, 0)
    missing_value, location_scale = missing_sentinel(profile), ensemble.location_scale

    @kernel
    def recentering_offset(theta: Vector, i: int, work: Vector) -> float:
        if theta[counts + SLOWEST_EXPERT] % REVIEW_INTERVAL_POINTS != 0.0:
            return 0.0
        center, spread = location_scale(theta, i, work)
        return center if abs(center) > RECENTER_THRESHOLD_SD * spread else 0.0

    @kernel
    def shift_mixture(theta: Vector, base: int, components: int, i: int, shift: float) -> None:
        for k in range(components):
            theta[base + components + k * size + i] -= shift

    @kernel
    def shift_origin(theta: Vector, i: int, shift: float) -> None:
        origin = theta[reference : reference + float64_slots].view(np.float64)
        unit = theta[scale : scale + float64_slots].view(np.float64)
        origin[i] += unit[i] * shift
        for e in range(n_experts):
            shift_mixture(theta, experts + e * expert_size, K, i, shift)
        shift_mixture(theta, value, K, i, shift)
        shift_mixture(theta, value + expert_size, 1, i, shift)
        for j in range(ring_length):
            if theta[ring + j * d + i] != missing_value:
                theta[ring + j * d + i] -= shift

    return recentering_offset, shift_origin
