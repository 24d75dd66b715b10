"""A sliding window that is kept in order, and how far its newest points are in distribution from others in it.

Sorting two samples for every point would take most of the time; here a point is put in its place, and one walk over the
window finds the distance.

A window of w points has two vectors: `values` holds them by slot (a ring) and then in order; `places` holds the slot of
each in order, then the sign of each slot, then how many points there are and where the oldest one is.
"""

from __future__ import annotations

import numpy as np

from holdfast.checks import FloatArray
from holdfast.detectors.sampling import Wholes
from holdfast.scheme.compiling import kernel

HELD, OLDEST, HEADER = 0, 1, 2


def room(width: int, window: int) -> tuple[FloatArray, Wholes]:
    """The values and places of `width` empty windows."""
    return np.zeros((width, 2 * window)), np.zeros((width, HEADER + 2 * window), np.int64)


@kernel
def restart(places: Wholes) -> None:
    """Empties the window. Signs stay: a slot is given its own again before it counts."""
    places[HELD] = 0
    places[OLDEST] = 0


@kernel
def how_many_below(ordered: FloatArray, held: int, y: float, and_equal: bool) -> int:
    """How many of the first `held` are less than y, or not above it."""
    low, high = 0, held
    while low < high:
        middle = (low + high) // 2
        value = ordered[middle]
        if value < y or (and_equal and value == y):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def put(values: FloatArray, places: Wholes, window: int, recent: int, y: float) -> None:
    """Adds a point, in place of the oldest if the window is full; the newest `recent` slots have the sign −1.

    Among equals the oldest comes first, so that the one to be replaced is found by its value.
    """
    ring, ordered = values[:window], values[window:]
    slots, signs = places[HEADER : HEADER + window], places[HEADER + window :]
    held = places[HELD]
    if held < window:
        slot, hole = held, held
        places[HELD] = held + 1
    else:
        slot = places[OLDEST]
        hole = how_many_below(ordered, held, ring[slot], False)
        places[OLDEST] = slot + 1 if slot + 1 < window else 0
    target = how_many_below(ordered, held, y, True)
    if target > hole:
        target -= 1
        for k in range(hole, target):
            ordered[k], slots[k] = ordered[k + 1], slots[k + 1]
    else:
        for k in range(hole, target, -1):
            ordered[k], slots[k] = ordered[k - 1], slots[k - 1]
    ordered[target], slots[target], ring[slot], signs[slot] = y, slot, y, -1
    signs[slot - recent if slot >= recent else slot - recent + window] = 0


@kernel
def distance(values: FloatArray, places: Wholes, window: int, drawn: Wholes) -> int:
    """By how many points the distributions of the newest points and of those drawn are apart, at most; w must be full.

    `drawn` counts from the oldest. Between equal values there is no gap: only after the last of them is it looked at.
    """
    ordered = values[window:]
    slots, signs = places[HEADER : HEADER + window], places[HEADER + window :]
    oldest = places[OLDEST]
    for k in range(len(drawn)):
        slot = oldest + drawn[k]
        signs[slot if slot < window else slot - window] = 1
    gap, widest = 0, 0
    for k in range(window - 1):  # after the last one there is no gap
        gap += signs[slots[k]]
        size = abs(gap) if ordered[k] != ordered[k + 1] else 0
        widest = size if size > widest else widest
    for k in range(len(drawn)):
        slot = oldest + drawn[k]
        signs[slot if slot < window else slot - window] = 0
    return widest
