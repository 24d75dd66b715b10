"""What a setting is chosen by: the paper's two criteria, and the ranking of labelled anomalies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeGuard

from limpet._validation import check_int, check_positive
from limpet.datasets import Stream
from limpet.exceptions import InvalidInputError
from limpet.learners import StochasticApproximation, Trace
from limpet.metrics import SegmentMSE, benefit_auc, roc_auc, segment_mse
from limpet.metrics._validation import check_change_points

TAU = 1000  # the paper's τ: the rows before it are for choosing settings


class Objective(Protocol):
    """A learner that has seen nothing, and a stream → how well it does; `largest` says whether more is better."""

    maximize: ClassVar[bool]

    def __call__(self, learner: StochasticApproximation, stream: Stream) -> float:
        """Runs the learner over the stream and measures it."""


class TraceObjective(ABC):
    """An objective that needs no more than the trace of the rows up to `stop`: learners can be run side by side.

    One of your own has `largest`, `judge` and, if it is not for the whole stream, `stop`; `tune` may then run many
    learners at once. A subclass with another `__call__` is called, learner by learner.
    """

    maximize: ClassVar[bool]
    stop: int | None = None

    def __call__(self, learner: StochasticApproximation, stream: Stream) -> float:
        """Runs the learner over the rows of the stream up to `stop` and measures it by its trace."""
        return self.evaluate_trace(learner.process(stream.y[: self.stop]), stream)

    @abstractmethod
    def evaluate_trace(self, trace: Trace, stream: Stream) -> float:
        """Measures a learner by its trace."""


def is_trace_objective(objective: Objective) -> TypeGuard[TraceObjective]:
    """Whether calling it is to process the rows up to `stop` and to judge the trace, and nothing else."""
    return isinstance(objective, TraceObjective) and type(objective).__call__ is TraceObjective.__call__


@dataclass(frozen=True)
class BenefitAUC(TraceObjective):
    """The area under benefit against false alarms on rows [start, stop); see `limpet.metrics.benefit_auc`.

    change_points: those of the stream, unless given.
    """

    tolerance: float
    start: int | None = None
    stop: int | None = None
    change_points: Sequence[int] | None = None

    maximize: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("tolerance", self.tolerance)
        _check_span(self.start, self.stop)
        if self.change_points is not None:
            check_change_points(self.change_points)

    def evaluate_trace(self, trace: Trace, stream: Stream) -> float:
        """Scores the change score of a learner that has had the rows up to `stop`."""
        _check_rows(stream, self.start, self.stop)
        changes = stream.change_points if self.change_points is None else self.change_points
        if isinstance(changes, dict):
            raise InvalidInputError(
                f"{stream.name} has changes by several annotators: BenefitAUC(change_points=…) says which"
            )
        if isinstance(changes, list) and not changes:
            raise InvalidInputError(f"{stream.name} tells no changes: Stream(y, change_points=[…]) says where they are")
        return benefit_auc(trace.change_score, changes, self.tolerance, self.start, self.stop)


@dataclass(frozen=True)
class MeanError:
    """One of the paper's mean squared errors, by default S_eval, of the time before the stream is really used.

    segment: S_eval, S_bc, S_ac or S_tot; see `limpet.metrics.segment_mse`. The stream must tell its true means, and
    its first change must come after row 1000.
    """

    segment: str = "S_eval"

    maximize: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.segment not in SegmentMSE._fields:
            raise InvalidInputError(f"segment: expected one of {', '.join(SegmentMSE._fields)}, got {self.segment!r}")

    def __call__(self, learner: StochasticApproximation, stream: Stream) -> float:
        """Runs the learner over the stream and compares its means with the true ones."""
        changes = stream.change_points
        if stream.means is None:
            raise InvalidInputError(
                f"{stream.name} does not tell its true means, which MeanError needs; "
                "BenefitAUC needs change points, LabelAUC labels"
            )
        if not isinstance(changes, list) or not changes or not TAU < changes[0] < len(stream) - 1:
            raise InvalidInputError(
                f"{stream.name}: MeanError expected a change after row {TAU} and at least two rows from it on, "
                f"got change_points {changes} in {len(stream)} rows"
            )
        means = learner.process(stream.y, record="means").means
        if means.shape[1] != stream.means.shape[1]:
            raise InvalidInputError(
                f"{stream.name} has {stream.means.shape[1]} components, the learner {means.shape[1]}: "
                f"MeanError needs as many, n_components={stream.means.shape[1]}"
            )
        error: float = getattr(segment_mse(means, stream.means, changes[0], TAU), self.segment)
        return error


@dataclass(frozen=True)
class LabelAUC(TraceObjective):
    """The area under the ROC curve of the score against the stream's labels, on rows [start, stop)."""

    start: int | None = None
    stop: int | None = None

    maximize: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_span(self.start, self.stop)

    def evaluate_trace(self, trace: Trace, stream: Stream) -> float:
        """Ranks the labelled rows by the score of a learner that has had the rows up to `stop`."""
        if stream.labels is None:
            raise InvalidInputError(f"{stream.name} has no labels: Stream(y, labels=…) marks the anomalies with 1")
        _check_rows(stream, self.start, None)
        span = slice(self.start, self.stop)
        return roc_auc(trace.score[span], stream.labels[span])


def _check_span(start: int | None, stop: int | None) -> None:
    """Refuses what are no rows [start, stop)."""
    first = 0 if start is None else check_int("start", start, 0)
    if stop is not None and check_int("stop", stop, 0) <= first:
        raise InvalidInputError(f"start, stop: expected start < stop, got {start!r}, {stop!r}")


def _check_rows(stream: Stream, start: int | None, stop: int | None) -> None:
    """Refuses a stream that has not all the rows [start, stop)."""
    if (start or 0) >= len(stream) or (stop or 0) > len(stream):
        raise InvalidInputError(
            f"{stream.name}: expected rows from start to stop within its {len(stream)}, got start={start}, stop={stop}"
        )
