"""A sliding window that is kept in order, and how far its newest points are in distribution from others in it.

Sorting two samples for every point would take most of the time; here a point is put in its place, and one walk over the
window finds the distance.

A window of w points has two vectors: `values` holds them by slot (a ring) and then in order; `places` holds the slot of
each in order, then the sign of each slot, then how many points there are and where the oldest one is.
"""

from __future__ import annotations

import numpy as np

from limpet._jit.compile import kernel
from limpet._validation import FloatArray
from limpet.drift._python_random import IntArray

COUNT_INDEX, OLDEST_INDEX, HEADER_SIZE = 0, 1, 2


def make_windows(width: int, window: int) -> tuple[FloatArray, IntArray]:
    """The values and places of `width` empty windows."""
    return np.zeros((width, 2 * window)), np.zeros((width, HEADER_SIZE + 2 * window), np.int64)


@kernel
def clear_window(bookkeeping: IntArray) -> None:
    """Empties the window. Signs stay: a slot is given its own again before it counts."""
    bookkeeping[COUNT_INDEX] = 0
    bookkeeping[OLDEST_INDEX] = 0


@kernel
def count_below(ordered: FloatArray, n_points: int, y: float, inclusive: bool) -> int:
    """How many of the first `held` are less than y, or not above it."""
    low, high = 0, n_points
    while low < high:
        middle = (low + high) // 2
        value = ordered[middle]
        if value < y or (inclusive and value == y):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def insert_point(values: FloatArray, bookkeeping: IntArray, window: int, n_recent: int, y: float) -> None:
    """Adds a point, in place of the oldest if the window is full; the newest `recent` slots have the sign −1.

    Among equals the oldest comes first, so that the one to be replaced is found by its value.
    """
    ring, ordered = values[:window], values[window:]
    slots, signs = bookkeeping[HEADER_SIZE : HEADER_SIZE + window], bookkeeping[HEADER_SIZE + window :]
    n_points = bookkeeping[COUNT_INDEX]
    if n_points < window:
        slot, hole = n_points, n_points
        bookkeeping[COUNT_INDEX] = n_points + 1
    else:
        slot = bookkeeping[OLDEST_INDEX]
        hole = count_below(ordered, n_points, ring[slot], False)
        bookkeeping[OLDEST_INDEX] = slot + 1 if slot + 1 < window else 0
    target = count_below(ordered, n_points, y, True)
    if target > hole:
        target -= 1
        for k in range(hole, target):
            ordered[k], slots[k] = ordered[k + 1], slots[k + 1]
    else:
        for k in range(hole, target, -1):
            ordered[k], slots[k] = ordered[k - 1], slots[k - 1]
    ordered[target], slots[target], ring[slot], signs[slot] = y, slot, y, -1
    signs[slot - n_recent if slot >= n_recent else slot - n_recent + window] = 0


@kernel
def max_cdf_gap(values: FloatArray, bookkeeping: IntArray, window: int, drawn: IntArray) -> int:
    """By how many points the distributions of the newest points and of those drawn are apart, at most; w must be full.

    `drawn` counts from the oldest. Between equal values there is no gap: only after the last of them is it looked at.
    """
    ordered = values[window:]
    slots, signs = bookkeeping[HEADER_SIZE : HEADER_SIZE + window], bookkeeping[HEADER_SIZE + window :]
    oldest = bookkeeping[OLDEST_INDEX]
    for k in range(len(drawn)):
        slot = oldest + drawn[k]
        signs[slot if slot < window else slot - window] = 1
    gap, max_gap = 0, 0
    for k in range(window - 1):  # after the last one there is no gap
        gap += signs[slots[k]]
        size = abs(gap) if ordered[k] != ordered[k + 1] else 0
        max_gap = size if size > max_gap else max_gap
    for k in range(len(drawn)):
        slot = oldest + drawn[k]
        signs[slot if slot < window else slot - window] = 0
    return max_gap
