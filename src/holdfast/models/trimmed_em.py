"""Fits to a handful of points: EM that leaves out the least likely of them in every round, and plain moments.

A fit is laid out as [ weights (K) | components (K·size) ].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.models.component import Component
from holdfast.models.room import Room
from holdfast.models.seeding import draw, is_new
from holdfast.models.trusting import Flags
from holdfast.scheme.compiling import compiled, fingerprint, kernel
from holdfast.scheme.elementary import at_least, exp, log
from holdfast.scheme.state import Vector

ROUNDS = 15
SEED_VARIANCE = 0.1  # narrow, so that the first round assigns each point to the nearest seed
WIDENED = 1.3  # a few points, the least likely put aside, look narrower than what they come from
NUDGE = 0.05  # standard deviations


@dataclass(frozen=True, eq=False)
class Fits:
    """The compiled fits of a family of components, of any number and dimension, for as many streams as there are.

    points (m, n, d): in the coordinates of a frame. trusted (m, n): the points to fit to. floors (m, d): the least
    variances that components are blended with. best (m, K + K·size): receives the fits.
    """

    search: Callable[..., Any]
    """(points, filled (m, n, d), observed (m, n), trusted, floors, best, seeds (S, K, 2), levels (m, L, K, d), trimmed,
    size, room): the fit whose likelihood of the points kept is the largest, out of one for each row of random numbers
    and one for each of the levels, at which the components begin. A NaN in `points` is missing and integrated out;
    `filled` has a guess there, for the seeds; `observed` counts the other coordinates. trimmed: the share of the
    trusted points that is left out."""

    moments: Callable[..., Any]
    """(points, trusted, floors, best, size, variances (d,)): the same for one component and whole points, of which
    none is left out: there is nothing to search for, and much less to compile."""


@kernel
def trim(near: Flags, observed: Vector, n_trimmed: int, room: Room) -> float:
    """Keeps the near points but for those least likely a coordinate (a point with gaps has fewer of them); returns the
    log-likelihood of the points kept."""
    kept, likelihood, values = room.kept, room.likelihood, room.values
    n = len(near)
    for t in range(n):
        kept[t] = near[t]
        values[t] = likelihood[t] / observed[t]
    for _ in range(n_trimmed):
        least, lowest = -1, math.inf
        for t in range(n):
            if kept[t] and (least < 0 or values[t] < lowest):
                least, lowest = t, values[t]
        kept[least] = False
    total = 0.0
    for t in range(n):
        total += likelihood[t] if kept[t] else 0.0
    return total


@cache
def fits_of(component: Component, gaps: bool = True) -> Fits:
    """The fits for a family of components."""
    evaluate, complete, advance = component.evaluate, component.complete, component.advance
    place, spread, widen = component.place, component.spread, component.widen
    elliptical = component.elliptical
    stamp = fingerprint([evaluate, complete, advance, place, spread, widen])

    @kernel
    def look(
        fit: Vector, at: int, y: Vector, d: int, observed: float, to: int, room: Room
    ) -> tuple[float, float, float]:
        if observed < d:
            return complete(fit, at, y, 0, d, room.work, 0, room.completed, to)
        return evaluate(fit, at, y, 0, d, room.work, 0)

    @kernel
    def look_at_whole(
        fit: Vector, at: int, y: Vector, d: int, observed: float, to: int, room: Room
    ) -> tuple[float, float, float]:
        return evaluate(fit, at, y, 0, d, room.work, 0)

    @kernel
    def move(fit: Vector, at: int, y: Vector, d: int, observed: float, to: int, room: Room, share: float) -> None:
        if observed < d:
            advance(fit, at, room.completed, to, d, share, True)
        else:
            advance(fit, at, y, 0, d, share, False)

    @kernel
    def move_to_whole(
        fit: Vector, at: int, y: Vector, d: int, observed: float, to: int, room: Room, share: float
    ) -> None:
        advance(fit, at, y, 0, d, share, False)

    evaluated, moved = (look, move) if gaps else (look_at_whole, move_to_whole)

    @kernel
    def expect(fit: Vector, points: Vector, observed: Vector, K: int, size: int, room: Room) -> None:
        """The responsibilities, each point as each component completes it, and the log-likelihood of each point."""
        n, d = points.shape
        shares, heights = room.shares, room.heights
        for t in range(n):
            best, total = -math.inf, 0.0
            for k in range(K):
                to = (t * K + k) * size
                exponent, precision, q = evaluated(fit, K + k * size, points[t], d, observed[t], to, room)
                exponent = exponent - 0.5 * q if elliptical else exponent
                shares[t, k], heights[k] = exponent, fit[k] * math.sqrt(precision)
                best = exponent if exponent > best else best
            for k in range(K):
                shares[t, k] = heights[k] * exp(shares[t, k] - best)
                total += shares[t, k]
            inverse = 1.0 / total
            for k in range(K):
                shares[t, k] *= inverse
            room.likelihood[t] = best + log(total)

    @kernel
    def blend(
        fit: Vector, d: int, K: int, size: int, total: float, n_kept: float, floors: Vector, variances: Vector
    ) -> None:
        """Each component with the pooled variances, the more the fewer points it has; its mass becomes its weight."""
        correction = n_kept - K if n_kept - K > 1.0 else 1.0
        correction = WIDENED * n_kept / correction  # K means have been fitted
        for i in range(d):
            variances[i] = at_least(correction * variances[i], floors[i])
        for k in range(K):
            widen(fit, K + k * size, d, variances, (d + 1.0) / (fit[k] + d + 1.0))
            fit[k] = (fit[k] + 0.5) / (total + 0.5 * K)

    @kernel
    def maximise(
        fit: Vector, points: Vector, observed: Vector, n_kept: float, K: int, size: int, floors: Vector, room: Room
    ) -> None:
        """Weighted moments, as a run of the same step that learns from the stream."""
        n, d = points.shape
        variances = room.variances
        for i in range(d):
            variances[i] = 0.0
        total = 0.0
        for k in range(K):
            mass, at = 0.0, K + k * size
            for t in range(n):
                r = room.shares[t, k]
                if room.kept[t] and r > 1e-9:
                    mass += r
                    moved(fit, at, points[t], d, observed[t], (t * K + k) * size, room, r / mass)
            fit[k] = mass
            total += mass
            spread(fit, at, d, variances, mass / n_kept)
        blend(fit, d, K, size, total, n_kept, floors, variances)

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
                    off = fit[K + k * size + i] - fit[K + other * size + i]
                    gap += off * off / variances[i]
                if gap < NUDGE * NUDGE:
                    for i in range(d):
                        fit[K + k * size + i] += NUDGE * (1.0 + draws[0, k, 1]) * math.sqrt(variances[i])

    def search(points, filled, observed, trusted, floors, best, seeds, levels, trimmed, size, room):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        m, n, d = points.shape
        S, K, _ = seeds.shape
        fit, variances, places = room.fit, room.variances, room.places
        for stream in range(m):
            here, counts, near = points[stream], observed[stream], trusted[stream]
            n_near, best_total = 0, -math.inf
            for t in range(n):
                n_near += near[t]
            n_trimmed = int(trimmed * n_near)
            for s in range(S + levels.shape[1]):
                for i in range(d):
                    variances[i] = SEED_VARIANCE if s < S or i == s - S else 1.0
                for k in range(K):
                    drawn = draw(fit, k, seeds[s, k, 0], filled[stream], near, K, size, room) if s < S else 0
                    for i in range(d):
                        places[s, k, i] = filled[stream, drawn, i] if s < S else levels[stream, s - S, k, i]
                    fit[k] = 1.0 / K
                    place(fit, K + k * size, places[s, k], 0, d, variances)
                if not is_new(s, places.reshape(-1), K * d):
                    continue  # it would come to the same
                total = 0.0
                for turn in range(ROUNDS + 1):
                    expect(fit, here, counts, K, size, room)
                    total = trim(near, counts, n_trimmed, room)
                    if turn < ROUNDS:
                        kept = float(n_near - n_trimmed)
                        maximise(fit, here, counts, kept, K, size, floors[stream], room)
                if s == 0 or total > best_total:
                    best_total = total
                    for i in range(len(fit)):
                        best[stream, i] = fit[i]
            nudge(best[stream], d, K, size, seeds, variances)

    def moments(points, trusted, floors, best, size, variances):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018
        m, n, d = points.shape
        for stream in range(m):
            fit, flat = best[stream], points[stream].reshape(-1)
            for i in range(1 + size):
                fit[i] = 0.0
            for t in range(n):
                if trusted[stream, t]:
                    fit[0] += 1.0
                    advance(fit, 1, flat, t * d, d, 1.0 / fit[0], False)
            for i in range(d):
                variances[i] = 0.0
            spread(fit, 1, d, variances, 1.0)
            blend(fit, d, 1, size, fit[0], fit[0], floors[stream], variances)

    return Fits(compiled(search, releases_gil=True), compiled(moments, releases_gil=True))
