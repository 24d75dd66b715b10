"""Where the components of a mixture begin, before it is fitted to a handful of points."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from holdfast.models.frame import median
from holdfast.models.room import SEEDINGS, Room
from holdfast.models.trusting import Flags
from holdfast.scheme.compiling import compiled, fingerprint, kernel
from holdfast.scheme.sorting import quantile_of_sorted, sort_any
from holdfast.scheme.state import Vector

FEW_POINTS = 10  # for each component: with so few, some coordinate always seems to tell groups apart


@lru_cache(maxsize=64)
def random_draws(K: int, seed: int) -> Vector:
    """(seedings, K, 2): random numbers from 0 to 1. Whoever starts many streams starts them all with the same ones."""
    return np.random.default_rng(seed).random((SEEDINGS if K > 1 else 1, K, 2))


@kernel
def draw(fit: Vector, k: int, aim: float, points: Vector, near: Flags, K: int, size: int, room: Room) -> int:
    """A point for component k to begin at, drawn with a probability that grows with the squared distance from the
    components before, up to the median: the farthest point, most likely an outlier, is no more likely than the next
    ones. aim: a random number from 0 to 1."""
    n, d = points.shape
    chances, values, most, mass, drawn = room.likelihood, room.values, 1.0, 0.0, 0
    for t in range(n):
        chances[t] = 1.0 if k == 0 else math.inf
        for other in range(k):
            gap = 0.0
            for i in range(d):
                off = points[t, i] - fit[K + other * size + i]
                gap += off * off
            chances[t] = gap if gap < chances[t] else chances[t]
        values[t] = chances[t]
    if k > 0:
        sort_any(values, n)
        most = values[(n - 1) // 2]
    for t in range(n):
        chances[t] = most if most < chances[t] else chances[t]
        chances[t] = chances[t] if near[t] else 0.0
        mass += chances[t]
    aim *= mass
    for t in range(n):
        if near[t] and (aim >= 0.0 or mass == 0.0):
            drawn = t
        aim -= chances[t]
    return drawn


@kernel
def is_new(s: int, places: Vector, width: int) -> bool:
    """Whether none of the seedings before s begins at the same places, `width` numbers each."""
    for earlier in range(s):
        same = 0
        while same < width and places[earlier * width + same] == places[s * width + same]:
            same += 1
        if same == width:
            return False
    return True


@cache
def levelling() -> Callable[..., Any]:
    """(points (m, n, d), trusted (m, n), K, levels (m, d, K, d), values (n,)): see `side_by_side`."""
    stamp = fingerprint([median, quantile_of_sorted])

    def level(points, trusted, K, levels, values):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        m, n, d = points.shape
        for s in range(m):
            for i in range(d):
                count = 0
                for t in range(n):
                    if trusted[s, t]:
                        values[count] = points[s, t, i]
                        count += 1
                middle = median(values, count)
                for k in range(K):
                    for axis in range(d):
                        levels[s, axis, k, i] = middle
                    levels[s, i, k, i] = quantile_of_sorted(values, count, (k + 0.5) / K)

    return compiled(level, releases_gil=True)


def side_by_side(points: Vector, trusted: Flags, K: int) -> Vector:
    """(m, d, K, d): for each coordinate K points at its quantiles, in the middle of the other coordinates.

    Groups that a single coordinate tells apart are lost among distances in many. With few points some coordinate always
    seems to tell groups apart: then there are none.

    >>> points = np.array([[i, 0.0] for i in range(41)])
    >>> side_by_side(points[None], np.full((1, 41), True), 2)[0, 0]
    array([[10.,  0.],
           [30.,  0.]])
    """
    m, n, d = points.shape
    if K == 1 or d == 1 or n <= FEW_POINTS * K:
        return np.empty((m, 0, K, d))
    levels = np.empty((m, d, K, d))
    levelling()(points, trusted, K, levels, np.empty(n))
    return levels
