"""Reads what users pass as points and batches: numbers, sequences, arrays, dicts, dataframes → float64 rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.errors import BadInputError, WrongTypeError
from holdfast.extras import needed_for
from holdfast.scheme.state import Vector

Names = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Rows (T, d) with the names of their columns: what a dataframe tells, without one."""

    values: Vector
    names: Names


def is_point(x: Any, width: int | None) -> bool:
    """Whether x is one point rather than a batch: of a single variable, a vector is a batch."""
    if isinstance(x, NamedRows):
        return False
    return isinstance(x, Mapping) or np.ndim(x) == 0 or (width != 1 and np.ndim(x) == 1 and not _has_rows(x))


def read_point(x: Any, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    """One point as a vector of `width` numbers (of any length while the width is not known).

    >>> read_point({"b": 2, "a": 1}, 2, ("a", "b"))
    (array([1., 2.]), ('a', 'b'))
    """
    if isinstance(x, float | int | np.integer) and width in (None, 1):
        return np.array([float(x)]), names
    plain = x
    if names is not None and x.__class__ is dict and x.keys() <= set(names):
        plain = [x.get(name, np.nan) for name in names]
    if plain.__class__ in (list, tuple) and len(plain) == width and all(v.__class__ in (float, int) for v in plain):
        return np.array(plain, np.float64), names  # the usual point, without the questions below
    if _is_labelled(x):  # a row of a pandas dataframe
        x = dict(x.items())
    if isinstance(x, Mapping):
        names = names or _names_of([x], width)
        return _numbers([_by_name(x, names)])[0], names
    point = np.atleast_1d(_numbers(x))
    if point.ndim != 1 or len(point) == 0 or (width is not None and len(point) != width):
        expected = "a number or a vector" if width is None else f"a point of {width} number{'s' * (width > 1)}"
        raise BadInputError(f"expected {expected}, got an array of shape {np.shape(x)}")
    return np.require(point, requirements=["C", "W"]), names  # one kind of array, as below


def read_rows(X: Any, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    """A batch as an array (T, width). A one-dimensional batch is a stream of single numbers."""
    if isinstance(X, NamedRows):
        if names is not None and names != X.names:
            raise BadInputError(f"expected the columns {', '.join(names)}, got {', '.join(X.names)}")
        return read_rows(X.values, width, None)[0], X.names
    if _is_frame(X) or _is_series(X):
        return _read_frame(X, width, names)
    if isinstance(X, Mapping):
        raise WrongTypeError("expected rows, got a dict: one point goes to update(x); of columns make a dataframe")
    if _has_rows(X):
        names = names or _names_of(X, width)
        rows = _numbers([_by_name(row, names) for row in X])
    else:
        rows = _numbers(X)
    if rows.ndim == 1:
        rows = rows.reshape(-1, 1)
    if rows.ndim != 2 or rows.shape[1] == 0 or (width is not None and len(rows) and rows.shape[1] != width):
        expected = "(T,) or (T, d)" if width is None else "(T,) or (T, 1)" if width == 1 else f"(T, {width})"
        raise BadInputError(f"expected a batch of shape {expected}, got {np.shape(X)}")
    return np.require(rows, requirements=["C", "W"]), names  # one kind of array, for which one machine code is made


def _numbers(x: Any) -> Vector:
    if isinstance(x, np.ma.MaskedArray):
        x = np.ma.filled(x.astype(float), np.nan)
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
        return x.astype(np.float64, copy=False)
    if isinstance(x, str | bytes) or x is None:
        raise WrongTypeError(f"expected numbers, got {type(x).__name__} {x!r}")
    if not isinstance(x, Sequence) and np.ndim(x) == 0 and not np.isscalar(x) and not hasattr(x, "__float__"):
        raise WrongTypeError(f"expected a number, a list or an array, got {type(x).__name__}")
    try:
        array = np.asarray(x)
        if array.dtype.kind == "O":  # None among numbers: missing
            array = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise WrongTypeError(f"expected numbers, got {type(x).__name__}: {error}") from None
    if array.dtype.kind not in "biuf":
        raise WrongTypeError(f"expected numbers, got {type(x).__name__} of {array.dtype}")
    return array.astype(np.float64, copy=False)


def _names_of(rows: Sequence[Mapping[Any, Any]], width: int | None) -> Names:
    """The variables by name: those of the first dicts that come, in the order they turn up."""
    names = tuple(dict.fromkeys(str(name) for row in rows for name in row))
    if not names or (width is not None and len(names) != width):
        expected = "at least one variable" if width is None else f"{width} variable{'s' * (width > 1)}"
        raise BadInputError(f"expected {expected}, got dicts of {len(names)}: {', '.join(names)}")
    return names


def _by_name(row: Mapping[Any, Any], names: Names) -> list[Any]:
    unknown = [name for name in row if str(name) not in names]
    if unknown:
        raise BadInputError(f"unknown variable {', '.join(map(repr, unknown))}; this model has {', '.join(names)}")
    for name, value in row.items():
        if isinstance(value, str | bytes):
            raise WrongTypeError(f"variable {name!r} is {value!r}, not a number")
    values = {str(name): value for name, value in row.items()}
    return [values.get(name) for name in names]  # None, a variable that is not there, is missing


def _has_rows(X: Any) -> bool:
    """Whether this is a list of dicts."""
    return isinstance(X, Sequence) and len(X) > 0 and all(isinstance(row, Mapping) for row in X)


def _is_frame(X: Any) -> bool:
    """Whether this is a dataframe; its class is asked, because a lazy frame would have to work to answer."""
    return hasattr(type(X), "columns") or hasattr(type(X), "column_names")


def _is_series(X: Any) -> bool:
    return not isinstance(X, np.ndarray) and hasattr(X, "dtype") and hasattr(X, "to_numpy") and hasattr(X, "name")


def _is_labelled(x: Any) -> bool:
    """Whether this is a series whose entries have names."""
    index = getattr(x, "index", None)
    return _is_series(x) and index is not None and not callable(index) and all(isinstance(k, str) for k in index)


def _read_frame(X: Any, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    with needed_for("reading a dataframe", "dataframes"):
        import narwhals.stable.v1 as nw
    try:
        frame = nw.from_native(X, eager_only=True, allow_series=True)
        series = (
            [frame.alias(str(frame.name or "value"))] if isinstance(frame, nw.Series) else list(frame.iter_columns())
        )
    except (TypeError, ValueError, nw.exceptions.NarwhalsError) as error:
        raise WrongTypeError(f"expected numbers or an eager dataframe, got {type(X).__name__}: {error}") from None
    columns = {str(one.name): one for one in series}
    others = {
        name: one.dtype for name, one in columns.items() if not one.dtype.is_numeric() and one.dtype != nw.Boolean
    }
    if others:
        told = ", ".join(f"column {name!r} holds {dtype}" for name, dtype in others.items())
        them = "it" if len(others) == 1 else "them"
        raise WrongTypeError(f"{told}, not numbers: leave {them} out or convert {them}")
    if len(columns) < max(len(series), 1) or (width is not None and len(columns) != width):
        expected = "distinct columns" if width is None or len(columns) < len(series) else f"{width} columns"
        raise BadInputError(f"expected a dataframe of {expected}, got {len(series)}: {', '.join(columns)}")
    if names is not None and set(names) != set(columns):
        raise BadInputError(f"expected the columns {', '.join(names)}, got {', '.join(columns)}")
    order = names or tuple(columns)
    values = [columns[name].cast(nw.Float64).to_numpy() for name in order]
    return np.ascontiguousarray(np.column_stack(values), dtype=np.float64), order
