"""Long dataframes: a row a point, a column with the keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from holdfast.alarms.alarm import Alarm
from holdfast.errors import InvalidInputError, InvalidTypeError
from holdfast.fleet.calls import FleetExecutor
from holdfast.fleet.columns import import_narwhals, keys_from_column, to_frame
from holdfast.fleet.times import time_order
from holdfast.fleet.variables import check_value_columns, read_values, select_value_columns

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
