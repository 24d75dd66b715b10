"""The start of a mixture from a handful of points, some of which may be outliers.

Points that lie far out and alone are put aside. Then trimmed EM: from several seedings, the best fit to the points
that are left when the least likely tenth is put aside as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.models.component import Component
from holdfast.scheme.compiling import compiled, fingerprint
from holdfast.scheme.elementary import at_least, exp, log
from holdfast.scheme.state import Vector

SEEDINGS = 20
ROUNDS = 15
TRIMMED = 0.1  # share of the points that may be outliers
FAR = 5.0  # spreads from the median beyond which a first point has to have company
COMPANY = 0.25  # of its distance from the median: whoever is as near to it as this keeps it company
SEED_VARIANCE = 0.1  # narrow, so that the first round assigns each point to the nearest seed
SMALLEST = 1e-12
NUDGE = 0.05  # standard deviations
WIDENED = 1.3  # a few points, the least likely put aside, look narrower than what they come from


def frame_of(points: Vector) -> tuple[Vector, Vector]:
    """Median and spread of each column; the spread is never zero, and its square neither vanishes nor overflows.

    >>> frame_of(np.array([[1.0], [2.0], [3.0], [4.0], [100.0]]))
    (array([3.]), array([1.4826]))
    """
    reference = np.nanmedian(points, axis=0)
    deviations = np.abs(points - reference)
    spread = 1.4826 * np.nanmedian(deviations, axis=0)
    spread = np.where(spread > 0.0, spread, np.nanmean(deviations, axis=0))
    spread = np.where(spread > 0.0, spread, np.abs(reference))
    spread = np.where((spread > 0.0) & np.isfinite(spread), spread, 1.0)
    return reference, np.clip(spread, 1e-150, 1e150)


def trustworthy(points: Vector, K: int) -> npt.NDArray[np.bool_]:
    """Which points to start from: not those far from the median, unless they have company enough to be a component.

    >>> trustworthy(np.array([[0.1], [0.2], [0.3], [0.4], [90.0]]), 2)
    array([ True,  True,  True,  True, False])
    >>> trustworthy(np.array([[0.1], [0.2], [0.3], [0.4], [90.0], [91.0]]), 2).all()
    np.True_
    """
    reference, scale = frame_of(points)
    scaled = (points - reference) / scale
    near = np.abs(scaled).max(axis=1) <= FAR
    if K > 1:
        gaps = np.linalg.norm(scaled[:, None] - scaled[None], axis=2)
        close = gaps <= COMPANY * np.linalg.norm(scaled, axis=1)[:, None]
        near |= close.sum(axis=1) - 1 >= max(1.0, TRIMMED * len(points))
    enough = 2 * near.sum() > len(points)  # if not, there is no majority to speak of: every point counts
    return near if enough else np.ones(len(points), bool)


def start_mixture(
    component: Component,
    theta: Vector,
    points: Vector,
    K: int,
    d: int,
    log_unit: float,
    framed: bool,
    seed: int,
) -> None:
    """Fills theta (laid out as `mixture_layout` says) from the first points, NaN where a coordinate is missing."""
    reference, scale = frame_of(points) if framed else (np.zeros(d), np.ones(d))
    theta[:] = 0.0
    theta[:d] = reference
    theta[d : 2 * d] = scale
    theta[2 * d : 3 * d] = 1.0 / scale
    theta[3 * d] = np.sum(np.log(scale)) + d * log_unit
    complete = np.where(np.isnan(points), np.nanmedian(points, axis=0), points)
    scaled = np.ascontiguousarray((complete - reference) / scale)
    seeds = np.random.default_rng(seed).random((SEEDINGS if K > 1 else 1, K, 2))
    fit = trimmed_em(component)
    fit(scaled, trustworthy(complete, K), theta[3 * d + 2 :], K, component.size(d), seeds, component.work(d))


@cache
def trimmed_em(component: Component) -> Callable[..., Any]:
    """The compiled fit for a family of components, of any number and dimension."""
    evaluate, advance = component.evaluate, component.advance
    place, spread, widen = component.place, component.spread, component.widen
    stamp = fingerprint([evaluate, advance, place, spread, widen])

    def fit(points, near, best, K, size, seeds, work_size):  # type: ignore[no-untyped-def]
        """best = [ weights (K) | components (K · size) ]: receives the fit with the largest trimmed likelihood."""
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        n, d = points.shape
        flat = points.reshape(-1)
        work = np.empty(work_size + 1)
        trial = np.empty(len(best))
        shares = np.empty((n, K))
        exponents = np.empty(K)
        likelihood = np.empty(n)
        variances = np.empty(d)
        kept = np.empty(n, np.bool_)
        n_near = int(np.sum(near))
        n_kept = n_near - int(TRIMMED * n_near)
        best_likelihood = -math.inf

        for s in range(len(seeds)):
            # Seeds: points drawn with a probability that grows with the squared distance from those already drawn, up
            # to the median: the farthest point, most likely an outlier, is no more likely than the next ones.
            variances[:] = SEED_VARIANCE
            for k in range(K):
                for t in range(n):
                    closest = 1.0 if k == 0 else math.inf
                    for other in range(k):
                        gap = 0.0
                        for i in range(d):
                            gap += (points[t, i] - trial[K + other * size + i]) ** 2
                        closest = min(closest, gap)
                    likelihood[t] = closest
                most, mass = np.median(likelihood), 0.0
                for t in range(n):
                    likelihood[t] = min(likelihood[t], most) if near[t] else 0.0
                    mass += likelihood[t]
                drawn, aim = 0, seeds[s, k, 0] * mass
                for t in range(n):
                    if near[t] and (aim >= 0.0 or mass == 0.0):
                        drawn = t
                    aim -= likelihood[t]
                trial[k] = 1.0 / K
                place(trial, K + k * size, flat, drawn * d, d, variances)
                if k > 0 and mass <= 0.0:  # as many distinct points as components there are not: set them apart
                    for i in range(d):
                        trial[K + k * size + i] += 0.1 * (seeds[s, k, 1] - 0.5)
            for t in range(n):
                kept[t] = near[t]

            trimmed_likelihood = -math.inf
            for iteration in range(ROUNDS + 1):
                # E-step, and the likelihood of each point.
                for t in range(n):
                    top = -math.inf
                    for k in range(K):
                        e, precision, _ = evaluate(trial, K + k * size, flat, t * d, d, work, 0)
                        exponents[k] = e + 0.5 * log(precision) + log(trial[k])
                        top = max(top, exponents[k])
                    total = 0.0
                    for k in range(K):
                        shares[t, k] = exp(exponents[k] - top)
                        total += shares[t, k]
                    for k in range(K):
                        shares[t, k] /= total
                    likelihood[t] = top + log(total) if near[t] else -math.inf
                order = np.argsort(-likelihood, kind="mergesort")
                trimmed_likelihood = 0.0
                for rank in range(n):
                    kept[order[rank]] = rank < n_kept
                    if rank < n_kept:
                        trimmed_likelihood += likelihood[order[rank]]
                if iteration == ROUNDS:
                    break
                # M-step: weighted moments, as a run of the same step that learns from the stream.
                variances[:] = 0.0
                for k in range(K):
                    mass = 0.0
                    for t in range(n):
                        if kept[t] and shares[t, k] > 1e-9:
                            mass += shares[t, k]
                            advance(trial, K + k * size, flat, t * d, d, shares[t, k] / mass, False)
                    trial[k] = (mass + 0.5) / (n_kept + 0.5 * K)
                    spread(trial, K + k * size, d, variances, mass / n_kept)
                for i in range(d):
                    correction = WIDENED * n_kept / max(n_kept - K, 1.0)  # K means have been fitted
                    variances[i] = at_least(correction * variances[i], SMALLEST)
                for k in range(K):
                    mass = trial[k] * (n_kept + 0.5 * K) - 0.5
                    widen(trial, K + k * size, d, variances, (d + 1.0) / (mass + d + 1.0))

            if trimmed_likelihood > best_likelihood:
                best_likelihood = trimmed_likelihood
                best[:] = trial

        # Two components at one place would stay together for ever: a nudge lets them part if the stream asks for it.
        for k in range(1, K):
            for other in range(k):
                variances[:] = 0.0
                spread(best, K + k * size, d, variances, 1.0)
                gap = 0.0
                for i in range(d):
                    gap += (best[K + k * size + i] - best[K + other * size + i]) ** 2 / variances[i]
                if gap < NUDGE * NUDGE:
                    for i in range(d):
                        best[K + k * size + i] += NUDGE * (1.0 + seeds[0, k, 1]) * math.sqrt(variances[i])

    return compiled(fit, allocates=True)
