"""Validation of arrays to draw."""

from __future__ import annotations

from collections.abc import Sized

import numpy.typing as npt

from limpet._validation import FloatArray, check_floats
from limpet.exceptions import InvalidInputError


def as_column(name: str, values: npt.ArrayLike, n_rows: int | None = None) -> FloatArray:
    """Return one number per row, from an array (T,) or (T, 1).

    >>> as_column("y", [[1.0], [2.0]])
    array([1., 2.])
    """
    column = check_floats(name, values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1 or not len(column) or n_rows not in (None, len(column)):
        rows = "each row" if n_rows is None else f"each of the {n_rows} rows"
        raise InvalidInputError(f"{name}: must have one number for {rows}, got shape {column.shape}.")
    return column


def check_not_empty(name: str, items: Sized) -> None:
    """Raise if a list is empty."""
    if not len(items):
        raise InvalidInputError(f"{name}: must have at least one item, got none.")
