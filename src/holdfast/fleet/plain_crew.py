"""Streams that run Algorithm 1 and nothing else: side by side in the lanes of a register where that can be done."""

from __future__ import annotations

import math

import numpy as np

from holdfast.fleet.crew import FleetBackend, ResultBuffer
from holdfast.fleet.turns import PointSchedule
from holdfast.learners.plain_engine import PlainEngine
from holdfast.learners.trace import Trace
from holdfast.scheme.compiling import announce_compilation
from holdfast.scheme.lanes import LANES
from holdfast.scheme.many import make_batched_kernels
from holdfast.scheme.state import MISSING_SENTINEL, Vector

SRA_PARALLEL_THRESHOLD_POINTS = 8192  # points, below which a second core does not pay


class SRABackend(FleetBackend):
    """Streams of the plain scheme."""

    engine: PlainEngine

    def __init__(self, engine: PlainEngine) -> None:
        super().__init__(engine)
        self.kernels = make_batched_kernels(engine.functions, engine.norm, engine.rule)
        self.buffer_kernel = self.kernels.buffer_points

    def init_thetas(self, buffered: Vector, thetas: Vector) -> None:
        """As the model starts: all at once where it can."""
        functions, points = self.engine.functions, np.where(buffered == MISSING_SENTINEL, math.nan, buffered)
        if functions.init_batch is not None:
            functions.init_batch(points, thetas, self.engine.hyper, self.engine.seed)
            return
        for stream_points, theta in zip(points, thetas, strict=True):
            functions.init(stream_points, theta, self.engine.hyper, self.engine.seed)

    def run(self, states: Vector, schedule: PointSchedule, points: Vector, results: ResultBuffer) -> None:
        """Side by side where all points of a stream are whole, else one after another."""
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
        """Whether a point cannot be used or misses something."""
        flags: list[bool] = []
        self._run_parallel(
            lambda part: flags.append(self.kernels.first_incomplete(points[part]) >= 0),
            len(points),
            SRA_PARALLEL_THRESHOLD_POINTS,
        )
        return any(flags)

    def run_in_lanes(self, states: Vector, schedule: PointSchedule, points: Vector, results: ResultBuffer) -> None:
        """Streams that have started, whose points are whole."""
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
        """Streams that have started, one after another."""

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
        """Scores and fates."""
        return Trace(results.values[:, 0], results.outcomes)
