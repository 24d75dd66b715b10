"""Engines: the state of a stream, and compiled code of Algorithm 1 for a model."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._format import plural
from limpet._jit.compile import announce_compilation, unchecked_entry_point
from limpet.core.algorithm import (
    HYPERPARAMETERS,
    OUTCOME_BUFFERED,
    OUTCOME_INVALID,
    OUTCOME_REJECTED,
    STEP_PARAMETERS,
    make_stream_kernels,
)
from limpet.core.start_buffer import buffer_point, n_values_buffered, n_values_required, started_marker
from limpet.core.state import HEADER_SIZE, MISSING_SENTINEL, N_BUFFERED, N_INVALID, N_SEEN, StreamBuffer, Vector
from limpet.core.step_sizes import StepSize
from limpet.exceptions import InvalidInputError, NotFittedError
from limpet.learners.results import InvalidStep, RejectedStep, Step, Trace
from limpet.models.base import Model

BoundCall = tuple[Callable[..., Any], tuple[Any, ...]]


class FastPath:
    """Memory of one point and compiled calls on it, for tight loops of adapters.

    Making a `Step` and inspecting the type of a point cost more than the kernel. Here the caller writes numbers to the
    memory that the compiled code reads, and reads its results from memory.
    """

    __slots__ = ("learn", "log_evidence_margin", "outcome", "score", "score_only", "write_point")

    def __init__(
        self,
        row: Vector,
        score: Vector,
        outcome: npt.NDArray[np.int8],
        learn: BoundCall,
        score_only: BoundCall,
        log_evidence_margin: BoundCall | None = None,
    ) -> None:
        # `write_point(*numbers)` sets the point, one number per variable; anything else is an error of `struct`
        self.write_point: Callable[..., None] = partial(Struct(f"={row.size}d").pack_into, row.data.cast("B"), 0)
        self.learn = bind_entry_point(learn)  # unless outcome[0] is 0 then, call `handle_outcome` of the learner
        self.score_only = bind_entry_point(score_only)  # sets score[0], and for a Detector the p-value score[1]
        self.score, self.outcome = score.data, outcome.data
        self.log_evidence_margin: Callable[[], float] = (  # `Detector.change_evidence` after the last point
            (lambda: -math.inf) if log_evidence_margin is None else bind_entry_point(log_evidence_margin)
        )


def bind_entry_point(call: BoundCall) -> Callable[[], Any]:
    """Compile an entry point for its arguments and bind them."""
    entry, arguments = call
    return partial(unchecked_entry_point(entry, *arguments), *arguments)


class Engine(ABC):
    """State buffer and initialization of a model on points of `width` numbers."""

    count_missing: Callable[[Vector], int]
    first_invalid: Callable[[Vector], int]

    self_recovering: bool = False  # whether it recovers from a lock-out automatically
    needs_model_selection: bool = False  # whether the number of components has not been selected yet
    buffers_missing: bool = False  # whether invalid rows are buffered as well, because time passes with them

    def __init__(self, model: Model, width: int, title: str, buffer: StreamBuffer, seed: int) -> None:
        self.model, self.width, self.title, self.buffer, self.seed = model, width, title, buffer, seed
        self.n_init = len(buffer.start)
        self.names: tuple[str, ...] | None = None  # of the variables, if the data have any

    @abstractmethod
    def process(self, rows: Vector, record: str | None = None) -> Trace:
        """Learn row by row; `record` names the estimate to keep after each row."""

    @abstractmethod
    def _init_theta(self, buffered: Vector, theta: Vector) -> None:
        """Initialize theta from the buffered points."""

    @abstractmethod
    def score_only(self, rows: Vector, far: float | None = None, independent: bool = False) -> Trace:
        """Return what `process` would for each row as the next; see `Learner.score_only`."""

    @abstractmethod
    def score(self, rows: Vector) -> Vector:
        """Return the score of each row, without learning."""

    @abstractmethod
    def fast_path(self) -> FastPath:
        """Return the fast path of a started model."""

    @abstractmethod
    def estimate(self, name: str) -> Any:
        """Return an estimate by name, in the units of the data."""

    def health_message(self) -> str | None:
        """Return a warning about the state, None if everything is in order."""
        return None

    @abstractmethod
    def compiled_update(self) -> Callable[[Vector, Any], float]:
        """Return the compiled (buffer, point) → score, NaN unless simply accepted."""

    @abstractmethod
    def result_of_last_update(self) -> tuple[int, Step]:
        """Return the outcome and the step of the last point of the compiled update."""

    @property
    def started(self) -> bool:
        """Whether the model has been initialized."""
        return bool(self.buffer.header[N_BUFFERED] < 0.0)

    def _buffer_point(self, row: Vector) -> int:
        """Buffer one of the first points; start the model once there are enough."""
        n_missing = self.count_missing(row)
        if buffer_point(self.buffer.header, self.buffer.start, row, n_missing, self.buffers_missing):
            self._start_model()
        return OUTCOME_INVALID if n_missing < 0 else OUTCOME_BUFFERED

    def _start_model(self) -> None:
        self._init_theta(self.buffer.start, self.buffer.theta)
        header = self.buffer.header
        header[N_BUFFERED] = started_marker(header[N_SEEN], header[N_INVALID], self.n_init)
        self.buffer.release_start_buffer()

    def buffered_points(self, buffered: Vector) -> Vector:
        """Return the buffered points, NaN where a coordinate is missing."""
        return np.where(buffered == MISSING_SENTINEL, math.nan, buffered)

    def theta(self) -> Vector:
        """Return theta; before the start, as initialized from the buffered points."""
        if self.started:
            return self.buffer.theta
        theta = np.zeros_like(self.buffer.theta)
        self._init_theta(self._buffered_so_far(), theta)
        return theta

    def _buffered_so_far(self) -> Vector:
        """Return the points buffered so far; a variable without values is set to 0."""
        buffered = self.buffer.start[: int(self.buffer.header[N_BUFFERED])]
        if (buffered == MISSING_SENTINEL).all():
            raise NotFittedError("learner: must have received a valid point, got none. Call update first.")
        return np.where((buffered == MISSING_SENTINEL).all(axis=0), 0.0, buffered)

    def _scoring_state(self) -> Vector:
        """Return a copy of the state; before the start, provisionally initialized."""
        state = self.buffer.state.copy()
        theta = self.theta().view(np.float64)
        state[HEADER_SIZE : HEADER_SIZE + len(theta)] = theta
        return state

    def raise_on_invalid(self, rows: Vector) -> None:
        with announce_compilation(self.title):
            first = self.first_invalid(rows)
        if first >= 0:
            raise InvalidInputError(
                f"row {first}: must be usable ({self.model.support_description}), got {rows[first]}. "
                "Nothing of this call was learned."
            )

    def unobserved_variables(self) -> list[int]:
        """Return the indices of variables with too few values in the buffered points."""
        buffered, required = int(self.buffer.header[N_BUFFERED]), n_values_required(self.buffer.header, self.n_init)
        return [j for j in range(self.width) if n_values_buffered(self.buffer.start, buffered, j) < required]


STEP_CLASSES: dict[int, type[Step]] = {OUTCOME_INVALID: InvalidStep, OUTCOME_REJECTED: RejectedStep}


class PlainEngine(Engine):
    """Algorithm 1 with one model, norm and step size."""

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
            required = f"{plural(self.functions.width, 'number')} for {type(model).__name__}"
            raise InvalidInputError(f"x: must have {required}, got {width}.")
        if norm not in self.functions.norms:
            known = ", ".join(self.functions.norms)
            raise InvalidInputError(f"norm: must be one of {known} for {type(model).__name__}, got {norm!r}.")
        step = np.zeros(HYPERPARAMETERS - STEP_PARAMETERS)
        if len(step_size.parameters) > len(step):
            given = type(step_size).__name__
            raise InvalidInputError(f"step_size: must have at most {len(step)} parameters, got {given}.")
        step[: len(step_size.parameters)] = step_size.parameters
        self.hyper = model.hyperparameters(width)
        settings = np.concatenate([[gamma * gamma, warmup, patience], step, self.hyper])
        self.norm, self.rule = norm, type(step_size).rule
        self.kernels = make_stream_kernels(self.functions, norm, self.rule, len(settings))
        buffer = StreamBuffer(settings, self.kernels.work_size, self.functions.layout.size, (int(n_init), width))
        title = f"{type(model).__name__} ({plural(width, 'variable')}, norm {norm})"
        super().__init__(model, width, title, buffer, seed)
        self.count_missing, self.first_invalid = self.kernels.count_missing, self.kernels.first_invalid

    def process(self, rows: Vector, record: str | None = None) -> Trace:
        buffer, shape = self.buffer, self.functions.estimate_shape
        scores, outcomes = np.empty(len(rows)), np.empty(len(rows), np.int8)
        estimates = np.empty((len(rows) if record else 0, math.prod(shape)))
        first = 0
        while first < len(rows) and not self.started:
            outcomes[first] = self._buffer_point(rows[first])
            scores[first], estimates[first : first + 1] = math.nan, math.nan
            if record and self.started:
                self.functions.estimate(buffer.theta, self.hyper, buffer.work, estimates[first])
            first += 1
        if first < len(rows):
            results = (scores[first:], outcomes[first:], estimates[first:])
            with announce_compilation(self.title):
                self.kernels.run(buffer.state, rows[first:], buffer.settings, buffer.work, *results)
        return Trace(scores, outcomes, {record: estimates.reshape(-1, *shape)} if record else {})

    def _init_theta(self, buffered: Vector, theta: Vector) -> None:
        with announce_compilation(self.title):
            self.functions.init(self.buffered_points(buffered), theta, self.hyper, self.seed)

    def score_only(self, rows: Vector, far: float | None = None, independent: bool = False) -> Trace:
        scores, outcomes = np.empty(len(rows)), np.empty(len(rows), np.int8)
        state, settings, work = self._scoring_state(), self.buffer.settings, self.buffer.work.copy()
        with announce_compilation(self.title):
            self.kernels.score_rows(state, rows, settings, work, scores, outcomes)
        return Trace(scores, outcomes)

    def score(self, rows: Vector) -> Vector:
        return self.score_only(rows).score

    def fast_path(self) -> FastPath:
        buffer, row, score, outcome = self.buffer, np.zeros((1, self.width)), np.zeros(1), np.zeros(1, np.int8)
        arguments = (buffer.state, row, buffer.settings, buffer.work, score, outcome)
        learn = (self.kernels.run, (*arguments, np.zeros((0, 0))))
        with announce_compilation(self.title):
            return FastPath(row, score, outcome, learn, (self.kernels.score_rows, arguments))

    def estimate(self, name: str) -> Any:
        return self.model.estimate(name, self.theta(), self.width)

    def health_message(self) -> str | None:
        return self.model.health_message(self.buffer.theta, self.width) if self.started else None

    def compiled_update(self) -> Callable[[Vector, Any], float]:
        example: Any = 0.0 if self.width == 1 else np.zeros(self.width)
        with announce_compilation(self.title):
            return unchecked_entry_point(self.kernels.update, self.buffer.vector, example)

    def result_of_last_update(self) -> tuple[int, Step]:
        outcome, score = int(self.buffer.work[-2]), float(self.buffer.work[-1])
        return outcome, STEP_CLASSES.get(outcome, Step)(score)
