"""Results as tables of Arrow, whose columns and types are those of the stream and not of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.streams.arrow_columns import arrow
from holdfast.streams.batch import Batch
from holdfast.streams.results import Results
from holdfast.streams.tables import POINTS


def table_of(results: Results, what: str) -> Any:
    """The table of the points, or that of the alarms."""
    return _points(results) if what == POINTS else _alarms(results)


def _points(results: Results) -> Any:
    pa = arrow()
    columns = {}
    for name, column in results.point_columns(times_as_texts=False).items():
        if name == "time" and results.batch.times is not None:
            columns[name] = _times(results.batch)
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
            columns[name] = _times(results.batch, np.array(results.trace.raised_at, np.int64))
        elif name == "key":
            columns[name] = pa.array([None if row[name] is None else str(row[name]) for row in rows], kind)
        else:
            columns[name] = pa.array([row[name] for row in rows], kind)
    return pa.table(columns)


def _times(batch: Batch, which: Any = slice(None)) -> Any:
    """Times, some of them; a stream that has none has nulls of the most usual type."""
    pa = arrow()
    times, moment = batch.times, pa.timestamp("ns", "UTC" if batch.zoned else None)
    if times is None:
        return pa.nulls(len(which), moment)
    if times.dtype.kind == "M":
        return pa.array(times[which].view(np.int64)).cast(moment)
    return pa.array(times[which], pa.float64() if times.dtype.kind == "f" else pa.string())
