"""When each stream of a fleet was last seen, by the times of its points."""

from __future__ import annotations

import numpy as np

from limpet.fleet._key_index import Flags, Integers

NO_TIME = np.iinfo(np.int64).min


class LastSeen:
    """The time of the last point of each row of a fleet: whole numbers."""

    def __init__(self, times: Integers | None = None) -> None:
        known = np.zeros(0, np.int64) if times is None else times
        self._last: Integers = np.append(known, NO_TIME)  # the last entry is nobody's, and stays so

    def get(self, rows: Integers) -> Integers:
        """The last time of each of these rows; row −1 is nobody's, and was never seen."""
        self._grow(rows)
        return self._last[rows]

    def record(self, rows: Integers, times: Integers) -> None:
        """Points of these rows have come, in the order of their times; row −1 is nobody's."""
        self._grow(rows)
        present = rows >= 0
        self._last[rows[present]] = times[present]  # of several points of a row the last one stays

    def forget(self, rows: Integers) -> None:
        """These rows are free."""
        self._last[rows] = NO_TIME

    def _grow(self, rows: Integers) -> None:
        n_missing = int(rows.max(initial=-1)) + 2 - len(self._last)
        if n_missing > 0:
            self._last = np.append(self._last, np.full(n_missing, NO_TIME))


def first_after_idle(rows: Integers, times: Integers, last_times: Integers, idle_timeout: int) -> Flags:
    """Which points come more than `idle` after the one before them in their stream.

    rows: of whom the points are, in the order of their times, negative for nobody. last: the time of the last point of
    each one's stream before these points, or NEVER.

    >>> rows, times = np.array([0, 1, 0, 0]), np.array([10, 11, 12, 30])
    >>> first_after_gap(rows, times, np.array([9, NEVER, 9, 9]), 5)
    array([False, False, False,  True])
    """
    after_idle = np.zeros(len(rows), np.bool_)
    if not len(rows):
        return after_idle
    known = last_times != NO_TIME
    earliest = min(int(times.min()), int(last_times[known].min()) if known.any() else int(times.min()))
    if int(times.max()) - earliest <= idle_timeout:
        return after_idle
    order = np.argsort(rows, kind="stable")
    is_same_stream = np.append(False, rows[order][1:] == rows[order][:-1])
    previous = np.where(is_same_stream, np.append(0, times[order][:-1]), last_times[order])
    after_idle[order] = (
        (previous != NO_TIME)
        & (rows[order] >= 0)
        & (times[order] - np.where(previous == NO_TIME, 0, previous) > idle_timeout)
    )
    return after_idle
