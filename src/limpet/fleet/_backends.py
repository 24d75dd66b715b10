"""Backends that initialize and run the streams of a fleet, one per engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import announce_compilation, jit_entry_point
from limpet._jit.simd import LANES
from limpet._parallel import n_threads, parallel_for
from limpet.auto.initialization import init_auto_batch
from limpet.auto.stream_kernel import CHANGE_SCORE, N_RESULTS, P_VALUE, SCORE
from limpet.core.algorithm import OUTCOME_ANOMALY, OUTCOME_CHANGE, OUTCOME_INVALID
from limpet.core.batched_algorithm import make_batched_kernels, padded_row_size
from limpet.core.start_buffer import started_marker
from limpet.core.state import HEADER_SIZE, N_BUFFERED, N_INVALID, N_SEEN, StreamBufferView, Vector
from limpet.detection.alarm import Alarm
from limpet.fleet._key_index import Flags, Integers
from limpet.learners._auto_engine import AutoEngine
from limpet.learners._engine import Engine, PlainEngine
from limpet.learners.results import Trace

# The points of a call by stream, in the order of their arrival

SORT_THRESHOLD_STREAMS_PER_POINT = 16  # with more streams per point, points are sorted rather than counted
MAX_SEQUENTIAL_TAIL_STREAMS = 2  # a group of at most so many streams runs faster sequentially than in lanes


@dataclass(frozen=True, eq=False)
class PointSchedule:
    """Stream s has the points order[starts[s]] … order[starts[s] + counts[s] − 1]."""

    streams: Integers  # distinct rows of the matrix of states; see `limpet.core.batched_algorithm`
    starts: Integers
    counts: Integers
    order: Integers

    @classmethod
    def from_rows(cls, rows: Integers, n_rows: int) -> PointSchedule:
        """Make the schedule of points by the row of their stream; ignore negative rows."""
        if SORT_THRESHOLD_STREAMS_PER_POINT * len(rows) > n_rows:
            return cls(*_compiled_sort_by_stream(rows, n_rows))
        order = np.argsort(rows, kind="stable")  # few points in many streams: avoids a pass over the streams
        order = order[np.searchsorted(rows[order], 0) :]
        streams, starts, counts = np.unique(rows[order], return_index=True, return_counts=True)
        return cls(streams, starts, counts, order)

    def __len__(self) -> int:
        return len(self.streams)

    @property
    def arrays(self) -> tuple[Integers, Integers, Integers, Integers]:
        """The fields, as arguments of a kernel."""
        return self.streams, self.starts, self.counts, self.order

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all streams have equally many points."""
        return not len(self) or bool(self.counts.min() == self.counts.max())

    @cached_property
    def is_in_order(self) -> bool:
        """Whether each stream has one point, in the order of the streams."""
        n = len(self)
        return self.is_uniform and n == len(self.order) and bool((self.order[self.starts] == np.arange(n)).all())

    def find_marked(self, marked: npt.NDArray[np.integer[Any]]) -> tuple[list[int], list[int]]:
        """Return the positions in `order` of the marked points, and the stream of each."""
        if self.is_in_order:
            stream_indices = np.flatnonzero(marked)
            return self.starts[stream_indices].tolist(), stream_indices.tolist()
        positions = np.flatnonzero(marked[self.order])
        by_start = np.argsort(self.starts) if len(positions) else positions
        stream_indices = by_start[np.searchsorted(self.starts[by_start], positions, side="right") - 1]
        return positions.tolist(), stream_indices.tolist()

    def select(self, selection: Flags | Integers | slice) -> PointSchedule:
        return PointSchedule(self.streams[selection], self.starts[selection], self.counts[selection], self.order)

    def remaining(self, n_consumed: Integers) -> PointSchedule:
        """Return the schedule without the first n_consumed[s] points of stream s."""
        advanced = PointSchedule(self.streams, self.starts + n_consumed, self.counts - n_consumed, self.order)
        return advanced.select(advanced.counts > 0)

    def merge(self, others: PointSchedule) -> PointSchedule:
        """Return the union with other streams of the same call."""
        streams, starts = np.append(self.streams, others.streams), np.append(self.starts, others.starts)
        return PointSchedule(streams, starts, np.append(self.counts, others.counts), self.order)

    def split_for_lanes(self) -> tuple[PointSchedule, PointSchedule]:
        """Split into a schedule for lanes and the last points of much longer streams."""
        if self.is_uniform and not 0 < len(self) % LANES <= MAX_SEQUENTIAL_TAIL_STREAMS:
            return self, self.select(slice(0))
        schedule = self
        if not self.is_uniform:  # by decreasing count: the lanes of a group finish at about the same time
            schedule = self.select(np.argsort(-self.counts, kind="stable"))
        tail_streams = np.arange(0, len(schedule), LANES) + MAX_SEQUENTIAL_TAIL_STREAMS
        counts_of_tails = schedule.counts[np.minimum(tail_streams, len(schedule) - 1)]
        n_rounds = np.where(tail_streams < len(schedule), counts_of_tails, 0)
        lane_counts = np.minimum(schedule.counts, np.repeat(n_rounds, LANES)[: len(schedule)])
        in_lanes = PointSchedule(schedule.streams, schedule.starts, lane_counts, schedule.order)
        return in_lanes.select(lane_counts > 0), schedule.remaining(lane_counts)

    def partition(self, n: int) -> list[slice]:
        """Return n slices of the streams with about equally many points each."""
        shares = np.arange(1, n) / n
        if self.is_uniform:
            edges = (shares * len(self)).astype(np.int64)
        else:
            n_points_through = np.cumsum(self.counts)
            edges = np.searchsorted(n_points_through, shares * n_points_through[-1])
        edges = np.concatenate([[0], -(-edges // LANES) * LANES, [len(self)]])
        return [slice(first, last) for first, last in pairwise(edges.tolist()) if first < last]


def _sort_by_stream(rows, n_rows):  # type: ignore[no-untyped-def]
    counts_by_row, n_streams = np.zeros(n_rows, np.int64), 0
    for i in range(len(rows)):
        if rows[i] >= 0:
            n_streams += counts_by_row[rows[i]] == 0
            counts_by_row[rows[i]] += 1
    streams = np.empty(n_streams, np.int64)
    starts, counts = np.empty_like(streams), np.empty_like(streams)
    s, n = 0, 0
    for row in range(n_rows):
        if counts_by_row[row] > 0:
            streams[s], starts[s], counts[s] = row, n, counts_by_row[row]
            counts_by_row[row], n, s = n, n + counts_by_row[row], s + 1
    order = np.empty(n, np.int64)
    for i in range(len(rows)):
        if rows[i] >= 0:
            order[counts_by_row[rows[i]]] = i
            counts_by_row[rows[i]] += 1
    return streams, starts, counts, order


_compiled_sort_by_stream = jit_entry_point(_sort_by_stream, allocates=True, releases_gil=True)


# The results of a call


@dataclass(eq=False)
class ResultBuffer:
    """Results of the points of a call."""

    values: Vector  # (n, n_results): the first column is the score
    outcomes: npt.NDArray[np.int8]
    alarms: list[tuple[int, Alarm]] = field(default_factory=list)  # each with the index of the point that raised it
    first_point: int = 0  # index in the call

    @classmethod
    def allocate(cls, n: int, n_results: int) -> ResultBuffer:
        """Allocate results of n points, uninitialized."""
        return cls(np.empty((n, n_results)), np.empty(n, np.int8))

    def mark_invalid(self, points: Flags | Integers) -> None:
        self.values[points], self.outcomes[points] = np.nan, OUTCOME_INVALID

    def view(self, part: slice) -> ResultBuffer:
        """Return the results of some points as views."""
        return ResultBuffer(self.values[part], self.outcomes[part], self.alarms, self.first_point + part.start)

    def restore_order(self, order: Integers) -> ResultBuffer:
        """Return results in the original order of the points; alarms stay sorted."""
        values, outcomes = np.empty_like(self.values), np.empty_like(self.outcomes)
        values[order], outcomes[order] = self.values, self.outcomes
        return ResultBuffer(values, outcomes, self.alarms, self.first_point)


# The backends


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
        return StreamBufferView(self.engine.buffer, row, start_buffer)

    def buffer_points(
        self,
        states: Vector,
        start_buffers: Vector,
        slots: Integers,
        schedule: PointSchedule,
        points: Vector,
        results: ResultBuffer,
    ) -> tuple[Integers, Flags]:
        """Buffer first points; return the number used per stream, whether it can start."""
        n_consumed, ready = np.zeros(len(schedule), np.int64), np.zeros(len(schedule), np.bool_)
        if len(schedule):
            results.values[:, 1:] = np.nan  # a buffered point has only a score
        arguments = (*schedule.arrays, points, results.values[:, 0], results.outcomes)
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
        with self._engine_on(row):
            return np.array(self.engine.estimate(name))

    @contextmanager
    def _engine_on(self, row: Vector) -> Iterator[None]:
        """Let the engine work on the state of a stream that has started."""
        original_buffer = self.engine.buffer
        self.engine.buffer = self.make_buffer_view(row, np.zeros((self.n_init, self.width)))
        try:
            yield
        finally:
            self.engine.buffer = original_buffer  # a reference to the row would keep the matrix alive

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
            is_large = schedule.counts.sum() >= parallel_threshold_points
            parts = schedule.partition(n_threads()) if is_large else [slice(0, len(schedule))]
            parallel_for(lambda part: work(schedule.select(part), part), parts)


def backend_for(engine: Engine) -> FleetBackend:
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
        functions, points = self.engine.functions, self.engine.buffered_points(buffered)
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

        def check(part: slice) -> None:
            flags.append(self.kernels.first_incomplete(points[part]) >= 0)

        self._run_parallel(check, len(points), SRA_PARALLEL_THRESHOLD_POINTS)
        return any(flags)

    def run_in_lanes(self, states: Vector, schedule: PointSchedule, points: Vector, results: ResultBuffer) -> None:
        assert self.kernels.run_lanes is not None
        run, in_order = self.kernels.run_lanes, schedule.is_in_order

        def work(subset: PointSchedule, part: slice) -> None:
            inputs = (states, *subset.arrays, points, self.settings)
            workspace = (np.empty(self.kernels.block_size), np.empty(LANES, np.int64))
            run(*inputs, *workspace, in_order, results.values[:, 0], results.outcomes)

        self._run_schedule_parallel(work, schedule, SRA_PARALLEL_THRESHOLD_POINTS)

    def run_sequential(self, states: Vector, schedule: PointSchedule, points: Vector, results: ResultBuffer) -> None:
        def work(subset: PointSchedule, part: slice) -> None:
            arguments = (states, *subset.arrays, points, self.settings, np.empty(self.kernels.work_size))
            self.kernels.run_sequential(*arguments, results.values[:, 0], results.outcomes)

        self._run_schedule_parallel(work, schedule, SRA_PARALLEL_THRESHOLD_POINTS)

    def to_trace(self, results: ResultBuffer) -> Trace:
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
        points = self.engine.buffered_points(buffered).reshape(n, self.width)
        starts = np.arange(len(streams)) * self.n_init
        schedule = PointSchedule(streams, starts, np.full(len(streams), self.n_init), np.arange(n))
        self._run(states, schedule, points, ResultBuffer.allocate(1, N_RESULTS), True)

    def init_thetas(self, buffered: Vector, thetas: Vector) -> None:
        auto_kernels, points = self.kernels.auto, self.engine.buffered_points(buffered)
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
            arguments = (states, *subset.arrays, points, self.settings, np.empty(self.kernels.work_size))
            self.kernels.run_batch(*arguments, results.values, results.outcomes, done[part], buffered)

        with announce_compilation(f"{self.engine.title}, many streams"):
            self._run_schedule_parallel(work, schedule, AUTO_PARALLEL_THRESHOLD_POINTS)
        return done

    def _handle_event(self, states: Vector, row: int, point: int, results: ResultBuffer) -> None:
        """Handle the event of one stream that the kernel leaves to Python."""
        with self._engine_on(states[row]):
            change = self.engine._handle_event(int(results.outcomes[point]))
        if change is not None:
            results.alarms.append((results.first_point + point, replace(change, key=row)))

    def _append_anomaly_alarms(self, states: Vector, schedule: PointSchedule, results: ResultBuffer) -> None:
        for position, s in zip(*schedule.find_marked(results.outcomes & OUTCOME_ANOMALY), strict=True):
            point, row = int(schedule.order[position]), int(schedule.streams[s])
            n_left = int(schedule.starts[s] + schedule.counts[s]) - position  # points of the stream from this one on
            for alarm in self.engine._anomaly(results.values[point].tolist(), int(states[row, N_SEEN]) - n_left):
                results.alarms.append((results.first_point + point, replace(alarm, key=row)))

    def to_trace(self, results: ResultBuffer) -> Trace:
        values, raised = results.values, sorted(results.alarms, key=lambda item: item[0])
        auto_scores = (values[:, CHANGE_SCORE], values[:, P_VALUE])
        alarms, points = [alarm for _, alarm in raised], [point for point, _ in raised]
        return Trace(values[:, SCORE], results.outcomes, {}, auto_scores, alarms, explicit_alarm_index=points)
