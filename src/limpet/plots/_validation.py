"""What is to be drawn, as arrays of the right shape."""

from __future__ import annotations

from collections.abc import Sized

import numpy.typing as npt

from limpet._validation import FloatArray, check_floats
from limpet.exceptions import InvalidInputError


def as_column(name: str, values: npt.ArrayLike, n_rows: int | None = None) -> FloatArray:
    """Read one number for each row, from an array (T,) or (T, 1).

    >>> as_column("y", [[1.0], [2.0]])
    array([1., 2.])
    """
    column = check_floats(name, values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1 or not len(column) or n_rows not in (None, len(column)):
        rows = "each row" if n_rows is None else f"each of the {n_rows} rows"
        raise InvalidInputError(f"{name}: expected one number for {rows}, got shape {column.shape}")
    return column


def as_columns(name: str, values: npt.ArrayLike, n_rows: int | None = None) -> FloatArray:
    """Read one or more numbers for each row, from an array (T,), (T, K) or (T, K, 1); the result is (T, K).

    >>> as_columns("means", [1.0, 2.0]).shape
    (2, 1)
    """
    columns = check_floats(name, values)
    if columns.ndim == 1:
        columns = columns[:, None]
    elif columns.ndim == 3 and columns.shape[2] == 1:
        columns = columns[:, :, 0]
    if columns.ndim != 2 or 0 in columns.shape or n_rows not in (None, len(columns)):
        rows = "each row" if n_rows is None else f"each of the {n_rows} rows"
        raise InvalidInputError(f"{name}: expected one or more numbers for {rows}, got shape {columns.shape}")
    return columns


def as_pair(name: str, pair: tuple[npt.ArrayLike, npt.ArrayLike]) -> tuple[FloatArray, FloatArray]:
    """Read two series of equal length, what goes right and what goes up; they may be empty."""
    if len(pair) != 2:
        raise InvalidInputError(f"{name}: expected what goes right and what goes up, got {len(pair)} series")
    across, up = check_floats(name, pair[0]), check_floats(name, pair[1])
    if across.ndim != 1 or across.shape != up.shape:
        raise InvalidInputError(f"{name}: expected two series of one length, got shapes {across.shape} and {up.shape}")
    return across, up


def require_some(name: str, things: Sized) -> None:
    """Refuse to draw nothing."""
    if not len(things):
        raise InvalidInputError(f"{name}: expected at least one, got none")
