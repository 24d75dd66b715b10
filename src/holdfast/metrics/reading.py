"""Reading the arguments of the metrics, with errors that say what was expected and what came."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from holdfast.errors import BadInputError

FloatArray = npt.NDArray[np.float64]
Rows = int | Sequence[int] | npt.NDArray[np.integer]


def as_scores(scores: npt.ArrayLike) -> FloatArray:
    """Read one score per row.

    >>> as_scores([1, float("nan")])
    array([ 1., nan])
    """
    array = _as_floats("scores", scores)
    if array.ndim != 1 or len(array) == 0:
        raise BadInputError(f"scores: expected shape (T,) with T >= 1, got {array.shape}")
    return array


def as_rows(change_points: Rows) -> npt.NDArray[np.int64]:
    """Read one change point or several, and sort them.

    >>> as_rows([7, 3])
    array([3, 7])
    """
    try:
        given = np.atleast_1d(np.asarray(change_points))
    except ValueError as error:  # a ragged nest of lists
        raise BadInputError(f"change_points: expected a row or rows, got {change_points!r}") from error
    if given.ndim != 1 or len(given) == 0 or given.dtype.kind not in "iu":
        raise BadInputError(f"change_points: expected a row or at least one row, got {change_points!r}")
    return np.sort(given).astype(np.int64)


def as_tolerance(tolerance: float) -> float:
    """Read a distance in rows.

    >>> as_tolerance(100)
    100.0
    """
    try:
        number = float(tolerance)
    except (TypeError, ValueError) as error:
        raise BadInputError(f"tolerance: expected a positive number of rows, got {tolerance!r}") from error
    if not 0 < number < math.inf:
        raise BadInputError(f"tolerance: expected a positive finite number of rows, got {tolerance!r}")
    return number


def as_span(start: int | None, stop: int | None, n_rows: int) -> tuple[int, int]:
    """Read the rows [start, stop), all by default.

    >>> as_span(None, 5, n_rows=10)
    (0, 5)
    """
    try:
        first = 0 if start is None else operator.index(start)
        last = n_rows if stop is None else operator.index(stop)
    except TypeError as error:
        raise BadInputError(f"start, stop: expected whole row numbers, got {start!r}, {stop!r}") from error
    if not 0 <= first < last <= n_rows:
        raise BadInputError(f"start, stop: expected 0 <= start < stop <= {n_rows}, got {start!r}, {stop!r}")
    return first, last


def as_paired_means(means: npt.ArrayLike, true_means: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Read estimated and true means as arrays of one shape (T, K, d).

    >>> [array.shape for array in as_paired_means([[[0], [1]]], [[[0], [1]]])]
    [(1, 2, 1), (1, 2, 1)]
    """
    estimated, true = _as_floats("means", means), _as_floats("true_means", true_means)
    for name, array in (("means", estimated), ("true_means", true)):
        if array.ndim != 3 or 0 in array.shape:
            raise BadInputError(f"{name}: expected a non-empty array of shape (T, K, d), got {array.shape}")
    if estimated.shape != true.shape:
        raise BadInputError(f"means: expected the shape of true_means, {true.shape}, got {estimated.shape}")
    return estimated, true


def _as_floats(name: str, value: npt.ArrayLike) -> FloatArray:
    try:
        return np.asarray(value, dtype=np.float64, order="C")  # one layout, one order of summation
    except (TypeError, ValueError) as error:
        raise BadInputError(f"{name}: expected an array of numbers, got {type(value).__name__}") from error
