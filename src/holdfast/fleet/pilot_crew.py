"""Streams on autopilot: one after another, on all cores; Python steps in where a stream has changed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from holdfast.alarms.alarm import Alarm
from holdfast.autopilot.start import start_pilots
from holdfast.fleet.crew import Answers, Crew
from holdfast.fleet.turns import Integers, Turns
from holdfast.learners.pilot_engine import PilotEngine
from holdfast.learners.trace import Trace
from holdfast.learners.watching import CHANGE_SCORE, P_VALUE, RESULTS, SCORE
from holdfast.scheme.algorithm import ANOMALOUS, CHANGED
from holdfast.scheme.compiling import announced
from holdfast.scheme.state import MISSING, SEEN, Vector

WORTH_SHARING = 512  # points, below which a second core does not pay


class PilotCrew(Crew):
    """Streams of the autopilot."""

    engine: PilotEngine
    n_results = RESULTS

    def __init__(self, engine: PilotEngine) -> None:
        super().__init__(engine)
        self.watch = engine.watch
        self.hold_points = self.watch.hold

    def start(self, states: Vector, streams: Integers, held: Vector) -> None:
        """Starts streams, and learns what else there is to learn from their first points."""
        super().start(states, streams, held)
        n = len(streams) * self.n_init
        points = np.where(held == MISSING, math.nan, held).reshape(n, self.width)
        begins = np.arange(len(streams)) * self.n_init
        turns = Turns(streams, begins, np.full(len(streams), self.n_init), np.arange(n))
        self._run(states, turns, points, Answers.to(1, RESULTS), True)

    def start_thetas(self, held: Vector, thetas: Vector) -> None:
        """As the autopilot starts."""
        pilot = self.watch.pilot
        points = np.where(held == MISSING, math.nan, held)
        with announced(self.engine.title):
            start_pilots(pilot, points, thetas[:, : pilot.layout.size], self.engine.seed)

    def run(self, states: Vector, turns: Turns, points: Vector, answers: Answers) -> None:
        """Runs every stream until Python has to step in, and on from there."""
        left = turns
        while len(left):
            done = self._run(states, left, points, answers, False)
            at_last = left.order[left.begins + done - 1]
            stopped = np.flatnonzero(answers.fates[at_last] >= CHANGED)
            for s in stopped.tolist():
                self._step_in(states, int(left.streams[s]), int(at_last[s]), answers)
            left = left.some(stopped).after(done[stopped])
        self._tell_anomalies(states, turns, answers)

    def _run(self, states: Vector, turns: Turns, points: Vector, answers: Answers, held: bool) -> Integers:
        done = np.zeros(len(turns), np.int64)

        def work(own: Turns, part: slice) -> None:
            room = np.empty(self.watch.work_size)
            arguments = (own.streams, own.begins, own.counts, own.order, points, self.settings, room)
            self.watch.run_many(states, *arguments, answers.results, answers.fates, done[part], held)

        with announced(f"{self.engine.title}, many streams"):
            self._share_turns(work, turns, WORTH_SHARING)
        return done

    def _step_in(self, states: Vector, row: int, at: int, answers: Answers) -> None:
        """What the compiled code leaves to Python, for one stream."""
        engine, own = self.engine, self.engine.cell
        engine.cell = self.cell(states[row], np.zeros((self.n_init, self.width)))
        try:
            change = engine._step_in(int(answers.fates[at]))
        finally:
            engine.cell = own  # so that no row is held on to, and with it the matrix
        if change is not None:
            answers.alarms.append((answers.first + at, replace(change, key=row)))

    def _tell_anomalies(self, states: Vector, turns: Turns, answers: Answers) -> None:
        for place, s in zip(*turns.places_of(answers.fates & ANOMALOUS), strict=True):
            at, row = int(turns.order[place]), int(turns.streams[s])
            later = int(turns.begins[s] + turns.counts[s]) - place  # points of the stream from this one on
            for alarm in self.engine._anomaly(answers.results[at].tolist(), int(states[row, SEEN]) - later):
                answers.alarms.append((answers.first + at, replace(alarm, key=row)))

    def trace(self, answers: Answers) -> Trace:
        """Scores, decisions and alarms."""
        results = answers.results
        raised: list[tuple[int, Alarm]] = sorted(answers.alarms, key=lambda one: one[0])
        watched = (results[:, CHANGE_SCORE], results[:, P_VALUE])
        alarms, points = [alarm for _, alarm in raised], [point for point, _ in raised]
        return Trace(results[:, SCORE], answers.fates, {}, watched, alarms, points_of_alarms=points)
