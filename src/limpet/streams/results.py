"""Results of a batch as two tables: one row per point, and one row per alarm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from limpet.detection.alarm import ALARM_FIELDS, Alarm
from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import StrKeys
from limpet.learners.results import AUTO_RESULT_FIELDS, Trace
from limpet.streams.batch import Batch, Integers
from limpet.streams.timestamps import format_times

POINTS_TABLE, ALARMS_TABLE = "points", "alarms"
ALARM_COLUMNS = ("record", *ALARM_FIELDS)


@dataclass(eq=False)
class BatchResult:
    """A batch with the results of its points.

    Attributes
    ----------
    batch : Batch
        The points.
    trace : Trace
        The results of the learner.
    first_record, first_point, first_alarm : int
        The number of records, points and alarms of the run before this batch. A resumed run repeats these numbers.
    run_id : str
        The identifier of the run; a resumed run keeps it.
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
        """The index of the record of each point, counted from the start of the run."""
        assert self.batch.record_index is not None
        return self.first_record + self.batch.record_index

    def point_columns(self, times_as_strings: bool = True) -> dict[str, Any]:
        """Return the columns of the table of points, as lists and arrays. Formatting times takes most of the time."""
        batch, names = self.batch, self.batch.names or tuple(f"x{i}" for i in range(self.batch.values.shape[1]))
        columns: dict[str, Any] = {"record": self.record_indexes}
        if batch.times is not None:
            columns["time"] = format_times(batch.times, batch.tz_aware) if times_as_strings else batch.times
        if batch.keys is not None:
            columns["key"] = to_str_list(batch.keys)
        if batch.variable_names is not None:
            columns["variable"] = to_str_list(batch.variable_names)
        for i, name in enumerate(dedupe_names(names, [*columns, *AUTO_RESULT_FIELDS])):
            columns[name] = batch.values[:, i]
        return columns | self.trace.to_dict()

    @cached_property
    def alarms(self) -> list[Alarm]:
        """The alarms, with the times, keys and variable names of the data."""
        batch, alarms = self.batch, self.trace.alarms
        raised_at = np.array(self.trace.alarm_index, np.int64)
        if alarms and batch.times is not None:
            times = format_times(batch.times[raised_at], batch.tz_aware)
            alarms = [replace(alarm, time=time) for alarm, time in zip(alarms, times, strict=True)]
        if batch.variable_names is None:
            return alarms
        channels = to_str_list(batch.variable_names.take(raised_at))
        keys = [None] * len(raised_at) if batch.keys is None else to_str_list(batch.keys.take(raised_at))
        return [
            replace(alarm, key=key, variables=(channel,))
            for alarm, key, channel in zip(alarms, keys, channels, strict=True)
        ]

    def alarm_records(self) -> list[dict[str, Any]]:
        """Return the rows of the table of alarms: `Alarm.to_dict` with `record`."""
        records = self.record_indexes[np.array(self.trace.alarm_index, np.int64)].tolist()
        return [{"record": record, **alarm.to_dict()} for record, alarm in zip(records, self.alarms, strict=True)]


def dedupe_names(names: Sequence[str], used_names: Sequence[str]) -> list[str]:
    """Append underscores until all names differ, ignoring case.

    >>> dedupe_names(["a", "A", "Score", "score_"], ["score"])
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
    """Return each key as a string; None where it is missing."""
    if keys.codes is None:
        return list(keys.values)
    values = [*keys.values, None]  # code −1 is the last one
    return [values[code] for code in keys.codes.tolist()]


def check_table(table: str) -> str:
    """Return the name of a table after validation."""
    if table not in (POINTS_TABLE, ALARMS_TABLE):
        raise InvalidInputError(f"table: must be {POINTS_TABLE!r} or {ALARMS_TABLE!r}, got {table!r}")
    return table


def get_column_names(results: BatchResult, table: str) -> tuple[str, ...]:
    """Return the names of the columns of a table."""
    return ALARM_COLUMNS if table == ALARMS_TABLE else tuple(results.point_columns())


def to_rows(results: BatchResult, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table as tuples, with None for missing values."""
    if table == ALARMS_TABLE:
        return [tuple(row.values()) for row in results.alarm_records()]
    return list(zip(*map(to_plain_list, results.point_columns().values()), strict=True))


def to_records(results: BatchResult, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts by column name."""
    if table == ALARMS_TABLE:
        return results.alarm_records()
    columns = results.point_columns()
    return [dict(zip(columns, row, strict=True)) for row in zip(*map(to_plain_list, columns.values()), strict=True)]


def first_index(results: BatchResult, table: str) -> int:
    """Return the number of rows of a table before this batch."""
    return results.first_alarm if table == ALARMS_TABLE else results.first_point


def to_plain_list(column: Any) -> list[Any]:
    """Convert a column to Python values, with None for numbers that JSON cannot represent.

    >>> to_plain_list(np.array([1.5, np.nan]))
    [1.5, None]
    """
    if not isinstance(column, np.ndarray):
        return list(column)
    if column.dtype.kind == "f" and not (finite := np.isfinite(column)).all():
        column = column.astype(object)
        column[~finite] = None
    return list(column.tolist())


def to_json_line(record: dict[str, Any]) -> str:
    """Serialize a record as one line of JSON."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False)
