"""What the points of a batch came to, as tables: one row a point, and one row an alarm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.alarms.alarm import Alarm
from holdfast.fleet.keys import Texts
from holdfast.learners.trace import Trace
from holdfast.streams.batch import Batch, Integers
from holdfast.streams.times import told

PLAIN = ("score", "dropped", "bad")
WATCHED = ("score", "change_score", "p_value", "dropped", "anomaly", "change", "bad")
ALARM_COLUMNS = (
    *("record", "time", "key", "kind", "row", "onset", "size", "direction", "variables", "p_value", "message"),
)


@dataclass(eq=False)
class Results:
    """A batch with what its points came to.

    first_record, first_point, first_alarm: how many records, points and alarms there were in this run before it: the
    same numbers come again when the same is told again. run: a name of the run, which it keeps when it is resumed.
    """

    batch: Batch
    trace: Trace
    first_record: int = 0
    first_point: int = 0
    first_alarm: int = 0
    run: str = ""

    def __len__(self) -> int:
        return len(self.batch)

    @cached_property
    def records(self) -> Integers:
        """Which of all records each point is."""
        assert self.batch.places is not None
        return self.first_record + self.batch.places

    def point_columns(self, times_as_texts: bool = True) -> dict[str, Any]:
        """The table of points by its columns: lists and arrays. Times as texts take longer than all else."""
        batch, names = self.batch, self.batch.names or tuple(f"x{i}" for i in range(self.batch.values.shape[1]))
        columns: dict[str, Any] = {"record": self.records}
        if batch.times is not None:
            columns["time"] = told(batch.times, batch.zoned) if times_as_texts else batch.times
        if batch.keys is not None:
            columns["key"] = texts_of(batch.keys)
        if batch.channels is not None:
            columns["variable"] = texts_of(batch.channels)
        for i, name in enumerate(free_names(names, [*columns, *WATCHED])):
            columns[name] = batch.values[:, i]
        for name in WATCHED if self.trace.watched is not None else PLAIN:
            columns[name] = getattr(self.trace, name)
        return columns

    @cached_property
    def alarms(self) -> list[Alarm]:
        """The alarms, with the keys and the variables that the user knows."""
        if self.batch.channels is None:
            return self.trace.alarms
        raised_at = np.array(self.trace.raised_at, np.int64)
        channels = texts_of(self.batch.channels.take(raised_at))
        keys = [None] * len(raised_at) if self.batch.keys is None else texts_of(self.batch.keys.take(raised_at))
        return [
            replace(alarm, key=key, variables=(channel,))
            for alarm, key, channel in zip(self.trace.alarms, keys, channels, strict=True)
        ]

    def alarm_rows(self) -> list[dict[str, Any]]:
        """The table of alarms, a dict a row."""
        rows = []
        raised_at = self.trace.raised_at
        times = None if self.batch.times is None else told(self.batch.times[raised_at], self.batch.zoned)
        for nth, (at, alarm) in enumerate(zip(raised_at, self.alarms, strict=True)):
            rows.append(
                {
                    "record": int(self.records[at]),
                    "time": None if times is None else times[nth],
                    "key": alarm.key,
                    "kind": alarm.kind,
                    "row": alarm.row,
                    "onset": alarm.onset,
                    "size": alarm.size if np.isfinite(alarm.size) else None,
                    "direction": alarm.direction,
                    "variables": [str(one) for one in alarm.variables],
                    "p_value": alarm.p_value,
                    "message": str(alarm),
                }
            )
        return rows


def free_names(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Names that differ from each other and from those taken; to many readers small and large letters are the same.

    >>> free_names(["a", "A", "Score", "score_"], ["score"])
    ['a', 'A_', 'Score__', 'score_']
    """
    free: list[str] = []
    before = {name.lower() for name in taken}
    all_of_them = before | {name.lower() for name in names}
    for name in names:
        unique = name
        if name.lower() in before:
            while unique.lower() in all_of_them:
                unique += "_"
        before.add(unique.lower())
        all_of_them.add(unique.lower())
        free.append(unique)
    return free


def texts_of(keys: Texts) -> list[Any]:
    """Each key as a text; None where it is missing."""
    if keys.codes is None:
        return list(keys.values)
    values = [*keys.values, None]  # which is the one of code −1
    return [values[code] for code in keys.codes.tolist()]
