"""The frame: a reference point and a scale for each variable, so that neither offsets nor units matter."""

from __future__ import annotations

import numpy as np

from limpet._jit.compile import kernel
from limpet._jit.math import maximum, minimum
from limpet._jit.sort import median_of_sorted, shell_sort
from limpet.core.state import Vector

MAD_TO_SD = 1.4826
MIN_SPREAD, MAX_SPREAD = 1e-150, 1e150  # their squares neither vanish nor overflow

MAX_ABS_COORDINATE = 1e30  # in scales of the frame; a point further out is taken to lie here: its squares stay finite


def column_medians(points: Vector) -> Vector:
    """The median of each column, NaN left out; numpy's own way to leave it out is ten times slower.

    >>> medians(np.array([[1.0, np.nan], [2.0, 5.0], [9.0, 7.0]]))
    array([2., 6.])
    """
    has_missing = np.isnan(points).any()
    return np.asarray(np.nanmedian(points, axis=0) if has_missing else np.median(points, axis=0))


def fit_location_scale(points: Vector) -> tuple[Vector, Vector]:
    """Median and spread of each column; the spread is never zero, and its square neither vanishes nor overflows.

    >>> frame_of(np.array([[1.0], [2.0], [3.0], [4.0], [100.0]]))
    (array([3.]), array([1.4826]))
    """
    reference = column_medians(points)
    deviations = np.abs(points - reference)
    spread = MAD_TO_SD * column_medians(deviations)
    spread = np.where(spread > 0.0, spread, np.nanmean(deviations, axis=0))
    spread = np.where(spread > 0.0, spread, np.abs(reference))
    spread = np.where((spread > 0.0) & np.isfinite(spread), spread, 1.0)
    return reference, np.clip(spread, MIN_SPREAD, MAX_SPREAD)


def standardize(points: Vector, reference: Vector, scale: Vector) -> Vector:
    """The points in the frame's coordinates."""
    with np.errstate(over="ignore"):
        return np.clip((points - reference) / scale, -MAX_ABS_COORDINATE, MAX_ABS_COORDINATE)


@kernel
def clip_coordinate(x: float) -> float:
    """x within ±LARGEST_COORDINATE."""
    return maximum(minimum(x, MAX_ABS_COORDINATE), -MAX_ABS_COORDINATE)


@kernel
def gather_column(points: Vector, n: int, i: int, values: Vector) -> int:
    """The numbers in column i of n points, without those that are missing; returns how many there are."""
    count = 0
    for t in range(n):
        if points[t, i] == points[t, i]:
            values[count] = points[t, i]
            count += 1
    return count


@kernel
def median(values: Vector, n: int) -> float:
    """The median of n numbers, which are put in order; 0 if there are none."""
    shell_sort(values, n)
    return median_of_sorted(values, n) if n > 0 else 0.0


@kernel
def median_mad(points: Vector, n: int, i: int, values: Vector) -> tuple[float, float, int]:
    """Median and 1.4826·MAD of column i, and how many numbers it has; `values` receives their deviations, in order."""
    count = gather_column(points, n, i, values)
    center = median(values, count)
    for j in range(count):
        values[j] = abs(values[j] - center)
    return center, MAD_TO_SD * median(values, count), count
