"""The change score: have the last points left what a slow, robust memory of the stream expects?

Each coordinate has a slow mean and variance, never begun anew, that a point moves by no more than it would move them
from two standard deviations. In that frame two quick averages, of z and of z² − 1, say how far the recent level and
the recent spread have gone. Their length w, squeezed to w/(1 + w), is averaged over the coordinates; the score is the
mean of a short and a long average of that, so that it stays up for a while after a change though everything else has
adapted. A lone point far out is passed over; the third in a row counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.models.frame import centre_and_spread
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import at_least, step_of
from holdfast.scheme.sorting import quantile_of_sorted
from holdfast.scheme.state import Layout, Vector

SLOW, QUICK = 0.01, 0.1
CLIP = 2.0  # standard deviations
FAR, NEEDED, LEAK = 4.0, 3.0, 0.5  # beyond FAR a point counts when the leaky count of such points reaches NEEDED
STUCK, AGAIN = 64.0, 10.0  # so many far points in a row: the slow mean begins again there, with this many points
SHORT, LONG = 0.1, 0.0075
NARROWEST = 0.05  # variance at the start, in units of the spread's square
SMALLEST = 1e-18  # variance, in the frame's units
QUANTILE_80_OF_NORMAL = 1.2816  # of |x|

MEAN, VARIANCE, COUNT, FAR_OUT, STREAK, LEVEL, SPREAD, PER_VARIABLE = range(8)


def change_fields(d: int) -> dict[str, tuple[int, ...]]:
    """What is kept: so many numbers for each coordinate, and the two averages."""
    return {"lately": (PER_VARIABLE * d + 2,)}


@dataclass(frozen=True, eq=False)
class ChangeScore:
    """The compiled function."""

    learn: Callable[..., Any]
    """(theta, point) → the score, after the point."""


def change_functions(layout: Layout, d: int) -> ChangeScore:
    """For a stream whose fields lie in theta as `layout` says."""
    at = layout.at("lately")
    averages = at + PER_VARIABLE * d

    @kernel
    def follow(theta: Vector, own: int, x: float) -> None:
        """One coordinate."""
        deviation = math.sqrt(theta[own + VARIANCE])
        z = (x - theta[own + MEAN]) / deviation
        if abs(z) > FAR:
            theta[own + FAR_OUT] = min(theta[own + FAR_OUT] + 1.0, NEEDED + 1.0)
            theta[own + STREAK] += 1.0
            if theta[own + FAR_OUT] < NEEDED:
                return
            if theta[own + STREAK] >= STUCK:
                theta[own + MEAN], theta[own + COUNT], theta[own + STREAK], z = x, AGAIN, 0.0, 0.0
        else:
            theta[own + FAR_OUT] = at_least(theta[own + FAR_OUT] - LEAK, 0.0)
            theta[own + STREAK] = 0.0
        z = CLIP if z > CLIP else at_least(z, -CLIP)
        theta[own + COUNT] += 1.0
        slow = step_of(theta[own + COUNT], SLOW)
        theta[own + LEVEL] += QUICK * (z - theta[own + LEVEL])
        theta[own + SPREAD] += QUICK * (z * z - 1.0 - theta[own + SPREAD])
        theta[own + VARIANCE] = at_least((1.0 - slow) * theta[own + VARIANCE] * (1.0 + slow * z * z), SMALLEST)
        theta[own + MEAN] += slow * z * deviation

    @kernel
    def learn(theta: Vector, point: Vector) -> float:
        distance = 0.0
        for i in range(d):
            own = at + PER_VARIABLE * i
            if point[i] == point[i]:
                follow(theta, own, point[i])
            level, spread = theta[own + LEVEL], theta[own + SPREAD]
            w = math.sqrt(level * level + spread * spread)
            distance += w / (1.0 + w)
        distance *= 1.0 / d
        theta[averages] += SHORT * (distance - theta[averages])
        theta[averages + 1] += LONG * (distance - theta[averages + 1])
        return 0.5 * (theta[averages] + theta[averages + 1])

    return ChangeScore(learn)


@kernel
def start_change_score(lately: Vector, points: Vector, i: int, values: Vector) -> None:
    """Mean and variance of coordinate i, of the points (n, d) within `FAR` spreads of the median. values: scratch."""
    n, own = len(points), PER_VARIABLE * i
    centre, spread, count = centre_and_spread(points, n, i, values)
    if not spread > 0.0:  # most values are the same
        spread = quantile_of_sorted(values, count, 0.8) / QUANTILE_80_OF_NORMAL
    spread = spread if spread > 0.0 else values[count - 1]
    furthest = FAR * spread if spread > 0.0 else math.inf
    kept, mean, variance = 0.0, 0.0, 0.0
    for t in range(n):
        if abs(points[t, i] - centre) <= furthest:
            kept += 1.0
            mean += points[t, i]
    mean /= kept
    for t in range(n):
        if abs(points[t, i] - centre) <= furthest:
            variance += (points[t, i] - mean) * (points[t, i] - mean)
    lately[own + COUNT], lately[own + MEAN] = kept, mean
    lately[own + VARIANCE] = at_least(variance / kept, at_least(NARROWEST * spread * spread, SMALLEST))
