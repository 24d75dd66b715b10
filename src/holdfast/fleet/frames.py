"""Long dataframes: a row a point, a column with the keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from holdfast.alarms.alarm import Alarm
from holdfast.errors import BadInputError, WrongTypeError
from holdfast.fleet.calls import Calls
from holdfast.fleet.columns import frame_of, narwhals, read_key_column
from holdfast.fleet.times import in_time
from holdfast.fleet.variables import check_variables, read_values, variables_of

PLAIN = ("score", "dropped", "bad")
WATCHED = ("score", "change_score", "dropped", "p_value", "anomaly", "change", "bad")


def is_several(frames: Any) -> bool:
    """Whether these are frames one after another rather than one."""
    return isinstance(frames, Iterator | list | tuple) or type(frames).__name__ == "RecordBatchReader"


def process_frame(
    calls: Calls, frame: Any, key: str, values: Any, time: str | None, prefix: str
) -> tuple[Any, list[Alarm]]:
    """See `Fleet.process`."""
    if not isinstance(prefix, str):
        raise WrongTypeError(f"prefix: expected a text, got {prefix!r}")
    table = frame_of(frame)
    variables = variables_of(table, values, [key] if time is None else [key, time])
    check_variables(list(variables), calls.names, calls.width)
    names = calls.names or tuple(variables)
    columns = [prefix + name for name in (WATCHED if calls.on_autopilot else PLAIN)]
    clash = [name for name in columns if name in table.columns]
    if clash:
        raise BadInputError(f"the frame has a column {', '.join(map(repr, clash))} already: give a prefix")
    keys, points = read_key_column(table.get_column(key)), read_values(table, [variables[name] for name in names])
    order = None
    if time is not None:
        order, timeless = in_time(table.get_column(time))
        points[timeless] = np.nan  # not used
    calls.open(len(names), names)
    trace = calls.learn(keys, points, order=order)
    answers = [np.ascontiguousarray(getattr(trace, name.removeprefix(prefix))) for name in columns]
    nw = narwhals()
    series = [
        nw.new_series(name, answer, backend=table.implementation) for name, answer in zip(columns, answers, strict=True)
    ]
    return table.with_columns(*series).to_native(), trace.alarms
