"""Convert numbers, sequences, arrays, dicts and dataframes to float64 rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limpet._format import plural
from limpet._optional import optional_import
from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError, InvalidTypeError

Names = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LabeledArray:
    """Rows, shape (T, d), with the names of their columns."""

    values: Vector
    names: Names


def is_point(x: Any, width: int | None) -> bool:
    """Return whether x is one point; for a single variable, a vector is a batch."""
    if isinstance(x, LabeledArray):
        return False
    return isinstance(x, Mapping) or np.ndim(x) == 0 or (width != 1 and np.ndim(x) == 1 and not _is_list_of_dicts(x))


def read_point(x: Any, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    """Return a point as a vector of `width` numbers; None allows any length.

    >>> read_point({"b": 2, "a": 1}, 2, ("a", "b"))
    (array([1., 2.]), ('a', 'b'))
    """
    if isinstance(x, float | int | np.integer) and width in (None, 1):
        return np.array([float(x)]), names
    point_values = x
    if names is not None and x.__class__ is dict and x.keys() <= set(names):
        point_values = [x.get(name, np.nan) for name in names]
    if (
        point_values.__class__ in (list, tuple)
        and len(point_values) == width
        and all(v.__class__ in (float, int) for v in point_values)
    ):
        return np.array(point_values, np.float64), names  # the usual point, without the questions below
    if _is_labeled(x):  # a row of a pandas dataframe
        x = dict(x.items())
    if isinstance(x, Mapping):
        names = names or _variable_names([x], width)
        return _to_float64([_values_by_name(x, names)])[0], names
    point = np.atleast_1d(_to_float64(x))
    if point.ndim != 1 or len(point) == 0 or (width is not None and len(point) != width):
        expected = "a number or a vector" if width is None else f"a point of {plural(width, 'number')}"
        raise InvalidInputError(f"x: must be {expected}, got an array of shape {np.shape(x)}.")
    return np.require(point, requirements=["C", "W"]), names  # one kind of array, as below


def read_rows(X: Any, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    """Return a batch as an array of shape (T, width); a 1-d batch has width 1."""
    if isinstance(X, LabeledArray):
        if names is not None and names != X.names:
            raise InvalidInputError(f"X: must have the columns {', '.join(names)}, got {', '.join(X.names)}.")
        return read_rows(X.values, width, None)[0], X.names
    if _is_dataframe(X) or _is_series(X):
        return _read_dataframe(X, width, names)
    if isinstance(X, Mapping):
        raise InvalidTypeError("X: must be rows, got a dict. Pass one point to update(x), columns as a dataframe.")
    if _is_list_of_dicts(X):
        names = names or _variable_names(X, width)
        rows = _to_float64([_values_by_name(row, names) for row in X])
    else:
        rows = _to_float64(X)
    if rows.ndim == 1:
        rows = rows.reshape(-1, 1)
    if rows.ndim != 2 or rows.shape[1] == 0 or (width is not None and len(rows) and rows.shape[1] != width):
        expected = "(T,) or (T, d)" if width is None else "(T,) or (T, 1)" if width == 1 else f"(T, {width})"
        raise InvalidInputError(f"X: must have shape {expected}, got {np.shape(X)}.")
    return np.require(rows, requirements=["C", "W"]), names  # one kind of array, for which one machine code is made


def _to_float64(x: Any) -> Vector:
    if isinstance(x, np.ma.MaskedArray):
        x = np.ma.filled(x.astype(float), np.nan)
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
        return x.astype(np.float64, copy=False)
    if isinstance(x, str | bytes) or x is None:
        raise InvalidTypeError(f"x: must hold numbers, got {type(x).__name__} {x!r}.")
    if not isinstance(x, Sequence) and np.ndim(x) == 0 and not np.isscalar(x) and not hasattr(x, "__float__"):
        raise InvalidTypeError(f"x: must be a number, a list or an array, got {type(x).__name__}.")
    try:
        array = np.asarray(x)
        if array.dtype.kind == "O":  # None among numbers: missing
            array = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidTypeError(f"x: must hold numbers, got {type(x).__name__}: {error}.") from None
    if array.dtype.kind not in "biuf":
        raise InvalidTypeError(f"x: must hold numbers, got {type(x).__name__} of {array.dtype}.")
    return array.astype(np.float64, copy=False)


def _variable_names(rows: Sequence[Mapping[Any, Any]], width: int | None) -> Names:
    """Return the names of the variables in dicts, in order of appearance."""
    names = tuple(dict.fromkeys(str(name) for row in rows for name in row))
    if not names or (width is not None and len(names) != width):
        expected = "at least one variable" if width is None else plural(width, "variable")
        raise InvalidInputError(f"X: must have {expected}, got dicts of {len(names)}: {', '.join(names)}.")
    return names


def _values_by_name(row: Mapping[Any, Any], names: Names) -> list[Any]:
    unknown = [name for name in row if str(name) not in names]
    if unknown:
        raise InvalidInputError(f"x: must have names among {', '.join(names)}, got {', '.join(map(repr, unknown))}.")
    for name, value in row.items():
        if isinstance(value, str | bytes):
            raise InvalidTypeError(f"x: variable {name!r} must be a number, got {value!r}.")
    values = {str(name): value for name, value in row.items()}
    return [values.get(name) for name in names]  # None marks a missing variable


def _is_list_of_dicts(X: Any) -> bool:
    return isinstance(X, Sequence) and len(X) > 0 and all(isinstance(row, Mapping) for row in X)


def _is_dataframe(X: Any) -> bool:
    """Return whether X is a dataframe, by class: a lazy frame computes attributes."""
    return hasattr(type(X), "columns") or hasattr(type(X), "column_names")


def _is_series(X: Any) -> bool:
    return not isinstance(X, np.ndarray) and hasattr(X, "dtype") and hasattr(X, "to_numpy") and hasattr(X, "name")


def _is_labeled(x: Any) -> bool:
    """Return whether x is a series whose entries have names."""
    index = getattr(x, "index", None)
    return _is_series(x) and index is not None and not callable(index) and all(isinstance(k, str) for k in index)


def import_narwhals() -> Any:
    """Import narwhals, or raise an error that names the extra."""
    with optional_import("reading a dataframe", "dataframes"):
        import narwhals.stable.v1 as nw
    return nw


def _read_dataframe(X: Any, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    nw = import_narwhals()
    try:
        frame = nw.from_native(X, eager_only=True, allow_series=True)
        is_series = isinstance(frame, nw.Series)
        series = [frame.alias(str(frame.name or "value"))] if is_series else list(frame.iter_columns())
    except (TypeError, ValueError, nw.exceptions.NarwhalsError) as error:
        raise InvalidTypeError(f"X: must be numbers or an eager dataframe, got {type(X).__name__}: {error}.") from None
    columns = {str(column.name): column for column in series}
    dtypes = {name: column.dtype for name, column in columns.items()}
    non_numeric = [name for name, dtype in dtypes.items() if not dtype.is_numeric() and dtype != nw.Boolean]
    if non_numeric:
        text = ", ".join(f"{name!r} of {dtypes[name]}" for name in non_numeric)
        pronoun = "it" if len(non_numeric) == 1 else "them"
        raise InvalidTypeError(f"X: columns must hold numbers, got {text}. Leave {pronoun} out or convert {pronoun}.")
    if len(columns) < max(len(series), 1) or (width is not None and len(columns) != width):
        expected = "distinct columns" if width is None or len(columns) < len(series) else f"{width} columns"
        raise InvalidInputError(f"X: must be a dataframe of {expected}, got {len(series)}: {', '.join(columns)}.")
    if names is not None and set(names) != set(columns):
        raise InvalidInputError(f"X: must have the columns {', '.join(names)}, got {', '.join(columns)}.")
    order = names or tuple(columns)
    values = [columns[name].cast(nw.Float64).to_numpy() for name in order]
    return np.ascontiguousarray(np.column_stack(values), dtype=np.float64), order
