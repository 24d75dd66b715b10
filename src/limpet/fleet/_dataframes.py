"""Long dataframes: a row a point, a column with the keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from limpet.core.state import Vector
from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.fleet._executor import FleetExecutor
from limpet.fleet._key_index import Flags, Integers
from limpet.fleet._key_input import import_narwhals, keys_from_column, to_frame

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw


# The columns of a dataframe that a fleet learns from: which they are, and their numbers.

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


# The order of rows in time.


def time_order(column: nw.Series[Any]) -> tuple[Integers | None, Flags]:
    """The order of the rows in time, those of equal times as they come, None if they are in order already.

    And which rows have no time: they come last.
    """
    missing: Flags = np.array(column.is_null().to_numpy(), np.bool_)
    times = _to_numpy(column.drop_nulls() if missing.any() else column)  # without gaps whole numbers stay exact
    if times.dtype.kind in "fmM" and (is_null := np.isnan(times) if times.dtype.kind == "f" else np.isnat(times)).any():
        times = times[~is_null]
        missing[~missing] = is_null
    try:
        if times.ndim > 1:
            raise TypeError(f"several values in each row ({column.dtype})")
        order = None if (times[1:] >= times[:-1]).all() else np.argsort(times, kind="stable")
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(f"time: the column {column.name!r} holds what has no order: {error}") from None
    if missing.any():
        present = np.flatnonzero(~missing)
        order = np.append(present if order is None else present[order], np.flatnonzero(missing))
    return order, missing


def _to_numpy(times: nw.Series[Any]) -> npt.NDArray[Any]:
    if str(times.dtype).endswith("128"):  # which no array but one of objects can hold
        return np.array(times.to_list(), object)
    return np.asarray(times.to_numpy())


RESULT_COLUMNS = ("score", "rejected", "invalid")
AUTO_RESULT_COLUMNS = ("score", "change_score", "rejected", "p_value", "anomaly", "change", "invalid")


def is_frame_iterable(frames: Any) -> bool:
    """Whether these are frames one after another rather than one."""
    return isinstance(frames, Iterator | list | tuple) or type(frames).__name__ == "RecordBatchReader"


def process_frame(
    executor: FleetExecutor, frame: Any, key: str, values: Any, time: str | None, prefix: str
) -> tuple[Any, list[Alarm]]:
    """See `Fleet.process`."""
    if not isinstance(prefix, str):
        raise InvalidTypeError(f"prefix: expected a text, got {prefix!r}")
    table = to_frame(frame)
    variables = select_value_columns(table, values, [key] if time is None else [key, time])
    check_value_columns(list(variables), executor.feature_names, executor.width)
    names = executor.feature_names or tuple(variables)
    columns = [prefix + name for name in (AUTO_RESULT_COLUMNS if executor.is_auto else RESULT_COLUMNS)]
    clash = [name for name in columns if name in table.columns]
    if clash:
        raise InvalidInputError(f"the frame has a column {', '.join(map(repr, clash))} already: give a prefix")
    keys, points = keys_from_column(table.get_column(key)), read_values(table, [variables[name] for name in names])
    order = None
    if time is not None:
        order, missing_time = time_order(table.get_column(time))
        points[missing_time] = np.nan  # not used
    executor.set_width(len(names), names)
    trace = executor.learn(keys, points, order=order)
    results = [np.ascontiguousarray(getattr(trace, name.removeprefix(prefix))) for name in columns]
    nw = import_narwhals()
    series = [
        nw.new_series(name, result, backend=table.implementation) for name, result in zip(columns, results, strict=True)
    ]
    return table.with_columns(*series).to_native(), trace.alarms
