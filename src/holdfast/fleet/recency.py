"""Who has not been seen for longest."""

from __future__ import annotations

import numpy as np

from holdfast.fleet.found import Integers

NEVER_SEEN = np.iinfo(np.int64).max  # when a row that is free was seen
SORT_CHUNK_DIVISOR = 16  # one in so many rows is put in order at once: what that costs is shared by all of these


class LRUClock:
    """When each row was seen last, by a clock that counts points.

    The longest unseen are sorted in advance. A row that is seen meanwhile has another time than it had then, and is
    passed over; the others have been seen later than all of these.
    """

    def __init__(self) -> None:
        self._last_seen: Integers = np.zeros(0, np.int64)
        self._clock = 0
        self.invalidate()

    def invalidate(self) -> None:
        """What was put in order may have been used up."""
        self._order: Integers = np.zeros(0, np.int64)
        self._order_seen: Integers = np.zeros(0, np.int64)

    def mark_seen(self, rows: Integers) -> None:
        """These rows have been seen, in this order; a negative one is nobody."""
        present = rows[rows >= 0]
        if len(present) and (highest := int(present.max())) >= len(self._last_seen):
            grown = np.full(max(highest + 1, 2 * len(self._last_seen)), NEVER_SEEN)
            grown[: len(self._last_seen)] = self._last_seen
            self._last_seen = grown
        self._last_seen[present] = self._clock + np.arange(len(present))  # of several, the last one stays
        self._clock += len(present)

    def release(self, row: int) -> None:
        """The row is free."""
        self._last_seen[row] = NEVER_SEEN

    def oldest(self, n: int) -> Integers:
        """At least n rows, or all, the one first that has not been seen for longest."""
        is_current = self._last_seen[self._order] == self._order_seen
        self._order, self._order_seen = self._order[is_current], self._order_seen[is_current]
        if len(self._order) < n:
            n = min(max(n, len(self._last_seen) // SORT_CHUNK_DIVISOR), len(self._last_seen))
            candidates = (
                np.argpartition(self._last_seen, n - 1)[:n]
                if 0 < n < len(self._last_seen)
                else np.arange(len(self._last_seen))
            )
            candidates = candidates[self._last_seen[candidates] != NEVER_SEEN]
            self._order = candidates[np.argsort(self._last_seen[candidates])]
            self._order_seen = self._last_seen[self._order]
        return self._order

    def get_last_seen(self, rows: Integers) -> Integers:
        """When these were seen."""
        return self._last_seen[rows]

    def restore(self, last_seen: Integers) -> None:
        """Rows 0, 1, … were seen then."""
        self._last_seen, self._clock = last_seen.copy(), int(last_seen.max(initial=-1)) + 1
        self.invalidate()
