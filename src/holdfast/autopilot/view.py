"""A view of the stream for scoring: a slow core, and a companion that remembers what the core rejected.

The core learns slowly and drops what lies far out, so that an outlier cannot widen it. What it drops teaches the
companion: an outlier that keeps coming back is soon forgiven, a new one is not. Both are read with the heavy tails of
Student's t, so that the score grows with the logarithm of the distance. When most points are dropped for long, the
regime has changed, and the one who calls installs a new core; the old one becomes the companion: a regime that
returns is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from holdfast.models.gaussian_mixture import COMPONENTS, bare_mixture
from holdfast.scheme.abreast import three_logs
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import at_least, exp, log, step_of
from holdfast.scheme.state import Layout, Vector

FREEDOM = 3.0  # degrees of freedom of Student's t
SLOWLY = 0.0003  # the least step of the core
COMPANIONS_STEP = 0.02
UNFORGOTTEN = 0.15  # share of the score that the companion has no say in: forgiven is not forgotten
RARELY, OFTEN = 0.001, 0.5  # between which the share of rejected points is taken to lie
LONG = 100.0  # points over which rejected ones have to be the majority
FRESH = 50.0  # points that a newly installed core goes by
FEW = 3  # coordinates whose densities cannot overflow
NARROWEST = 1e-4  # the companion's variance in units of the core's

# tally = [ points in the core | in the companion | share rejected | points it was learnt from | share rejected lately ]
IN_CORE, IN_COMPANION, SHARE, COUNTED, LATELY = range(5)


@dataclass(frozen=True, eq=False)
class View:
    """The compiled functions of a view; `own` is its part of theta, laid out by `layout`."""

    layout: Layout
    work_size: int

    assess: Callable[..., Any]
    """(own, point, hyper, work, missing, observed) → (−log density, the same in excess of the core's best, q).

    observed: how many coordinates are not missing. Leaves in `work` what `learn` needs."""

    learn: Callable[..., Any]
    """(own, point, hyper, work, rejected, missing) → whether rejected points have been the majority for long."""

    swap: Callable[..., Any]
    """(own): companion and core change places; for one component."""

    install: Callable[..., Any]
    """(own, core): what was the core becomes the companion, all of its components in one; this is the new core."""


@cache
def view_functions(covariance: str, K: int, d: int) -> View:
    """A view with a core of K components in d dimensions."""
    component, core, one = COMPONENTS[covariance], bare_mixture(covariance, K, d), bare_mixture(covariance, 1, d)
    layout = Layout({"core": (core.layout.size,), "companion": (one.layout.size,), "tally": (5,)})
    companion, tally = layout.at("companion"), layout.at("tally")
    core_area, areas = core.work_size, core.work_size + one.work_size
    evaluate, advance, whitened = core.evaluate, core.advance, core.norms["whitened"]
    evaluate_one, advance_one = one.evaluate, one.advance
    spread, widen, advance_component = component.spread, component.widen, component.advance
    size = component.size(d)
    precision_at, factor_at, distance_at = core.precision_at, core.factor_at, core.distance_at
    precision_one, factor_one, distance_one = one.precision_at, one.factor_at, one.distance_at
    heights = np.array([log_height(o) for o in range(d + 1)])

    @kernel
    def fall(q: float) -> float:
        """How much lower than at its centre Student's t is at the squared distance q, with all coordinates observed."""
        squared = 1.0 / (1.0 + q * (1.0 / FREEDOM))
        result = squared if d % 2 else squared * math.sqrt(squared)
        for _ in range((d + 1) // 2):
            result *= squared
        return result

    @kernel
    def assess_at_once(own: Vector, work: Vector) -> tuple[float, float]:
        """(surprise, height of the core) from densities as they are: no overflow is in reach with few coordinates."""
        top, inside = 0.0, 0.0
        for k in range(K):
            height = math.sqrt(work[precision_at + k]) * (own[k] if K > 1 else 1.0)
            top += height
            inside += height * fall(work[distance_at + k])
        area = work[core_area:]
        outside = math.sqrt(area[precision_one]) * fall(area[distance_one])
        share = own[tally + SHARE]
        both = (1.0 - share) * inside + share * outside
        log_of_both, log_of_inside, log_of_top = three_logs(both, inside, top)
        return -(1.0 - UNFORGOTTEN) * log_of_both - UNFORGOTTEN * log_of_inside, log_of_top

    @kernel
    def student(height: float, q: float, observed: int) -> float:
        """log density of Student's t: its height, and its fall with the squared distance q."""
        return height - 0.5 * (FREEDOM + observed) * log(1.0 + q * (1.0 / FREEDOM))

    @kernel
    def assess_by_logarithms(own: Vector, work: Vector, observed: int) -> tuple[float, float]:
        """The same for any number of coordinates, some of them missing."""
        top, inside = 0.0, 0.0
        for k in range(K):
            height = 0.5 * log(work[precision_at + k]) + work[factor_at + k]
            if K > 1:
                height += log(own[k])
            here = student(height, work[distance_at + k], observed)
            top, inside = (height, here) if k == 0 else (log_sum(top, height), log_sum(inside, here))
        area = work[core_area:]
        height = 0.5 * log(area[precision_one]) + area[factor_one]
        outside = student(height, area[distance_one], observed)
        share = own[tally + SHARE]
        both = log_sum(inside + log(1.0 - share), outside + log(share))
        return -(1.0 - UNFORGOTTEN) * both - UNFORGOTTEN * inside, top

    @kernel
    def assess(
        own: Vector, point: Vector, hyper: Vector, work: Vector, missing: bool, observed: int
    ) -> tuple[float, float, float]:
        evaluate(own, point, hyper, work, missing)
        evaluate_one(own[companion:], point, hyper, work[core_area:], missing)
        q = whitened(own, point, hyper, work, missing)
        if d == 1 or (d <= FEW and not missing):  # a point without its only coordinate cannot be used
            surprise, top = assess_at_once(own, work)
        else:
            surprise, top = assess_by_logarithms(own, work, observed)
        return surprise - heights[observed], surprise + top, q

    @kernel
    def learn(own: Vector, point: Vector, hyper: Vector, work: Vector, rejected: bool, missing: bool) -> bool:
        own[tally + COUNTED] += 1.0
        step = step_of(own[tally + COUNTED], SLOWLY)
        flag = 1.0 if rejected else 0.0
        share = own[tally + SHARE] + step * (flag - own[tally + SHARE])
        own[tally + SHARE] = OFTEN if share > OFTEN else at_least(share, RARELY)
        own[tally + LATELY] += (flag - own[tally + LATELY]) * (1.0 / LONG)
        if not rejected:
            own[tally + IN_CORE] += 1.0
            advance(own, point, hyper, work, step_of(own[tally + IN_CORE], SLOWLY), missing)
            return False
        own[tally + IN_COMPANION] += 1.0
        step = step_of(own[tally + IN_COMPANION], COMPANIONS_STEP)
        variances = work[areas:]
        for i in range(d):
            variances[i] = 0.0
        for k in range(K):
            spread(own, K + k * size, d, variances, own[k])
        advance_one(own[companion:], point, hyper, work[core_area:], step, missing)
        widen(own, companion + 1, d, variances, step * NARROWEST)
        return own[tally + LATELY] > 0.5

    @kernel
    def swap(own: Vector) -> None:
        for i in range(1 + size):
            own[i], own[companion + i] = own[companion + i], own[i]
        new, old = own[tally + IN_COMPANION], own[tally + IN_CORE]
        own[tally + IN_CORE], own[tally + IN_COMPANION] = (new if new < LONG else LONG), old
        own[tally + LATELY] = 0.0

    @kernel
    def install(own: Vector, new: Vector) -> None:
        mass = 0.0
        for k in range(K):
            mass += own[k]
            if k == 0:
                for i in range(size):
                    own[companion + 1 + i] = own[K + i]
            else:
                advance_component(own, companion + 1, own, K + k * size, d, own[k] / mass, True)
        for i in range(companion):
            own[i] = new[i]
        own[tally + IN_CORE], own[tally + IN_COMPANION] = FRESH, own[tally + IN_CORE]
        own[tally + LATELY] = 0.0

    return View(layout, areas + d, assess, learn, swap, install)


def log_height(observed: int) -> float:
    """log of the density of Student's t at its centre, for a unit scale in so many dimensions."""
    half = 0.5 * (FREEDOM + observed)
    return math.lgamma(half) - math.lgamma(0.5 * FREEDOM) - 0.5 * observed * math.log(FREEDOM * math.pi)


@kernel
def log_sum(a: float, b: float) -> float:
    """log(e^a + e^b)."""
    high, low = (a, b) if a > b else (b, a)
    return high + log(1.0 + exp(low - high))
