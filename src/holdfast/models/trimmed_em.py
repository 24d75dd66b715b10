"""EM for a handful of points, the least likely of which are left out in every round."""

from __future__ import annotations

import math
from collections.abc import Callable
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
TRIMMED = 0.1  # share of the points that may be outliers
SEED_VARIANCE = 0.1  # narrow, so that the first round assigns each point to the nearest seed
WIDENED = 1.3  # a few points, the least likely put aside, look narrower than what they come from
NUDGE = 0.05  # standard deviations


@cache
def trimmed_em(component: Component) -> Callable[..., Any]:
    """The compiled fit for a family of components, of any number and dimension.

    (points (n, d), filled (n, d), near (n,), best, seeds (S, K, 2), floors (d,), K, size, work_size):
    best = [ weights (K) | components (K·size) ] receives the fit whose likelihood of the points kept is the largest,
    out of one for each row of random numbers; `fit` below is laid out as it is. Only points that are `near` are looked
    at. A NaN in `points` is missing and integrated out; `filled` has a guess there, for the seeds. floors: the least
    variances that the components are blended with.
    """
    evaluate, complete, advance = component.evaluate, component.complete, component.advance
    place, spread, widen = component.place, component.spread, component.widen
    stamp = fingerprint([evaluate, complete, advance, place, spread, widen])

    @kernel
    def put_seeds(
        fit: Vector, points: Vector, near: Flags, K: int, size: int, draws: Vector, variances: Vector, chances: Vector
    ) -> None:
        """Components at points drawn with a probability that grows with the squared distance from those already drawn,
        up to the median: the farthest point, most likely an outlier, is no more likely than the next ones."""
        n, d = points.shape
        variances[:] = SEED_VARIANCE
        for k in range(K):
            for t in range(n):
                chances[t] = 1.0 if k == 0 else math.inf
                for other in range(k):
                    gap = 0.0
                    for i in range(d):
                        gap += (points[t, i] - fit[K + other * size + i]) ** 2
                    chances[t] = min(chances[t], gap)
            most, mass = np.median(chances), 0.0
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
    def expect(
        fit: Vector,
        points: Vector,
        near: Flags,
        K: int,
        size: int,
        work: Vector,
        completed: Vector,
        shares: Vector,
        likelihood: Vector,
    ) -> None:
        """The responsibilities, each point as each component completes it, and the log-likelihood of each point: −∞ for
        those that are not near."""
        n, d = points.shape
        for t in range(n):
            gaps = np.isnan(points[t]).any()
            top = -math.inf
            for k in range(K):
                at, flat = K + k * size, points.reshape(-1)
                if gaps:
                    exponent, precision, _ = complete(fit, at, flat, t * d, d, work, 0, completed, (t * K + k) * size)
                else:
                    exponent, precision, _ = evaluate(fit, at, flat, t * d, d, work, 0)
                shares[t, k] = exponent + 0.5 * log(precision) + log(fit[k])
                top = max(top, shares[t, k])
            total = 0.0
            for k in range(K):
                shares[t, k] = exp(shares[t, k] - top)
                total += shares[t, k]
            shares[t] /= total
            likelihood[t] = top + log(total) if near[t] else -math.inf

    @kernel
    def maximise(
        fit: Vector,
        points: Vector,
        kept: Rows,
        K: int,
        size: int,
        completed: Vector,
        shares: Vector,
        variances: Vector,
        floors: Vector,
    ) -> None:
        """Weighted moments, as a run of the same step that learns from the stream; then each component is blended with
        the pooled variances, the more the fewer points it has."""
        d = points.shape[1]
        n_kept = len(kept)
        variances[:] = 0.0
        for k in range(K):
            mass, at = 0.0, K + k * size
            for t in kept:
                r = shares[t, k]
                if r > 1e-9:
                    mass += r
                    if np.isnan(points[t]).any():
                        advance(fit, at, completed, (t * K + k) * size, d, r / mass, True)
                    else:
                        advance(fit, at, points.reshape(-1), t * d, d, r / mass, False)
            fit[k] = (mass + 0.5) / (n_kept + 0.5 * K)
            spread(fit, at, d, variances, mass / n_kept)
        correction = WIDENED * n_kept / max(n_kept - K, 1.0)  # K means have been fitted
        for i in range(d):
            variances[i] = at_least(correction * variances[i], floors[i])
        for k in range(K):
            mass = fit[k] * (n_kept + 0.5 * K) - 0.5
            widen(fit, K + k * size, d, variances, (d + 1.0) / (mass + d + 1.0))

    @kernel
    def nudge(fit: Vector, d: int, K: int, size: int, draws: Vector, variances: Vector) -> None:
        """Two components at one place would stay together for ever: now they can part, if the stream asks for it."""
        for k in range(1, K):
            for other in range(k):
                variances[:] = 0.0
                spread(fit, K + k * size, d, variances, 1.0)
                gap = 0.0
                for i in range(d):
                    gap += (fit[K + k * size + i] - fit[K + other * size + i]) ** 2 / variances[i]
                if gap < NUDGE * NUDGE:
                    for i in range(d):
                        fit[K + k * size + i] += NUDGE * (1.0 + draws[k, 1]) * math.sqrt(variances[i])

    def fit_points(points, filled, near, best, seeds, floors, K, size, work_size):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        n, d = points.shape
        work, variances = np.empty(work_size + 1), np.empty(d)
        fit, shares, likelihood = np.empty(len(best)), np.empty((n, K)), np.empty(n)
        completed = np.empty(n * K * size)
        observed = np.empty(n)  # coordinates of each point: one with gaps is likelier only for having fewer
        for t in range(n):
            observed[t] = d - np.sum(np.isnan(points[t]))
        n_near = int(np.sum(near))
        n_kept = n_near - int(TRIMMED * n_near)
        best_likelihood = -math.inf
        for s in range(len(seeds)):
            put_seeds(fit, filled, near, K, size, seeds[s], variances, likelihood)
            kept = np.flatnonzero(near)
            for _ in range(ROUNDS):
                expect(fit, points, near, K, size, work, completed, shares, likelihood)
                kept = np.argsort(-likelihood / observed, kind="mergesort")[:n_kept]
                maximise(fit, points, kept, K, size, completed, shares, variances, floors)
            expect(fit, points, near, K, size, work, completed, shares, likelihood)
            total = np.sum(np.sort(likelihood)[n - n_kept :])
            if s == 0 or total > best_likelihood:
                best_likelihood = total
                best[:] = fit
        nudge(best, d, K, size, seeds[0], variances)

    return compiled(fit_points, allocates=True)
