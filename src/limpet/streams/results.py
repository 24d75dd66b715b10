"""Results of a batch as tables of points and of alarms, and counts of a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.detection.alarm import ALARM_FIELDS, Alarm
from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import StrKeys
from limpet.learners.results import AUTO_RESULT_FIELDS, Trace
from limpet.streams.batch import Batch, InputErrorLog, Integers
from limpet.streams.timestamps import format_times

POINTS_TABLE, ALARMS_TABLE = "points", "alarms"
ALARM_COLUMNS = ("record", *ALARM_FIELDS)
INVALID_REASONS = ("no value", "infinite, or beyond 1e150", "outside the support of the model")
NO_VALUE, OUT_OF_RANGE, OUT_OF_SUPPORT = INVALID_REASONS
MAX_LATEST_ALARMS = 5


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
        """Return the columns of points as lists and arrays; formatting times is slow."""
        batch, names = self.batch, self.batch.variables
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
        raise InvalidInputError(f"table: must be {POINTS_TABLE!r} or {ALARMS_TABLE!r}, got {table!r}.")
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


def to_plain_list(column: Any) -> list[Any]:
    """Convert a column to Python values, None for numbers that JSON cannot hold.

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


@dataclass
class RunStats:
    """Counts since the first start of the run."""

    records: int = 0  # lines, rows or messages read
    points: int = 0  # processed; with separate variables one per value
    rejected: int = 0  # by the threshold
    anomalies: int = 0
    late: int = 0  # skipped: older than the last point of their stream
    duplicates: int = 0  # skipped: equal to the last point of their stream
    checkpoints: int = 0
    alarms: Counter[str] = field(default_factory=Counter)  # by kind
    malformed: InputErrorLog = field(default_factory=InputErrorLog)  # records
    invalid: InputErrorLog = field(default_factory=InputErrorLog)  # points
    latest: list[dict[str, Any]] = field(default_factory=list)  # records of the latest alarms

    @property
    def n_alarms(self) -> int:
        """Alarms of any kind."""
        return self.alarms.total()

    def record_read(self, batch: Batch, late: int, duplicates: int) -> None:
        """Count the records of a batch."""
        self.malformed.merge(batch.malformed, self.records)
        self.records += batch.n_records
        self.late += late
        self.duplicates += duplicates

    def record_processed(self, results: BatchResult) -> None:
        """Count the results of a batch."""
        trace = results.trace
        self.points += len(trace)
        self.rejected += int(np.count_nonzero(trace.rejected))
        self.anomalies += int(np.count_nonzero(trace.anomaly))
        for alarm in trace.alarms:
            self.alarms[alarm.kind] += 1
        if trace.alarms:
            self.latest = [*self.latest, *results.alarm_records()[-MAX_LATEST_ALARMS:]][-MAX_LATEST_ALARMS:]
        invalid = np.flatnonzero(trace.invalid)
        if not len(invalid):
            return
        values = results.batch.values[invalid]
        present_reason = np.where((np.abs(values) > MAX_ABS_VALUE).any(axis=1), 1, 2)
        reasons = np.where(np.isnan(values).all(axis=1), 0, present_reason)  # indices of INVALID_REASONS
        if results.batch.variable_names is not None:  # a gap in one of several separate variables is no error
            invalid, values, reasons = invalid[reasons > 0], values[reasons > 0], reasons[reasons > 0]
        n_shown = self.invalid.remaining_capacity
        shown = zip(reasons[:n_shown], results.record_indexes[invalid[:n_shown]], values[:n_shown], strict=True)
        for reason, record, point in shown:
            self.invalid.add(INVALID_REASONS[reason], int(record), str(point.tolist()))
        for reason, count in zip(INVALID_REASONS, np.bincount(reasons[n_shown:], minlength=3), strict=True):
            self.invalid.count(reason, int(count))

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON can hold them."""
        logs = {name: getattr(self, name).to_dict() for name in ("malformed", "invalid")}
        return {**vars(self), "alarms": dict(self.alarms), **logs}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RunStats:
        """Restore the counts from `to_dict`; other entries are ignored."""
        counts = {each.name: data[each.name] for each in fields(cls)}
        logs = {name: InputErrorLog.from_dict(data[name]) for name in ("malformed", "invalid")}
        return cls(**{**counts, "alarms": Counter(data["alarms"]), **logs})
