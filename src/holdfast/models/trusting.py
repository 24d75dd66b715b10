"""Which of a stream's first points to start from: not those far from the median, unless they have company."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.models.frame import LARGEST_SPREAD, SMALLEST_SPREAD, centre_and_spread, limited
from holdfast.scheme.compiling import compiled, fingerprint
from holdfast.scheme.elementary import at_least, log
from holdfast.scheme.state import Vector

Flags = npt.NDArray[np.bool_]

FAR = 5.0  # spreads from the median beyond which a first point has to have company
COMPANY = 0.25  # of its distance from the median: whoever is as near to it as this keeps it company
ENOUGH = 0.1  # of the points: to be a component
MOST_POINTS = 500  # that are looked at one by one: with more it takes longer and is no better


class Framed(NamedTuple):
    """The first points of m streams, each in a frame of its own."""

    reference: Vector
    scale: Vector
    """(m, d)."""

    log_scale: Vector
    """(m,): the sum of the logarithms."""

    points: Vector
    """(m, n, d): in the coordinates of the frame, NaN where one is missing."""

    trusted: Flags
    """(m, n): which to start from."""

    n_trusted: Vector
    """(m,): how many."""


@cache
def framing() -> Callable[..., Any]:
    """(points (m, n, d), far, K, majority, *Framed, values (n,)): see `framed`."""
    stamp = fingerprint([centre_and_spread, log])

    def frame_all(points, far, K, majority, reference, scale, log_scale, out, trusted, count, values):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        m, n, d = points.shape
        for s in range(m):
            own, near = out[s], 0
            log_scale[s] = 0.0
            for i in range(d):  # what `frame_of` and `in_frame` do
                centre, spread, present = centre_and_spread(points[s], n, i, values)
                total = 0.0
                for j in range(present):
                    total += values[j]
                spread = spread if spread > 0.0 else total / present
                spread = spread if spread > 0.0 else abs(centre)
                spread = spread if 0.0 < spread < math.inf else 1.0
                spread = at_least(spread if spread < LARGEST_SPREAD else LARGEST_SPREAD, SMALLEST_SPREAD)
                reference[s, i], scale[s, i] = centre, spread
                log_scale[s] += log(spread)
                for t in range(n):
                    x = (points[s, t, i] - centre) / spread
                    own[t, i] = x if x != x else limited(x)
            for t in range(n):
                length = 0.0
                trusted[s, t] = True
                for i in range(d):
                    x = abs(own[t, i]) if own[t, i] == own[t, i] else 0.0  # what is missing is no reason to doubt
                    length += x * x
                    if x > far:
                        trusted[s, t] = False
                if K > 1 and not trusted[s, t]:
                    close, others = 0, 0
                    for other in range(0, n, 1 + n // MOST_POINTS):
                        gap = 0.0
                        for i in range(d):
                            x = own[t, i] if own[t, i] == own[t, i] else 0.0
                            x -= own[other, i] if own[other, i] == own[other, i] else 0.0
                            gap += x * x
                        close += gap <= COMPANY * COMPANY * length
                        others += 1
                    trusted[s, t] = close > 1 and close - 1 >= ENOUGH * others
                near += trusted[s, t]
            if majority and not 2 * near > n:
                near = n
                for t in range(n):
                    trusted[s, t] = True
            count[s] = near

    return compiled(frame_all, releases_gil=True)


def framed(points: Vector, far: float = FAR, K: int = 1, majority: bool = True) -> Framed:
    """Points (m, n, d) of m streams, each in its own frame; trusted are those within so many spreads of the median in
    every coordinate, and with several components those that have company enough to be one of them.

    majority: where fewer than half of the points are, there is no majority to speak of, and every point counts.

    >>> framed(np.array([[[0.1], [0.2], [0.3], [0.4], [90.0]]]), K=2).trusted
    array([[ True,  True,  True,  True, False]])
    >>> framed(np.array([[[0.1], [0.2], [0.3], [0.4], [90.0], [91.0]]]), K=2).trusted.all()
    np.True_
    """
    m, n, d = points.shape
    out = Framed(
        np.empty((m, d)), np.empty((m, d)), np.empty(m), np.empty((m, n, d)), np.empty((m, n), np.bool_), np.empty(m)
    )
    framing()(np.ascontiguousarray(points), far, K, majority, *out, np.empty(n))
    return out
