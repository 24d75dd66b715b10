"""The columns of a dataframe that a fleet learns from: which they are, and their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import InvalidInputError, InvalidTypeError
from holdfast.fleet.columns import import_narwhals
from holdfast.scheme.state import Vector

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw


PANDAS_INDEX_PREFIX = "__index_level_"  # what pyarrow makes of an index, which is no variable


def select_value_columns(frame: nw.DataFrame[Any], values: Any, excluded: Sequence[Any]) -> dict[str, Any]:
    """The variables by name, and the column of each: those given, or all that hold numbers besides key and time.

    A column of pandas may be called by a number or a tuple; a variable is called by the text of it.
    """
    columns = frame.columns
    requested = None if values is None else _to_column_list(values, columns)
    missing = [name for name in (*excluded, *(requested or ())) if name not in columns]
    if missing:
        raise InvalidInputError(f"there is no column {', '.join(map(repr, missing))}; there are {_join_names(columns)}")
    if requested is None:
        candidates = (
            name for name in columns if name not in excluded and not str(name).startswith(PANDAS_INDEX_PREFIX)
        )
        requested = [name for name in candidates if frame.get_column(name).dtype.is_numeric()]
    variables = {str(name): name for name in requested}
    if not variables or len(variables) < len(requested):
        raise InvalidInputError(
            f"values: expected one or more columns with numbers, each once, got {_join_names(requested)}"
        )
    return variables


def check_value_columns(variables: Sequence[str], known: Sequence[str] | None, width: int | None) -> None:
    """Refuses columns other than those that a fleet learns from: by name, or by number where it has no names."""
    if known is not None and set(known) != set(variables):
        raise InvalidInputError(
            f"this fleet learns from {_join_names(known)}, got the columns {_join_names(variables)}"
        )
    if width is not None and width != (n := len(variables)):
        raise InvalidInputError(
            f"the points of this fleet have {width} variable{'s' * (width > 1)}, got {n} column{'s' * (n > 1)}: "
            f"{_join_names(variables)}"
        )


def read_values(frame: nw.DataFrame[Any], names: Iterable[Any]) -> Vector:
    """The numbers in some columns, (n, columns); what is null is NaN."""
    nw = import_narwhals()
    columns = []
    for name in names:
        column = frame.get_column(name)
        if not column.dtype.is_numeric() and column.dtype != nw.Boolean:
            raise InvalidTypeError(f"column {name!r} holds {column.dtype}, not numbers: leave it out or convert it")
        columns.append(column.cast(nw.Float64).to_numpy())
    return np.ascontiguousarray(np.column_stack(columns), dtype=np.float64)


def _to_column_list(values: Any, columns: Sequence[Any]) -> list[Any]:
    """One column or several; what is the name of one is one, be it a text, a number or a tuple."""
    if isinstance(values, str | int | tuple) and values in columns:
        return [values]
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else [values]


def _join_names(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names)) or "none"
