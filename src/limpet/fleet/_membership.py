"""Who is in a fleet: keys, their states, and who leaves when there are too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from limpet.core.state import N_BUFFERED, Vector
from limpet.fleet._key_index import UNKNOWN_ROW, Integers, IntKeys, Key, KeyIndex, Lookup, StrKeys
from limpet.fleet._spill import Spill
from limpet.fleet._state_matrix import START_SLOT_INDEX, StateMatrix

# Who has not been seen for longest.

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


class StreamSnapshot(NamedTuple):
    """Streams taken out of a roster: keys, states (n, …), first points of those that have not started, in the order of
    their states, and when each was seen last (empty where nobody has to leave)."""

    keys: Sequence[Key]
    states: Vector
    start_buffers: Vector
    last_seen: Integers


LOOKUP_CHUNK_KEYS = 4096  # keys that are looked up at once, or four for each that is kept, where some may have to leave


class Membership:
    """The streams of a fleet.

    max_keys: how many there may be. spill: where those go that have to leave, if they are not to be forgotten.
    """

    def __init__(self, max_keys: int | None, spill: Spill | None) -> None:
        self.max_keys, self.spill = max_keys, spill
        self.key_index = KeyIndex()
        self.state_matrix = StateMatrix(0, 0, 0)
        self.version = 0  # grows whenever a key gets or loses its row
        self._lru_clock = LRUClock()

    def admit_in_chunks(self, keys: IntKeys | StrKeys) -> Iterator[tuple[slice, Integers]]:
        """The points of a call in pieces, each with the rows of its keys; in one where nobody has to leave."""
        start, chunk_size = 0, len(keys) if self.max_keys is None else max(4 * self.max_keys, LOOKUP_CHUNK_KEYS)
        while start < len(keys):
            is_single_chunk = start == 0 and chunk_size >= len(keys)
            lookup = self.key_index.look_up(keys if is_single_chunk else keys.slice(start, start + chunk_size))
            try:
                n_points, new_rows = self._admit(lookup)
            except BaseException:
                self.key_index.discard_pending(
                    [key for key in lookup.unknown_keys if self.key_index.get_row(key) is None]
                )
                self._lru_clock.invalidate()
                raise
            rows = lookup.rows[:n_points]
            if len(new_rows):
                rows = np.where(rows <= UNKNOWN_ROW, new_rows[np.maximum(UNKNOWN_ROW - rows, 0)], rows)
            yield slice(start, start + n_points), rows
            self.mark_seen(rows)
            start += n_points

    def reset(self) -> None:
        """Forgets of what kind keys and states are, where there are none."""
        self.key_index, self.state_matrix = KeyIndex(), StateMatrix(0, 0, 0)
        self.version += 1

    def mark_seen(self, rows: Integers) -> None:
        """These have been seen, in this order; a negative one is nobody."""
        if self.max_keys is not None:
            self._lru_clock.mark_seen(rows)

    def _admit(self, lookup: Lookup) -> tuple[int, Integers]:
        """Gives rows to unknown keys; how many points can be learnt before someone has to leave who has just come."""
        n_points, unknown_keys = len(lookup.rows), lookup.unknown_keys
        capacity = len(unknown_keys) if self.max_keys is None else self.max_keys - len(self.key_index)
        if capacity >= len(unknown_keys):
            return n_points, self._exchange([], unknown_keys)
        first_use = first_index_by_row(lookup.rows)
        candidates = iter(self._lru_clock.oldest(len(unknown_keys) - capacity + len(first_use)).tolist())
        stop, evicted, n_admitted = n_points, [], max(capacity, 0)
        while n_admitted < len(unknown_keys) and lookup.first_index[n_admitted] < stop:
            index = lookup.first_index[n_admitted]
            victim = next((row for row in candidates if first_use.get(row, n_points) >= index), None)
            if victim is None:  # all have been seen in this call
                stop = index
                break
            stop = min(stop, first_use.get(victim, n_points))  # it comes again: by then it will be looked up again
            evicted.append(victim)
            n_admitted += 1
        new_rows = self._exchange(evicted, unknown_keys[:n_admitted])
        self.key_index.discard_pending(unknown_keys[n_admitted:])
        return int(stop), new_rows

    def _exchange(self, evicted: Sequence[int], admitted: Sequence[Key]) -> Integers:
        """Rows for new keys: their states as they were when they left, if that was kept, or empty ones.

        leaving: rows of streams that make room for them. What can fail is done first; then all has happened.
        """
        if not len(admitted):
            return np.zeros(0, np.int64)
        n_rows = len(self.key_index) + len(admitted) - len(evicted)  # those that are free are used first
        self.state_matrix.reserve(max(self.key_index.n_rows, n_rows), len(admitted))
        restored: dict[Key, tuple[Vector, Vector]] = {}
        if self.spill is not None:
            restored = self.spill.exchange(
                [(self.key_index.get_key(row), *self.state_matrix.copy_row(row)) for row in evicted], admitted
            )
        for row in evicted:
            self.remove(row)
        self.version += 1
        rows = self.key_index.add(admitted)
        was_spilled = np.array([key in restored for key in admitted]) if restored else np.zeros(len(rows), np.bool_)
        self.state_matrix.init_rows(rows[~was_spilled])
        for i in np.flatnonzero(was_spilled).tolist():
            self.state_matrix.write_row(int(rows[i]), *restored[admitted[i]])
        self.mark_seen(rows)
        return rows

    def remove(self, row: int) -> None:
        """A stream is forgotten."""
        self.version += 1
        self.state_matrix.release_row(row)
        self.key_index.release_row(row)
        if self.max_keys is not None:
            self._lru_clock.release(row)

    def all_streams(self) -> StreamSnapshot:
        """All streams, also those that were spilled; states are views where they can be."""
        rows, keys = self.key_index.rows, list(self.key_index)
        states = (
            self.state_matrix.states[: len(rows)]
            if len(rows) == self.key_index.n_rows
            else self.state_matrix.states[rows]
        )
        last_seen = self._lru_clock.get_last_seen(rows) if self.max_keys is not None else np.zeros(0, np.int64)
        not_started = self.state_matrix.not_started(rows) if len(rows) else np.zeros(0, np.bool_)
        start_buffers = (
            self.state_matrix.start_buffers[self.state_matrix.start_slots(rows[not_started])]
            if len(rows)
            else self.state_matrix.start_buffers[:0]
        )
        if not_started.any():
            states = states.copy()
            states[not_started, START_SLOT_INDEX] = 0.0
        if self.spill is None or not len(self.spill):
            return StreamSnapshot(keys, states, start_buffers, last_seen)
        spilled_keys, spilled_states, spilled_buffers = zip(*self.spill.items(), strict=True)
        states = np.vstack([states, spilled_states])
        buffered = [
            start_buffer
            for state, start_buffer in zip(spilled_states, spilled_buffers, strict=True)
            if state[N_BUFFERED] >= 0.0
        ]
        start_buffers = np.concatenate([start_buffers, np.reshape(buffered, (-1, *start_buffers.shape[1:]))])
        return StreamSnapshot(
            [*keys, *spilled_keys], states, start_buffers, np.append(last_seen, np.full(len(spilled_keys), -1))
        )

    def restore(self, streams: StreamSnapshot) -> None:
        """Takes in streams as `all_streams` gave them; those seen last stay, where there are too many.

        They are all there are: what has been spilled before is forgotten.
        """
        n = len(streams.keys)
        self.key_index.set_key_type(streams.keys)
        retained = np.arange(n)
        if self.max_keys is not None:
            retained = np.sort(np.argsort(streams.last_seen, kind="stable")[max(n - self.max_keys, 0) :])
        not_started = streams.states[:, N_BUFFERED] >= 0.0
        slots = np.cumsum(not_started) - 1
        if self.spill is not None:
            evicted = np.setdiff1d(np.arange(n), retained).tolist()
            empty_buffer = np.zeros(self.state_matrix.start_buffers.shape[1:])
            start_buffers = (streams.start_buffers[slots[i]] if not_started[i] else empty_buffer for i in evicted)
            self.spill.replace_all(
                [
                    (streams.keys[i], streams.states[i], start_buffer)
                    for i, start_buffer in zip(evicted, start_buffers, strict=True)
                ]
            )
        if len(retained) < n:
            retained_not_started = not_started[retained]
            self.key_index.add([streams.keys[i] for i in retained.tolist()])
            self.state_matrix.restore(
                streams.states[retained],
                retained_not_started,
                streams.start_buffers[slots[retained[retained_not_started]]],
            )
        elif n:
            self.key_index.add(streams.keys)
            self.state_matrix.restore(streams.states, not_started, streams.start_buffers)
        if self.max_keys is not None:
            self._lru_clock.restore(streams.last_seen[retained])
        self.version += 1


def first_index_by_row(rows: Integers) -> dict[int, int]:
    """Where in a call each row that is there comes first."""
    present = np.flatnonzero(rows >= 0)
    known, first = np.unique(rows[present], return_index=True)
    return dict(zip(known.tolist(), present[first].tolist(), strict=True))
