"""The first points of a stream, held until the model can start from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from limpet._jit.compile import jit_entry_point, kernel, source_fingerprint
from limpet.core.algorithm import OUTCOME_BUFFERED, OUTCOME_INVALID
from limpet.core.state import MISSING_SENTINEL, N_BUFFERED, N_INVALID, N_SEEN, Vector

MIN_VALUES_PER_VARIABLE = 3  # values of a variable among the first points
MAX_WAIT_FACTOR = 10  # times n_init: how long to wait for that many


@kernel
def n_values_required(state: Vector, n_init: int) -> int:
    """How many values of a variable it takes to start; after a while one will do."""
    is_waiting = state[N_SEEN] - state[N_INVALID] < MAX_WAIT_FACTOR * n_init
    return min(MIN_VALUES_PER_VARIABLE, n_init) if is_waiting else 1


@kernel
def n_values_buffered(start: Vector, n_buffered: int, variable: int) -> int:
    """How many values of a variable there are among the points held."""
    n_values = 0
    for i in range(n_buffered):
        if start[i, variable] != MISSING_SENTINEL:
            n_values += 1
    return n_values


@kernel
def buffer_point(state: Vector, start: Vector, y: Vector, missing: int, buffers_missing: bool) -> bool:
    """Keeps one of the first points in `start` (n_init, width); whether the model can start now.

    missing: how many coordinates are NaN, −1 for a point that cannot be used. keeps_gaps: whether such a one is held as
    well, because time passes with it.
    """
    n_init, width = start.shape
    state[N_SEEN] += 1.0
    if missing < 0:
        state[N_INVALID] += 1.0
        if not buffers_missing:
            return False
    n_buffered = int(state[N_BUFFERED])
    if n_buffered == n_init:  # a variable has shown too few values yet: the latest points are kept
        for i in range(n_init - 1):
            for j in range(width):
                start[i, j] = start[i + 1, j]
        n_buffered -= 1
    for j in range(width):
        start[n_buffered, j] = MISSING_SENTINEL if missing < 0 or y[j] != y[j] else y[j]
    n_buffered += 1
    state[N_BUFFERED] = n_buffered
    if n_buffered < n_init:
        return False
    for j in range(width):  # noqa: SIM110  (compiled)
        if n_values_buffered(start, n_buffered, j) < n_values_required(state, n_init):
            return False
    return True


def started_marker(n_seen: Any, n_invalid: Any, n_init: int) -> Any:
    """What HELD is once a model has started; see there. For one stream or arrays of them."""
    return -1.0 - np.maximum(n_seen - n_invalid - n_init, 0.0)


def make_buffer_kernel(count_missing: Callable[[Vector], int]) -> Callable[..., Any]:
    """An entry point for many streams that have not started.

    (states, starts, slots, streams, begins, counts, order, points, scores, fates, keeps_gaps, taken, due): see
    `scheme.many.Many` for who has which points. Stream s holds its points in starts[slots[s]]; taken[s] of them were
    held when due[s] says that it can start now, or else all of them.
    """
    stamp = source_fingerprint([count_missing, buffer_point])

    def buffer_points(  # type: ignore[no-untyped-def]
        states,
        start_buffers,
        slots,
        streams,
        offsets,
        counts,
        order,
        points,
        scores,
        outcomes,
        buffers_missing,
        n_processed,
        is_ready,
    ):
        stamp  # noqa: B018  (part of the cache key)
        for s in range(len(streams)):
            n_processed[s], is_ready[s] = 0, False
            while n_processed[s] < counts[s] and not is_ready[s]:
                index = order[offsets[s] + n_processed[s]]
                missing = count_missing(points[index])
                is_ready[s] = buffer_point(
                    states[streams[s]], start_buffers[slots[s]], points[index], missing, buffers_missing
                )
                scores[index], outcomes[index] = math.nan, OUTCOME_INVALID if missing < 0 else OUTCOME_BUFFERED
                n_processed[s] += 1

    return jit_entry_point(buffer_points, releases_gil=True)
