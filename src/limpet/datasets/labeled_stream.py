"""Streams with their truth: points, outliers, labels and change points."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False, repr=False)
class Stream:
    """A data stream and its truth.

    Rows count from 0, so row r is the paper's time t = r + 1. Arrays are copied and made read-only, so that all methods
    that are compared on a stream get the same data.

    Parameters
    ----------
    y : array (T, d) or (T,)
        The points; a vector is one column.
    means : array (T, K, d), optional
        The true component means at each row, before noise and outliers.
    outliers : bool array (T,), optional
        True where the point was drawn from the noise and not from the mixture.
    labels : 0/1 array (T,), optional
        1 where the point is a labelled anomaly.
    change_points : int, list of int, or dict of them
        First rows of new regimes, in increasing order; a dict holds one list per annotator.
    name : str
        The name in tables.
    split : int, optional
        First row of the test part, where the experiment has one.
    covariances : array (K, d, d), optional
        The true component covariances, where they are known and constant.

    Examples
    --------
    >>> stream = Stream([0.1, 0.2, 5.1], change_points=[2], name="toy")
    >>> stream
    Stream('toy', 3 rows x 1, change at row 2)
    >>> stream.y.flags.writeable
    False
    """

    y: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64] | None = None
    outliers: npt.NDArray[np.bool_] | None = None
    labels: npt.NDArray[np.int64] | None = None
    change_points: list[int] | dict[int | str, list[int]] = field(default_factory=list)
    name: str = "stream"
    split: int | None = None
    covariances: npt.NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        y = _copy_array("y", self.y, np.float64)
        y = y.reshape(-1, 1) if y.ndim == 1 else y
        if y.ndim != 2 or 0 in y.shape:
            constraint = "must have at least one row and one column: shape (T,) or (T, d)"
            raise InvalidInputError(f"y: {constraint}, got shape {y.shape}.")
        y.setflags(write=False)
        n_rows, dim = y.shape
        checked: dict[str, Any] = {"y": y}
        if self.means is not None:
            checked["means"] = to_frozen_array("means", self.means, np.float64, (n_rows, None, dim))
        if self.covariances is not None:
            shape = (checked["means"].shape[1] if "means" in checked else None, dim, dim)
            checked["covariances"] = to_frozen_array("covariances", self.covariances, np.float64, shape)
        if self.outliers is not None:
            checked["outliers"] = to_frozen_array("outliers", to_flags("outliers", self.outliers), bool, (n_rows,))
        if self.labels is not None:
            checked["labels"] = to_frozen_array("labels", to_flags("labels", self.labels), np.int64, (n_rows,))
        changes = self.change_points
        if isinstance(changes, dict):
            changes = {annotator: to_row_list("change_points", rows, n_rows) for annotator, rows in changes.items()}
        else:
            changes = to_row_list("change_points", changes, n_rows)
        checked["change_points"] = changes
        if self.split is not None:
            checked["split"] = to_row_list("split", [self.split], n_rows)[0]
        for attribute, value in checked.items():
            object.__setattr__(self, attribute, value)  # the dataclass is frozen

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        parts = [repr(self.name), f"{self.y.shape[0]} rows x {self.y.shape[1]}"]
        if self.means is not None:
            parts.append(f"{self.means.shape[1]} components")
        if self.outliers is not None:
            parts.append(f"{int(self.outliers.sum())} outliers")
        if self.labels is not None:
            parts.append(f"{int(self.labels.sum())} anomalies")
        if isinstance(self.change_points, dict):
            parts.append(f"changes by {len(self.change_points)} annotators")
        elif len(self.change_points) == 1:
            parts.append(f"change at row {self.change_points[0]}")
        elif self.change_points:
            parts.append(f"{len(self.change_points)} changes")
        if self.split is not None:
            parts.append(f"test from row {self.split}")
        return f"Stream({', '.join(parts)})"


def to_frozen_array(name: str, value: object, dtype: npt.DTypeLike, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
    """Return a read-only copy of this shape, where None is any length."""
    array = _copy_array(name, value, dtype)
    if array.ndim != len(shape) or any(w not in (None, g) for w, g in zip(shape, array.shape, strict=True)):
        lengths = ", ".join("any" if length is None else str(length) for length in shape)
        comma = "," if len(shape) == 1 else ""
        raise InvalidInputError(f"{name}: must have shape ({lengths}{comma}), got {array.shape}.")
    array.setflags(write=False)
    return array


def _copy_array(name: str, value: object, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    try:
        return np.array(value, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name}: must be an array of numbers, got {type(value).__name__}.") from error


def to_flags(name: str, value: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Read flags, which must be 0 or 1: a cast would turn NaN and −1 into True."""
    array = np.asarray(value)
    is_flag = np.isin(array, (0, 1))
    if not is_flag.all():
        raise InvalidInputError(f"{name}: must be 0 or 1, got {array[~is_flag][0]!r}.")
    return array.astype(bool)


def to_row_list(name: str, values: int | Iterable[int], n_rows: int) -> list[int]:
    """Read one row of a stream, or several that strictly increase."""
    items: Any = [values] if isinstance(values, int | np.integer) and not isinstance(values, bool) else values
    try:
        rows = [operator.index(value) for value in items]
    except TypeError as error:
        raise InvalidInputError(f"{name}: must be integers, got {values!r}.") from error
    if any(later <= earlier for earlier, later in pairwise(rows)) or any(not 0 <= row < n_rows for row in rows):
        raise InvalidInputError(f"{name}: must be increasing rows in 0..{n_rows - 1}, got {rows}.")
    return rows
