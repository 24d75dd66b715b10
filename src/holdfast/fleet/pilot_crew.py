"""Streams on autopilot: one after another, on all cores; Python steps in where a stream has changed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from holdfast.alarms.alarm import Alarm
from holdfast.autopilot.start import init_auto_batch
from holdfast.fleet.crew import FleetBackend, ResultBuffer
from holdfast.fleet.turns import Integers, PointSchedule
from holdfast.learners.pilot_engine import AutoEngine
from holdfast.learners.trace import Trace
from holdfast.learners.watching import CHANGE_SCORE, N_RESULTS, P_VALUE, SCORE
from holdfast.scheme.algorithm import OUTCOME_ANOMALY, OUTCOME_CHANGE
from holdfast.scheme.compiling import announce_compilation
from holdfast.scheme.state import MISSING_SENTINEL, N_SEEN, Vector

AUTO_PARALLEL_THRESHOLD_POINTS = 512  # points, below which a second core does not pay


class AutoBackend(FleetBackend):
    """Streams of the autopilot."""

    engine: AutoEngine
    n_results = N_RESULTS

    def __init__(self, engine: AutoEngine) -> None:
        super().__init__(engine)
        self.kernels = engine.kernels
        self.buffer_kernel = self.kernels.buffer_points

    def start(self, states: Vector, streams: Integers, buffered: Vector) -> None:
        """Starts streams, and learns what else there is to learn from their first points."""
        super().start(states, streams, buffered)
        n = len(streams) * self.n_init
        points = np.where(buffered == MISSING_SENTINEL, math.nan, buffered).reshape(n, self.width)
        starts = np.arange(len(streams)) * self.n_init
        schedule = PointSchedule(streams, starts, np.full(len(streams), self.n_init), np.arange(n))
        self._run(states, schedule, points, ResultBuffer.allocate(1, N_RESULTS), True)

    def init_thetas(self, buffered: Vector, thetas: Vector) -> None:
        """As the autopilot starts."""
        auto_kernels = self.kernels.auto
        points = np.where(buffered == MISSING_SENTINEL, math.nan, buffered)
        with announce_compilation(self.engine.title):
            init_auto_batch(auto_kernels, points, thetas[:, : auto_kernels.layout.size], self.engine.seed)

    def run(self, states: Vector, schedule: PointSchedule, points: Vector, results: ResultBuffer) -> None:
        """Runs every stream until Python has to step in, and on from there."""
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
        """What the compiled code leaves to Python, for one stream."""
        engine, original_buffer = self.engine, self.engine.buffer
        engine.buffer = self.make_buffer_view(states[row], np.zeros((self.n_init, self.width)))
        try:
            change = engine._handle_event(int(results.outcomes[point]))
        finally:
            engine.buffer = original_buffer  # so that no row is held on to, and with it the matrix
        if change is not None:
            results.alarms.append((results.first_point + point, replace(change, key=row)))

    def _append_anomaly_alarms(self, states: Vector, schedule: PointSchedule, results: ResultBuffer) -> None:
        for position, s in zip(*schedule.find_marked(results.outcomes & OUTCOME_ANOMALY), strict=True):
            point, row = int(schedule.order[position]), int(schedule.streams[s])
            n_left = int(schedule.starts[s] + schedule.counts[s]) - position  # points of the stream from this one on
            for alarm in self.engine._anomaly(results.values[point].tolist(), int(states[row, N_SEEN]) - n_left):
                results.alarms.append((results.first_point + point, replace(alarm, key=row)))

    def to_trace(self, results: ResultBuffer) -> Trace:
        """Scores, decisions and alarms."""
        values = results.values
        raised: list[tuple[int, Alarm]] = sorted(results.alarms, key=lambda one: one[0])
        auto_scores = (values[:, CHANGE_SCORE], values[:, P_VALUE])
        alarms, points = [alarm for _, alarm in raised], [point for point, _ in raised]
        return Trace(values[:, SCORE], results.outcomes, {}, auto_scores, alarms, explicit_alarm_index=points)
