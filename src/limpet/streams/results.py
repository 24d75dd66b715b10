"""What the points of a batch came to, as tables: one row a point, and one row an alarm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import StrKeys
from limpet.learners.results import Trace
from limpet.streams.batch import Batch, Integers
from limpet.streams.timestamps import format_times

TRACE_COLUMNS = ("score", "rejected", "invalid")
AUTO_TRACE_COLUMNS = ("score", "change_score", "p_value", "rejected", "anomaly", "change", "invalid")
ALARM_COLUMNS = (
    *("record", "time", "key", "kind", "row", "onset", "size", "direction", "variables", "p_value", "message"),
)


@dataclass(eq=False)
class BatchResult:
    """A batch with what its points came to.

    first_record, first_point, first_alarm: how many records, points and alarms there were in this run before it: the
    same numbers come again when the same is told again. run: a name of the run, which it keeps when it is resumed.
    """

    batch: Batch
    trace: Trace
    first_record: int = 0
    first_point: int = 0
    first_alarm: int = 0
    run_id: str = ""

    def __len__(self) -> int:
        return len(self.batch)

    @cached_property
    def record_indexes(self) -> Integers:
        """Which of all records each point is."""
        assert self.batch.record_index is not None
        return self.first_record + self.batch.record_index

    def point_columns(self, times_as_strings: bool = True) -> dict[str, Any]:
        """The table of points by its columns: lists and arrays. Times as texts take longer than all else."""
        batch, names = self.batch, self.batch.names or tuple(f"x{i}" for i in range(self.batch.values.shape[1]))
        columns: dict[str, Any] = {"record": self.record_indexes}
        if batch.times is not None:
            columns["time"] = format_times(batch.times, batch.tz_aware) if times_as_strings else batch.times
        if batch.keys is not None:
            columns["key"] = to_str_list(batch.keys)
        if batch.variable_names is not None:
            columns["variable"] = to_str_list(batch.variable_names)
        for i, name in enumerate(dedupe_names(names, [*columns, *AUTO_TRACE_COLUMNS])):
            columns[name] = batch.values[:, i]
        for name in AUTO_TRACE_COLUMNS if self.trace.auto_scores is not None else TRACE_COLUMNS:
            columns[name] = getattr(self.trace, name)
        return columns

    @cached_property
    def alarms(self) -> list[Alarm]:
        """The alarms, with the keys and the variables that the user knows."""
        if self.batch.variable_names is None:
            return self.trace.alarms
        raised_at = np.array(self.trace.alarm_index, np.int64)
        channels = to_str_list(self.batch.variable_names.take(raised_at))
        keys = [None] * len(raised_at) if self.batch.keys is None else to_str_list(self.batch.keys.take(raised_at))
        return [
            replace(alarm, key=key, variables=(channel,))
            for alarm, key, channel in zip(self.trace.alarms, keys, channels, strict=True)
        ]

    def alarm_records(self) -> list[dict[str, Any]]:
        """The table of alarms, a dict a row."""
        rows = []
        raised_at = self.trace.alarm_index
        times = None if self.batch.times is None else format_times(self.batch.times[raised_at], self.batch.tz_aware)
        for nth, (index, alarm) in enumerate(zip(raised_at, self.alarms, strict=True)):
            rows.append(
                {
                    "record": int(self.record_indexes[index]),
                    "time": None if times is None else times[nth],
                    "key": alarm.key,
                    "kind": alarm.kind,
                    "row": alarm.row,
                    "onset": alarm.onset,
                    "size": alarm.size if np.isfinite(alarm.size) else None,
                    "direction": alarm.direction,
                    "variables": [str(name) for name in alarm.variables],
                    "p_value": alarm.p_value,
                    "message": str(alarm),
                }
            )
        return rows


def dedupe_names(names: Sequence[str], used_names: Sequence[str]) -> list[str]:
    """Names that differ from each other and from those taken; to many readers small and large letters are the same.

    >>> free_names(["a", "A", "Score", "score_"], ["score"])
    ['a', 'A_', 'Score__', 'score_']
    """
    unique_names: list[str] = []
    used = {name.lower() for name in used_names}
    reserved = used | {name.lower() for name in names}
    for name in names:
        unique = name
        if name.lower() in used:
            while unique.lower() in reserved:
                unique += "_"
        used.add(unique.lower())
        reserved.add(unique.lower())
        unique_names.append(unique)
    return unique_names


def to_str_list(keys: StrKeys) -> list[Any]:
    """Each key as a text; None where it is missing."""
    if keys.codes is None:
        return list(keys.values)
    values = [*keys.values, None]  # which is the one of code −1
    return [values[code] for code in keys.codes.tolist()]


# The two tables that results make, points and alarms, in the forms that sinks write.

POINTS_TABLE, ALARMS_TABLE = "points", "alarms"


def check_table(table: str) -> str:
    """The name of a table."""
    if table not in (POINTS_TABLE, ALARMS_TABLE):
        raise InvalidInputError(f"expected {POINTS_TABLE!r} or {ALARMS_TABLE!r}, got {table!r}")
    return table


def get_column_names(results: BatchResult, table: str) -> tuple[str, ...]:
    """The names of the columns."""
    return ALARM_COLUMNS if table == ALARMS_TABLE else tuple(results.point_columns())


def to_rows(results: BatchResult, table: str) -> list[tuple[Any, ...]]:
    """The rows: numbers, flags, texts, lists of texts; None where there is nothing."""
    if table == ALARMS_TABLE:
        return [tuple(row.values()) for row in results.alarm_records()]
    return list(zip(*map(to_plain_list, results.point_columns().values()), strict=True))


def to_records(results: BatchResult, table: str) -> list[dict[str, Any]]:
    """The rows, by the names of their columns."""
    if table == ALARMS_TABLE:
        return results.alarm_records()
    columns = results.point_columns()
    return [dict(zip(columns, row, strict=True)) for row in zip(*map(to_plain_list, columns.values()), strict=True)]


def first_index(results: BatchResult, table: str) -> int:
    """How many rows there were before."""
    return results.first_alarm if table == ALARMS_TABLE else results.first_point


def to_plain_list(column: Any) -> list[Any]:
    """A column of plain values; numbers that JSON does not have are None.

    >>> plain(np.array([1.5, np.nan]))
    [1.5, None]
    """
    if not isinstance(column, np.ndarray):
        return list(column)
    if column.dtype.kind == "f" and not (finite := np.isfinite(column)).all():
        column = column.astype(object)
        column[~finite] = None
    return list(column.tolist())


def to_json_line(record: dict[str, Any]) -> str:
    """A record as one line of JSON."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False)
