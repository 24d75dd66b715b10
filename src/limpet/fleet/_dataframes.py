"""Learn from long dataframes: one point per row, one column of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from limpet._format import join_names, plural
from limpet._validation import invalid_param_error
from limpet.core.state import Vector
from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.fleet._executor import FleetExecutor
from limpet.fleet._key_index import Flags, Integers
from limpet.fleet._key_input import keys_from_column, to_frame
from limpet.learners.input import import_narwhals
from limpet.learners.results import AUTO_RESULT_FIELDS, RESULT_FIELDS

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw


PANDAS_INDEX_PREFIX = "__index_level_"  # pyarrow's name of an index column, which is not a variable


def select_value_columns(frame: nw.DataFrame[Any], values: Any, excluded: Sequence[Any]) -> dict[str, Any]:
    """Return the column by variable; by default, numeric ones but key and time.

    A column of pandas may be named by a number or a tuple; the variable is named by its string.
    """
    columns = frame.columns
    requested = None if values is None else _to_column_list(values, columns)
    missing = [name for name in (*excluded, *(requested or ())) if name not in columns]
    if missing:
        raise InvalidInputError(
            f"columns: {join_names(map(repr, missing))} not found. The frame has {join_names(columns)}."
        )
    if requested is None:
        others = (name for name in columns if name not in excluded and not str(name).startswith(PANDAS_INDEX_PREFIX))
        requested = [name for name in others if frame.get_column(name).dtype.is_numeric()]
    variables = {str(name): name for name in requested}
    if not variables or len(variables) < len(requested):
        raise InvalidInputError(f"values: must be one or more numeric columns, each once, got {join_names(requested)}.")
    return variables


def check_value_columns(variables: Sequence[str], known: Sequence[str] | None, width: int | None) -> None:
    """Raise unless these are the fleet's variables by name or, without names, count."""
    if known is not None and set(known) != set(variables):
        raise InvalidInputError(
            f"values: must be {join_names(known)}, the variables of this fleet, got {join_names(variables)}."
        )
    if width is not None and width != len(variables):
        raise InvalidInputError(
            f"values: must be {plural(width, 'column')}, as many as this fleet has variables, "
            f"got {len(variables)}: {join_names(variables)}."
        )


def read_values(frame: nw.DataFrame[Any], names: Iterable[Any]) -> Vector:
    """Return the numbers in some columns as an array (n, columns), with NaN for null."""
    nw = import_narwhals()
    columns = []
    for name in names:
        column = frame.get_column(name)
        if not column.dtype.is_numeric() and column.dtype != nw.Boolean:
            raise InvalidTypeError(f"column {name!r}: must be numeric, got {column.dtype}. Leave it out or convert it.")
        columns.append(column.cast(nw.Float64).to_numpy())
    return np.ascontiguousarray(np.column_stack(columns), dtype=np.float64)


def _to_column_list(values: Any, columns: Sequence[Any]) -> list[Any]:
    if isinstance(values, str | int | tuple) and values in columns:  # the name of one column
        return [values]
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else [values]


def time_order(column: nw.Series[Any]) -> tuple[Integers | None, Flags]:
    """Return the stable time order, None if sorted, and rows without time (last)."""
    missing: Flags = np.array(column.is_null().to_numpy(), np.bool_)
    present_times = column.drop_nulls() if missing.any() else column  # without nulls, integers stay exact
    holds_128_bits = str(column.dtype).endswith("128")  # only an array of objects can hold these
    times = np.array(present_times.to_list(), object) if holds_128_bits else np.asarray(present_times.to_numpy())
    if times.dtype.kind in "fmM" and (is_null := np.isnan(times) if times.dtype.kind == "f" else np.isnat(times)).any():
        times = times[~is_null]
        missing[~missing] = is_null
    try:
        if times.ndim > 1:
            raise TypeError(f"several values in each row ({column.dtype})")
        order = None if (times[1:] >= times[:-1]).all() else np.argsort(times, kind="stable")
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(f"time: column {column.name!r} must have an order, got {error}.") from None
    if missing.any():
        present = np.flatnonzero(~missing)
        order = np.append(present if order is None else present[order], np.flatnonzero(missing))
    return order, missing


def is_frame_iterable(frames: Any) -> bool:
    """Return whether an object is several frames rather than one."""
    return isinstance(frames, Iterator | list | tuple) or type(frames).__name__ == "RecordBatchReader"


def process_frame(
    executor: FleetExecutor, frame: Any, key: str, values: Any, time: str | None, prefix: str
) -> tuple[Any, list[Alarm]]:
    """Learn one frame; see `Fleet.process`."""
    if not isinstance(prefix, str):
        raise InvalidTypeError(f"prefix: must be a string, got {prefix!r}.")
    table = to_frame(frame)
    variables = select_value_columns(table, values, [key] if time is None else [key, time])
    check_value_columns(list(variables), executor.feature_names, executor.width)
    names = executor.feature_names or tuple(variables)
    columns = [prefix + name for name in (AUTO_RESULT_FIELDS if executor.learner.is_auto else RESULT_FIELDS)]
    if clash := [name for name in columns if name in table.columns]:
        requirement = f"must not lead to existing columns ({join_names(clash)})"
        raise invalid_param_error("prefix", requirement, prefix, "Choose another prefix.")
    keys, points = keys_from_column(table.get_column(key)), read_values(table, [variables[name] for name in names])
    order = None
    if time is not None:
        order, missing_time = time_order(table.get_column(time))
        points[missing_time] = np.nan  # invalid
    executor.set_width(len(names), names)
    trace = executor.learn(keys, points, order=order)
    results = {name: np.ascontiguousarray(getattr(trace, name.removeprefix(prefix))) for name in columns}
    nw = import_narwhals()
    series = [nw.new_series(name, result, backend=table.implementation) for name, result in results.items()]
    return table.with_columns(*series).to_native(), trace.alarms
