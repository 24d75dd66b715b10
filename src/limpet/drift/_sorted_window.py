"""A sorted sliding window, and the distance of its newest points from others.

Each point is inserted into the sorted window, and one pass over the window gives the distance; sorting two samples per
point would take most of the time.

A window of w points has two vectors. `values`: the points by slot (a ring), then sorted. `bookkeeping`: the number of
points and the oldest slot, then the slot of each sorted point, then the sign of each slot.
"""

from __future__ import annotations

import numpy as np

from limpet._jit.compile import kernel
from limpet._validation import FloatArray
from limpet.drift._python_random import IntArray

COUNT_INDEX, OLDEST_INDEX, HEADER_SIZE = 0, 1, 2


def make_windows(width: int, window: int) -> tuple[FloatArray, IntArray]:
    """Return values and bookkeeping of `width` empty windows."""
    return np.zeros((width, 2 * window)), np.zeros((width, HEADER_SIZE + 2 * window), np.int64)


@kernel
def clear_window(bookkeeping: IntArray) -> None:
    """Empty the window. Signs stay: the sign of a slot is set before it is used."""
    bookkeeping[COUNT_INDEX] = 0
    bookkeeping[OLDEST_INDEX] = 0


@kernel
def count_below(ordered: FloatArray, n_points: int, y: float, inclusive: bool) -> int:
    """Return how many of the first points are less than y, or at most y."""
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
    """Insert a point.

    It replaces the oldest if the window is full. The newest n_recent slots have the sign −1.

    Among equal points the oldest is first, so that the point to be replaced can be found by its value.
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
    """Return the maximum gap between the newest and the drawn points.

    The gap is that of their counting functions in a full window.

    `drawn` counts from the oldest point. Among equal values, only the difference after the last of them counts.
    """
    ordered = values[window:]
    slots, signs = bookkeeping[HEADER_SIZE : HEADER_SIZE + window], bookkeeping[HEADER_SIZE + window :]
    oldest = bookkeeping[OLDEST_INDEX]
    for k in range(len(drawn)):
        slot = oldest + drawn[k]
        signs[slot if slot < window else slot - window] = 1
    gap, max_gap = 0, 0
    for k in range(window - 1):  # the gap after the last point is 0
        gap += signs[slots[k]]
        size = abs(gap) if ordered[k] != ordered[k + 1] else 0
        max_gap = size if size > max_gap else max_gap
    for k in range(len(drawn)):
        slot = oldest + drawn[k]
        signs[slot if slot < window else slot - window] = 0
    return max_gap
