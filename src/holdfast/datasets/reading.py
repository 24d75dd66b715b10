"""Reading what a stream is made of: arrays of the right shape, flags, rows."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.errors import BadInputError

Shape = tuple[int | None, ...]


def frozen_array(name: str, value: object, dtype: npt.DTypeLike, shape: Shape) -> npt.NDArray[Any]:
    """Return a read-only copy after checking the shape, in which None stands for any length.

    >>> frozen_array("y", [[1], [2]], float, (None, 1)).flags.writeable
    False
    """
    try:
        array = np.array(value, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise BadInputError(f"{name}: expected an array of numbers, got {type(value).__name__}") from error
    fits = array.ndim == len(shape) and all(w in (None, g) for w, g in zip(shape, array.shape, strict=True))
    if not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        comma = "," if len(shape) == 1 else ""
        raise BadInputError(f"{name}: expected shape ({wanted}{comma}), got {array.shape}")
    array.setflags(write=False)
    return array


def zeros_and_ones(name: str, value: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Read flags, refusing anything but 0 and 1: a cast to bool would turn NaN and -1 into True.

    >>> zeros_and_ones("labels", [0, 1])
    array([False,  True])
    """
    array = np.asarray(value)
    is_flag = np.isin(array, (0, 1))
    if not is_flag.all():
        raise BadInputError(f"{name}: expected only 0 and 1, got {array[~is_flag][0]!r}")
    return array.astype(bool)


def row_numbers(name: str, values: Iterable[int], n_rows: int) -> list[int]:
    """Read strictly increasing rows of a stream.

    >>> row_numbers("change_points", (3, 7), n_rows=10)
    [3, 7]
    """
    try:
        rows = [operator.index(value) for value in values]
    except TypeError as error:
        raise BadInputError(f"{name}: expected whole row numbers, got {values!r}") from error
    rising = all(earlier < later for earlier, later in pairwise(rows))
    if not rising or any(not 0 <= row < n_rows for row in rows):
        raise BadInputError(f"{name}: expected increasing rows in 0..{n_rows - 1}, got {rows}")
    return rows
