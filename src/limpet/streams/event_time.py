"""Detect late and duplicate points by the event times of each stream.

One policy for `limpet.run`, the server and Spark, stated by `StreamClock.check`:

- A point is *late* if its time is before the latest accepted time of its stream. Learners depend on the order of the
  points, so that a late point cannot be inserted where it belongs: it is skipped.
- A point is a *duplicate* if its time and its values equal those of the latest accepted point. It is skipped. Points of
  equal times and different values are accepted.
- A stream whose clock was set back recovers: when `CLOCK_RESET_AFTER` successive points were late, in order among
  themselves, the last of them is accepted, and its time is the latest from then on.
- A point without a time is accepted, and does not change the clock.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import StrKeys
from limpet.streams.batch import Batch, Integers, composite_keys
from limpet.streams.timestamps import to_comparable

log = logging.getLogger("limpet.streams")
SKIP_LATE, LEARN_LATE = "skip", "learn"
LATE_POLICIES = (SKIP_LATE, LEARN_LATE)
CLOCK_RESET_AFTER = 100  # successive late points
MAX_LOGGED_RESETS = 5
NO_TIME = int(np.iinfo(np.int64).min)  # NaT as an integer
EventTime = int | float  # nanoseconds since 1970, or a number of the user


class Arrival(IntEnum):
    """Relation of a point to the clock of its stream: accepted, `LATE`, `DUPLICATE`."""

    ON_TIME = 0
    CLOCK_RESET = 1
    LATE = 2
    DUPLICATE = 3

    @property
    def is_skipped(self) -> bool:
        """Whether the point is skipped."""
        return self >= Arrival.LATE


ON_TIME, CLOCK_RESET, LATE, DUPLICATE = Arrival


@dataclass(slots=True, eq=False)
class StreamClock:
    """The clock of one stream, for points that arrive one by one.

    >>> clock = StreamClock()
    >>> [clock.check(time, (1.0,)).name for time in (10, 20, 15, 20, 21)]
    ['ON_TIME', 'ON_TIME', 'LATE', 'DUPLICATE', 'ON_TIME']
    """

    latest: EventTime | None = None  # of the latest accepted point
    values: Sequence[float] = ()  # of that point, NaN where one is missing
    n_late: int = 0  # successive late points, in order among themselves, since then
    last_late: EventTime | None = None  # of the last one of these

    def check(
        self, time: EventTime | None, values: Sequence[float], reset_after: int | None = CLOCK_RESET_AFTER
    ) -> Arrival:
        """Classify a point and advance the clock if accepted; None disables resets."""
        if time is None:
            return ON_TIME
        arrival = ON_TIME
        if self.latest is not None:
            if time < self.latest:
                is_ordered = self.n_late and self.last_late is not None and time >= self.last_late
                self.n_late, self.last_late = self.n_late + 1 if is_ordered else 1, time
                if reset_after is None or self.n_late < reset_after:
                    return LATE
                arrival = CLOCK_RESET
            elif time == self.latest and _are_equal(values, self.values):
                self.n_late = 0
                return DUPLICATE
        self.latest, self.values, self.n_late = time, values, 0
        return arrival


class ClockTable:
    """Clocks of many streams as arrays, one row per stream; grows as rows are used.

    Times are integers (`NO_TIME`: missing) or floats (NaN: missing), values are of shape (n, width). A clock is reset
    after `reset_after` successive late points; None: never.

    >>> clocks = ClockTable()
    >>> clocks.classify(np.array([0, 1, 0, 0]), np.array([5, 1, 4, 5]), np.array([[1.0], [2.0], [3.0], [1.0]]))
    array([0, 0, 2, 3], dtype=int8)
    >>> clocks.latest(np.array([0, 1]))
    array([5, 1])
    """

    _COLUMNS = ("_times", "_values", "_known", "_n_late", "_last_late")

    def __init__(self, reset_after: int | None = CLOCK_RESET_AFTER) -> None:
        self.reset_after = reset_after
        self._allocate(0, 1, np.dtype(np.int64))

    def _allocate(self, n: int, width: int, dtype: np.dtype[Any]) -> None:
        self._times: npt.NDArray[Any] = np.full(n, NO_TIME if dtype.kind == "i" else np.nan, dtype)
        self._values: Vector = np.zeros((n, width))
        self._known = np.zeros(n, np.bool_)
        self._n_late: Integers = np.zeros(n, np.int64)
        self._last_late: npt.NDArray[Any] = np.zeros(n, dtype)

    def __len__(self) -> int:
        return len(self._known)

    def classify(self, rows: Integers, times: npt.NDArray[Any], values: Vector) -> npt.NDArray[np.int8]:
        """Return each point's `Arrival`, in order of arrival, and advance the clocks."""
        arrivals = np.zeros(len(rows), np.int8)
        order = np.flatnonzero(times != NO_TIME if times.dtype.kind == "i" else ~np.isnan(times))
        if len(order):
            self._prepare(int(rows.max()) + 1, values.shape[1], times.dtype)
            if rows.any():
                small = len(self) <= np.iinfo(np.int16).max  # int16 is sorted ten times as fast
                order = order[np.argsort(rows[order].astype(np.int16) if small else rows[order], kind="stable")]
            arrivals[order] = self._classify_sorted(rows[order], times[order], values[order])
        return arrivals

    def _classify_sorted(self, rows: Integers, times: npt.NDArray[Any], values: Vector) -> npt.NDArray[np.int8]:
        """Classify points sorted by stream; streams with a late point one by one."""
        starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
        ends, streams = np.append(starts[1:], len(rows)), rows[starts]
        known = self._known[streams]
        previous_times, previous_values = np.append(times[:1], times[:-1]), np.concatenate([values[:1], values[:-1]])
        previous_times[starts] = np.where(known, self._times[streams], times[starts])
        previous_values[starts] = self._values[streams]
        arrivals = np.zeros(len(rows), np.int8)
        late, is_duplicate = times < previous_times, times == previous_times
        is_duplicate[starts] &= known
        if is_duplicate.any():
            is_equal = (values == previous_values) | (np.isnan(values) & np.isnan(previous_values))
            arrivals[is_duplicate & is_equal.all(axis=1)] = DUPLICATE
        has_late = np.logical_or.reduceat(late, starts) if late.any() else np.zeros(len(starts), np.bool_)
        ordered, last = (streams[~has_late], ends[~has_late] - 1) if has_late.any() else (streams, ends - 1)
        self._times[ordered], self._values[ordered] = times[last], values[last]
        self._known[ordered], self._n_late[ordered] = True, 0
        for stream in np.flatnonzero(has_late).tolist():
            part = slice(starts[stream], ends[stream])
            arrivals[part] = self._check_each(int(streams[stream]), times[part].tolist(), values[part].tolist())
        return arrivals

    def _check_each(self, row: int, times: Sequence[EventTime], values: Sequence[Sequence[float]]) -> list[Arrival]:
        latest = self._times[row].item() if self._known[row] else None
        clock = StreamClock(latest, self._values[row].tolist(), int(self._n_late[row]), self._last_late[row].item())
        arrivals = [clock.check(time, point, self.reset_after) for time, point in zip(times, values, strict=True)]
        self._times[row], self._values[row], self._known[row] = clock.latest, clock.values, True
        self._n_late[row], self._last_late[row] = clock.n_late, clock.last_late
        return arrivals

    def latest(self, rows: Integers) -> npt.NDArray[Any]:
        """Return the latest accepted time of each row; `NO_TIME` or NaN if unknown."""
        return self.take(rows)._times

    def take(self, rows: Integers) -> ClockTable:
        """Return the clocks of rows as a table; negative and unknown rows are empty."""
        present = (rows >= 0) & (rows < len(self))
        table = ClockTable(self.reset_after)
        table._allocate(len(rows), self._values.shape[1], self._times.dtype)
        for name in self._COLUMNS:
            getattr(table, name)[present] = getattr(self, name)[rows[present]]
        return table

    def put(self, rows: Integers, clocks: ClockTable) -> None:
        """Replace the clocks of rows by those of a table; negative rows are left out."""
        present = rows >= 0
        if not clocks._known.any():  # its width and type are those of no point
            clocks = self.take(np.full(len(rows), -1))
        if present.any():
            self._prepare(int(rows.max()) + 1, clocks._values.shape[1], clocks._times.dtype)
            for name in self._COLUMNS:
                getattr(self, name)[rows[present]] = getattr(clocks, name)[present]

    def clear(self, rows: Integers) -> None:
        """Reset some rows to streams without a point."""
        self.put(rows, self.take(np.full(len(rows), -1)))

    def to_bytes(self) -> bytes:
        """Serialize the table."""
        header = {"n": len(self), "width": self._values.shape[1], "dtype": self._times.dtype.str}
        return json.dumps(header).encode() + b"\n" + b"".join(getattr(self, name).tobytes() for name in self._COLUMNS)

    @classmethod
    def from_bytes(cls, data: bytes, reset_after: int | None = CLOCK_RESET_AFTER) -> ClockTable:
        """Restore a table from `to_bytes`."""
        line, _, numbers = data.partition(b"\n")
        header, offset, table = json.loads(line), 0, cls(reset_after)
        table._allocate(header["n"], header["width"], np.dtype(header["dtype"]))
        for name in cls._COLUMNS:
            column = getattr(table, name)
            column[...] = np.frombuffer(numbers, column.dtype, column.size, offset).reshape(column.shape)
            offset += column.nbytes
        return table

    def _prepare(self, n: int, width: int, dtype: np.dtype[Any]) -> None:
        """Make space for `n` rows, and adopt width and type of the first points."""
        if self._times.dtype != dtype or self._values.shape[1] != width:
            if self._known.any():
                raise InvalidInputError("times: must be all numbers or all dates, got both.")
            self._allocate(len(self), width, dtype)
        if n > len(self):
            more = self.take(np.arange(max(n, len(self) + len(self) // 8)))
            for name in self._COLUMNS:
                setattr(self, name, getattr(more, name))


class EventTimeFilter:
    """Remove late and duplicate points by stream; `late` = "learn" removes none.

    Batches without times, and those whose times have no order (strings), are returned as they are. When an eighth more
    streams than `max_streams` have arrived, those silent for longest are forgotten.

    >>> event_time_filter = EventTimeFilter()
    >>> batch, n_late, n_duplicates = event_time_filter.filter(Batch([1.0, 2.0, 3.0, 2.0], times=[10, 20, 15, 20]))
    >>> batch.values.ravel(), n_late, n_duplicates
    (array([1., 2.]), 1, 1)
    """

    def __init__(
        self, late: str = SKIP_LATE, max_streams: int | None = None, clock_reset_after: int = CLOCK_RESET_AFTER
    ) -> None:
        if late not in LATE_POLICIES:
            raise InvalidInputError(f"late: must be one of {', '.join(LATE_POLICIES)}, got {late!r}.")
        if max_streams is not None and max_streams < 1:
            raise InvalidInputError(f"max_streams: must be at least 1, got {max_streams}.")
        self.late, self.max_streams = late, max_streams
        self._clocks = ClockTable(clock_reset_after)
        self._rows: dict[str, int] = {}
        self._n_clock_resets = self._n_points = 0
        self._last_arrival: Integers = np.zeros(0, np.int64)  # index of the last point of each stream

    def filter(self, batch: Batch) -> tuple[Batch, int, int]:
        """Return the batch without late and duplicate points, and the counts of both."""
        times = None if batch.times is None or self.late == LEARN_LATE else to_comparable(batch.times)
        if times is None or not len(batch):
            return batch, 0, 0
        rows = self._assign_rows(composite_keys(batch) or StrKeys([""], np.zeros(len(batch), np.int64)))
        arrivals = self._clocks.classify(rows, times, batch.values)
        if arrivals.any():
            self._log_clock_resets(rows[arrivals == CLOCK_RESET])
        self._evict_streams(rows)
        skipped = arrivals >= LATE
        n_late = int(np.count_nonzero(arrivals == LATE))
        return batch.filter(~skipped) if skipped.any() else batch, n_late, int(skipped.sum()) - n_late

    def _assign_rows(self, keys: StrKeys) -> Integers:
        rows = np.array([self._rows.setdefault(name, len(self._rows)) for name in keys.values], np.int64)
        return rows if keys.codes is None else rows[keys.codes]

    def _log_clock_resets(self, rows: Integers) -> None:
        for row in rows.tolist():
            self._n_clock_resets += 1
            if self._n_clock_resets <= MAX_LOGGED_RESETS:
                name = list(self._rows)[row]
                log.warning(
                    "%d successive points%s were late, in order among themselves: its clock was reset to their times",
                    self._clocks.reset_after,
                    f" of {name}" if name else "",
                )

    def _evict_streams(self, rows: Integers) -> None:
        if self.max_streams is None:
            return
        if len(self._rows) > len(self._last_arrival):
            n_new = len(self._rows) - len(self._last_arrival)
            self._last_arrival = np.append(self._last_arrival, np.zeros(n_new, np.int64))
        self._last_arrival[rows] = self._n_points + np.arange(len(rows))
        self._n_points += len(rows)
        if len(self._rows) > self.max_streams + self.max_streams // 8:
            retained = np.sort(np.argsort(self._last_arrival, kind="stable")[-self.max_streams :])
            names = list(self._rows)
            self._rows = {names[row]: index for index, row in enumerate(retained.tolist())}
            self._clocks, self._last_arrival = self._clocks.take(retained), self._last_arrival[retained]

    def to_bytes(self) -> bytes:
        """Serialize what is known of the streams."""
        header = {"keys": list(self._rows), "n_points": self._n_points, "n_arrivals": len(self._last_arrival)}
        clocks = self._clocks.take(np.arange(len(self._rows)))
        return json.dumps(header).encode() + b"\n" + self._last_arrival.tobytes() + clocks.to_bytes()

    def restore(self, data: bytes) -> None:
        """Restore what `to_bytes` has serialized."""
        line, _, rest = data.partition(b"\n")
        header = json.loads(line)
        self._rows = {key: row for row, key in enumerate(header["keys"])}
        self._n_points, n_arrivals = header["n_points"], header["n_arrivals"]
        self._last_arrival = np.frombuffer(rest, np.int64, n_arrivals).copy()
        self._clocks = ClockTable.from_bytes(rest[8 * n_arrivals :], self._clocks.reset_after)


def _are_equal(values: Sequence[float], others: Sequence[float]) -> bool:
    """Whether two points are equal, missing values included."""
    return len(values) == len(others) and all(
        a == b or (a != a and b != b) for a, b in zip(values, others, strict=True)
    )
