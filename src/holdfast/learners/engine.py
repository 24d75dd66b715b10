"""The machine room of a learner: one stream's memory, its start, and the compiled code that runs on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.errors import BadInputError, NotStartedError
from holdfast.learners.trace import Trace
from holdfast.models.base import Model
from holdfast.scheme.algorithm import HELD_FOR_START, HYPER, STEP, UNUSABLE, bind
from holdfast.scheme.compiling import announced, direct
from holdfast.scheme.state import BAD, HEADER, HELD, MISSING, SEEN, Cell, Vector
from holdfast.scheme.step_sizes import StepSize

ENOUGH = 3  # values of a variable among the first points
PATIENCE = 10  # times n_init: how long to wait for that many


class Engine:
    """Algorithm 1 with one model on one stream of points of `width` numbers."""

    def __init__(
        self,
        model: Model,
        width: int,
        step_size: StepSize,
        gamma: float,
        norm: str,
        n_init: int,
        warmup: int,
        seed: int,
    ) -> None:
        self.model, self.width, self.n_init, self.seed = model, width, int(n_init), seed
        self.functions = model.functions(width)
        if self.functions.width != width:
            raise BadInputError(f"{type(model).__name__} takes points of {self.functions.width} numbers, got {width}")
        if norm not in self.functions.norms:
            known = ", ".join(self.functions.norms)
            raise BadInputError(f"{type(model).__name__} has the norms {known}, not {norm!r}")
        self.title = f"{type(model).__name__} ({width} variable{'s' * (width > 1)}, norm {norm})"
        step = np.zeros(HYPER - STEP)
        if len(step_size.parameters) > len(step):
            raise BadInputError(f"{type(step_size).__name__} has more than {len(step)} parameters")
        step[: len(step_size.parameters)] = step_size.parameters
        self.hyper = model.hyper(width)
        settings = np.concatenate([[gamma * gamma, warmup], step, self.hyper])
        self.algorithm = bind(self.functions, norm, type(step_size).rule, len(settings))
        self.cell = Cell(settings, self.algorithm.work_size, self.functions.layout.size, (self.n_init, width))

    @property
    def started(self) -> bool:
        """Whether enough points have come for the model to start."""
        return bool(self.cell.header[HELD] < 0.0)

    def process(self, rows: Vector, record: str | None = None) -> Trace:
        """Learns row after row; `record` is the name under which the estimate after each row is kept."""
        cell, shape = self.cell, self.functions.estimate_shape
        scores, fates = np.empty(len(rows)), np.empty(len(rows), np.int8)
        estimates = np.empty((len(rows) if record else 0, math.prod(shape)))
        first = 0
        while first < len(rows) and not self.started:
            scores[first], fates[first], estimates[first : first + 1] = math.nan, self._hold(rows[first]), math.nan
            if record and self.started:
                self.functions.estimate(cell.theta, self.hyper, cell.work, estimates[first])
            first += 1
        if first < len(rows):
            rest = (rows[first:], cell.settings, cell.work, scores[first:], fates[first:], estimates[first:])
            with announced(self.title):
                self.algorithm.run(cell.state, *rest)
        return Trace(scores, fates, {record: estimates.reshape(-1, *shape)} if record else {})

    def _hold(self, row: Vector) -> int:
        """Keeps one of the first points; starts the model once there are enough of them."""
        header, start = self.cell.header, self.cell.start
        header[SEEN] += 1.0
        if self.algorithm.missing_coordinates(row) < 0:
            header[BAD] += 1.0
            return UNUSABLE
        held = int(header[HELD])
        if held == self.n_init:  # a variable has shown too few values yet: the latest points are kept
            start[:-1] = start[1:]
            held -= 1
        start[held] = np.where(np.isnan(row), MISSING, row)
        header[HELD] = held + 1.0
        if held + 1 == self.n_init and not self.silent_variables():
            self._start(start, self.cell.theta)
            start[:] = 0.0
            header[HELD] = -1.0 - (header[SEEN] - header[BAD] - self.n_init)
        return HELD_FOR_START

    def _start(self, held: Vector, theta: Vector) -> None:
        points = np.where(held == MISSING, math.nan, held)
        with announced(self.title):
            self.functions.start(points, theta, self.hyper, self.seed)

    def theta(self) -> Vector:
        """What has been learnt; before the start, what it would start with from the points it has."""
        if self.started:
            return self.cell.theta
        held = self.cell.start[: int(self.cell.header[HELD])]
        if not len(held):
            raise NotStartedError("there is no estimate yet: not one usable point has come")
        theta = np.zeros_like(self.cell.theta)
        self._start(np.where((held == MISSING).all(axis=0), 0.0, held), theta)
        return theta

    def score(self, rows: Vector) -> Vector:
        """−log f of each row, learning nothing."""
        state, scores = self.cell.state.copy(), np.empty(len(rows))
        state[HEADER : HEADER + len(self.cell.theta)] = self.theta()
        with announced(self.title):
            self.algorithm.score(state, rows, self.cell.settings, self.cell.work, scores)
        return scores

    def refuse_bad(self, rows: Vector) -> None:
        """Raises if a row cannot be used."""
        with announced(self.title):
            first = self.algorithm.first_unusable(rows)
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

    def compiled_update(self) -> Callable[[Vector, Any], float]:
        """The short way for one point: (cell, number or vector) → score. See `Algorithm.update`."""
        example: Any = 0.0 if self.width == 1 else np.zeros(self.width)
        with announced(self.title):
            return direct(self.algorithm.update, self.cell.vector, example)

    def answer(self) -> tuple[int, float]:
        """What became of the point that the compiled update has just had, and its score."""
        return int(self.cell.work[-2]), float(self.cell.work[-1])
