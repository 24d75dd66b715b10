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
SMALLEST_VARIANCE = 1e-12
WIDENED = 1.3  # a few points, the least likely put aside, look narrower than what they come from
NUDGE = 0.05  # standard deviations


@cache
def trimmed_em(component: Component) -> Callable[..., Any]:
    """The compiled fit for a family of components, of any number and dimension.

    (points (n, d), near (n,), best, seeds (S, K, 2), K, size, work_size): best = [ weights (K) | components (K·size) ]
    receives the fit whose likelihood of the points kept is the largest, out of one for each row of random numbers.
    Only points that are `near` are looked at. In the functions below `fit` is laid out as `best` is.
    """
    evaluate, advance = component.evaluate, component.advance
    place, spread, widen = component.place, component.spread, component.widen
    stamp = fingerprint([evaluate, advance, place, spread, widen])

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
        fit: Vector, points: Vector, near: Flags, K: int, size: int, work: Vector, shares: Vector, likelihood: Vector
    ) -> None:
        """The responsibilities, and the log-likelihood of each point; −∞ for those that are not near."""
        n, d = points.shape
        for t in range(n):
            top = -math.inf
            for k in range(K):
                exponent, precision, _ = evaluate(fit, K + k * size, points.reshape(-1), t * d, d, work, 0)
                shares[t, k] = exponent + 0.5 * log(precision) + log(fit[k])
                top = max(top, shares[t, k])
            total = 0.0
            for k in range(K):
                shares[t, k] = exp(shares[t, k] - top)
                total += shares[t, k]
            shares[t] /= total
            likelihood[t] = top + log(total) if near[t] else -math.inf

    @kernel
    def maximise(fit: Vector, points: Vector, kept: Rows, K: int, size: int, shares: Vector, variances: Vector) -> None:
        """Weighted moments, as a run of the same step that learns from the stream; then each component is blended with
        the pooled variances, the more the fewer points it has."""
        d = points.shape[1]
        n_kept = len(kept)
        variances[:] = 0.0
        for k in range(K):
            mass = 0.0
            for t in kept:
                if shares[t, k] > 1e-9:
                    mass += shares[t, k]
                    advance(fit, K + k * size, points.reshape(-1), t * d, d, shares[t, k] / mass, False)
            fit[k] = (mass + 0.5) / (n_kept + 0.5 * K)
            spread(fit, K + k * size, d, variances, mass / n_kept)
        correction = WIDENED * n_kept / max(n_kept - K, 1.0)  # K means have been fitted
        for i in range(d):
            variances[i] = at_least(correction * variances[i], SMALLEST_VARIANCE)
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

    def fit_points(points, near, best, seeds, K, size, work_size):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        n, d = points.shape
        work, variances = np.empty(work_size + 1), np.empty(d)
        fit, shares, likelihood = np.empty(len(best)), np.empty((n, K)), np.empty(n)
        n_near = int(np.sum(near))
        n_kept = n_near - int(TRIMMED * n_near)
        best_likelihood = -math.inf
        for s in range(len(seeds)):
            put_seeds(fit, points, near, K, size, seeds[s], variances, likelihood)
            kept = np.flatnonzero(near)
            for _ in range(ROUNDS):
                expect(fit, points, near, K, size, work, shares, likelihood)
                kept = np.argsort(-likelihood, kind="mergesort")[:n_kept]
                maximise(fit, points, kept, K, size, shares, variances)
            expect(fit, points, near, K, size, work, shares, likelihood)
            total = np.sum(np.sort(likelihood)[n - n_kept :])
            if s == 0 or total > best_likelihood:
                best_likelihood = total
                best[:] = fit
        nudge(best, d, K, size, seeds[0], variances)

    return compiled(fit_points, allocates=True)
