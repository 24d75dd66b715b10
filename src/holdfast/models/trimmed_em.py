"""Fits to a handful of points: EM that leaves out the least likely of them in every round, and plain moments."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.models.component import Component
from holdfast.scheme.compiling import compiled, fingerprint, kernel
from holdfast.scheme.elementary import at_least, exp, log
from holdfast.scheme.state import Vector

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

ROUNDS = 15
SEED_VARIANCE = 0.1  # narrow, so that the first round assigns each point to the nearest seed
WIDENED = 1.3  # a few points, the least likely put aside, look narrower than what they come from
NUDGE = 0.05  # standard deviations


@kernel
def median(values: Vector) -> float:
    """The lower median, by counting: a handful of values is not worth the machine code of a sort."""
    n = len(values)
    for candidate in values:
        below, equal = 0, 0
        for value in values:
            below += value < candidate
            equal += value == candidate
        if 2 * below < n <= 2 * (below + equal):
            return candidate
    return values[0]


@dataclass(frozen=True, eq=False)
class Fits:
    """The compiled fits of a family of components, of any number and dimension."""

    trimmed: Callable[..., Any]
    """(points (n, d), filled (n, d), observed (n,), near (n,), best, seeds (S, K, 2), levels (d, K, d), floors (d,),
    trimmed, K, size, work_size):
    best = [ weights (K) | components (K·size) ] receives the fit whose likelihood of the points kept is the largest,
    out of one for each row of random numbers and, if there are several coordinates, one for each of them, whose
    components begin at `levels`, side by side along it; `fit` below is laid out as it is. Only points that are `near`
    are looked at. A NaN in `points` is missing and integrated out; `filled` has a guess there, for the seeds;
    `observed` counts the other coordinates. floors: the least variances that the components are blended with. trimmed:
    the share of the near points that is left out."""

    moments: Callable[..., Any]
    """(points, observed, near, best, floors, size): the same for one component and whole points, of which none is left
    out: there is nothing to search for, and much less to compile."""


@cache
def fits_of(component: Component) -> Fits:
    """The fits for a family of components."""
    evaluate, complete, advance = component.evaluate, component.complete, component.advance
    place, spread, widen = component.place, component.spread, component.widen
    elliptical = component.elliptical
    stamp = fingerprint([evaluate, complete, advance, place, spread, widen])

    @kernel
    def put_seeds(
        fit: Vector, points: Vector, near: Flags, K: int, size: int, draws: Vector, variances: Vector, chances: Vector
    ) -> None:
        """Components at points drawn with a probability that grows with the squared distance from those already drawn,
        up to the median: the farthest point, most likely an outlier, is no more likely than the next ones."""
        n, d = points.shape
        for i in range(d):
            variances[i] = SEED_VARIANCE
        for k in range(K):
            for t in range(n):
                chances[t] = 1.0 if k == 0 else math.inf
                for other in range(k):
                    gap = 0.0
                    for i in range(d):
                        gap += (points[t, i] - fit[K + other * size + i]) ** 2
                    chances[t] = min(chances[t], gap)
            most = median(chances)
            mass = 0.0
            for t in range(n):
                chances[t] = min(chances[t], most) if near[t] else 0.0
                mass += chances[t]
            drawn, aim = 0, draws[k, 0] * mass
            for t in range(n):
                if near[t] and (aim >= 0.0 or mass == 0.0):
                    drawn = t
                aim -= chances[t]
            fit[k] = 1.0 / K
            place(fit, K + k * size, points.reshape(-1), drawn * d, d, variances)

    @kernel
    def put_levels(fit: Vector, axis: int, levels: Vector, K: int, size: int, variances: Vector) -> None:
        """Components side by side along one coordinate: groups that it tells apart are lost among distances in many."""
        d = len(variances)
        for i in range(d):
            variances[i] = SEED_VARIANCE if i == axis else 1.0
        for k in range(K):
            fit[k] = 1.0 / K
            place(fit, K + k * size, levels.reshape(-1), (axis * K + k) * d, d, variances)

    @kernel
    def expect(
        fit: Vector,
        points: Vector,
        observed: Rows,
        K: int,
        size: int,
        work: Vector,
        completed: Vector,
        shares: Vector,
        likelihood: Vector,
    ) -> None:
        """The responsibilities, each point as each component completes it, and the log-likelihood of each point."""
        n, d = points.shape
        flat = points.reshape(-1)
        for t in range(n):
            top = -math.inf
            for k in range(K):
                at = K + k * size
                if observed[t] < d:
                    exponent, precision, q = complete(fit, at, flat, t * d, d, work, 0, completed, (t * K + k) * size)
                else:
                    exponent, precision, q = evaluate(fit, at, flat, t * d, d, work, 0)
                exponent = exponent - 0.5 * q if elliptical else exponent
                shares[t, k] = exponent + 0.5 * log(precision) + log(fit[k])
                top = max(top, shares[t, k])
            total = 0.0
            for k in range(K):
                shares[t, k] = exp(shares[t, k] - top)
                total += shares[t, k]
            for k in range(K):
                shares[t, k] /= total
            likelihood[t] = top + log(total)

    @kernel
    def trim(kept: Flags, near: Flags, likelihood: Vector, observed: Rows, n_trimmed: int) -> float:
        """Keeps the near points but for those least likely a coordinate (a point with gaps has fewer of them); returns
        the log-likelihood of the points kept."""
        total = 0.0
        for t in range(len(kept)):
            kept[t] = near[t]
            total += likelihood[t] if near[t] else 0.0
        for _ in range(n_trimmed):
            least = -1
            for t in range(len(kept)):
                if kept[t] and (least < 0 or likelihood[t] / observed[t] < likelihood[least] / observed[least]):
                    least = t
            kept[least] = False
            total -= likelihood[least]
        return total

    @kernel
    def maximise(
        fit: Vector,
        points: Vector,
        kept: Flags,
        observed: Rows,
        K: int,
        size: int,
        completed: Vector,
        shares: Vector,
        variances: Vector,
        floors: Vector,
        n_kept: int,
    ) -> None:
        """Weighted moments, as a run of the same step that learns from the stream; then each component is blended with
        the pooled variances, the more the fewer points it has."""
        n, d = points.shape
        flat = points.reshape(-1)
        for i in range(d):
            variances[i] = 0.0
        total = 0.0
        for k in range(K):
            mass, at = 0.0, K + k * size
            for t in range(n):
                r = shares[t, k]
                if kept[t] and r > 1e-9:
                    mass += r
                    if observed[t] < d:
                        advance(fit, at, completed, (t * K + k) * size, d, r / mass, True)
                    else:
                        advance(fit, at, flat, t * d, d, r / mass, False)
            fit[k] = mass
            total += mass
            spread(fit, at, d, variances, mass / n_kept)
        correction = WIDENED * n_kept / max(n_kept - K, 1.0)  # K means have been fitted
        for i in range(d):
            variances[i] = at_least(correction * variances[i], floors[i])
        for k in range(K):
            widen(fit, K + k * size, d, variances, (d + 1.0) / (fit[k] + d + 1.0))
            fit[k] = (fit[k] + 0.5) / (total + 0.5 * K)

    @kernel
    def nudge(fit: Vector, d: int, K: int, size: int, draws: Vector, variances: Vector) -> None:
        """Two components at one place would stay together for ever: now they can part, if the stream asks for it."""
        for k in range(1, K):
            for other in range(k):
                for i in range(d):
                    variances[i] = 0.0
                spread(fit, K + k * size, d, variances, 1.0)
                gap = 0.0
                for i in range(d):
                    gap += (fit[K + k * size + i] - fit[K + other * size + i]) ** 2 / variances[i]
                if gap < NUDGE * NUDGE:
                    for i in range(d):
                        fit[K + k * size + i] += NUDGE * (1.0 + draws[k, 1]) * math.sqrt(variances[i])

    def fit_points(points, filled, observed, near, best, seeds, levels, floors, trimmed, K, size, work_size):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        n, d = points.shape
        work, variances = np.empty(work_size + 1), np.empty(d)
        fit, shares, likelihood = np.empty(len(best)), np.empty((n, K)), np.empty(n)
        completed, kept = np.empty(n * K * size), np.empty(n, np.bool_)
        n_near = 0
        for t in range(n):
            n_near += near[t]
        n_trimmed = int(trimmed * n_near)
        best_total = -math.inf
        for s in range(len(seeds) + len(levels)):
            if s < len(seeds):
                put_seeds(fit, filled, near, K, size, seeds[s], variances, likelihood)
            else:
                put_levels(fit, s - len(seeds), levels, K, size, variances)
            total = 0.0
            for turn in range(ROUNDS + 1):
                expect(fit, points, observed, K, size, work, completed, shares, likelihood)
                total = trim(kept, near, likelihood, observed, n_trimmed)
                if turn < ROUNDS:
                    n_kept = n_near - n_trimmed
                    maximise(fit, points, kept, observed, K, size, completed, shares, variances, floors, n_kept)
            if s == 0 or total > best_total:
                best_total = total
                for i in range(len(best)):
                    best[i] = fit[i]
        nudge(best, d, K, size, seeds[0], variances)

    def moments(points, observed, near, best, floors, size):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018
        n, d = points.shape
        shares, variances, nothing = np.ones((n, 1)), np.empty(d), np.empty(0)
        n_near = 0
        for t in range(n):
            n_near += near[t]
        maximise(best, points, near, observed, 1, size, nothing, shares, variances, floors, n_near)

    return Fits(*(compiled(fit, allocates=True, releases_gil=True) for fit in (fit_points, moments)))
