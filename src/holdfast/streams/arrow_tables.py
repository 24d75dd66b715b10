"""Results as tables of Arrow, whose columns and types are those of the stream and not of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.streams.arrow_columns import import_pyarrow
from holdfast.streams.batch import Batch
from holdfast.streams.results import BatchResult
from holdfast.streams.tables import POINTS_TABLE


def to_arrow_table(results: BatchResult, table: str) -> Any:
    """The table of the points, or that of the alarms."""
    return _points_table(results) if table == POINTS_TABLE else _alarms_table(results)


def _points_table(results: BatchResult) -> Any:
    pa = import_pyarrow()
    columns = {}
    for name, column in results.point_columns(times_as_strings=False).items():
        if name == "time" and results.batch.times is not None:
            columns[name] = _times_column(results.batch)
        elif isinstance(column, np.ndarray):
            kind = {"b": pa.bool_(), "i": pa.int64()}.get(column.dtype.kind, pa.float64())
            columns[name] = pa.array(column, kind)
        else:
            columns[name] = pa.array(column, pa.string())
    return pa.table(columns)


def _alarms_table(results: BatchResult) -> Any:
    pa = import_pyarrow()
    integer, number, string = pa.int64(), pa.float64(), pa.string()
    column_types = {
        "record": integer,
        "time": None,
        "key": string,
        "kind": string,
        "row": integer,
        "onset": integer,
        "size": number,
        "direction": string,
        "variables": pa.list_(string),
        "p_value": number,
        "message": string,
    }
    rows = results.alarm_records()
    columns = {}
    for name, column_type in column_types.items():
        if name == "time":
            columns[name] = _times_column(results.batch, np.array(results.trace.alarm_index, np.int64))
        elif name == "key":
            columns[name] = pa.array([None if row[name] is None else str(row[name]) for row in rows], column_type)
        else:
            columns[name] = pa.array([row[name] for row in rows], column_type)
    return pa.table(columns)


def _times_column(batch: Batch, rows: Any = slice(None)) -> Any:
    """Times, some of them; a stream that has none has nulls of the most usual type."""
    pa = import_pyarrow()
    times, timestamp_type = batch.times, pa.timestamp("ns", "UTC" if batch.tz_aware else None)
    if times is None:
        return pa.nulls(len(rows), timestamp_type)
    if times.dtype.kind == "M":
        return pa.array(times[rows].view(np.int64)).cast(timestamp_type)
    return pa.array(times[rows], pa.float64() if times.dtype.kind == "f" else pa.string())
