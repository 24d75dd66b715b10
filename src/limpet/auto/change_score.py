"""Change score: distance of recent level and spread from slow averages.

Each coordinate has a slow mean and variance, which are not reset after changes, and on which the influence of a point
is capped at two standard deviations. In their units two fast averages, of z and of z² − 1, measure how far recent level
and spread have moved. Their length w, mapped to w/(1 + w), is averaged over the coordinates; the score is the mean of a
short and a long average of that, so that it stays high for a while after a change, when everything else has adapted. A
single far point is ignored; the third in succession counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from limpet._jit.compile import kernel
from limpet._jit.math import averaging_step, maximum
from limpet._jit.sort import quantile_of_sorted
from limpet.core.state import Layout, Vector
from limpet.models._standardization import column_median_mad
from limpet.models.components.gaussian_full import MIN_VARIANCE

SLOW_STEP_SIZE, FAST_STEP_SIZE = 0.01, 0.1
MAX_UPDATE_SD = 2.0  # standard deviations
# A far point counts once the leaky count of far points reaches the minimum. After a streak of them the slow mean
# restarts, with this effective sample size.
FAR_THRESHOLD_SD, MIN_FAR_COUNT, FAR_COUNT_LEAK = 4.0, 3.0, 0.5
RESTART_STREAK_POINTS, RESTART_COUNT_POINTS = 64.0, 10.0
SHORT_AVERAGE_STEP, LONG_AVERAGE_STEP = 0.1, 0.0075
MIN_RELATIVE_VARIANCE = 0.05  # initial variance, relative to the squared spread
QUANTILE_80_OF_NORMAL = 1.2816  # of |x|

# state = for each coordinate these values, then the two averages
MEAN, VARIANCE, COUNT, FAR_COUNT, FAR_STREAK, LEVEL, SPREAD, VALUES_PER_VARIABLE = range(8)


def make_change_score_kernel(layout: Layout, d: int) -> Callable[..., Any]:
    """Return the kernel for a layout: (theta, point) → the score after the point."""
    offset = layout.offset("change_score")
    averages = offset + VALUES_PER_VARIABLE * d

    @kernel
    def update_variable(theta: Vector, base: int, x: float) -> None:
        deviation = math.sqrt(theta[base + VARIANCE])
        z = (x - theta[base + MEAN]) / deviation
        if abs(z) > FAR_THRESHOLD_SD:
            theta[base + FAR_COUNT] = min(theta[base + FAR_COUNT] + 1.0, MIN_FAR_COUNT + 1.0)
            theta[base + FAR_STREAK] += 1.0
            if theta[base + FAR_COUNT] < MIN_FAR_COUNT:
                return
            if theta[base + FAR_STREAK] >= RESTART_STREAK_POINTS:
                theta[base + MEAN], theta[base + COUNT], theta[base + FAR_STREAK], z = x, RESTART_COUNT_POINTS, 0.0, 0.0
        else:
            theta[base + FAR_COUNT] = maximum(theta[base + FAR_COUNT] - FAR_COUNT_LEAK, 0.0)
            theta[base + FAR_STREAK] = 0.0
        z = MAX_UPDATE_SD if z > MAX_UPDATE_SD else maximum(z, -MAX_UPDATE_SD)
        theta[base + COUNT] += 1.0
        slow = averaging_step(theta[base + COUNT], SLOW_STEP_SIZE)
        theta[base + LEVEL] += FAST_STEP_SIZE * (z - theta[base + LEVEL])
        theta[base + SPREAD] += FAST_STEP_SIZE * (z * z - 1.0 - theta[base + SPREAD])
        theta[base + VARIANCE] = maximum((1.0 - slow) * theta[base + VARIANCE] * (1.0 + slow * z * z), MIN_VARIANCE)
        theta[base + MEAN] += slow * z * deviation

    @kernel
    def learn(theta: Vector, point: Vector) -> float:
        distance = 0.0
        for i in range(d):
            base = offset + VALUES_PER_VARIABLE * i
            if point[i] == point[i]:
                update_variable(theta, base, point[i])
            level, spread = theta[base + LEVEL], theta[base + SPREAD]
            w = math.sqrt(level * level + spread * spread)
            distance += w / (1.0 + w)
        distance *= 1.0 / d
        theta[averages] += SHORT_AVERAGE_STEP * (distance - theta[averages])
        theta[averages + 1] += LONG_AVERAGE_STEP * (distance - theta[averages + 1])
        return 0.5 * (theta[averages] + theta[averages + 1])

    return learn


@kernel
def init_change_score(state: Vector, points: Vector, i: int, values: Vector) -> None:
    """Initialize mean and variance of coordinate i from points near the median."""
    n, base = len(points), VALUES_PER_VARIABLE * i
    center, spread, count = column_median_mad(points, n, i, values)
    if not spread > 0.0:  # most values are equal
        spread = quantile_of_sorted(values, count, 0.8) / QUANTILE_80_OF_NORMAL
    spread = spread if spread > 0.0 else values[count - 1]
    max_distance = FAR_THRESHOLD_SD * spread if spread > 0.0 else math.inf
    n_inliers, mean, variance = 0.0, 0.0, 0.0
    for t in range(n):
        if abs(points[t, i] - center) <= max_distance:
            n_inliers += 1.0
            mean += points[t, i]
    mean /= n_inliers
    for t in range(n):
        if abs(points[t, i] - center) <= max_distance:
            variance += (points[t, i] - mean) * (points[t, i] - mean)
    state[base + COUNT], state[base + MEAN] = n_inliers, mean
    min_variance = maximum(MIN_RELATIVE_VARIANCE * spread * spread, MIN_VARIANCE)
    state[base + VARIANCE] = maximum(variance / n_inliers, min_variance)
