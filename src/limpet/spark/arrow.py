"""Convert Arrow columns to arrays, and results to Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limpet.core.state import Vector
from limpet.detection.alarm import ALARM_FIELDS, Alarm
from limpet.fleet._key_index import Integers, IntKeys, StrKeys
from limpet.fleet._key_input import read_keys
from limpet.learners.results import AUTO_RESULT_FIELDS, RESULT_FIELDS
from limpet.streams.event_time import NO_TIME

LATE_COLUMN, DUPLICATE_COLUMN, ALARMS_COLUMN = "late", "duplicate", "alarms"
MICROSECONDS_PER_DAY = 86_400_000_000
# The record of an alarm, but for the key and the time: these are columns of its row.
ALARM_STRUCT_FIELDS = tuple(name for name in ALARM_FIELDS if name not in ("key", "time"))


def output_columns(is_auto: bool, has_time: bool) -> tuple[str, ...]:
    """Return the names of the columns added to the input, without the prefix."""
    skip_columns = (LATE_COLUMN, DUPLICATE_COLUMN) if has_time else ()
    return (*(AUTO_RESULT_FIELDS if is_auto else RESULT_FIELDS), *skip_columns, ALARMS_COLUMN)


def read_key_column(column: Any) -> IntKeys | StrKeys:
    """Return the keys of a column; a string that is not UTF-8 is missing."""
    import pyarrow

    try:
        return read_keys(column)
    except UnicodeDecodeError:
        kind, strings = column.type, column.cast(pyarrow.large_binary()).to_pylist()
        return read_keys(pyarrow.chunked_array([[key if _is_utf8(key) else None for key in strings]]).cast(kind))


def _is_utf8(data: bytes | None) -> bool:
    try:
        return data is not None and bool(data.decode() or True)
    except UnicodeDecodeError:
        return False


def read_value_columns(table: Any, names: Sequence[str]) -> Vector:
    """Return the values of some columns as an array (n, columns); null becomes NaN."""
    import pyarrow

    columns = [table[name].cast(pyarrow.float64(), safe=False).fill_null(np.nan).to_numpy() for name in names]
    return np.ascontiguousarray(np.column_stack(columns), np.float64)


def read_time_column(column: Any) -> Integers:
    """Return times as integers: microseconds of timestamps, `NO_TIME` of null."""
    import pyarrow

    is_date = pyarrow.types.is_date32(column.type)
    if is_date:
        column = column.cast(pyarrow.int32())
    elif pyarrow.types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp("us", column.type.tz))
    times: Integers = column.cast(pyarrow.int64()).fill_null(NO_TIME).to_numpy().astype(np.int64, copy=False)
    return np.where(times == NO_TIME, NO_TIME, times * MICROSECONDS_PER_DAY) if is_date else times


def alarm_type() -> Any:
    """Return the Arrow type of the column of alarms: a list of structs."""
    import pyarrow

    string, number, integer = pyarrow.string(), pyarrow.float64(), pyarrow.int64()
    types = dict.fromkeys(ALARM_STRUCT_FIELDS, string) | {"row": integer, "onset": integer}
    types |= {"size": number, "p_value": number, "variables": pyarrow.list_(string)}
    return pyarrow.list_(pyarrow.struct(list(types.items())))


def make_alarm_column(alarms: Sequence[Alarm], rows: Sequence[int], n: int) -> Any:
    """Return the column of alarms of n rows, of which rows[i] raised alarms[i]."""
    import pyarrow

    index = np.array(rows, np.int64)
    alarm_records = [alarms[i].to_dict() for i in np.argsort(index, kind="stable").tolist()]
    records = [{name: record[name] for name in ALARM_STRUCT_FIELDS} for record in alarm_records]
    counts = np.bincount(index, minlength=n)
    offsets, kind = np.append(0, np.cumsum(counts)).astype(np.int32), alarm_type()
    parts = (pyarrow.array(offsets), pyarrow.array(records, kind.value_type))
    return pyarrow.ListArray.from_arrays(*parts, type=kind, mask=pyarrow.array(counts == 0))
