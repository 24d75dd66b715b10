"""The states of a fleet as rows of a matrix, and start buffers of new streams."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from limpet.core.state import HEADER_SIZE, N_BUFFERED, StreamBufferView, Vector
from limpet.fleet._key_index import Integers

FREE_SLOT = -1
GROWTH_FACTOR = 1.25  # of the arrays
START_SLOT_INDEX = HEADER_SIZE  # before a stream has started, the first number of its theta is its start slot
SHRINK_FACTOR = 4  # start buffers shrink when they have so many slots per used slot


class StateMatrix:
    """States by row. Learners of single streams hold views, which are rebound when the arrays move."""

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
        n_lacking = n_slots - len(self._free_slots)
        if n_lacking > 0:
            used = len(self.start_buffers)
            self.start_buffers = _grow(self.start_buffers, used + n_lacking)
            self._slot_rows = np.append(self._slot_rows, np.full(len(self.start_buffers) - used, FREE_SLOT))
            self._free_slots += range(len(self.start_buffers) - 1, used - 1, -1)
            self._rebind_views()

    def restore(self, states: Vector, not_started: npt.NDArray[np.bool_], start_buffers: Vector) -> None:
        """Set all rows of an empty matrix. start_buffers: of the streams that have not started."""
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
        """Return the view of one stream, for an engine. The same object while one is in use."""
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
        view: Vector = self.start_buffers[int(self.states[row, START_SLOT_INDEX])]
        return view

    def not_started(self, rows: Integers) -> npt.NDArray[np.bool_]:
        """Return which of these rows have not started."""
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
