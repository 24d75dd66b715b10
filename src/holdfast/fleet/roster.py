"""Who is in a fleet: keys, their states, and who leaves when there are too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from holdfast.fleet.found import UNKNOWN, Found, Integers
from holdfast.fleet.keys import Key, Keys, Numbers, Texts
from holdfast.fleet.spill import Spill
from holdfast.fleet.store import Store


class Roster:
    """The streams of a fleet. max_keys: how many there may be; spill: where those go that have to leave, if anywhere."""

    def __init__(self, max_keys: int | None, spill: Spill | None) -> None:
        self.max_keys, self.spill = max_keys, spill
        self.keys = Keys()
        self.store = Store(0, 0, 0)
        self.version = 0  # grows whenever a key gets or loses its row
        self._clock = 0
        self._seen: Integers = np.zeros(0, np.int64)  # when each row was seen last; kept only if someone may have to leave

    def segments(self, asked: Numbers | Texts) -> Iterator[tuple[slice, Integers]]:
        """The points of a call in pieces, each with the rows of its keys; all of it at once where nobody has to leave."""
        begin = 0
        while begin < len(asked):
            found = self.keys.look_up(asked.after(begin) if begin else asked)
            end, fresh = self._admit(found)
            rows = found.rows[:end]
            if len(fresh):
                rows = np.where(rows <= UNKNOWN, fresh[np.clip(UNKNOWN - rows, 0, len(fresh) - 1)], rows)
            yield slice(begin, begin + end), rows
            self.note(rows)
            begin += end

    def note(self, rows: Integers) -> None:
        """These have been seen, in this order; a negative one is nobody."""
        if self.max_keys is not None:
            self._seen = np.append(self._seen, np.zeros(self.keys.n_rows - len(self._seen), np.int64))
            there = rows >= 0
            self._seen[rows[there]] = self._clock + np.flatnonzero(there)  # of several, the last one stays
            self._clock += len(rows)

    def _admit(self, found: Found) -> tuple[int, Integers]:
        """Gives rows to unknown keys; how many points can be learnt before someone has to leave who has just come."""
        n, unknown = len(found.rows), found.unknown
        room = len(unknown) if self.max_keys is None else self.max_keys - len(self.keys)
        fresh = self._join(unknown[:room]) if room > 0 and len(unknown) else np.zeros(0, np.int64)
        if room >= len(unknown):
            return n, fresh
        touched = np.full(self.keys.n_rows, n)  # where each row is first needed in this call
        positions = np.flatnonzero(found.rows >= 0)[::-1]
        touched[found.rows[positions]] = positions
        touched[fresh] = -1
        leaving = iter(self._longest_unseen().tolist())
        cut, joined = n, max(room, 0)
        while joined < len(unknown) and found.first[joined] < cut:
            at = found.first[joined]
            victim = next((row for row in leaving if touched[row] >= at), None)
            if victim is None:  # all have been seen in this call
                cut = at
                break
            cut = min(cut, int(touched[victim]))  # it comes again: by then it will be looked up again
            self._leave(victim)
            fresh = np.append(fresh, self._join(unknown[joined : joined + 1]))
            joined += 1
        self.keys.forget(unknown[joined:])
        return int(cut), fresh

    def _longest_unseen(self) -> Integers:
        """All rows in use, the one first that has not been seen for longest."""
        rows = self.keys.rows
        rows = rows[rows < len(self._seen)]
        return rows[np.argsort(self._seen[rows], kind="stable")]

    def _join(self, keys: Sequence[Key]) -> Integers:
        """Rows for new keys: their states as they were when they left, if that was kept, or empty ones."""
        self.version += 1
        rows = self.keys.add(keys)
        if self.spill is None:
            self.store.begin(rows)
            return rows
        for key, row in zip(keys, rows.tolist(), strict=True):
            kept = self.spill.take(key)
            if kept is None:
                self.store.begin(np.array([row]))
            else:
                self.store.put(row, *kept)
        return rows

    def _leave(self, row: int) -> None:
        """A stream leaves to make room."""
        if self.spill is not None:
            self.spill.put(self.keys.of_row(row), *self.store.take(row))
        self.remove(row)

    def remove(self, row: int) -> None:
        """A stream is forgotten."""
        self.version += 1
        self.store.free(row)
        self.keys.drop(row)
