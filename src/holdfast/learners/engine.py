"""The machine room of a learner: one stream's memory and its start. What runs on it, its subclasses know."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.errors import BadInputError, NotStartedError
from holdfast.learners.step import Step
from holdfast.learners.trace import Trace
from holdfast.models.base import Model
from holdfast.scheme.algorithm import HELD_FOR_START, UNUSABLE
from holdfast.scheme.compiling import announced
from holdfast.scheme.state import BAD, HEADER, HELD, MISSING, SEEN, Cell, Vector

ENOUGH = 3  # values of a variable among the first points
PATIENCE = 10  # times n_init: how long to wait for that many


class Engine(ABC):
    """One model on one stream of points of `width` numbers."""

    missing_coordinates: Callable[[Vector], int]
    first_unusable: Callable[[Vector], int]

    rescues: bool = False
    """Whether it gets out of a lock-out by itself."""

    undecided: bool = False
    """Whether the number of components is still to be chosen."""

    holds_gaps: bool = False
    """Whether a row that cannot be used is held as well: time passes with it."""

    def __init__(self, model: Model, width: int, title: str, cell: Cell, seed: int) -> None:
        self.model, self.width, self.title, self.cell, self.seed = model, width, title, cell, seed
        self.n_init = len(cell.start)
        self.names: tuple[str, ...] | None = None
        """Of the variables, where the data had any."""

    @abstractmethod
    def process(self, rows: Vector, record: str | None = None) -> Trace:
        """Learns row after row; `record` is the name under which the estimate after each row is kept."""

    @abstractmethod
    def _start(self, held: Vector, theta: Vector) -> None:
        """Fills theta from the points held."""

    @abstractmethod
    def score(self, rows: Vector) -> Vector:
        """The score of each row, learning nothing."""

    @abstractmethod
    def estimate(self, name: str) -> Any:
        """The estimate of this name, in the units of the data."""

    def trouble(self) -> str | None:
        """Something about the state that its user should be told, in words; None if all is well."""
        return None

    @abstractmethod
    def compiled_update(self) -> Callable[[Vector, Any], float]:
        """The short way for one point: (cell, number or vector) → score, NaN where `answer` has more to say."""

    @abstractmethod
    def answer(self) -> tuple[int, Step]:
        """What became of the point that the compiled update has just had, and the step to tell."""

    @property
    def started(self) -> bool:
        """Whether enough points have come for the model to start."""
        return bool(self.cell.header[HELD] < 0.0)

    def _hold(self, row: Vector) -> int:
        """Keeps one of the first points; starts the model once there are enough of them."""
        header, start = self.cell.header, self.cell.start
        header[SEEN] += 1.0
        usable = self.missing_coordinates(row) >= 0
        if not usable:
            header[BAD] += 1.0
            if not self.holds_gaps:
                return UNUSABLE
        held = int(header[HELD])
        if held == self.n_init:  # a variable has shown too few values yet: the latest points are kept
            start[:-1] = start[1:]
            held -= 1
        start[held] = np.where(np.isnan(row), MISSING, row) if usable else MISSING
        header[HELD] = held + 1.0
        if held + 1 == self.n_init and not self.silent_variables():
            self._begin()
        return HELD_FOR_START if usable else UNUSABLE

    def _begin(self) -> None:
        """The start is there."""
        header, start = self.cell.header, self.cell.start
        self._start(start, self.cell.theta)
        start[:] = 0.0
        header[HELD] = -1.0 - max(header[SEEN] - header[BAD] - self.n_init, 0.0)

    def _held_points(self, held: Vector) -> Vector:
        """The points held, NaN where a coordinate is missing."""
        return np.where(held == MISSING, math.nan, held)

    def theta(self) -> Vector:
        """What has been learnt; before the start, what it would start with from the points it has."""
        if self.started:
            return self.cell.theta
        held = self.cell.start[: int(self.cell.header[HELD])]
        if (held == MISSING).all():
            raise NotStartedError("there is no estimate yet: not one usable point has come")
        theta = np.zeros_like(self.cell.theta)
        self._start(np.where((held == MISSING).all(axis=0), 0.0, held), theta)
        return theta

    def _state_to_score_with(self) -> Vector:
        """A copy of the state, with what it would start with before the start."""
        state = self.cell.state.copy()
        theta = self.theta().view(np.float64)
        state[HEADER : HEADER + len(theta)] = theta
        return state

    def refuse_bad(self, rows: Vector) -> None:
        """Raises if a row cannot be used."""
        with announced(self.title):
            first = self.first_unusable(rows)
        if first >= 0:
            raise BadInputError(
                f"row {first} cannot be used: {rows[first]} ({self.model.support}); nothing of this call was learnt"
            )

    def silent_variables(self) -> list[int]:
        """The variables that have shown too few values among the points held; after a while one will do."""
        header = self.cell.header
        patient = header[SEEN] - header[BAD] < PATIENCE * self.n_init
        needed = min(ENOUGH, self.n_init) if patient else 1
        held = self.cell.start[: int(header[HELD])]
        return [int(i) for i in np.flatnonzero((held != MISSING).sum(axis=0) < needed)]
