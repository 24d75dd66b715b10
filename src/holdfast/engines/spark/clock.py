"""When each stream of a fleet was last seen, by the times of its points."""

from __future__ import annotations

import numpy as np

from holdfast.fleet.found import Flags, Integers

NEVER = np.iinfo(np.int64).min


class Clock:
    """The time of the last point of each row of a fleet: whole numbers."""

    def __init__(self, times: Integers | None = None) -> None:
        known = np.zeros(0, np.int64) if times is None else times
        self._last: Integers = np.append(known, NEVER)  # the last entry is nobody's, and stays so

    def of(self, rows: Integers) -> Integers:
        """The last time of each of these rows; row −1 is nobody's, and was never seen."""
        self._make_room(rows)
        return self._last[rows]

    def note(self, rows: Integers, times: Integers) -> None:
        """Points of these rows have come, in the order of their times; row −1 is nobody's."""
        self._make_room(rows)
        there = rows >= 0
        self._last[rows[there]] = times[there]  # of several points of a row the last one stays

    def forget(self, rows: Integers) -> None:
        """These rows are free."""
        self._last[rows] = NEVER

    def _make_room(self, rows: Integers) -> None:
        more = int(rows.max(initial=-1)) + 2 - len(self._last)
        if more > 0:
            self._last = np.append(self._last, np.full(more, NEVER))


def first_after_gap(rows: Integers, times: Integers, last: Integers, idle: int) -> Flags:
    """Which points come more than `idle` after the one before them in their stream.

    rows: of whom the points are, in the order of their times, negative for nobody. last: the time of the last point of
    each one's stream before these points, or NEVER.

    >>> rows, times = np.array([0, 1, 0, 0]), np.array([10, 11, 12, 30])
    >>> first_after_gap(rows, times, np.array([9, NEVER, 9, 9]), 5)
    array([False, False, False,  True])
    """
    gaps = np.zeros(len(rows), np.bool_)
    if not len(rows):
        return gaps
    known = last != NEVER
    earliest = min(int(times.min()), int(last[known].min()) if known.any() else int(times.min()))
    if int(times.max()) - earliest <= idle:
        return gaps
    order = np.argsort(rows, kind="stable")
    same = np.append(False, rows[order][1:] == rows[order][:-1])
    before = np.where(same, np.append(0, times[order][:-1]), last[order])
    gaps[order] = (before != NEVER) & (rows[order] >= 0) & (times[order] - np.where(before == NEVER, 0, before) > idle)
    return gaps
