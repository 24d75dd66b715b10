"""The clock of one stream: which points come late, and which come twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.streams.lateness import NEW_CLOCK

LATE, REPEATED = "late", "repeated"
Moment = int | float
"""Nanoseconds since 1970, or a number of the user's."""


class Clock:
    """Goes by the rules of `holdfast.streams.lateness`, one stream and point by point.

    A point older than the last one is late; one of the same time with the same values is a repetition, as when somebody
    who got no answer sends again. A hundred late points in order are a clock that was set back.

    >>> clock = Clock()
    >>> [clock.look(moment, (1.0,)) for moment in (10, 20, 15, 20, 21)]
    [None, None, 'late', 'repeated', None]
    """

    __slots__ = ("latest", "run", "run_last", "values")

    def __init__(self, latest: Moment | None = None, values: Sequence[float] = ()) -> None:
        self.latest, self.values = latest, tuple(values)
        self.run, self.run_last = 0, latest

    def look(self, moment: Moment | None, values: Sequence[float]) -> str | None:
        """Why a point is to be skipped; None if it is to be learnt. One without a time is as late as it comes."""
        if moment is None:
            return None
        if self.latest is not None:
            if moment < self.latest:
                in_order = self.run and self.run_last is not None and moment >= self.run_last
                self.run, self.run_last = self.run + 1 if in_order else 1, moment
                if self.run < NEW_CLOCK:
                    return LATE
            elif moment == self.latest and same(values, self.values):
                return REPEATED
        self.latest, self.values, self.run = moment, tuple(values), 0
        return None


class Sifted(NamedTuple):
    """The places of the points to be learnt, and how many were skipped for which reason."""

    places: list[int]
    skipped: dict[str, int]


def sift(clock: Clock, moments: Sequence[Moment | None], values: Sequence[Sequence[float]]) -> Sifted:
    """Looks at points one after another."""
    places, skipped = [], {LATE: 0, REPEATED: 0}
    for place, (moment, point) in enumerate(zip(moments, values, strict=True)):
        why = clock.look(moment, point)
        if why is None:
            places.append(place)
        else:
            skipped[why] += 1
    return Sifted(places, skipped)


def same(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two points are equal, gaps included."""
    return len(one) == len(other) and all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))
