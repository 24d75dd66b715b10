"""Read the parts of a stream: arrays of a shape, flags, rows."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.exceptions import InvalidInputError

Shape = tuple[int | None, ...]


def to_frozen_array(name: str, value: object, dtype: npt.DTypeLike, shape: Shape) -> npt.NDArray[Any]:
    """Return a read-only copy of this shape, where None is any length.

    >>> to_frozen_array("y", [[1], [2]], float, (None, 1)).flags.writeable
    False
    """
    array = _copy_array(name, value, dtype)
    fits = array.ndim == len(shape) and all(w in (None, g) for w, g in zip(shape, array.shape, strict=True))
    if not fits:
        expected = ", ".join("any" if length is None else str(length) for length in shape)
        comma = "," if len(shape) == 1 else ""
        raise InvalidInputError(f"{name}: must have shape ({expected}{comma}), got {array.shape}.")
    array.setflags(write=False)
    return array


def to_frozen_points(name: str, value: object) -> npt.NDArray[np.float64]:
    """Return a read-only copy of points (T, d).

    A vector is T points of one number each.

    >>> to_frozen_points("y", [1, 2, 3]).shape
    (3, 1)
    """
    array = _copy_array(name, value, np.float64)
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or 0 in array.shape:
        constraint = "must have at least one row and one column: shape (T,) or (T, d)"
        raise InvalidInputError(f"{name}: {constraint}, got shape {array.shape}.")
    array.setflags(write=False)
    return array


def to_flags(name: str, value: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Read flags, which must be 0 or 1.

    A cast to bool would turn NaN and -1 into True.

    >>> to_flags("labels", [0, 1])
    array([False,  True])
    """
    array = np.asarray(value)
    is_flag = np.isin(array, (0, 1))
    if not is_flag.all():
        raise InvalidInputError(f"{name}: must be 0 or 1, got {array[~is_flag][0]!r}.")
    return array.astype(bool)


def to_row_list(name: str, values: int | Iterable[int], n_rows: int) -> list[int]:
    """Read one row of a stream, or several that strictly increase.

    >>> to_row_list("change_points", (3, 7), n_rows=10)
    [3, 7]
    """
    items: Any = [values] if isinstance(values, int | np.integer) and not isinstance(values, bool) else values
    try:
        rows = [operator.index(value) for value in items]
    except TypeError as error:
        raise InvalidInputError(f"{name}: must be integers, got {values!r}.") from error
    is_increasing = all(earlier < later for earlier, later in pairwise(rows))
    if not is_increasing or any(not 0 <= row < n_rows for row in rows):
        raise InvalidInputError(f"{name}: must be increasing rows in 0..{n_rows - 1}, got {rows}.")
    return rows


def _copy_array(name: str, value: object, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    try:
        return np.array(value, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name}: must be an array of numbers, got {type(value).__name__}.") from error
