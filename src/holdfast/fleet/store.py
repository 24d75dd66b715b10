"""The memory of a fleet: a matrix of states, a row a stream, and the first points of those that have not started."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from holdfast.fleet.found import Integers
from holdfast.scheme.state import HEADER, HELD, RowCell, Vector

FREE = -1
GROWTH = 1.25  # by how much more than needed is made room for
SLOT = HEADER  # while a stream has not started, the first number of its theta tells where its first points are
MOSTLY_FREE = 4  # slots for one that is used, from which on the others are given back


class Store:
    """Rows that are views for whoever holds a cell on them; a cell is told where its row has gone."""

    def __init__(self, state_size: int, n_init: int, width: int) -> None:
        self.states: Vector = np.zeros((0, state_size))
        self.starts: Vector = np.zeros((0, n_init, width))
        self._owners: Integers = np.zeros(0, np.int64)  # the row that each slot is used by, or `FREE`
        self._free_slots: list[int] = []
        self._cells: WeakValueDictionary[int, RowCell] = WeakValueDictionary()  # those that are out

    def begin(self, rows: Integers) -> None:
        """Empty states and places for the first points at these rows, which are new or free."""
        if not len(rows):
            return
        self.reserve(int(rows.max()) + 1, len(rows))
        self.states[rows] = 0.0
        self.states[rows, SLOT] = self._slots(rows)

    def reserve(self, n_rows: int, n_slots: int) -> None:
        """Makes room, so that nothing can fail later: rows in all, and slots for streams that are to begin."""
        if n_rows > len(self.states):
            self.states = _grown(self.states, n_rows)
            self._tell_cells()
        lacking = n_slots - len(self._free_slots)
        if lacking > 0:
            used = len(self.starts)
            self.starts = _grown(self.starts, used + lacking)
            self._owners = np.append(self._owners, np.full(len(self.starts) - used, FREE))
            self._free_slots += range(len(self.starts) - 1, used - 1, -1)
            self._tell_cells()

    def fill(self, states: Vector, waiting: npt.NDArray[np.bool_], starts: Vector) -> None:
        """All rows at once, for a store that is empty; starts: first points of those that wait."""
        self.states, self.starts, self._free_slots = states, starts.copy(), []
        self.states[waiting, SLOT] = np.arange(len(starts))
        self._owners = np.flatnonzero(waiting)

    def put(self, row: int, state: Vector, start: Vector) -> None:
        """A state that was taken out, at a row that is new or free."""
        self.reserve(row + 1, 1)
        self.states[row] = state
        if state[HELD] >= 0.0:
            self.states[row, SLOT] = slot = self._slots(np.array([row]))[0]
            self.starts[slot] = start.reshape(self.starts.shape[1:])

    def take(self, row: int) -> tuple[Vector, Vector]:
        """A copy of the state and the first points of a row."""
        state, start = self.states[row].copy(), self.start_of(row).copy()
        if state[HELD] >= 0.0:
            state[SLOT] = 0.0
        return state, start

    def free(self, row: int) -> None:
        """The row is not needed any more; a cell on it keeps a copy."""
        if row in self._cells:
            cell = self._cells.pop(row)
            cell.move(*self.take(row))
            cell.when_started = None
        if self.states[row, HELD] >= 0.0:
            self._give_back(np.array([int(self.states[row, SLOT])]))
        self.states[row] = 0.0

    def cell(self, row: int, make: Callable[[Vector, Vector], RowCell]) -> RowCell:
        """The memory of one stream, for an engine of its own; all who ask for it while it is out have the same one."""
        cell = self._cells.get(row)
        if cell is None:
            cell = self._cells[row] = make(self.states[row], self.start_of(row))
            if cell.header[HELD] >= 0.0:
                cell.when_started = lambda: self.have_started(np.flatnonzero(self._owners == row))
        return cell

    def start_of(self, row: int) -> Vector:
        """The first points of a row: a view; zeros once it has started."""
        if self.states[row, HELD] < 0.0:
            return np.zeros(self.starts.shape[1:])
        view: Vector = self.starts[int(self.states[row, SLOT])]
        return view

    def waiting(self, rows: Integers) -> npt.NDArray[np.bool_]:
        """Which of these rows have not started."""
        return np.asarray(self.states[rows, HELD] >= 0.0)

    def slots(self, rows: Integers) -> Integers:
        """Where the first points of these rows are, which have not started."""
        return self.states[rows, SLOT].astype(np.int64)

    def have_started(self, slots: Integers) -> None:
        """The places of first points that are not needed any more."""
        self._give_back(slots)
        if MOSTLY_FREE * self.n_waiting <= len(self.starts):
            used = np.flatnonzero(self._owners != FREE)
            self.starts, self._owners, self._free_slots = self.starts[used], self._owners[used], []
            self.states[self._owners, SLOT] = np.arange(len(used))
        self._tell_cells()

    def count(self, entry: int, rows: Integers) -> Integers:
        """One of the counts of the header, for these rows."""
        return self.states[rows, entry].astype(np.int64) if len(rows) else np.zeros(0, np.int64)

    @property
    def n_waiting(self) -> int:
        """How many streams have not started, at most."""
        return len(self.starts) - len(self._free_slots)

    def _slots(self, rows: Integers) -> Integers:
        """Places for the first points of these rows, for which there is room."""
        slots = np.array([self._free_slots.pop() for _ in rows], np.int64)
        self._owners[slots] = rows
        return slots

    def _give_back(self, slots: Integers) -> None:
        self.starts[slots], self._owners[slots] = 0.0, FREE
        self._free_slots += slots.tolist()

    def _tell_cells(self) -> None:
        for row, cell in self._cells.items():
            cell.move(self.states[row], self.start_of(row))


def _grown(array: Vector, n: int) -> Vector:
    """A copy with so many rows at the least, or somewhat more than now."""
    grown = np.zeros((max(n, int(GROWTH * len(array))), *array.shape[1:]))
    grown[: len(array)] = array
    return grown
