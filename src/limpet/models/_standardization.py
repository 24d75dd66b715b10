"""Standardization by location and scale of each variable."""

from __future__ import annotations

import numpy as np

from limpet._jit.compile import kernel
from limpet._jit.math import maximum, minimum
from limpet._jit.sort import median_of_sorted, shell_sort
from limpet.core.state import Vector

MAD_TO_SD = 1.4826
MIN_SPREAD, MAX_SPREAD = 1e-150, 1e150  # their squares neither vanish nor overflow

MAX_ABS_COORDINATE = 1e30  # in standardized units; coordinates are clipped here so that squares stay finite


def column_medians(points: Vector) -> Vector:
    """Return the median of each column without NaN, faster than nanmedian.

    >>> column_medians(np.array([[1.0, np.nan], [2.0, 5.0], [9.0, 7.0]]))
    array([2., 6.])
    """
    has_missing = np.isnan(points).any()
    return np.asarray(np.nanmedian(points, axis=0) if has_missing else np.median(points, axis=0))


def fit_location_scale(points: Vector) -> tuple[Vector, Vector]:
    """Return median and spread of each column, positive and finite.

    >>> fit_location_scale(np.array([[1.0], [2.0], [3.0], [4.0], [100.0]]))
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
    """Return the points in standardized units, clipped."""
    with np.errstate(over="ignore"):
        return np.clip((points - reference) / scale, -MAX_ABS_COORDINATE, MAX_ABS_COORDINATE)


@kernel
def clip_coordinate(x: float) -> float:
    """Clip x to ±MAX_ABS_COORDINATE."""
    return maximum(minimum(x, MAX_ABS_COORDINATE), -MAX_ABS_COORDINATE)


@kernel
def gather_column(points: Vector, n: int, i: int, values: Vector) -> int:
    """Copy column i of n points without missing values; return their number."""
    count = 0
    for t in range(n):
        if points[t, i] == points[t, i]:
            values[count] = points[t, i]
            count += 1
    return count


@kernel
def median(values: Vector, n: int) -> float:
    """Sort n numbers and return their median, 0 if n is 0."""
    shell_sort(values, n)
    return median_of_sorted(values, n) if n > 0 else 0.0


@kernel
def median_mad(points: Vector, n: int, i: int, values: Vector) -> tuple[float, float, int]:
    """Return median, 1.4826·MAD and number of values of column i.

    `values` gets the sorted deviations.
    """
    count = gather_column(points, n, i, values)
    center = median(values, count)
    for j in range(count):
        values[j] = abs(values[j] - center)
    return center, MAD_TO_SD * median(values, count), count
