"""Standardize a stream's first points per variable; discard isolated far ones."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import jit_entry_point, kernel
from limpet._jit.math import log, maximum, minimum
from limpet._jit.sort import median_of_sorted, shell_sort
from limpet.core.state import Vector

BoolArray = npt.NDArray[np.bool_]

MAD_TO_SD = 1.4826
MIN_SPREAD, MAX_SPREAD = 1e-150, 1e150  # their squares neither vanish nor overflow

MAX_ABS_COORDINATE = 1e30  # in standardized units; coordinates are clipped here so that squares stay finite

MAX_SPREADS = 5.0  # spreads from the median beyond which a first point needs neighbors
NEIGHBOR_RADIUS = 0.25  # of its distance from the median: points as near as this are neighbors
MIN_NEIGHBOR_SHARE = 0.1  # of the points: enough for a component
MAX_SCREENED_POINTS = 500  # checked one by one: more take longer and improve nothing


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
    return maximum(minimum(x, MAX_ABS_COORDINATE), -MAX_ABS_COORDINATE)


@kernel
def median(values: Vector, n: int) -> float:
    """Sort n numbers and return their median, 0 if n is 0."""
    shell_sort(values, n)
    return median_of_sorted(values, n) if n > 0 else 0.0


@kernel
def column_median_mad(points: Vector, n: int, i: int, values: Vector) -> tuple[float, float, int]:
    """Return median, 1.4826·MAD, count of column i; `values` gets sorted deviations."""
    count = 0
    for t in range(n):
        if points[t, i] == points[t, i]:
            values[count] = points[t, i]
            count += 1
    center = median(values, count)
    for j in range(count):
        values[j] = abs(values[j] - center)
    return center, MAD_TO_SD * median(values, count), count


class StandardizedStart(NamedTuple):
    """First points of m streams, each stream standardized separately."""

    reference: Vector  # (m, d)
    scale: Vector  # (m, d)
    log_scale: Vector  # (m,): the sum of the logarithms of the scales
    points: Vector  # (m, n, d): standardized, NaN where missing
    trusted: BoolArray  # (m, n): whether a point is used for initialization
    n_trusted: Vector  # (m,): the number of trusted points


def _standardize_all(points, max_spreads, K, majority, reference, scale, log_scale, out, trusted, n_trusted, values):  # type: ignore[no-untyped-def]
    # points (m, n, d), values (n,): a workspace; the others as in `StandardizedStart`
    m, n, d = points.shape
    for s in range(m):
        standardized, n_near = out[s], 0
        log_scale[s] = 0.0
        for i in range(d):  # as `fit_location_scale` and `standardize`
            center, spread, n_present = column_median_mad(points[s], n, i, values)
            total = 0.0
            for j in range(n_present):
                total += values[j]
            spread = spread if spread > 0.0 else total / n_present
            spread = spread if spread > 0.0 else abs(center)
            spread = spread if 0.0 < spread < math.inf else 1.0
            spread = maximum(spread if spread < MAX_SPREAD else MAX_SPREAD, MIN_SPREAD)
            reference[s, i], scale[s, i] = center, spread
            log_scale[s] += log(spread)
            for t in range(n):
                x = (points[s, t, i] - center) / spread
                standardized[t, i] = x if x != x else clip_coordinate(x)
        for t in range(n):
            squared_length = 0.0
            trusted[s, t] = True
            for i in range(d):
                x = abs(standardized[t, i]) if standardized[t, i] == standardized[t, i] else 0.0  # 0 if missing
                squared_length += x * x
                if x > max_spreads:
                    trusted[s, t] = False
            if K > 1 and not trusted[s, t]:
                n_neighbors, n_compared = 0, 0
                for other in range(0, n, 1 + n // MAX_SCREENED_POINTS):
                    squared_distance = 0.0
                    for i in range(d):
                        x = standardized[t, i] if standardized[t, i] == standardized[t, i] else 0.0
                        x -= standardized[other, i] if standardized[other, i] == standardized[other, i] else 0.0
                        squared_distance += x * x
                    n_neighbors += squared_distance <= NEIGHBOR_RADIUS * NEIGHBOR_RADIUS * squared_length
                    n_compared += 1
                trusted[s, t] = n_neighbors > 1 and n_neighbors - 1 >= MIN_NEIGHBOR_SHARE * n_compared
            n_near += trusted[s, t]
        if majority and not 2 * n_near > n:
            n_near = n
            for t in range(n):
                trusted[s, t] = True
        n_trusted[s] = n_near


compiled_standardize_all = jit_entry_point(_standardize_all, releases_gil=True)


def standardize_and_screen(
    points: Vector, max_spreads: float = MAX_SPREADS, K: int = 1, majority: bool = True
) -> StandardizedStart:
    """Standardize the points (m, n, d) of m streams and mark the trusted ones.

    Trusted are points within `max_spreads` of the median in every coordinate and, with several components, points with
    enough neighbors to form a component. `majority` trusts all points if fewer than half would be trusted.

    >>> standardize_and_screen(np.array([[[0.1], [0.2], [0.3], [0.4], [90.0]]]), K=2).trusted
    array([[ True,  True,  True,  True, False]])
    >>> standardize_and_screen(np.array([[[0.1], [0.2], [0.3], [0.4], [90.0], [91.0]]]), K=2).trusted.all()
    np.True_
    """
    m, n, d = points.shape
    out = StandardizedStart(
        np.empty((m, d)), np.empty((m, d)), np.empty(m), np.empty((m, n, d)), np.empty((m, n), np.bool_), np.empty(m)
    )
    compiled_standardize_all(np.ascontiguousarray(points), max_spreads, K, majority, *out, np.empty(n))
    return out
