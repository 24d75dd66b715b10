"""Columns of Arrow as numbers, and numbers as columns of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from limpet.core.state import Vector
from limpet.detection.alarm import Alarm
from limpet.fleet._dataframes import AUTO_RESULT_COLUMNS, RESULT_COLUMNS
from limpet.fleet._key_index import Integers, IntKeys, StrKeys
from limpet.fleet._key_input import read_keys
from limpet.spark.event_time import NO_TIME

LATE_COLUMN, ALARMS_COLUMN = "late", "alarms"
MICROSECONDS_PER_DAY = 86_400_000_000  # microseconds
ALARM_FIELDS = ("kind", "row", "onset", "size", "direction", "variables", "p_value", "message")


def output_columns(is_auto: bool, has_time: bool) -> tuple[str, ...]:
    """The columns that are added to the input, before their prefix."""
    return (*(AUTO_RESULT_COLUMNS if is_auto else RESULT_COLUMNS), *((LATE_COLUMN,) if has_time else ()), ALARMS_COLUMN)


def read_key_column(column: Any) -> IntKeys | StrKeys:
    """The keys in a column; to Spark any bytes may be a text, and one that is none is missing."""
    import pyarrow

    try:
        return read_keys(column)
    except UnicodeDecodeError:
        kind, strings = column.type, column.cast(pyarrow.large_binary()).to_pylist()
        return read_keys(pyarrow.chunked_array([[key if _is_text(key) else None for key in strings]]).cast(kind))


def _is_text(data: bytes | None) -> bool:
    try:
        return data is not None and bool(data.decode() or True)
    except UnicodeDecodeError:
        return False


def read_value_columns(table: Any, names: Sequence[str]) -> Vector:
    """The numbers in some columns, (n, columns); what is null is NaN."""
    import pyarrow

    columns = [table[name].cast(pyarrow.float64(), safe=False).fill_null(np.nan).to_numpy() for name in names]
    return np.ascontiguousarray(np.column_stack(columns), np.float64)


def read_time_column(column: Any) -> Integers:
    """Times as whole numbers, those of dates and timestamps in microseconds; NEVER where there is none."""
    import pyarrow

    types = pyarrow.types
    if types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp("us", column.type.tz)).cast(pyarrow.int64())
    factor = MICROSECONDS_PER_DAY if types.is_date32(column.type) else 1
    if factor > 1:
        column = column.cast(pyarrow.int32())
    times: Integers = column.cast(pyarrow.int64()).fill_null(NO_TIME).to_numpy().astype(np.int64, copy=False)
    return np.where(times == NO_TIME, NO_TIME, times * factor) if factor > 1 else times


def alarm_type() -> Any:
    """What the column of alarms holds: a list for a row that raised some, null for the others."""
    import pyarrow

    text, number, integer = pyarrow.string(), pyarrow.float64(), pyarrow.int64()
    kinds = (text, integer, integer, number, text, pyarrow.list_(text), number, text)
    return pyarrow.list_(pyarrow.struct(list(zip(ALARM_FIELDS, kinds, strict=True))))


def make_alarm_column(alarms: Sequence[Alarm], rows: Sequence[int], n: int) -> Any:
    """The column of alarms: rows[i] raised alarms[i]."""
    import pyarrow

    order = np.argsort(np.array(rows, np.int64), kind="stable").tolist()
    records = [_alarm_to_dict(alarms[i]) for i in order]
    counts = np.bincount(np.array(rows, np.int64), minlength=n)
    offsets = np.append(0, np.cumsum(counts)).astype(np.int32)
    kind = alarm_type()
    return pyarrow.ListArray.from_arrays(
        pyarrow.array(offsets), pyarrow.array(records, kind.value_type), type=kind, mask=pyarrow.array(counts == 0)
    )


def _alarm_to_dict(alarm: Alarm) -> dict[str, Any]:
    return {
        "kind": alarm.kind,
        "row": alarm.row,
        "onset": alarm.onset,
        "size": alarm.size,
        "direction": alarm.direction,
        "variables": [str(variable) for variable in alarm.variables],
        "p_value": alarm.p_value,
        "message": str(alarm),
    }
