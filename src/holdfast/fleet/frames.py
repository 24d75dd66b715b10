"""Long dataframes: a row a point, a column with the keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import BadInputError
from holdfast.fleet.columns import frame_of, narwhals, read_key_column, read_values, values_named
from holdfast.fleet.found import Integers
from holdfast.scheme.state import Vector

if TYPE_CHECKING:
    from holdfast.fleet.fleet import Fleet

PLAIN = ("score", "dropped", "bad")
WATCHED = ("score", "change_score", "dropped", "p_value", "anomaly", "change", "bad")


def is_several(frames: Any) -> bool:
    """Whether these are frames one after another rather than one."""
    return isinstance(frames, Iterator | list | tuple) or type(frames).__name__ == "RecordBatchReader"


def process_frame(fleet: Fleet, frame: Any, key: str, values: Any, time: str | None, prefix: str) -> Any:
    """See `Fleet.process`."""
    table = frame_of(frame)
    names = values_named(table, values, [key] if time is None else [key, time])
    known = fleet.variables
    if known is not None and set(known) != set(names):
        raise BadInputError(f"this fleet learns from {', '.join(known)}, got the columns {', '.join(names)}")
    names = known or names
    columns = [prefix + name for name in (WATCHED if fleet.on_autopilot else PLAIN)]
    clash = [name for name in columns if name in table.columns]
    if clash:
        raise BadInputError(f"the frame has a column {', '.join(map(repr, clash))} already: give a prefix")
    keys, points = read_key_column(table[key]), read_values(table, names)
    fleet._open(len(names), names)
    order = None if time is None else in_time(table[time], points)
    if order is not None:
        keys, points = keys.take(order), points[order]
    trace = fleet._learn(keys, points)
    back = None if order is None else np.argsort(order)
    answers = [np.ascontiguousarray(getattr(trace, name.removeprefix(prefix))) for name in columns]
    nw = narwhals()
    series = [
        nw.new_series(name, answer if back is None else answer[back], backend=table.implementation)
        for name, answer in zip(columns, answers, strict=True)
    ]
    return table.with_columns(*series).to_native()


def in_time(column: Any, points: Vector) -> Integers | None:
    """The order of the rows in time, those of equal times as they come; None if they are in order already.

    A row without a time is not used: its point becomes NaN.
    """
    missing = column.is_null().to_numpy()
    times = column.to_numpy()
    if times.dtype.kind in "fmM":
        missing = missing | np.isnat(times) if times.dtype.kind in "mM" else missing | np.isnan(times)
    if missing.any():
        points[missing] = np.nan
        there = times[~missing]
        times = np.where(missing, there.max(), times) if len(there) else np.zeros(len(times))
    if (times[1:] >= times[:-1]).all():
        return None
    return np.argsort(times, kind="stable")
