"""Streams that run Algorithm 1 and nothing else: side by side in the lanes of a register where that can be done."""

from __future__ import annotations

import math

import numpy as np

from holdfast.fleet.crew import Answers, Crew
from holdfast.fleet.turns import Turns
from holdfast.learners.plain_engine import PlainEngine
from holdfast.learners.trace import Trace
from holdfast.scheme.compiling import announced
from holdfast.scheme.lanes import LANES
from holdfast.scheme.many import bind_many
from holdfast.scheme.state import MISSING, Vector

WORTH_SHARING = 8192  # points, below which a second core does not pay


class PlainCrew(Crew):
    """Streams of the plain scheme."""

    engine: PlainEngine

    def __init__(self, engine: PlainEngine) -> None:
        super().__init__(engine)
        self.many = bind_many(engine.functions, engine.norm, engine.rule)
        self.hold_points = self.many.hold

    def start_thetas(self, held: Vector, thetas: Vector) -> None:
        """As the model starts: all at once where it can."""
        functions, points = self.engine.functions, np.where(held == MISSING, math.nan, held)
        if functions.start_many is not None:
            functions.start_many(points, thetas, self.engine.hyper, self.engine.seed)
            return
        for own, theta in zip(points, thetas, strict=True):
            functions.start(own, theta, self.engine.hyper, self.engine.seed)

    def run(self, states: Vector, turns: Turns, points: Vector, answers: Answers) -> None:
        """Side by side where all points of a stream are whole, else one after another."""
        with announced(f"{self.engine.title}, many streams"):
            if self.many.run is None:
                self.run_in_turn(states, turns, points, answers)
                return
            if self._any_special(points):
                special = np.zeros(len(turns), np.bool_)
                self.many.are_special(turns.begins, turns.counts, turns.order, points, special)
                self.run_in_turn(states, turns.some(special), points, answers)
                turns = turns.some(~special)
            together, later = turns.side_by_side()
            self.run_side_by_side(states, together, points, answers)
            self.run_in_turn(states, later, points, answers)

    def _any_special(self, points: Vector) -> bool:
        """Whether a point cannot be used or misses something."""
        found: list[bool] = []
        self._share(lambda part: found.append(self.many.first_special(points[part]) >= 0), len(points), WORTH_SHARING)
        return any(found)

    def run_side_by_side(self, states: Vector, turns: Turns, points: Vector, answers: Answers) -> None:
        """Streams that have started, whose points are whole."""
        assert self.many.run is not None
        run, in_order = self.many.run, turns.in_order

        def work(own: Turns, part: slice) -> None:
            room = (np.empty(self.many.block_size), np.empty(LANES, np.int64))
            whose = (own.streams, own.begins, own.counts, own.order)
            run(states, *whose, points, self.settings, *room, in_order, answers.results[:, 0], answers.fates)

        self._share_turns(work, turns, WORTH_SHARING)

    def run_in_turn(self, states: Vector, turns: Turns, points: Vector, answers: Answers) -> None:
        """Streams that have started, one after another."""

        def work(own: Turns, part: slice) -> None:
            room, whose = np.empty(self.many.work_size), (own.streams, own.begins, own.counts, own.order)
            self.many.run_in_turn(states, *whose, points, self.settings, room, answers.results[:, 0], answers.fates)

        self._share_turns(work, turns, WORTH_SHARING)

    def trace(self, answers: Answers) -> Trace:
        """Scores and fates."""
        return Trace(answers.results[:, 0], answers.fates)
