"""The machine room of the plain scheme: Algorithm 1 with one model, one norm and one step size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.errors import InvalidInputError
from holdfast.learners.engine import Engine
from holdfast.learners.in_place import FastPath
from holdfast.learners.step import InvalidStep, RejectedStep, Step
from holdfast.learners.trace import Trace
from holdfast.models.base import Model
from holdfast.scheme.algorithm import (
    HYPERPARAMETERS,
    OUTCOME_INVALID,
    OUTCOME_REJECTED,
    STEP_PARAMETERS,
    make_stream_kernels,
)
from holdfast.scheme.compiling import announce_compilation, unchecked_entry_point
from holdfast.scheme.state import StreamBuffer, Vector
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
        self.functions = model.kernels(width)
        if self.functions.width != width:
            raise InvalidInputError(
                f"{type(model).__name__} takes points of {self.functions.width} numbers, got {width}"
            )
        if norm not in self.functions.norms:
            known = ", ".join(self.functions.norms)
            raise InvalidInputError(f"{type(model).__name__} has the norms {known}, not {norm!r}")
        step = np.zeros(HYPERPARAMETERS - STEP_PARAMETERS)
        if len(step_size.parameters) > len(step):
            raise InvalidInputError(f"{type(step_size).__name__} has more than {len(step)} parameters")
        step[: len(step_size.parameters)] = step_size.parameters
        self.hyper = model.hyperparameters(width)
        settings = np.concatenate([[gamma * gamma, warmup, patience], step, self.hyper])
        self.norm, self.rule = norm, type(step_size).rule
        self.kernels = make_stream_kernels(self.functions, norm, self.rule, len(settings))
        buffer = StreamBuffer(settings, self.kernels.work_size, self.functions.layout.size, (int(n_init), width))
        title = f"{type(model).__name__} ({width} variable{'s' * (width > 1)}, norm {norm})"
        super().__init__(model, width, title, buffer, seed)
        self.count_missing = self.kernels.count_missing
        self.first_invalid = self.kernels.first_invalid

    def process(self, rows: Vector, record: str | None = None) -> Trace:
        """Learns row after row; `record` is the name under which the estimate after each row is kept."""
        buffer, shape = self.buffer, self.functions.estimate_shape
        scores, outcomes = np.empty(len(rows)), np.empty(len(rows), np.int8)
        estimates = np.empty((len(rows) if record else 0, math.prod(shape)))
        first = 0
        while first < len(rows) and not self.started:
            scores[first], outcomes[first], estimates[first : first + 1] = (
                math.nan,
                self._buffer_point(rows[first]),
                math.nan,
            )
            if record and self.started:
                self.functions.estimate(buffer.theta, self.hyper, buffer.work, estimates[first])
            first += 1
        if first < len(rows):
            arguments = (
                rows[first:],
                buffer.settings,
                buffer.work,
                scores[first:],
                outcomes[first:],
                estimates[first:],
            )
            with announce_compilation(self.title):
                self.kernels.run(buffer.state, *arguments)
        return Trace(scores, outcomes, {record: estimates.reshape(-1, *shape)} if record else {})

    def _init_theta(self, buffered: Vector, theta: Vector) -> None:
        with announce_compilation(self.title):
            self.functions.init(self._buffered_points(buffered), theta, self.hyper, self.seed)

    def score_only(self, rows: Vector, far: float | None = None, alone: bool = False) -> Trace:
        """−log f of each row, and whether the threshold would reject it, learning nothing."""
        scores, outcomes = np.empty(len(rows)), np.empty(len(rows), np.int8)
        state, settings, work = self._scoring_state(), self.buffer.settings, self.buffer.work.copy()
        with announce_compilation(self.title):
            self.kernels.score_rows(state, rows, settings, work, scores, outcomes)
        return Trace(scores, outcomes)

    def score(self, rows: Vector) -> Vector:
        """−log f of each row, learning nothing."""
        return self.score_only(rows).score

    def fast_path(self) -> FastPath:
        """One point after another, at one place."""
        buffer, row, score, outcome = self.buffer, np.zeros((1, self.width)), np.zeros(1), np.zeros(1, np.int8)
        arguments = (buffer.state, row, buffer.settings, buffer.work, score, outcome)
        with announce_compilation(self.title):
            return FastPath(
                row,
                score,
                outcome,
                (self.kernels.run, (*arguments, np.zeros((0, 0)))),
                (self.kernels.score_rows, arguments),
            )

    def estimate(self, name: str) -> Any:
        """As the model tells it."""
        return self.model.estimate(name, self.theta(), self.width)

    def health_message(self) -> str | None:
        """As the model sees it."""
        return self.model.health_message(self.buffer.theta, self.width) if self.started else None

    def compiled_update(self) -> Callable[[Vector, Any], float]:
        """The short way for one point. See `Algorithm.update`."""
        example: Any = 0.0 if self.width == 1 else np.zeros(self.width)
        with announce_compilation(self.title):
            return unchecked_entry_point(self.kernels.update, self.buffer.vector, example)

    def result_of_last_update(self) -> tuple[int, Step]:
        """What became of the point that the compiled update has just had, and the step to tell."""
        outcome, score = int(self.buffer.work[-2]), float(self.buffer.work[-1])
        step_class = (
            InvalidStep if outcome == OUTCOME_INVALID else RejectedStep if outcome == OUTCOME_REJECTED else Step
        )
        return outcome, step_class(score)
