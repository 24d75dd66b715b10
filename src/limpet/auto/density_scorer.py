"""Density scorer: a slow core mixture, and a component for rejected points.

The core learns slowly and rejects far points, so that outliers cannot widen it. Rejected points update the outlier
component: recurring outliers soon get lower scores, new ones do not. Both densities have the heavy tails of Student's
t, so that the score grows with the logarithm of the distance. If most points are rejected for long, the regime has
changed, and the caller installs a new core; the old one becomes the outlier component: a regime that returns gets low
scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from limpet._jit.compile import kernel
from limpet._jit.math import averaging_step, exp, log, maximum
from limpet._jit.simd_transpose import log3
from limpet.core.state import Layout, Vector
from limpet.models.mixture import COMPONENT_BY_COVARIANCE, standardized_mixture_kernels

STUDENT_DEGREES_OF_FREEDOM = 3.0  # degrees of freedom of Student's t
MIN_CORE_STEP = 0.0003
MIN_OUTLIER_STEP = 0.02
CORE_ONLY_SHARE = 0.15  # share of the score from the core alone: recurring outliers keep a higher score
MIN_REJECTED_SHARE, MAX_REJECTED_SHARE = 0.001, 0.5  # bounds of the share of rejected points
MAJORITY_WINDOW_POINTS = 100.0  # over which rejected points must be the majority
NEW_CORE_POINTS = 50.0  # effective sample size of a newly installed core
MAX_DIRECT_COORDINATES = 3  # up to which densities cannot overflow
MIN_OUTLIER_VARIANCE_RATIO = 1e-4  # variance of the outlier component in units of the core's

# tally = [ points of the core | of the outliers | rejected share | points of this share | recent rejected share ]
CORE_COUNT, OUTLIER_COUNT, REJECTED_SHARE, SHARE_COUNT, RECENT_REJECTED_SHARE = range(5)


class DensityScorer(NamedTuple):
    """Compiled functions of a scorer; `state` is its part of theta."""

    layout: Layout
    work_size: int
    # (state, point, hyper, work, missing, observed) → (−log density, surprise: its excess over the core's mode, q).
    # observed: the number of coordinates that are not missing. Stores in `work` what `learn` needs.
    score: Callable[..., Any]
    # (state, point, hyper, work, rejected, missing) → whether rejected points have been the majority for long
    learn: Callable[..., Any]
    swap_core: Callable[..., Any]  # (state): exchange core and outlier component; for one component
    # (state, core): install a new core; the old one becomes the outlier component, its components merged
    replace_core: Callable[..., Any]


@cache
def make_density_scorer(covariance: str, K: int, d: int) -> DensityScorer:
    """Return a scorer with a core of K components in d dimensions."""
    component, core = COMPONENT_BY_COVARIANCE[covariance], standardized_mixture_kernels(covariance, K, d)
    outlier_mixture = standardized_mixture_kernels(covariance, 1, d)
    layout = Layout({"core": (core.layout.size,), "outliers": (outlier_mixture.layout.size,), "tally": (5,)})
    outlier_offset, tally_offset = layout.offset("outliers"), layout.offset("tally")
    core_work_size, variances_offset = core.work_size, core.work_size + outlier_mixture.work_size
    evaluate, advance, whitened = core.evaluate, core.advance, core.norms["whitened"]
    evaluate_outlier, advance_outlier = outlier_mixture.evaluate, outlier_mixture.advance
    add_variances, regularize, advance_component = component.add_variances, component.regularize, component.advance
    size = component.n_parameters(d)
    precision_offset, factor_offset, distance_offset = core.precision_offset, core.factor_offset, core.distance_offset
    outlier_precision_offset, outlier_factor_offset = outlier_mixture.precision_offset, outlier_mixture.factor_offset
    outlier_distance_offset = outlier_mixture.distance_offset
    log_heights = np.array([log_height(o) for o in range(d + 1)])

    @kernel
    def density_decay(q: float) -> float:
        """Return Student's t at the squared distance q relative to its mode."""
        squared = 1.0 / (1.0 + q * (1.0 / STUDENT_DEGREES_OF_FREEDOM))
        result = squared if d % 2 else squared * math.sqrt(squared)
        for _ in range((d + 1) // 2):
            result *= squared
        return result

    @kernel
    def score_from_densities(state: Vector, work: Vector) -> tuple[float, float]:
        """Return (score, log of the core's mode) from densities, for few coordinates."""
        top, inside = 0.0, 0.0
        for k in range(K):
            height = math.sqrt(work[precision_offset + k]) * (state[k] if K > 1 else 1.0)
            top += height
            inside += height * density_decay(work[distance_offset + k])
        outlier_work = work[core_work_size:]
        height = math.sqrt(outlier_work[outlier_precision_offset])
        outside = height * density_decay(outlier_work[outlier_distance_offset])
        share = state[tally_offset + REJECTED_SHARE]
        mixed = (1.0 - share) * inside + share * outside
        log_of_both, log_of_inside, log_of_top = log3(mixed, inside, top)
        return -(1.0 - CORE_ONLY_SHARE) * log_of_both - CORE_ONLY_SHARE * log_of_inside, log_of_top

    @kernel
    def student_log_density(height: float, q: float, observed: int) -> float:
        """Return the log-density of Student's t at the squared distance q."""
        exponent = 0.5 * (STUDENT_DEGREES_OF_FREEDOM + observed)
        return height - exponent * log(1.0 + q * (1.0 / STUDENT_DEGREES_OF_FREEDOM))

    @kernel
    def score_from_log_densities(state: Vector, work: Vector, observed: int) -> tuple[float, float]:
        """Return the same for any number of coordinates, some of them missing."""
        top, inside = 0.0, 0.0
        for k in range(K):
            height = 0.5 * log(work[precision_offset + k]) + work[factor_offset + k]
            if K > 1:
                height += log(state[k])
            log_density = student_log_density(height, work[distance_offset + k], observed)
            top = height if k == 0 else log_add_exp(top, height)
            inside = log_density if k == 0 else log_add_exp(inside, log_density)
        outlier_work = work[core_work_size:]
        height = 0.5 * log(outlier_work[outlier_precision_offset]) + outlier_work[outlier_factor_offset]
        outside = student_log_density(height, outlier_work[outlier_distance_offset], observed)
        share = state[tally_offset + REJECTED_SHARE]
        mixed = log_add_exp(inside + log(1.0 - share), outside + log(share))
        return -(1.0 - CORE_ONLY_SHARE) * mixed - CORE_ONLY_SHARE * inside, top

    @kernel
    def score(
        state: Vector, point: Vector, hyper: Vector, work: Vector, missing: bool, observed: int
    ) -> tuple[float, float, float]:
        evaluate(state, point, hyper, work, missing)
        evaluate_outlier(state[outlier_offset:], point, hyper, work[core_work_size:], missing)
        q = whitened(state, point, hyper, work, missing)
        if d == 1 or (d <= MAX_DIRECT_COORDINATES and not missing):  # a point without its only coordinate is invalid
            surprise, top = score_from_densities(state, work)
        else:
            surprise, top = score_from_log_densities(state, work, observed)
        return surprise - log_heights[observed], surprise + top, q

    @kernel
    def learn(state: Vector, point: Vector, hyper: Vector, work: Vector, rejected: bool, missing: bool) -> bool:
        state[tally_offset + SHARE_COUNT] += 1.0
        step = averaging_step(state[tally_offset + SHARE_COUNT], MIN_CORE_STEP)
        flag = 1.0 if rejected else 0.0
        share = state[tally_offset + REJECTED_SHARE] + step * (flag - state[tally_offset + REJECTED_SHARE])
        share = MAX_REJECTED_SHARE if share > MAX_REJECTED_SHARE else maximum(share, MIN_REJECTED_SHARE)
        state[tally_offset + REJECTED_SHARE] = share
        recent_share = state[tally_offset + RECENT_REJECTED_SHARE]
        state[tally_offset + RECENT_REJECTED_SHARE] += (flag - recent_share) * (1.0 / MAJORITY_WINDOW_POINTS)
        if not rejected:
            state[tally_offset + CORE_COUNT] += 1.0
            advance(state, point, hyper, work, averaging_step(state[tally_offset + CORE_COUNT], MIN_CORE_STEP), missing)
            return False
        state[tally_offset + OUTLIER_COUNT] += 1.0
        step = averaging_step(state[tally_offset + OUTLIER_COUNT], MIN_OUTLIER_STEP)
        variances = work[variances_offset:]
        for i in range(d):
            variances[i] = 0.0
        for k in range(K):
            add_variances(state, K + k * size, d, variances, state[k])
        advance_outlier(state[outlier_offset:], point, hyper, work[core_work_size:], step, missing)
        regularize(state, outlier_offset + 1, d, variances, step * MIN_OUTLIER_VARIANCE_RATIO)
        return state[tally_offset + RECENT_REJECTED_SHARE] > 0.5

    @kernel
    def swap_core(state: Vector) -> None:
        for i in range(1 + size):
            state[i], state[outlier_offset + i] = state[outlier_offset + i], state[i]
        new, old = state[tally_offset + OUTLIER_COUNT], state[tally_offset + CORE_COUNT]
        state[tally_offset + CORE_COUNT] = new if new < MAJORITY_WINDOW_POINTS else MAJORITY_WINDOW_POINTS
        state[tally_offset + OUTLIER_COUNT] = old
        state[tally_offset + RECENT_REJECTED_SHARE] = 0.0

    @kernel
    def replace_core(state: Vector, new: Vector) -> None:
        mass = 0.0
        for k in range(K):
            mass += state[k]
            if k == 0:
                for i in range(size):
                    state[outlier_offset + 1 + i] = state[K + i]
            else:
                advance_component(state, outlier_offset + 1, state, K + k * size, d, state[k] / mass, True)
        for i in range(outlier_offset):
            state[i] = new[i]
        state[tally_offset + OUTLIER_COUNT] = state[tally_offset + CORE_COUNT]
        state[tally_offset + CORE_COUNT] = NEW_CORE_POINTS
        state[tally_offset + RECENT_REJECTED_SHARE] = 0.0

    return DensityScorer(layout, variances_offset + d, score, learn, swap_core, replace_core)


def log_height(observed: int) -> float:
    """Return the log-density of Student's t at its mode, for unit scale."""
    half, half_degrees = 0.5 * (STUDENT_DEGREES_OF_FREEDOM + observed), 0.5 * STUDENT_DEGREES_OF_FREEDOM
    log_volume = 0.5 * observed * math.log(STUDENT_DEGREES_OF_FREEDOM * math.pi)
    return math.lgamma(half) - math.lgamma(half_degrees) - log_volume


@kernel
def log_add_exp(a: float, b: float) -> float:
    """Return log(e^a + e^b)."""
    high, low = (a, b) if a > b else (b, a)
    return high + log(1.0 + exp(low - high))
