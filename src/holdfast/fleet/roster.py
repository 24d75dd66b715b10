"""Who is in a fleet: keys, their states, and who leaves when there are too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from holdfast.fleet.found import UNKNOWN, Found, Integers
from holdfast.fleet.keys import Key, Keys, Numbers, Texts
from holdfast.fleet.spill import Spill
from holdfast.fleet.store import SLOT, Store
from holdfast.scheme.state import HELD, Vector


class Streams(NamedTuple):
    """Streams taken out of a roster: keys, states (n, …), first points of those that have not started, in the order of
    their states, and when each was seen last (empty where nobody has to leave)."""

    keys: Sequence[Key]
    states: Vector
    starts: Vector
    seen: Integers


class Roster:
    """The streams of a fleet.

    max_keys: how many there may be. spill: where those go that have to leave, if they are not to be forgotten.
    """

    def __init__(self, max_keys: int | None, spill: Spill | None) -> None:
        self.max_keys, self.spill = max_keys, spill
        self.keys = Keys()
        self.store = Store(0, 0, 0)
        self.version = 0  # grows whenever a key gets or loses its row
        self._clock = 0
        self._seen: Integers = np.zeros(0, np.int64)  # when each row was last seen, if some may have to go

    def segments(self, asked: Numbers | Texts) -> Iterator[tuple[slice, Integers]]:
        """The points of a call in pieces, each with the rows of its keys; in one where nobody has to leave."""
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
            if self.keys.n_rows > len(self._seen):
                self._seen = np.append(self._seen, np.zeros(self.keys.n_rows, np.int64))  # twice as many and more
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

    def all_streams(self) -> Streams:
        """All streams, also those that were spilled; states are views where they can be."""
        if not len(self.keys):
            return Streams([], self.store.states[:0], self.store.starts[:0], self._seen[:0])
        rows, keys = self.keys.rows, list(self.keys)
        states = self.store.states[: len(rows)] if len(rows) == self.keys.n_rows else self.store.states[rows]
        seen = self._seen[rows] if self.max_keys is not None and len(rows) else np.zeros(0, np.int64)
        waiting = self.store.waiting(rows)
        starts = self.store.starts[self.store.slots(rows[waiting])]
        if waiting.any():
            states = states.copy()
            states[waiting, SLOT] = 0.0
        if self.spill is None or not len(self.spill):
            return Streams(keys, states, starts, seen)
        spilled, their_states, their_starts = zip(*self.spill.items(), strict=True)
        states = np.vstack([states, their_states])
        held = [start for state, start in zip(their_states, their_starts, strict=True) if state[HELD] >= 0.0]
        starts = np.concatenate([starts, np.reshape(held, (-1, *starts.shape[1:]))])
        return Streams([*keys, *spilled], states, starts, np.append(seen, np.full(len(spilled), -1)))

    def fill(self, streams: Streams) -> None:
        """Takes in streams as `all_streams` gave them; those seen last stay, where there are too many."""
        self.keys.begin(streams.keys)
        n = len(streams.keys)
        waiting = streams.states[:, HELD] >= 0.0
        if self.max_keys is None or n <= self.max_keys:
            rows = self.keys.add(streams.keys)
            self.store.fill(streams.states, waiting, streams.starts)
        else:
            assert self.spill is not None
            newest = np.sort(np.argsort(streams.seen, kind="stable")[n - self.max_keys :])
            stays = np.zeros(n, np.bool_)
            stays[newest] = True
            slot_of = np.cumsum(waiting) - 1
            for i in np.flatnonzero(~stays).tolist():
                start = streams.starts[slot_of[i]] if waiting[i] else np.zeros(self.store.starts.shape[1:])
                self.spill.put(streams.keys[i], streams.states[i], start)
            rows = self.keys.add([streams.keys[i] for i in newest.tolist()])
            self.store.fill(streams.states[newest], waiting[newest], streams.starts[slot_of[newest[waiting[newest]]]])
            streams = streams._replace(seen=streams.seen[newest])
        if self.max_keys is not None:
            self._seen, self._clock = streams.seen.copy(), int(streams.seen.max(initial=0)) + 1
        self.version += 1
        assert len(rows) == len(self.keys)
