"""Reads what users pass as points and batches: numbers, sequences, arrays, dicts, dataframes → float64 rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from holdfast.errors import BadInputError, MissingExtraError, WrongTypeError
from holdfast.scheme.state import Vector

Names = tuple[str, ...]


def read_point(x: Any, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    """One point as a vector of `width` numbers (of any length while the width is not known).

    >>> read_point({"b": 2, "a": 1}, 2, ("a", "b"))
    (array([1., 2.]), ('a', 'b'))
    """
    if isinstance(x, Mapping):
        names = _names_of(x, names, width)
        return _numbers([_by_name(x, names)])[0], names
    point = np.atleast_1d(_numbers(x))
    if point.ndim != 1 or len(point) == 0 or (width is not None and len(point) != width):
        expected = "a number or a vector" if width is None else f"a point of {width} number{'s' * (width > 1)}"
        raise BadInputError(f"expected {expected}, got an array of shape {np.shape(x)}")
    return np.ascontiguousarray(point), names


def read_rows(X: Any, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    """A batch as an array (T, width). A one-dimensional batch is a stream of single numbers."""
    if hasattr(X, "columns") or hasattr(X, "column_names") or hasattr(X, "__narwhals_series__") or _is_series(X):
        return _read_frame(X, width, names)
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
        names = _names_of(X[0], names, width)
        rows = _numbers([_by_name(row, names) for row in X])
    else:
        rows = _numbers(X)
    if rows.ndim == 1:
        rows = rows.reshape(-1, 1)
    if rows.ndim != 2 or rows.shape[1] == 0 or (width is not None and rows.shape[1] != width):
        expected = "(T,) or (T, d)" if width is None else "(T,) or (T, 1)" if width == 1 else f"(T, {width})"
        raise BadInputError(f"expected a batch of shape {expected}, got {np.shape(X)}")
    return np.ascontiguousarray(rows), names


def _numbers(x: Any) -> Vector:
    if isinstance(x, np.ma.MaskedArray):
        x = x.astype(float).filled(np.nan)
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
        return x.astype(np.float64, copy=False)
    if isinstance(x, str | bytes) or x is None:
        raise WrongTypeError(f"expected numbers, got {type(x).__name__} {x!r}")
    try:
        array = np.asarray(x)
        if array.dtype.kind == "O":  # None among numbers: missing
            array = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise WrongTypeError(f"expected numbers, got {type(x).__name__}: {error}") from None
    if array.dtype.kind not in "biuf":
        raise WrongTypeError(f"expected numbers, got {type(x).__name__} of {array.dtype}")
    return array.astype(np.float64, copy=False)


def _names_of(row: Mapping[str, Any], names: Names | None, width: int | None) -> Names:
    """The variables by name: those known already, or those of the first dict that comes."""
    if names is None:
        names = tuple(map(str, row))
        if not names or (width is not None and len(names) != width):
            expected = "at least one variable" if width is None else f"{width} variable{'s' * (width > 1)}"
            raise BadInputError(f"expected {expected}, got a dict of {len(names)}: {', '.join(names)}")
    return names


def _by_name(row: Mapping[str, Any], names: Names) -> list[Any]:
    unknown = [name for name in row if str(name) not in names]
    if unknown:
        raise BadInputError(f"unknown variable {', '.join(map(repr, unknown))}; this model has {', '.join(names)}")
    values = {str(name): value for name, value in row.items()}
    return [values.get(name) for name in names]  # None, a variable that is not there, is missing


def _is_series(X: Any) -> bool:
    return not isinstance(X, np.ndarray) and hasattr(X, "dtype") and hasattr(X, "to_numpy") and hasattr(X, "name")


def _read_frame(X: Any, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    try:
        import narwhals.stable.v1 as nw
    except ImportError:
        raise MissingExtraError("reading a dataframe needs narwhals: pip install 'holdfast[dataframes]'") from None
    try:
        frame = nw.from_native(X, eager_only=True, allow_series=True)
    except TypeError as error:
        raise WrongTypeError(f"expected numbers or an eager dataframe, got {type(X).__name__}: {error}") from None
    if isinstance(frame, nw.Series):
        frame = frame.alias(str(frame.name or "value")).to_frame()
    columns = tuple(map(str, frame.columns))
    for name, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise WrongTypeError(f"column {name!r} holds {dtype}, not numbers: leave it out or convert it")
    if width is not None and len(columns) != width:
        raise BadInputError(f"expected a dataframe of {width} columns, got {len(columns)}: {', '.join(columns)}")
    if names is not None:
        if set(names) != set(columns):
            raise BadInputError(f"expected the columns {', '.join(names)}, got {', '.join(columns)}")
        frame = frame.select(*names)
    values = [frame[name].cast(nw.Float64).to_numpy() for name in frame.columns]
    return np.ascontiguousarray(np.column_stack(values), dtype=np.float64), names or columns
