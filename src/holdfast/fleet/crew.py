"""What is done with the streams of a fleet, whatever they learn: its kinds are one for each kind of engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.alarms.alarm import Alarm
from holdfast.fleet.turns import Integers, PointSchedule
from holdfast.learners.engine import Engine
from holdfast.learners.trace import Trace
from holdfast.scheme.algorithm import OUTCOME_INVALID
from holdfast.scheme.compiling import announce_compilation
from holdfast.scheme.holding import started_marker
from holdfast.scheme.many import padded_row_size
from holdfast.scheme.state import HEADER_SIZE, N_BUFFERED, N_INVALID, N_SEEN, StreamBufferView, Vector
from holdfast.threads import n_threads, parallel_for


@dataclass(eq=False)
class ResultBuffer:
    """What the points of a call came to; a point that nobody learnt is one that could not be used."""

    values: Vector
    """(n, …): the score first."""

    outcomes: npt.NDArray[np.int8]
    alarms: list[tuple[int, Alarm]] = field(default_factory=list)
    """Each with the point of the call that raised it."""

    first_point: int = 0
    """Which point of the call the first one here is."""

    @classmethod
    def allocate(cls, n: int, n_results: int) -> ResultBuffer:
        """Room for n points, each of which somebody is going to learn."""
        return cls(np.empty((n, n_results)), np.empty(n, np.int8))

    def mark_invalid(self, points: npt.NDArray[np.bool_] | Integers) -> None:
        """Nobody is going to learn these points."""
        self.values[points], self.outcomes[points] = np.nan, OUTCOME_INVALID

    def view(self, part: slice) -> ResultBuffer:
        """Those to some of the points, as views."""
        return ResultBuffer(self.values[part], self.outcomes[part], self.alarms, self.first_point + part.start)

    def restore_order(self, order: Integers) -> ResultBuffer:
        """Those to points that were sorted, in the order in which they had come; alarms stay in that of time."""
        values, outcomes = np.empty_like(self.values), np.empty_like(self.outcomes)
        values[order], outcomes[order] = self.values, self.outcomes
        return ResultBuffer(values, outcomes, self.alarms, self.first_point)


class FleetBackend(ABC):
    """The streams of one engine's kind: how they are held, started and run."""

    n_results: int = 1
    buffer_kernel: Callable[..., Any]

    def __init__(self, engine: Engine) -> None:
        self.engine, self.width, self.n_init = engine, engine.width, engine.n_init
        self.theta_end = HEADER_SIZE + len(engine.buffer.theta.view(np.float64))
        self.state_size = padded_row_size(self.theta_end)
        self.settings = engine.buffer.settings

    def make_buffer_view(self, row: Vector, start_buffer: Vector) -> StreamBufferView:
        """The memory of one stream, for an engine of its own."""
        return StreamBufferView(self.engine.buffer, row, start_buffer)

    def buffer_points(
        self,
        states: Vector,
        start_buffers: Vector,
        slots: Integers,
        schedule: PointSchedule,
        points: Vector,
        results: ResultBuffer,
    ) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Holds first points; how many of each stream it took until it can start, and whether it can."""
        n_consumed, ready = np.zeros(len(schedule), np.int64), np.zeros(len(schedule), np.bool_)
        if len(schedule):
            results.values[:, 1:] = np.nan  # a point that is held has no more than a score
        arguments = (
            schedule.streams,
            schedule.starts,
            schedule.counts,
            schedule.order,
            points,
            results.values[:, 0],
            results.outcomes,
        )
        with announce_compilation(self.engine.title):
            self.buffer_kernel(states, start_buffers, slots, *arguments, self.engine.buffers_missing, n_consumed, ready)
        return n_consumed, ready

    def start(self, states: Vector, streams: Integers, buffered: Vector) -> None:
        """Starts streams from the points held, (n, n_init, width)."""
        thetas = np.zeros((len(streams), self.theta_end - HEADER_SIZE))
        typed_thetas = thetas.view(self.engine.buffer.theta.dtype)
        self._run_parallel(lambda part: self.init_thetas(buffered[part], typed_thetas[part]), len(streams), 8)
        states[streams, HEADER_SIZE : self.theta_end] = thetas
        states[streams, N_BUFFERED] = started_marker(states[streams, N_SEEN], states[streams, N_INVALID], self.n_init)

    @abstractmethod
    def init_thetas(self, buffered: Vector, thetas: Vector) -> None:
        """Fills each row of thetas from its points held."""

    @abstractmethod
    def run(self, states: Vector, schedule: PointSchedule, points: Vector, results: ResultBuffer) -> None:
        """Runs streams that have started. An alarm has the row of its stream as its key."""

    @abstractmethod
    def to_trace(self, results: ResultBuffer) -> Trace:
        """The answers as they are told."""

    def estimate(self, row: Vector, name: str) -> Vector | None:
        """The estimate of one stream that has started, by its state; None before that."""
        if row[N_BUFFERED] >= 0.0:
            return None
        engine, original_buffer = self.engine, self.engine.buffer
        engine.buffer = self.make_buffer_view(row, np.zeros((self.n_init, self.width)))
        try:
            return np.array(engine.estimate(name))
        finally:
            engine.buffer = original_buffer  # so that no row is held on to, and with it the matrix

    def _run_parallel(self, work: Callable[[slice], object], n: int, min_per_part: int) -> None:
        """The work on n things, shared if there are enough of them."""
        parts = min(n_threads(), max(n // min_per_part, 1))
        edges = [n * i // parts for i in range(parts + 1)]
        parallel_for(work, [slice(first, last) for first, last in pairwise(edges)])

    def _run_schedule_parallel(
        self, work: Callable[[PointSchedule, slice], object], schedule: PointSchedule, parallel_threshold_points: int
    ) -> None:
        """The work on all turns, shared if there are enough points: (some of them, which)."""
        if len(schedule):
            parts = (
                schedule.partition(n_threads())
                if schedule.n_points >= parallel_threshold_points
                else [slice(0, len(schedule))]
            )
            parallel_for(lambda part: work(schedule.select(part), part), parts)
