"""The members of a fleet: their keys and states, and which are evicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from limpet.core.state import N_BUFFERED, Vector
from limpet.fleet._key_index import UNKNOWN_ROW, Integers, IntKeys, Key, KeyIndex, Lookup, StrKeys
from limpet.fleet._spill import Spill
from limpet.fleet._state_matrix import START_SLOT_INDEX, StateMatrix

NEVER_SEEN = np.iinfo(np.int64).max  # of a free row
SORT_CHUNK_DIVISOR = 16  # one in so many rows is sorted at once, which amortizes the cost


class LRUClock:
    """The time at which each row was last seen, on a clock that counts points.

    The least recently seen rows are sorted in advance. A row that is seen meanwhile no longer has the time it was
    sorted by and is skipped; all other rows are more recent.
    """

    def __init__(self) -> None:
        self._last_seen: Integers = np.zeros(0, np.int64)
        self._clock = 0
        self.invalidate()

    def invalidate(self) -> None:
        """Discard the sorted rows."""
        self._order: Integers = np.zeros(0, np.int64)
        self._order_seen: Integers = np.zeros(0, np.int64)

    def mark_seen(self, rows: Integers) -> None:
        """Record that these rows have been seen; negative rows are ignored."""
        present = rows[rows >= 0]
        if len(present) and (highest := int(present.max())) >= len(self._last_seen):
            grown = np.full(max(highest + 1, 2 * len(self._last_seen)), NEVER_SEEN)
            grown[: len(self._last_seen)] = self._last_seen
            self._last_seen = grown
        self._last_seen[present] = self._clock + np.arange(len(present))  # the last of several is kept
        self._clock += len(present)

    def release(self, row: int) -> None:
        """Record that a row is free."""
        self._last_seen[row] = NEVER_SEEN

    def oldest(self, n: int) -> Integers:
        """Return at least n rows, or all, least recently seen first."""
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
        """Return when these rows were last seen."""
        return self._last_seen[rows]

    def restore(self, last_seen: Integers) -> None:
        """Set when the rows 0, 1, … were last seen."""
        self._last_seen, self._clock = last_seen.copy(), int(last_seen.max(initial=-1)) + 1
        self.invalidate()


class StreamSnapshot(NamedTuple):
    """A copy of streams.

    start_buffers: of the streams that have not started, in order. last_seen: empty if streams are never evicted.
    """

    keys: Sequence[Key]
    states: Vector
    start_buffers: Vector
    last_seen: Integers


LOOKUP_CHUNK_KEYS = 4096  # with max_keys, so many keys, or four per stream, are looked up at once


class Membership:
    """The streams of a fleet, at most `max_keys` in memory. Evicted streams are stored in `spill` or dropped."""

    def __init__(self, max_keys: int | None, spill: Spill | None) -> None:
        self.max_keys, self.spill = max_keys, spill
        self.key_index = KeyIndex()
        self.state_matrix = StateMatrix(0, 0, 0)
        self.version = 0  # increases whenever a row is assigned or released
        self._lru_clock = LRUClock()

    def admit_in_chunks(self, keys: IntKeys | StrKeys) -> Iterator[tuple[slice, Integers]]:
        """Yield slices of the points of a call with the rows of their keys. One slice if streams are never evicted."""
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
        """Reset the type of the keys and the size of the states of an empty fleet."""
        self.key_index, self.state_matrix = KeyIndex(), StateMatrix(0, 0, 0)
        self.version += 1

    def mark_seen(self, rows: Integers) -> None:
        """Record that these rows have been seen; negative rows are ignored."""
        if self.max_keys is not None:
            self._lru_clock.mark_seen(rows)

    def _admit(self, lookup: Lookup) -> tuple[int, Integers]:
        """Assign rows to unknown keys. Return how many points can be learned before a new stream must be evicted."""
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
            if victim is None:  # all rows are used earlier in this call
                stop = index
                break
            stop = min(stop, first_use.get(victim, n_points))  # if it occurs later, it is looked up again in that slice
            evicted.append(victim)
            n_admitted += 1
        new_rows = self._exchange(evicted, unknown_keys[:n_admitted])
        self.key_index.discard_pending(unknown_keys[n_admitted:])
        return int(stop), new_rows

    def _exchange(self, evicted: Sequence[int], admitted: Sequence[Key]) -> Integers:
        """Evict rows and return the rows of new keys.

        Their states are restored from the spill file, or empty.

        Operations that can fail come first, so that the exchange is atomic.
        """
        if not len(admitted):
            return np.zeros(0, np.int64)
        n_rows = len(self.key_index) + len(admitted) - len(evicted)  # free rows are used first
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
        """Remove the stream of a row."""
        self.version += 1
        self.state_matrix.release_row(row)
        self.key_index.release_row(row)
        if self.max_keys is not None:
            self._lru_clock.release(row)

    def all_streams(self) -> StreamSnapshot:
        """Return all streams, including spilled ones; states are views if possible."""
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
        """Restore streams from `all_streams` into an empty fleet.

        The most recently seen ones are in memory.

        Streams that were spilled before are removed.
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
    """Return the index in a call at which each row occurs first. Negative rows are ignored."""
    present = np.flatnonzero(rows >= 0)
    known, first = np.unique(rows[present], return_index=True)
    return dict(zip(known.tolist(), present[first].tolist(), strict=True))
