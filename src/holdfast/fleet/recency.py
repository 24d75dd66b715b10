"""Who has not been seen for longest."""

from __future__ import annotations

import numpy as np

from holdfast.fleet.found import Integers

NEVER = np.iinfo(np.int64).max  # when a row that is free was seen
SHARE = 16  # one in so many rows is put in order at once: what that costs is shared by all of these


class Recency:
    """When each row was seen last, by a clock that counts points.

    The longest unseen are sorted in advance. A row that is seen meanwhile has another time than it had then, and is
    passed over; the others have been seen later than all of these.
    """

    def __init__(self) -> None:
        self._seen: Integers = np.zeros(0, np.int64)
        self._clock = 0
        self.look_again()

    def look_again(self) -> None:
        """What was put in order may have been used up."""
        self._order: Integers = np.zeros(0, np.int64)
        self._when: Integers = np.zeros(0, np.int64)

    def note(self, rows: Integers) -> None:
        """These rows have been seen, in this order; a negative one is nobody."""
        there = rows[rows >= 0]
        if len(there) and (highest := int(there.max())) >= len(self._seen):
            grown = np.full(max(highest + 1, 2 * len(self._seen)), NEVER)
            grown[: len(self._seen)] = self._seen
            self._seen = grown
        self._seen[there] = self._clock + np.arange(len(there))  # of several, the last one stays
        self._clock += len(there)

    def forget(self, row: int) -> None:
        """The row is free."""
        self._seen[row] = NEVER

    def oldest(self, n: int) -> Integers:
        """At least n rows, or all, the one first that has not been seen for longest."""
        still = self._seen[self._order] == self._when
        self._order, self._when = self._order[still], self._when[still]
        if len(self._order) < n:
            n = min(max(n, len(self._seen) // SHARE), len(self._seen))
            first = np.argpartition(self._seen, n - 1)[:n] if 0 < n < len(self._seen) else np.arange(len(self._seen))
            first = first[self._seen[first] != NEVER]
            self._order = first[np.argsort(self._seen[first])]
            self._when = self._seen[self._order]
        return self._order

    def of(self, rows: Integers) -> Integers:
        """When these were seen."""
        return self._seen[rows]

    def fill(self, seen: Integers) -> None:
        """Rows 0, 1, … were seen then."""
        self._seen, self._clock = seen.copy(), int(seen.max(initial=-1)) + 1
        self.look_again()
