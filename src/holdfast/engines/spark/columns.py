"""Columns of Arrow as numbers, and numbers as columns of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.alarms.alarm import Alarm
from holdfast.engines.spark.clock import NEVER
from holdfast.fleet.found import Integers
from holdfast.fleet.frames import PLAIN, WATCHED
from holdfast.fleet.keys import Numbers, Texts
from holdfast.fleet.reading import read_keys
from holdfast.scheme.state import Vector

LATE, ALARMS = "late", "alarms"
DAY = 86_400_000_000  # microseconds
ALARM_FIELDS = ("kind", "row", "onset", "size", "direction", "variables", "p_value", "message")


def answer_names(on_autopilot: bool, timed: bool) -> tuple[str, ...]:
    """The columns that are added to the input, before their prefix."""
    return (*(WATCHED if on_autopilot else PLAIN), *((LATE,) if timed else ()), ALARMS)


def keys_of(column: Any) -> Numbers | Texts:
    """The keys in a column; to Spark any bytes may be a text, and one that is none is missing."""
    import pyarrow

    try:
        return read_keys(column)
    except UnicodeDecodeError:
        kind, texts = column.type, column.cast(pyarrow.large_binary()).to_pylist()
        return read_keys(pyarrow.chunked_array([[one if _is_text(one) else None for one in texts]]).cast(kind))


def _is_text(data: bytes | None) -> bool:
    try:
        return data is not None and bool(data.decode() or True)
    except UnicodeDecodeError:
        return False


def values_of(table: Any, names: Sequence[str]) -> Vector:
    """The numbers in some columns, (n, columns); what is null is NaN."""
    import pyarrow

    columns = [table[name].cast(pyarrow.float64(), safe=False).fill_null(np.nan).to_numpy() for name in names]
    return np.ascontiguousarray(np.column_stack(columns), np.float64)


def times_of(column: Any) -> Integers:
    """Times as whole numbers, those of dates and timestamps in microseconds; NEVER where there is none."""
    import pyarrow

    types = pyarrow.types
    if types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp("us", column.type.tz)).cast(pyarrow.int64())
    factor = DAY if types.is_date32(column.type) else 1
    if factor > 1:
        column = column.cast(pyarrow.int32())
    times: Integers = column.cast(pyarrow.int64()).fill_null(NEVER).to_numpy().astype(np.int64, copy=False)
    return np.where(times == NEVER, NEVER, times * factor) if factor > 1 else times


def alarm_type() -> Any:
    """What the column of alarms holds: a list for a row that raised some, null for the others."""
    import pyarrow

    text, number, whole = pyarrow.string(), pyarrow.float64(), pyarrow.int64()
    kinds = (text, whole, whole, number, text, pyarrow.list_(text), number, text)
    return pyarrow.list_(pyarrow.struct(list(zip(ALARM_FIELDS, kinds, strict=True))))


def alarm_column(alarms: Sequence[Alarm], rows: Sequence[int], n: int) -> Any:
    """The column of alarms: rows[i] raised alarms[i]."""
    import pyarrow

    order = np.argsort(np.array(rows, np.int64), kind="stable").tolist()
    told = [_told(alarms[i]) for i in order]
    counts = np.bincount(np.array(rows, np.int64), minlength=n)
    edges = np.append(0, np.cumsum(counts)).astype(np.int32)
    kind = alarm_type()
    return pyarrow.ListArray.from_arrays(
        pyarrow.array(edges), pyarrow.array(told, kind.value_type), type=kind, mask=pyarrow.array(counts == 0)
    )


def _told(alarm: Alarm) -> dict[str, Any]:
    return {
        "kind": alarm.kind,
        "row": alarm.row,
        "onset": alarm.onset,
        "size": alarm.size,
        "direction": alarm.direction,
        "variables": [str(one) for one in alarm.variables],
        "p_value": alarm.p_value,
        "message": str(alarm),
    }
