"""Read the arguments of the metrics.

Errors name the expected and the received value.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from limpet.exceptions import InvalidInputError

FloatArray = npt.NDArray[np.float64]
RowIndices = int | Sequence[int] | npt.NDArray[np.integer]


def check_scores(scores: npt.ArrayLike) -> FloatArray:
    """Read one score per row.

    >>> check_scores([1, float("nan")])
    array([ 1., nan])
    """
    array = _check_floats("scores", scores)
    if array.ndim != 1 or len(array) == 0:
        raise InvalidInputError(f"scores: expected shape (T,) with T >= 1, got {array.shape}")
    return array


def check_change_points(change_points: RowIndices) -> npt.NDArray[np.int64]:
    """Read one change point or several, and sort them.

    >>> check_change_points([7, 3])
    array([3, 7])
    """
    try:
        rows = np.atleast_1d(np.asarray(change_points))
    except ValueError as error:  # nested lists of unequal length
        raise InvalidInputError(f"change_points: expected a row or rows, got {change_points!r}") from error
    if rows.ndim != 1 or len(rows) == 0 or rows.dtype.kind not in "iu":
        raise InvalidInputError(f"change_points: expected a row or at least one row, got {change_points!r}")
    return np.sort(rows).astype(np.int64)


def check_tolerance(tolerance: float) -> float:
    """Read a distance in rows.

    >>> check_tolerance(100)
    100.0
    """
    try:
        number = float(tolerance)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"tolerance: expected a positive number of rows, got {tolerance!r}") from error
    if not 0 < number < math.inf:
        raise InvalidInputError(f"tolerance: expected a positive finite number of rows, got {tolerance!r}")
    return number


def check_span(start: int | None, stop: int | None, n_rows: int) -> tuple[int, int]:
    """Read the rows [start, stop), all by default.

    >>> check_span(None, 5, n_rows=10)
    (0, 5)
    """
    try:
        first = 0 if start is None else operator.index(start)
        last = n_rows if stop is None else operator.index(stop)
    except TypeError as error:
        raise InvalidInputError(f"start, stop: expected integers, got {start!r}, {stop!r}") from error
    if not 0 <= first < last <= n_rows:
        raise InvalidInputError(f"start, stop: expected 0 <= start < stop <= {n_rows}, got {start!r}, {stop!r}")
    return first, last


def check_paired_means(means: npt.ArrayLike, true_means: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Read estimated and true means as arrays of one shape (T, K, d).

    >>> [array.shape for array in check_paired_means([[[0], [1]]], [[[0], [1]]])]
    [(1, 2, 1), (1, 2, 1)]
    """
    estimated, true = _check_floats("means", means), _check_floats("true_means", true_means)
    for name, array in (("means", estimated), ("true_means", true)):
        if array.ndim != 3 or 0 in array.shape:
            raise InvalidInputError(f"{name}: expected a non-empty array of shape (T, K, d), got {array.shape}")
    if estimated.shape != true.shape:
        raise InvalidInputError(f"means: expected the shape of true_means, {true.shape}, got {estimated.shape}")
    return estimated, true


def _check_floats(name: str, value: npt.ArrayLike) -> FloatArray:
    try:
        return np.asarray(value, dtype=np.float64, order="C")  # one layout, one order of summation
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name}: expected an array of numbers, got {type(value).__name__}") from error
