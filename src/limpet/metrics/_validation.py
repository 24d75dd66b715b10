"""Read the arguments that several metrics have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray, check_floats
from limpet.exceptions import InvalidInputError

Indices = int | Sequence[int] | npt.NDArray[np.integer]


def check_scores(scores: npt.ArrayLike) -> FloatArray:
    """Read one score per row."""
    array = check_floats("scores", scores, allow_bool=True)
    if array.ndim != 1 or len(array) == 0:
        raise InvalidInputError(f"scores: must have shape (T,) with T >= 1, got {array.shape}.")
    return array


def check_change_points(change_points: Indices) -> npt.NDArray[np.int64]:
    """Read one change point or several, and sort them."""
    try:
        rows = np.atleast_1d(np.asarray(change_points))
    except ValueError as error:  # nested lists of unequal length
        raise InvalidInputError(f"change_points: must be a row or rows, got {change_points!r}.") from error
    if rows.ndim != 1 or len(rows) == 0 or rows.dtype.kind not in "iu":
        raise InvalidInputError(f"change_points: must be a row or rows, got {change_points!r}.")
    return np.sort(rows).astype(np.int64)
