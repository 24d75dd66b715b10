"""Buffer the first points of a stream until the model can be initialized."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from limpet._jit.compile import jit_entry_point, kernel
from limpet.core.algorithm import OUTCOME_BUFFERED, OUTCOME_INVALID
from limpet.core.state import MISSING_SENTINEL, N_BUFFERED, N_INVALID, N_SEEN, Vector

MIN_VALUES_PER_VARIABLE = 3  # required values of a variable among the first points
MAX_WAIT_FACTOR = 10  # times n_init: points after which one value suffices


@kernel
def n_values_required(state: Vector, n_init: int) -> int:
    """Return how many values of a variable the initialization requires."""
    is_waiting = state[N_SEEN] - state[N_INVALID] < MAX_WAIT_FACTOR * n_init
    return min(MIN_VALUES_PER_VARIABLE, n_init) if is_waiting else 1


@kernel
def n_values_buffered(start: Vector, n_buffered: int, variable: int) -> int:
    """Return the number of buffered values of a variable."""
    n_values = 0
    for i in range(n_buffered):
        if start[i, variable] != MISSING_SENTINEL:
            n_values += 1
    return n_values


@kernel
def buffer_point(state: Vector, start: Vector, y: Vector, missing: int, buffers_missing: bool) -> bool:
    """Store a point in the buffer; return whether the model can be initialized.

    `missing` is the number of NaN coordinates, −1 for an invalid point. With `buffers_missing`, invalid points are
    buffered as missing, because time passes with them.
    """
    n_init, width = start.shape
    state[N_SEEN] += 1.0
    if missing < 0:
        state[N_INVALID] += 1.0
        if not buffers_missing:
            return False
    n_buffered = int(state[N_BUFFERED])
    if n_buffered == n_init:  # a variable has too few values: keep the latest points
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
    """Return N_BUFFERED of a started model, for one stream or arrays."""
    return -1.0 - np.maximum(n_seen - n_invalid - n_init, 0.0)


def make_buffer_kernel(count_missing: Callable[[Vector], int]) -> Callable[..., Any]:
    """Return an entry point that buffers points of streams before their start.

    (states, starts, slots, streams, offsets, counts, order, points, scores, outcomes, buffers_missing, n_done, ready):
    see `BatchedKernels` for the schedule. Stream s buffers its points in starts[slots[s]], its start buffer; n_done[s]
    of them were processed when ready[s] was set, or else all.
    """

    def buffer_points(  # type: ignore[no-untyped-def]
        states, starts, slots, streams, offsets, counts, order, points, scores, outcomes, buffers_missing, n_done, ready
    ):
        for s in range(len(streams)):
            n_done[s], ready[s] = 0, False
            while n_done[s] < counts[s] and not ready[s]:
                index = order[offsets[s] + n_done[s]]
                y = points[index]
                missing = count_missing(y)
                ready[s] = buffer_point(states[streams[s]], starts[slots[s]], y, missing, buffers_missing)
                scores[index], outcomes[index] = math.nan, OUTCOME_INVALID if missing < 0 else OUTCOME_BUFFERED
                n_done[s] += 1

    return jit_entry_point(buffer_points, releases_gil=True)
