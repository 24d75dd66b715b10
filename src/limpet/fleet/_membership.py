"""The members of a fleet: their keys and states, and which are evicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakValueDictionary

import numpy as np

from limpet.core.state import HEADER_SIZE, N_BUFFERED, StreamBufferView, Vector
from limpet.fleet._key_index import UNKNOWN_ROW, Flags, Integers, IntKeys, Key, KeyIndex, Lookup, StrKeys
from limpet.fleet._spill import Spill, SpilledState

FREE_SLOT = -1
GROWTH_FACTOR = 1.25  # of the arrays
START_SLOT_INDEX = HEADER_SIZE  # before a stream has started, the first number of its theta is its start slot
SHRINK_FACTOR = 4  # start buffers shrink when they have so many slots per used slot


class StateMatrix:
    """The states as rows of a matrix, and start buffers of new streams.

    Learners of single streams hold views, which are rebound when the arrays move.
    """

    def __init__(self, state_size: int, n_init: int, width: int) -> None:
        self.states: Vector = np.zeros((0, state_size))
        self.start_buffers: Vector = np.zeros((0, n_init, width))
        self._slot_rows: Integers = np.zeros(0, np.int64)  # the row that uses each slot, or FREE_SLOT
        self._free_slots: list[int] = []
        self._views: WeakValueDictionary[int, StreamBufferView] = WeakValueDictionary()  # by row

    def init_rows(self, rows: Integers) -> None:
        """Write empty states at new or free rows, and assign them start slots."""
        if not len(rows):
            return
        self.reserve(int(rows.max()) + 1, len(rows))
        self.states[rows] = 0.0
        self.states[rows, START_SLOT_INDEX] = self._take_slots(rows)

    def reserve(self, n_rows: int, n_slots: int) -> None:
        """Allocate rows in total and more start slots, so that nothing fails later."""
        if n_rows > len(self.states):
            self.states = _grow(self.states, n_rows)
            self._rebind_views()
        if (n_missing_slots := n_slots - len(self._free_slots)) > 0:
            used = len(self.start_buffers)
            self.start_buffers = _grow(self.start_buffers, used + n_missing_slots)
            self._slot_rows = np.append(self._slot_rows, np.full(len(self.start_buffers) - used, FREE_SLOT))
            self._free_slots += range(len(self.start_buffers) - 1, used - 1, -1)
            self._rebind_views()

    def restore(self, states: Vector, not_started: Flags, start_buffers: Vector) -> None:
        """Set all rows of an empty matrix, and buffers of streams that have not started."""
        self.states, self.start_buffers, self._free_slots = states, start_buffers.copy(), []
        self.states[not_started, START_SLOT_INDEX] = np.arange(len(start_buffers))
        self._slot_rows = np.flatnonzero(not_started)

    def write_row(self, row: int, state: Vector, start_buffer: Vector) -> None:
        """Write a state at a new or free row."""
        self.reserve(row + 1, 1)
        self.states[row] = state
        if state[N_BUFFERED] >= 0.0:
            self.states[row, START_SLOT_INDEX] = slot = self._take_slots(np.array([row]))[0]
            self.start_buffers[slot] = start_buffer.reshape(self.start_buffers.shape[1:])

    def copy_row(self, row: int) -> tuple[Vector, Vector]:
        """Return a copy of the state and of the start buffer of a row."""
        state, start_buffer = self.states[row].copy(), self.get_start_buffer(row).copy()
        if state[N_BUFFERED] >= 0.0:
            state[START_SLOT_INDEX] = 0.0
        return state, start_buffer

    def release_row(self, row: int) -> None:
        """Free a row; a view of it keeps a copy."""
        if row in self._views:
            view = self._views.pop(row)
            view.set_row(*self.copy_row(row))
            view.on_started = None
        if self.states[row, N_BUFFERED] >= 0.0:
            self._release_slots(np.array([int(self.states[row, START_SLOT_INDEX])]))
        self.states[row] = 0.0

    def get_buffer_view(self, row: int, make_view: Callable[[Vector, Vector], StreamBufferView]) -> StreamBufferView:
        """Return the view of a stream for an engine: one object while it is in use."""
        view = self._views.get(row)
        if view is None:
            view = self._views[row] = make_view(self.states[row], self.get_start_buffer(row))
            if view.header[N_BUFFERED] >= 0.0:
                view.on_started = lambda: self.release_start_slots(np.flatnonzero(self._slot_rows == row))
        return view

    def get_start_buffer(self, row: int) -> Vector:
        """Return the first points of a row as a view; zeros if the stream has started."""
        if self.states[row, N_BUFFERED] < 0.0:
            return np.zeros(self.start_buffers.shape[1:])
        return self.start_buffers[int(self.states[row, START_SLOT_INDEX])]

    def not_started(self, rows: Integers) -> Flags:
        return np.asarray(self.states[rows, N_BUFFERED] >= 0.0)

    def start_slots(self, rows: Integers) -> Integers:
        """Return the start slots of rows that have not started."""
        return self.states[rows, START_SLOT_INDEX].astype(np.int64)

    def release_start_slots(self, slots: Integers) -> None:
        """Free start slots, and shrink the start buffers if most of them are free."""
        self._release_slots(slots)
        if SHRINK_FACTOR * self.n_not_started <= len(self.start_buffers):
            used = np.flatnonzero(self._slot_rows != FREE_SLOT)
            self.start_buffers, self._slot_rows, self._free_slots = self.start_buffers[used], self._slot_rows[used], []
            self.states[self._slot_rows, START_SLOT_INDEX] = np.arange(len(used))
        self._rebind_views()

    def read_counter(self, entry: int, rows: Integers) -> Integers:
        """Return a counter of the header of these rows."""
        return self.states[rows, entry].astype(np.int64) if len(rows) else np.zeros(0, np.int64)

    @property
    def n_not_started(self) -> int:
        """Upper bound of the number of streams that have not started."""
        return len(self.start_buffers) - len(self._free_slots)

    def _take_slots(self, rows: Integers) -> Integers:
        """Assign reserved start slots to these rows."""
        slots = np.array([self._free_slots.pop() for _ in rows], np.int64)
        self._slot_rows[slots] = rows
        return slots

    def _release_slots(self, slots: Integers) -> None:
        self.start_buffers[slots], self._slot_rows[slots] = 0.0, FREE_SLOT
        self._free_slots += slots.tolist()

    def _rebind_views(self) -> None:
        for row, view in self._views.items():
            view.set_row(self.states[row], self.get_start_buffer(row))


def _grow(array: Vector, n: int) -> Vector:
    """Return a copy with at least n rows."""
    grown = np.zeros((max(n, int(GROWTH_FACTOR * len(array))), *array.shape[1:]))
    grown[: len(array)] = array
    return grown


# Which streams are evicted

NEVER_SEEN = np.iinfo(np.int64).max  # of a free row
SORT_CHUNK_DIVISOR = 16  # one in so many rows is sorted at once, which amortizes the cost


class LRUClock:
    """The time at which each row was last seen, on a clock that counts points.

    The least recently seen rows are sorted in advance. A row that is seen meanwhile no longer has the time it was
    sorted by and is skipped; all other rows are more recent.
    """

    def __init__(self) -> None:
        self.last_seen: Integers = np.zeros(0, np.int64)
        self._clock = 0
        self.invalidate()

    def invalidate(self) -> None:
        """Discard the sorted rows."""
        self._order, self._order_seen = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def mark_seen(self, rows: Integers) -> None:
        """Record that these rows have been seen; negative rows are ignored."""
        present = rows[rows >= 0]
        if len(present) and (highest := int(present.max())) >= len(self.last_seen):
            grown = np.full(max(highest + 1, 2 * len(self.last_seen)), NEVER_SEEN)
            grown[: len(self.last_seen)] = self.last_seen
            self.last_seen = grown
        self.last_seen[present] = self._clock + np.arange(len(present))  # the last of several is kept
        self._clock += len(present)

    def release(self, row: int) -> None:
        self.last_seen[row] = NEVER_SEEN

    def oldest(self, n: int) -> Integers:
        """Return at least n rows, or all, least recently seen first."""
        is_current = self.last_seen[self._order] == self._order_seen
        self._order, self._order_seen = self._order[is_current], self._order_seen[is_current]
        if len(self._order) < n:
            n_rows = len(self.last_seen)
            n = min(max(n, n_rows // SORT_CHUNK_DIVISOR), n_rows)
            candidates = np.argpartition(self.last_seen, n - 1)[:n] if 0 < n < n_rows else np.arange(n_rows)
            candidates = candidates[self.last_seen[candidates] != NEVER_SEEN]
            self._order = candidates[np.argsort(self.last_seen[candidates])]
            self._order_seen = self.last_seen[self._order]
        return self._order

    def restore(self, last_seen: Integers) -> None:
        """Set when the rows 0, 1, … were last seen."""
        self.last_seen, self._clock = last_seen.copy(), int(last_seen.max(initial=-1)) + 1
        self.invalidate()


# The streams


@dataclass(frozen=True, eq=False)
class StreamSnapshot:
    """A copy of streams."""

    keys: Sequence[Key]
    states: Vector
    start_buffers: Vector  # of the streams that have not started, in order
    last_seen: Integers  # empty if streams are never evicted

    @cached_property
    def not_started(self) -> Flags:
        return np.asarray(self.states[:, N_BUFFERED] >= 0.0)

    @cached_property
    def start_slots(self) -> Integers:
        """The start buffer of each stream that has not started."""
        return np.cumsum(self.not_started) - 1

    def get_stream(self, i: int) -> SpilledState:
        """Return one stream, with zeros as its start buffer if it has started."""
        has_buffer = self.not_started[i]
        start_buffer = self.start_buffers[self.start_slots[i]] if has_buffer else np.zeros(self.start_buffers.shape[1:])
        return self.keys[i], self.states[i], start_buffer

    def select(self, indices: Integers) -> StreamSnapshot:
        keys = [self.keys[i] for i in indices.tolist()]
        start_buffers = self.start_buffers[self.start_slots[indices[self.not_started[indices]]]]
        last_seen = self.last_seen[indices] if len(self.last_seen) else self.last_seen
        return StreamSnapshot(keys, self.states[indices], start_buffers, last_seen)


LOOKUP_CHUNK_KEYS = 4096  # with max_keys, so many keys, or four per stream, are looked up at once


class Membership:
    """Streams of a fleet, up to `max_keys` in memory, others in `spill` or dropped."""

    def __init__(self, max_keys: int | None, spill: Spill | None) -> None:
        self.max_keys, self.spill = max_keys, spill
        self.key_index = KeyIndex()
        self.state_matrix = StateMatrix(0, 0, 0)
        self.version = 0  # increases whenever a row is assigned or released
        self._lru_clock = LRUClock()

    def admit_in_chunks(self, keys: IntKeys | StrKeys) -> Iterator[tuple[slice, Integers]]:
        """Yield slices of a call and the rows of their keys; one slice without eviction."""
        start, chunk_size = 0, len(keys) if self.max_keys is None else max(4 * self.max_keys, LOOKUP_CHUNK_KEYS)
        while start < len(keys):
            is_single_chunk = start == 0 and chunk_size >= len(keys)
            lookup = self.key_index.look_up(keys if is_single_chunk else keys.slice(start, start + chunk_size))
            try:
                n_points, new_rows = self._admit(lookup)
            except BaseException:
                pending = [key for key in lookup.unknown_keys if self.key_index.get_row(key) is None]
                self.key_index.discard_pending(pending)
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
        if self.max_keys is not None:
            self._lru_clock.mark_seen(rows)

    def _admit(self, lookup: Lookup) -> tuple[int, Integers]:
        """Return how many points fit before an eviction, and rows of their unknown keys."""
        n_points, unknown_keys = len(lookup.rows), lookup.unknown_keys
        capacity = len(unknown_keys) if self.max_keys is None else self.max_keys - len(self.key_index)
        if capacity >= len(unknown_keys):
            return n_points, self._exchange([], unknown_keys)
        first_use = first_index_by_row(lookup.rows)
        candidates = iter(self._lru_clock.oldest(len(unknown_keys) - capacity + len(first_use)).tolist())
        stop, evicted, n_admitted = n_points, [], max(capacity, 0)
        while n_admitted < len(unknown_keys) and lookup.first_index[n_admitted] < stop:
            index = lookup.first_index[n_admitted]
            evicted_row = next((row for row in candidates if first_use.get(row, n_points) >= index), None)
            if evicted_row is None:  # all rows are used earlier in this call
                stop = index
                break
            # If it occurs later, it is looked up again in that slice.
            stop = min(stop, first_use.get(evicted_row, n_points))
            evicted.append(evicted_row)
            n_admitted += 1
        new_rows = self._exchange(evicted, unknown_keys[:n_admitted])
        self.key_index.discard_pending(unknown_keys[n_admitted:])
        return int(stop), new_rows

    def _exchange(self, evicted: Sequence[int], admitted: Sequence[Key]) -> Integers:
        """Evict rows and return rows of new keys, with spilled states or empty.

        Operations that can fail come first, so that the exchange is atomic.
        """
        if not len(admitted):
            return np.zeros(0, np.int64)
        n_rows = len(self.key_index) + len(admitted) - len(evicted)  # free rows are used first
        self.state_matrix.reserve(max(self.key_index.n_rows, n_rows), len(admitted))
        restored: dict[Key, tuple[Vector, Vector]] = {}
        if self.spill is not None:
            spilled = [(self.key_index.get_key(row), *self.state_matrix.copy_row(row)) for row in evicted]
            restored = self.spill.exchange(spilled, admitted)
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
        self.version += 1
        self.state_matrix.release_row(row)
        self.key_index.release_row(row)
        if self.max_keys is not None:
            self._lru_clock.release(row)

    def all_streams(self) -> StreamSnapshot:
        """Return all streams, including spilled ones; states are views if possible."""
        rows, keys, matrix = self.key_index.rows, list(self.key_index), self.state_matrix
        states = matrix.states[: len(rows)] if len(rows) == self.key_index.n_rows else matrix.states[rows]
        last_seen = self._lru_clock.last_seen[rows] if self.max_keys is not None else np.zeros(0, np.int64)
        start_buffers = matrix.start_buffers[:0]
        if len(rows) and (not_started := matrix.not_started(rows)).any():
            start_buffers = matrix.start_buffers[matrix.start_slots(rows[not_started])]
            states = states.copy()
            states[not_started, START_SLOT_INDEX] = 0.0
        if self.spill is None or not len(self.spill):
            return StreamSnapshot(keys, states, start_buffers, last_seen)
        spilled_keys, spilled_states, spilled_buffers = zip(*self.spill.items(), strict=True)
        spilled = zip(spilled_states, spilled_buffers, strict=True)
        buffered = [start_buffer for state, start_buffer in spilled if state[N_BUFFERED] >= 0.0]
        return StreamSnapshot(
            [*keys, *spilled_keys],
            np.vstack([states, spilled_states]),
            np.concatenate([start_buffers, np.reshape(buffered, (-1, *start_buffers.shape[1:]))]),
            np.append(last_seen, np.full(len(spilled_keys), -1)),
        )

    def restore(self, streams: StreamSnapshot) -> None:
        """Restore `all_streams` into an empty fleet; the latest seen are in memory.

        Streams that were spilled before are removed.
        """
        n = len(streams.keys)
        self.key_index.set_key_type(streams.keys)
        retained = np.arange(n)
        if self.max_keys is not None:
            retained = np.sort(np.argsort(streams.last_seen, kind="stable")[max(n - self.max_keys, 0) :])
        if self.spill is not None:
            self.spill.replace_all(map(streams.get_stream, np.setdiff1d(np.arange(n), retained).tolist()))
        streams = streams if len(retained) == n else streams.select(retained)
        if n:
            self.key_index.add(streams.keys)
            self.state_matrix.restore(streams.states, streams.not_started, streams.start_buffers)
        if self.max_keys is not None:
            self._lru_clock.restore(streams.last_seen)
        self.version += 1


def first_index_by_row(rows: Integers) -> dict[int, int]:
    """Return the first index in a call of each row; negative rows are ignored."""
    present = np.flatnonzero(rows >= 0)
    known, first = np.unique(rows[present], return_index=True)
    return dict(zip(known.tolist(), present[first].tolist(), strict=True))
