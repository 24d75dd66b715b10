"""The machine room of the plain scheme: Algorithm 1 with one model, one norm and one step size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.errors import BadInputError
from holdfast.learners.engine import Engine
from holdfast.learners.in_place import InPlace
from holdfast.learners.step import BadStep, DroppedStep, Step
from holdfast.learners.trace import Trace
from holdfast.models.base import Model
from holdfast.scheme.algorithm import HYPER, REJECTED, STEP, UNUSABLE, bind
from holdfast.scheme.compiling import announced, direct
from holdfast.scheme.state import Cell, Vector
from holdfast.scheme.step_sizes import StepSize


class PlainEngine(Engine):
    """Algorithm 1 on one stream of points of `width` numbers."""

    def __init__(
        self,
        model: Model,
        width: int,
        step_size: StepSize,
        gamma: float,
        norm: str,
        n_init: int,
        warmup: int,
        patience: int,
        seed: int,
    ) -> None:
        self.functions = model.functions(width)
        if self.functions.width != width:
            raise BadInputError(f"{type(model).__name__} takes points of {self.functions.width} numbers, got {width}")
        if norm not in self.functions.norms:
            known = ", ".join(self.functions.norms)
            raise BadInputError(f"{type(model).__name__} has the norms {known}, not {norm!r}")
        step = np.zeros(HYPER - STEP)
        if len(step_size.parameters) > len(step):
            raise BadInputError(f"{type(step_size).__name__} has more than {len(step)} parameters")
        step[: len(step_size.parameters)] = step_size.parameters
        self.hyper = model.hyper(width)
        settings = np.concatenate([[gamma * gamma, warmup, patience], step, self.hyper])
        self.norm, self.rule = norm, type(step_size).rule
        self.algorithm = bind(self.functions, norm, self.rule, len(settings))
        cell = Cell(settings, self.algorithm.work_size, self.functions.layout.size, (int(n_init), width))
        title = f"{type(model).__name__} ({width} variable{'s' * (width > 1)}, norm {norm})"
        super().__init__(model, width, title, cell, seed)
        self.missing_coordinates = self.algorithm.missing_coordinates
        self.first_unusable = self.algorithm.first_unusable

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

    def _start(self, held: Vector, theta: Vector) -> None:
        with announced(self.title):
            self.functions.start(self._held_points(held), theta, self.hyper, self.seed)

    def assess(self, rows: Vector, far: float | None = None, alone: bool = False) -> Trace:
        """−log f of each row, and whether the threshold would reject it, learning nothing."""
        scores, fates = np.empty(len(rows)), np.empty(len(rows), np.int8)
        state, settings, work = self._state_to_score_with(), self.cell.settings, self.cell.work.copy()
        with announced(self.title):
            self.algorithm.assess(state, rows, settings, work, scores, fates)
        return Trace(scores, fates)

    def score(self, rows: Vector) -> Vector:
        """−log f of each row, learning nothing."""
        return self.assess(rows).score

    def in_place(self) -> InPlace:
        """One point after another, at one place."""
        cell, row, score, fate = self.cell, np.zeros((1, self.width)), np.zeros(1), np.zeros(1, np.int8)
        at = (cell.state, row, cell.settings, cell.work, score, fate)
        with announced(self.title):
            return InPlace(row, score, fate, (self.algorithm.run, (*at, np.zeros((0, 0)))), (self.algorithm.assess, at))

    def estimate(self, name: str) -> Any:
        """As the model tells it."""
        return self.model.estimate(name, self.theta(), self.width)

    def trouble(self) -> str | None:
        """As the model sees it."""
        return self.model.trouble(self.cell.theta, self.width) if self.started else None

    def compiled_update(self) -> Callable[[Vector, Any], float]:
        """The short way for one point. See `Algorithm.update`."""
        example: Any = 0.0 if self.width == 1 else np.zeros(self.width)
        with announced(self.title):
            return direct(self.algorithm.update, self.cell.vector, example)

    def answer(self) -> tuple[int, Step]:
        """What became of the point that the compiled update has just had, and the step to tell."""
        fate, score = int(self.cell.work[-2]), float(self.cell.work[-1])
        kind = BadStep if fate == UNUSABLE else DroppedStep if fate == REJECTED else Step
        return fate, kind(score)
