"""Who is in a fleet: keys, their states, and who leaves when there are too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from holdfast.fleet.found import UNKNOWN, Found, Integers
from holdfast.fleet.keys import Key, Keys, Numbers, Texts
from holdfast.fleet.recency import Recency
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


AT_ONCE = 4096  # keys that are looked up at once, or four for each that is kept, where some may have to leave


class Roster:
    """The streams of a fleet.

    max_keys: how many there may be. spill: where those go that have to leave, if they are not to be forgotten.
    """

    def __init__(self, max_keys: int | None, spill: Spill | None) -> None:
        self.max_keys, self.spill = max_keys, spill
        self.keys = Keys()
        self.store = Store(0, 0, 0)
        self.version = 0  # grows whenever a key gets or loses its row
        self._recency = Recency()

    def segments(self, asked: Numbers | Texts) -> Iterator[tuple[slice, Integers]]:
        """The points of a call in pieces, each with the rows of its keys; in one where nobody has to leave."""
        begin, at_once = 0, len(asked) if self.max_keys is None else max(4 * self.max_keys, AT_ONCE)
        while begin < len(asked):
            whole = begin == 0 and at_once >= len(asked)
            found = self.keys.look_up(asked if whole else asked.piece(begin, begin + at_once))
            try:
                end, fresh = self._admit(found)
            except BaseException:
                self.keys.forget([key for key in found.unknown if self.keys.row_of(key) is None])
                self._recency.look_again()
                raise
            rows = found.rows[:end]
            if len(fresh):
                rows = np.where(rows <= UNKNOWN, fresh[np.maximum(UNKNOWN - rows, 0)], rows)
            yield slice(begin, begin + end), rows
            self.note(rows)
            begin += end

    def begin_anew(self) -> None:
        """Forgets of what kind keys and states are, where there are none."""
        self.keys, self.store = Keys(), Store(0, 0, 0)
        self.version += 1

    def note(self, rows: Integers) -> None:
        """These have been seen, in this order; a negative one is nobody."""
        if self.max_keys is not None:
            self._recency.note(rows)

    def _admit(self, found: Found) -> tuple[int, Integers]:
        """Gives rows to unknown keys; how many points can be learnt before someone has to leave who has just come."""
        n, unknown = len(found.rows), found.unknown
        room = len(unknown) if self.max_keys is None else self.max_keys - len(self.keys)
        if room >= len(unknown):
            return n, self._exchange([], unknown)
        needed = first_places(found.rows)
        candidates = iter(self._recency.oldest(len(unknown) - room + len(needed)).tolist())
        cut, leaving, joined = n, [], max(room, 0)
        while joined < len(unknown) and found.first[joined] < cut:
            at = found.first[joined]
            victim = next((row for row in candidates if needed.get(row, n) >= at), None)
            if victim is None:  # all have been seen in this call
                cut = at
                break
            cut = min(cut, needed.get(victim, n))  # it comes again: by then it will be looked up again
            leaving.append(victim)
            joined += 1
        fresh = self._exchange(leaving, unknown[:joined])
        self.keys.forget(unknown[joined:])
        return int(cut), fresh

    def _exchange(self, leaving: Sequence[int], joining: Sequence[Key]) -> Integers:
        """Rows for new keys: their states as they were when they left, if that was kept, or empty ones.

        leaving: rows of streams that make room for them. What can fail is done first; then all has happened.
        """
        if not len(joining):
            return np.zeros(0, np.int64)
        n_rows = len(self.keys) + len(joining) - len(leaving)  # those that are free are used first
        self.store.reserve(max(self.keys.n_rows, n_rows), len(joining))
        kept: dict[Key, tuple[Vector, Vector]] = {}
        if self.spill is not None:
            kept = self.spill.exchange([(self.keys.of_row(row), *self.store.take(row)) for row in leaving], joining)
        for row in leaving:
            self.remove(row)
        self.version += 1
        rows = self.keys.add(joining)
        comes_back = np.array([key in kept for key in joining]) if kept else np.zeros(len(rows), np.bool_)
        self.store.begin(rows[~comes_back])
        for i in np.flatnonzero(comes_back).tolist():
            self.store.put(int(rows[i]), *kept[joining[i]])
        self.note(rows)
        return rows

    def remove(self, row: int) -> None:
        """A stream is forgotten."""
        self.version += 1
        self.store.free(row)
        self.keys.drop(row)
        if self.max_keys is not None:
            self._recency.forget(row)

    def all_streams(self) -> Streams:
        """All streams, also those that were spilled; states are views where they can be."""
        rows, keys = self.keys.rows, list(self.keys)
        states = self.store.states[: len(rows)] if len(rows) == self.keys.n_rows else self.store.states[rows]
        seen = self._recency.of(rows) if self.max_keys is not None else np.zeros(0, np.int64)
        waiting = self.store.waiting(rows) if len(rows) else np.zeros(0, np.bool_)
        starts = self.store.starts[self.store.slots(rows[waiting])] if len(rows) else self.store.starts[:0]
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
        """Takes in streams as `all_streams` gave them; those seen last stay, where there are too many.

        They are all there are: what has been spilled before is forgotten.
        """
        n = len(streams.keys)
        self.keys.begin(streams.keys)
        stays = np.arange(n)
        if self.max_keys is not None:
            stays = np.sort(np.argsort(streams.seen, kind="stable")[max(n - self.max_keys, 0) :])
        waiting = streams.states[:, HELD] >= 0.0
        slot_of = np.cumsum(waiting) - 1
        if self.spill is not None:
            leave = np.setdiff1d(np.arange(n), stays).tolist()
            nothing = np.zeros(self.store.starts.shape[1:])
            starts = (streams.starts[slot_of[i]] if waiting[i] else nothing for i in leave)
            self.spill.fill(
                [(streams.keys[i], streams.states[i], start) for i, start in zip(leave, starts, strict=True)]
            )
        if len(stays) < n:
            here = waiting[stays]
            self.keys.add([streams.keys[i] for i in stays.tolist()])
            self.store.fill(streams.states[stays], here, streams.starts[slot_of[stays[here]]])
        elif n:
            self.keys.add(streams.keys)
            self.store.fill(streams.states, waiting, streams.starts)
        if self.max_keys is not None:
            self._recency.fill(streams.seen[stays])
        self.version += 1


def first_places(rows: Integers) -> dict[int, int]:
    """Where in a call each row that is there comes first."""
    there = np.flatnonzero(rows >= 0)
    known, first = np.unique(rows[there], return_index=True)
    return dict(zip(known.tolist(), there[first].tolist(), strict=True))
