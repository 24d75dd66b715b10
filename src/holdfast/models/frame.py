"""The frame: a reference point and a scale for each variable, so that neither offsets nor units matter."""

from __future__ import annotations

import numpy as np

from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import at_least, at_most
from holdfast.scheme.sorting import median_of_sorted, sort_any
from holdfast.scheme.state import Vector

MAD_TO_SD = 1.4826
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-150, 1e150  # their squares neither vanish nor overflow

LARGEST_COORDINATE = 1e30  # in scales of the frame; a point further out is taken to lie here: its squares stay finite


def medians(points: Vector) -> Vector:
    """The median of each column, NaN left out; numpy's own way to leave it out is ten times slower.

    >>> medians(np.array([[1.0, np.nan], [2.0, 5.0], [9.0, 7.0]]))
    array([2., 6.])
    """
    has_gaps = np.isnan(points).any()
    return np.asarray(np.nanmedian(points, axis=0) if has_gaps else np.median(points, axis=0))


def frame_of(points: Vector) -> tuple[Vector, Vector]:
    """Median and spread of each column; the spread is never zero, and its square neither vanishes nor overflows.

    >>> frame_of(np.array([[1.0], [2.0], [3.0], [4.0], [100.0]]))
    (array([3.]), array([1.4826]))
    """
    reference = medians(points)
    deviations = np.abs(points - reference)
    spread = MAD_TO_SD * medians(deviations)
    spread = np.where(spread > 0.0, spread, np.nanmean(deviations, axis=0))
    spread = np.where(spread > 0.0, spread, np.abs(reference))
    spread = np.where((spread > 0.0) & np.isfinite(spread), spread, 1.0)
    return reference, np.clip(spread, SMALLEST_SPREAD, LARGEST_SPREAD)


def in_frame(points: Vector, reference: Vector, scale: Vector) -> Vector:
    """The points in the frame's coordinates."""
    with np.errstate(over="ignore"):
        return np.clip((points - reference) / scale, -LARGEST_COORDINATE, LARGEST_COORDINATE)


@kernel
def limited(x: float) -> float:
    """x within ±LARGEST_COORDINATE."""
    return at_least(at_most(x, LARGEST_COORDINATE), -LARGEST_COORDINATE)


@kernel
def column(points: Vector, n: int, i: int, values: Vector) -> int:
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
    sort_any(values, n)
    return median_of_sorted(values, n) if n > 0 else 0.0


@kernel
def centre_and_spread(points: Vector, n: int, i: int, values: Vector) -> tuple[float, float, int]:
    """Median and 1.4826·MAD of column i, and how many numbers it has; `values` receives their deviations, in order."""
    count = column(points, n, i, values)
    centre = median(values, count)
    for j in range(count):
        values[j] = abs(values[j] - centre)
    return centre, MAD_TO_SD * median(values, count), count
