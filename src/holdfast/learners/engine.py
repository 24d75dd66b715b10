"""The machine room of a learner: one stream's memory and its start. What runs on it, its subclasses know."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.errors import BadInputError, NotStartedError
from holdfast.learners.in_place import InPlace
from holdfast.learners.step import Step
from holdfast.learners.trace import Trace
from holdfast.models.base import Model
from holdfast.scheme.algorithm import HELD_FOR_START, UNUSABLE
from holdfast.scheme.compiling import announced
from holdfast.scheme.holding import hold, mark_of_start, values_held, values_needed
from holdfast.scheme.state import BAD, HEADER, HELD, MISSING, SEEN, Cell, Vector


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
    def assess(self, rows: Vector, far: float | None = None, alone: bool = False) -> Trace:
        """What `process` would say of each row if it came next, learning nothing; nothing is said of changes.

        far: another rate of false alarms, where there are any. alone: the rows do not come next; it is not known what
        came before each."""

    @abstractmethod
    def score(self, rows: Vector) -> Vector:
        """The score of each row, learning nothing."""

    @abstractmethod
    def in_place(self) -> InPlace:
        """The shortest way for one point after another; for a model that has started."""

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
        missing = self.missing_coordinates(row)
        if hold(self.cell.header, self.cell.start, row, missing, self.holds_gaps):
            self._begin()
        return UNUSABLE if missing < 0 else HELD_FOR_START

    def _begin(self) -> None:
        """The start is there."""
        self._start(self.cell.start, self.cell.theta)
        header = self.cell.header
        header[HELD] = mark_of_start(header[SEEN], header[BAD], self.n_init)
        self.cell.let_go_of_start()

    def _held_points(self, held: Vector) -> Vector:
        """The points held, NaN where a coordinate is missing."""
        return np.where(held == MISSING, math.nan, held)

    def theta(self) -> Vector:
        """What has been learnt; before the start, what it would start with from the points it has."""
        if self.started:
            return self.cell.theta
        theta = np.zeros_like(self.cell.theta)
        self._start(self._held_so_far(), theta)
        return theta

    def _held_so_far(self) -> Vector:
        """The points to start with if there were no more; a variable that has shown no value is at 0."""
        held = self.cell.start[: int(self.cell.header[HELD])]
        if (held == MISSING).all():
            raise NotStartedError("there is no estimate yet: not one usable point has come")
        return np.where((held == MISSING).all(axis=0), 0.0, held)

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
        held, needed = int(self.cell.header[HELD]), values_needed(self.cell.header, self.n_init)
        return [j for j in range(self.width) if values_held(self.cell.start, held, j) < needed]
