"""Backends that initialize and run the streams of a fleet, one per engine."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import announce_compilation
from limpet._jit.simd import LANES
from limpet._parallel import n_threads, parallel_for
from limpet.auto.initialization import init_auto_batch
from limpet.auto.stream_kernel import CHANGE_SCORE, N_RESULTS, P_VALUE, SCORE
from limpet.core.algorithm import OUTCOME_ANOMALY, OUTCOME_CHANGE, OUTCOME_INVALID
from limpet.core.batched_algorithm import make_batched_kernels, padded_row_size
from limpet.core.start_buffer import started_marker
from limpet.core.state import HEADER_SIZE, MISSING_SENTINEL, N_BUFFERED, N_INVALID, N_SEEN, StreamBufferView, Vector
from limpet.detection.alarm import Alarm
from limpet.fleet._schedule import Integers, PointSchedule
from limpet.learners._auto_engine import AutoEngine
from limpet.learners._engine import Engine, PlainEngine
from limpet.learners.results import Trace


@dataclass(eq=False)
class ResultBuffer:
    """Results of the points of a call."""

    values: Vector
    """(n, n_results): the first column is the score."""

    outcomes: npt.NDArray[np.int8]
    alarms: list[tuple[int, Alarm]] = field(default_factory=list)
    """Each with the index of the point that raised it."""

    first_point: int = 0
    """Index in the call of the first point."""

    @classmethod
    def allocate(cls, n: int, n_results: int) -> ResultBuffer:
        """Allocate results of n points, uninitialized."""
        return cls(np.empty((n, n_results)), np.empty(n, np.int8))

    def mark_invalid(self, points: npt.NDArray[np.bool_] | Integers) -> None:
        """Mark points as invalid."""
        self.values[points], self.outcomes[points] = np.nan, OUTCOME_INVALID

    def view(self, part: slice) -> ResultBuffer:
        """Return the results of some points as views."""
        return ResultBuffer(self.values[part], self.outcomes[part], self.alarms, self.first_point + part.start)

    def restore_order(self, order: Integers) -> ResultBuffer:
        """Return the results of sorted points in their original order. Alarms stay sorted."""
        values, outcomes = np.empty_like(self.values), np.empty_like(self.outcomes)
        values[order], outcomes[order] = self.values, self.outcomes
        return ResultBuffer(values, outcomes, self.alarms, self.first_point)


class FleetBackend(ABC):
    """Initialize and run streams with engines of one kind."""

    n_results: int = 1
    buffer_kernel: Callable[..., Any]

    def __init__(self, engine: Engine) -> None:
        self.engine, self.width, self.n_init = engine, engine.width, engine.n_init
        self.theta_end = HEADER_SIZE + len(engine.buffer.theta.view(np.float64))
        self.state_size = padded_row_size(self.theta_end)
        self.settings = engine.buffer.settings

    def make_buffer_view(self, row: Vector, start_buffer: Vector) -> StreamBufferView:
        """Return the buffers of one stream, for an engine."""
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
        """Buffer first points. Return how many points of each stream were consumed and whether it can start."""
        n_consumed, ready = np.zeros(len(schedule), np.int64), np.zeros(len(schedule), np.bool_)
        if len(schedule):
            results.values[:, 1:] = np.nan  # a buffered point has only a score
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
        """Initialize streams from their buffered points (n, n_init, width)."""
        thetas = np.zeros((len(streams), self.theta_end - HEADER_SIZE))
        typed_thetas = thetas.view(self.engine.buffer.theta.dtype)
        self._run_parallel(lambda part: self.init_thetas(buffered[part], typed_thetas[part]), len(streams), 8)
        states[streams, HEADER_SIZE : self.theta_end] = thetas
        states[streams, N_BUFFERED] = started_marker(states[streams, N_SEEN], states[streams, N_INVALID], self.n_init)

    @abstractmethod
    def init_thetas(self, buffered: Vector, thetas: Vector) -> None:
        """Write the initial parameters of each stream from its buffered points."""

    @abstractmethod
    def run(self, states: Vector, schedule: PointSchedule, points: Vector, results: ResultBuffer) -> None:
        """Run streams that have started. The key of an alarm is the row of its stream."""

    @abstractmethod
    def to_trace(self, results: ResultBuffer) -> Trace:
        """Convert results to a trace."""

    def estimate(self, row: Vector, name: str) -> Vector | None:
        """Return an estimate from the state of one stream; None if it has not started."""
        if row[N_BUFFERED] >= 0.0:
            return None
        engine, original_buffer = self.engine, self.engine.buffer
        engine.buffer = self.make_buffer_view(row, np.zeros((self.n_init, self.width)))
        try:
            return np.array(engine.estimate(name))
        finally:
            engine.buffer = original_buffer  # a reference to the row would keep the matrix alive

    def _run_parallel(self, work: Callable[[slice], object], n: int, min_per_part: int) -> None:
        """Call work on slices of range(n), in parallel if n is large enough."""
        parts = min(n_threads(), max(n // min_per_part, 1))
        edges = [n * i // parts for i in range(parts + 1)]
        parallel_for(work, [slice(first, last) for first, last in pairwise(edges)])

    def _run_schedule_parallel(
        self, work: Callable[[PointSchedule, slice], object], schedule: PointSchedule, parallel_threshold_points: int
    ) -> None:
        """Call work(subset, slice) on parts of a schedule, in parallel if it pays."""
        if len(schedule):
            parts = (
                schedule.partition(n_threads())
                if schedule.n_points >= parallel_threshold_points
                else [slice(0, len(schedule))]
            )
            parallel_for(lambda part: work(schedule.select(part), part), parts)


def backend_for(engine: Engine) -> FleetBackend:
    """Return the backend for engines of this kind."""
    return SRABackend(engine) if isinstance(engine, PlainEngine) else AutoBackend(engine)  # type: ignore[arg-type]


# Streams that run Algorithm 1, in SIMD lanes if the model supports them

SRA_PARALLEL_THRESHOLD_POINTS = 8192  # with fewer points, a second core does not pay


class SRABackend(FleetBackend):
    """Run streams of Algorithm 1."""

    engine: PlainEngine

    def __init__(self, engine: PlainEngine) -> None:
        super().__init__(engine)
        self.kernels = make_batched_kernels(engine.functions, engine.norm, engine.rule)
        self.buffer_kernel = self.kernels.buffer_points

    def init_thetas(self, buffered: Vector, thetas: Vector) -> None:
        """Initialize the models, batched if the model supports it."""
        functions, points = self.engine.functions, np.where(buffered == MISSING_SENTINEL, math.nan, buffered)
        if functions.init_batch is not None:
            functions.init_batch(points, thetas, self.engine.hyper, self.engine.seed)
            return
        for stream_points, theta in zip(points, thetas, strict=True):
            functions.init(stream_points, theta, self.engine.hyper, self.engine.seed)

    def run(self, states: Vector, schedule: PointSchedule, points: Vector, results: ResultBuffer) -> None:
        """Run streams with complete points in lanes, the others sequentially."""
        with announce_compilation(f"{self.engine.title}, many streams"):
            if self.kernels.run_lanes is None:
                self.run_sequential(states, schedule, points, results)
                return
            if self._has_incomplete(points):
                incomplete = np.zeros(len(schedule), np.bool_)
                self.kernels.mark_incomplete(schedule.starts, schedule.counts, schedule.order, points, incomplete)
                self.run_sequential(states, schedule.select(incomplete), points, results)
                schedule = schedule.select(~incomplete)
            in_lanes, leftover = schedule.split_for_lanes()
            self.run_in_lanes(states, in_lanes, points, results)
            self.run_sequential(states, leftover, points, results)

    def _has_incomplete(self, points: Vector) -> bool:
        """Return whether a point is invalid or has missing values."""
        flags: list[bool] = []
        self._run_parallel(
            lambda part: flags.append(self.kernels.first_incomplete(points[part]) >= 0),
            len(points),
            SRA_PARALLEL_THRESHOLD_POINTS,
        )
        return any(flags)

    def run_in_lanes(self, states: Vector, schedule: PointSchedule, points: Vector, results: ResultBuffer) -> None:
        """Run streams with complete points in lanes."""
        assert self.kernels.run_lanes is not None
        run, in_order = self.kernels.run_lanes, schedule.is_in_order

        def work(subset: PointSchedule, part: slice) -> None:
            workspace = (np.empty(self.kernels.block_size), np.empty(LANES, np.int64))
            schedule_arrays = (subset.streams, subset.starts, subset.counts, subset.order)
            run(
                states,
                *schedule_arrays,
                points,
                self.settings,
                *workspace,
                in_order,
                results.values[:, 0],
                results.outcomes,
            )

        self._run_schedule_parallel(work, schedule, SRA_PARALLEL_THRESHOLD_POINTS)

    def run_sequential(self, states: Vector, schedule: PointSchedule, points: Vector, results: ResultBuffer) -> None:
        """Run streams sequentially."""

        def work(subset: PointSchedule, part: slice) -> None:
            workspace, schedule_arrays = (
                np.empty(self.kernels.work_size),
                (subset.streams, subset.starts, subset.counts, subset.order),
            )
            self.kernels.run_sequential(
                states, *schedule_arrays, points, self.settings, workspace, results.values[:, 0], results.outcomes
            )

        self._run_schedule_parallel(work, schedule, SRA_PARALLEL_THRESHOLD_POINTS)

    def to_trace(self, results: ResultBuffer) -> Trace:
        """Return a trace of scores and outcomes."""
        return Trace(results.values[:, 0], results.outcomes)


# Automatic streams, in parallel on all cores

AUTO_PARALLEL_THRESHOLD_POINTS = 512  # with fewer points, a second core does not pay


class AutoBackend(FleetBackend):
    """Run automatic streams; Python handles the points at which a stream has changed."""

    engine: AutoEngine
    n_results = N_RESULTS

    def __init__(self, engine: AutoEngine) -> None:
        super().__init__(engine)
        self.kernels = engine.kernels
        self.buffer_kernel = self.kernels.buffer_points

    def start(self, states: Vector, streams: Integers, buffered: Vector) -> None:
        """Initialize streams, and run them on their first points."""
        super().start(states, streams, buffered)
        n = len(streams) * self.n_init
        points = np.where(buffered == MISSING_SENTINEL, math.nan, buffered).reshape(n, self.width)
        starts = np.arange(len(streams)) * self.n_init
        schedule = PointSchedule(streams, starts, np.full(len(streams), self.n_init), np.arange(n))
        self._run(states, schedule, points, ResultBuffer.allocate(1, N_RESULTS), True)

    def init_thetas(self, buffered: Vector, thetas: Vector) -> None:
        """Initialize the models from buffered points."""
        auto_kernels = self.kernels.auto
        points = np.where(buffered == MISSING_SENTINEL, math.nan, buffered)
        with announce_compilation(self.engine.title):
            init_auto_batch(auto_kernels, points, thetas[:, : auto_kernels.layout.size], self.engine.seed)

    def run(self, states: Vector, schedule: PointSchedule, points: Vector, results: ResultBuffer) -> None:
        """Run every stream up to each event that Python has to handle, and resume."""
        remaining = schedule
        while len(remaining):
            done = self._run(states, remaining, points, results, False)
            last_points = remaining.order[remaining.starts + done - 1]
            stopped = np.flatnonzero(results.outcomes[last_points] >= OUTCOME_CHANGE)
            for s in stopped.tolist():
                self._handle_event(states, int(remaining.streams[s]), int(last_points[s]), results)
            remaining = remaining.select(stopped).remaining(done[stopped])
        self._append_anomaly_alarms(states, schedule, results)

    def _run(
        self, states: Vector, schedule: PointSchedule, points: Vector, results: ResultBuffer, buffered: bool
    ) -> Integers:
        done = np.zeros(len(schedule), np.int64)

        def work(subset: PointSchedule, part: slice) -> None:
            workspace = np.empty(self.kernels.work_size)
            arguments = (subset.streams, subset.starts, subset.counts, subset.order, points, self.settings, workspace)
            self.kernels.run_batch(states, *arguments, results.values, results.outcomes, done[part], buffered)

        with announce_compilation(f"{self.engine.title}, many streams"):
            self._run_schedule_parallel(work, schedule, AUTO_PARALLEL_THRESHOLD_POINTS)
        return done

    def _handle_event(self, states: Vector, row: int, point: int, results: ResultBuffer) -> None:
        """Handle the event of one stream that the kernel leaves to Python."""
        engine, original_buffer = self.engine, self.engine.buffer
        engine.buffer = self.make_buffer_view(states[row], np.zeros((self.n_init, self.width)))
        try:
            change = engine._handle_event(int(results.outcomes[point]))
        finally:
            engine.buffer = original_buffer  # a reference to the row would keep the matrix alive
        if change is not None:
            results.alarms.append((results.first_point + point, replace(change, key=row)))

    def _append_anomaly_alarms(self, states: Vector, schedule: PointSchedule, results: ResultBuffer) -> None:
        for position, s in zip(*schedule.find_marked(results.outcomes & OUTCOME_ANOMALY), strict=True):
            point, row = int(schedule.order[position]), int(schedule.streams[s])
            n_left = int(schedule.starts[s] + schedule.counts[s]) - position  # points of the stream from this one on
            for alarm in self.engine._anomaly(results.values[point].tolist(), int(states[row, N_SEEN]) - n_left):
                results.alarms.append((results.first_point + point, replace(alarm, key=row)))

    def to_trace(self, results: ResultBuffer) -> Trace:
        """Return a trace of scores, decisions and alarms."""
        values = results.values
        raised: list[tuple[int, Alarm]] = sorted(results.alarms, key=lambda item: item[0])
        auto_scores = (values[:, CHANGE_SCORE], values[:, P_VALUE])
        alarms, points = [alarm for _, alarm in raised], [point for point, _ in raised]
        return Trace(values[:, SCORE], results.outcomes, {}, auto_scores, alarms, explicit_alarm_index=points)
