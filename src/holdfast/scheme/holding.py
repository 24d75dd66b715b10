"""The first points of a stream, held until the model can start from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.scheme.algorithm import HELD_FOR_START, UNUSABLE
from holdfast.scheme.compiling import compiled, fingerprint, kernel
from holdfast.scheme.state import BAD, HELD, MISSING, SEEN, Vector

ENOUGH = 3  # values of a variable among the first points
PATIENCE = 10  # times n_init: how long to wait for that many


@kernel
def values_needed(state: Vector, n_init: int) -> int:
    """How many values of a variable it takes to start; after a while one will do."""
    patient = state[SEEN] - state[BAD] < PATIENCE * n_init
    return min(ENOUGH, n_init) if patient else 1


@kernel
def values_held(start: Vector, held: int, variable: int) -> int:
    """How many values of a variable there are among the points held."""
    values = 0
    for i in range(held):
        if start[i, variable] != MISSING:
            values += 1
    return values


@kernel
def hold(state: Vector, start: Vector, y: Vector, missing: int, keeps_gaps: bool) -> bool:
    """Keeps one of the first points in `start` (n_init, width); whether the model can start now.

    missing: how many coordinates are NaN, −1 for a point that cannot be used. keeps_gaps: whether such a one is held as
    well, because time passes with it.
    """
    n_init, width = start.shape
    state[SEEN] += 1.0
    if missing < 0:
        state[BAD] += 1.0
        if not keeps_gaps:
            return False
    held = int(state[HELD])
    if held == n_init:  # a variable has shown too few values yet: the latest points are kept
        for i in range(n_init - 1):
            for j in range(width):
                start[i, j] = start[i + 1, j]
        held -= 1
    for j in range(width):
        start[held, j] = MISSING if missing < 0 or y[j] != y[j] else y[j]
    held += 1
    state[HELD] = held
    if held < n_init:
        return False
    for j in range(width):  # noqa: SIM110  (compiled)
        if values_held(start, held, j) < values_needed(state, n_init):
            return False
    return True


def mark_of_start(seen: Any, bad: Any, n_init: int) -> Any:
    """What HELD is once a model has started; see there. For one stream or arrays of them."""
    return -1.0 - np.maximum(seen - bad - n_init, 0.0)


def hold_many(missing_coordinates: Callable[[Vector], int]) -> Callable[..., Any]:
    """An entry point for many streams that have not started.

    (states, starts, slots, streams, begins, counts, order, points, scores, fates, keeps_gaps, taken, due): see
    `scheme.many.Many` for who has which points. Stream s holds its points in starts[slots[s]]; taken[s] of them were
    held when due[s] says that it can start now, or else all of them.
    """
    stamp = fingerprint([missing_coordinates, hold])

    def run(states, starts, slots, streams, begins, counts, order, points, scores, fates, keeps_gaps, taken, due):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        for s in range(len(streams)):
            taken[s], due[s] = 0, False
            while taken[s] < counts[s] and not due[s]:
                at = order[begins[s] + taken[s]]
                missing = missing_coordinates(points[at])
                due[s] = hold(states[streams[s]], starts[slots[s]], points[at], missing, keeps_gaps)
                scores[at], fates[at] = math.nan, UNUSABLE if missing < 0 else HELD_FOR_START
                taken[s] += 1

    return compiled(run, releases_gil=True)
