"""Results as tables of Arrow, whose columns and types are those of the stream and not of the batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from holdfast.errors import BadInputError
from holdfast.streams.arrow_columns import arrow
from holdfast.streams.results import Results
from holdfast.streams.times import Times

POINTS, ALARMS = "points", "alarms"


def as_what(what: str) -> str:
    """One of the two tables."""
    if what not in (POINTS, ALARMS):
        raise BadInputError(f"what is written is {POINTS!r} or {ALARMS!r}, got {what!r}")
    return what


def table_of(results: Results, what: str) -> Any:
    """The table of the points, or that of the alarms."""
    results = replace(results)
    results.__dict__["times"] = results.batch.times  # as they are: to write them as texts takes longer than all else
    return _points(results) if what == POINTS else _alarms(results)


def _points(results: Results) -> Any:
    pa = arrow()
    columns = {}
    for name, column in results.point_columns().items():
        if name == "time" and results.batch.times is not None:
            columns[name] = _times(results.batch.times)
        elif isinstance(column, np.ndarray):
            kind = {"b": pa.bool_(), "i": pa.int64()}.get(column.dtype.kind, pa.float64())
            columns[name] = pa.array(column, kind)
        else:
            columns[name] = pa.array(column, pa.string())
    return pa.table(columns)


def _alarms(results: Results) -> Any:
    pa = arrow()
    whole, number, text = pa.int64(), pa.float64(), pa.string()
    kinds = {
        "record": whole,
        "time": None,
        "key": text,
        "kind": text,
        "row": whole,
        "onset": whole,
        "size": number,
        "direction": text,
        "variables": pa.list_(text),
        "p_value": number,
        "message": text,
    }
    rows = results.alarm_rows()
    columns = {}
    for name, kind in kinds.items():
        if name == "time":
            columns[name] = _times(results.batch.times, np.array(results.trace.raised_at, np.int64))
        elif name == "key":
            columns[name] = pa.array([None if row[name] is None else str(row[name]) for row in rows], kind)
        else:
            columns[name] = pa.array([row[name] for row in rows], kind)
    return pa.table(columns)


def _times(times: Times | None, which: Any = slice(None)) -> Any:
    """Times, some of them; a stream that has none has nulls of the most usual type."""
    pa = arrow()
    if times is None:
        return pa.nulls(len(which), pa.timestamp("ns", "UTC"))
    if times.dtype.kind == "M":
        return pa.array(times[which].view(np.int64)).cast(pa.timestamp("ns", "UTC"))
    return pa.array(times[which], pa.float64() if times.dtype.kind == "f" else pa.string())
