"""The clock of one stream: which points come late, and which come twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from limpet.streams.event_time import CLOCK_RESET_AFTER

LATE_REASON, REPEATED_REASON = "late", "repeated"
EventTime = int | float
"""Nanoseconds since 1970, or a number of the user's."""


class EventTimeFilter:
    """Goes by the rules of `limpet.streams.event_time`, one stream and point by point.

    A point older than the last one is late; one of the same time with the same values is a repetition, as when somebody
    who got no answer sends again. A hundred late points in order are a clock that was set back.

    >>> clock = Clock()
    >>> [clock.look(moment, (1.0,)) for moment in (10, 20, 15, 20, 21)]
    [None, None, 'late', 'repeated', None]
    """

    __slots__ = ("latest", "run", "run_last", "values")

    def __init__(self, latest: EventTime | None = None, values: Sequence[float] = ()) -> None:
        self.latest, self.values = latest, tuple(values)
        self.run, self.run_last = 0, latest

    def check(self, event_time: EventTime | None, values: Sequence[float]) -> str | None:
        """Why a point is to be skipped; None if it is to be learnt. One without a time is as late as it comes."""
        if event_time is None:
            return None
        if self.latest is not None:
            if event_time < self.latest:
                in_order = self.run and self.run_last is not None and event_time >= self.run_last
                self.run, self.run_last = self.run + 1 if in_order else 1, event_time
                if self.run < CLOCK_RESET_AFTER:
                    return LATE_REASON
            elif event_time == self.latest and equal_points(values, self.values):
                return REPEATED_REASON
        self.latest, self.values, self.run = event_time, tuple(values), 0
        return None


class FilteredPoints(NamedTuple):
    """The places of the points to be learnt, and how many were skipped for which reason."""

    indexes: list[int]
    skipped: dict[str, int]


def filter_points(
    time_filter: EventTimeFilter, event_times: Sequence[EventTime | None], values: Sequence[Sequence[float]]
) -> FilteredPoints:
    """Looks at points one after another."""
    index, skipped = [], {LATE_REASON: 0, REPEATED_REASON: 0}
    for row, (event_time, point) in enumerate(zip(event_times, values, strict=True)):
        reason = time_filter.check(event_time, point)
        if reason is None:
            index.append(row)
        else:
            skipped[reason] += 1
    return FilteredPoints(index, skipped)


def equal_points(point: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two points are equal, gaps included."""
    return len(point) == len(other) and all(a == b or (a != a and b != b) for a, b in zip(point, other, strict=True))
