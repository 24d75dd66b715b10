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
from holdfast.fleet.turns import Integers, Turns
from holdfast.learners.engine import Engine
from holdfast.learners.trace import Trace
from holdfast.scheme.algorithm import UNUSABLE
from holdfast.scheme.compiling import announced
from holdfast.scheme.holding import mark_of_start
from holdfast.scheme.many import padded_size
from holdfast.scheme.state import BAD, HEADER, HELD, SEEN, RowCell, Vector
from holdfast.threads import cores, share


@dataclass(eq=False)
class Answers:
    """What the points of a call came to; a point that nobody learnt is one that could not be used."""

    results: Vector
    """(n, …): the score first."""

    fates: npt.NDArray[np.int8]
    alarms: list[tuple[int, Alarm]] = field(default_factory=list)
    """Each with the point of the call that raised it."""

    first: int = 0
    """Which point of the call the first one here is."""

    @classmethod
    def to(cls, n: int, n_results: int) -> Answers:
        """Room for n points, each of which somebody is going to learn."""
        return cls(np.empty((n, n_results)), np.empty(n, np.int8))

    def refuse(self, which: npt.NDArray[np.bool_] | Integers) -> None:
        """Nobody is going to learn these points."""
        self.results[which], self.fates[which] = np.nan, UNUSABLE

    def of(self, part: slice) -> Answers:
        """Those to some of the points, as views."""
        return Answers(self.results[part], self.fates[part], self.alarms, self.first + part.start)

    def put_back(self, order: Integers) -> Answers:
        """Those to points that were sorted, in the order in which they had come; alarms stay in that of time."""
        results, fates = np.empty_like(self.results), np.empty_like(self.fates)
        results[order], fates[order] = self.results, self.fates
        return Answers(results, fates, self.alarms, self.first)


class Crew(ABC):
    """The streams of one engine's kind: how they are held, started and run."""

    n_results: int = 1
    hold_points: Callable[..., Any]

    def __init__(self, engine: Engine) -> None:
        self.engine, self.width, self.n_init = engine, engine.width, engine.n_init
        self.theta_end = HEADER + len(engine.cell.theta.view(np.float64))
        self.state_size = padded_size(self.theta_end)
        self.settings = engine.cell.settings

    def cell(self, row: Vector, start: Vector) -> RowCell:
        """The memory of one stream, for an engine of its own."""
        return RowCell(self.engine.cell, row, start)

    def hold(
        self, states: Vector, starts: Vector, slots: Integers, turns: Turns, points: Vector, answers: Answers
    ) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Holds first points; how many of each stream it took until it can start, and whether it can."""
        taken, due = np.zeros(len(turns), np.int64), np.zeros(len(turns), np.bool_)
        if len(turns):
            answers.results[:, 1:] = np.nan  # a point that is held has no more than a score
        arguments = (
            turns.streams,
            turns.begins,
            turns.counts,
            turns.order,
            points,
            answers.results[:, 0],
            answers.fates,
        )
        with announced(self.engine.title):
            self.hold_points(states, starts, slots, *arguments, self.engine.holds_gaps, taken, due)
        return taken, due

    def start(self, states: Vector, streams: Integers, held: Vector) -> None:
        """Starts streams from the points held, (n, n_init, width)."""
        thetas = np.zeros((len(streams), self.theta_end - HEADER))
        numbers = thetas.view(self.engine.cell.theta.dtype)
        self._share(lambda part: self.start_thetas(held[part], numbers[part]), len(streams), 8)
        states[streams, HEADER : self.theta_end] = thetas
        states[streams, HELD] = mark_of_start(states[streams, SEEN], states[streams, BAD], self.n_init)

    @abstractmethod
    def start_thetas(self, held: Vector, thetas: Vector) -> None:
        """Fills each row of thetas from its points held."""

    @abstractmethod
    def run(self, states: Vector, turns: Turns, points: Vector, answers: Answers) -> None:
        """Runs streams that have started. An alarm has the row of its stream as its key."""

    @abstractmethod
    def trace(self, answers: Answers) -> Trace:
        """The answers as they are told."""

    def estimate(self, row: Vector, name: str) -> Vector | None:
        """The estimate of one stream that has started, by its state; None before that."""
        if row[HELD] >= 0.0:
            return None
        engine, own = self.engine, self.engine.cell
        engine.cell = self.cell(row, np.zeros((self.n_init, self.width)))
        try:
            return np.array(engine.estimate(name))
        finally:
            engine.cell = own  # so that no row is held on to, and with it the matrix

    def _share(self, work: Callable[[slice], object], n: int, least: int) -> None:
        """The work on n things, shared if there are enough of them."""
        parts = min(cores(), max(n // least, 1))
        edges = [n * i // parts for i in range(parts + 1)]
        share(work, [slice(first, last) for first, last in pairwise(edges)])

    def _share_turns(self, work: Callable[[Turns, slice], object], turns: Turns, worth_sharing: int) -> None:
        """The work on all turns, shared if there are enough points: (some of them, which)."""
        if len(turns):
            parts = turns.parts(cores()) if turns.n_points >= worth_sharing else [slice(0, len(turns))]
            share(lambda part: work(turns.some(part), part), parts)
