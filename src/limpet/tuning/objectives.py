"""Objectives of tuning: the paper's criteria, and the ranking of anomalies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from limpet._format import join_names
from limpet._validation import check_int, check_positive, invalid_param_error
from limpet.datasets import Stream
from limpet.exceptions import InvalidInputError
from limpet.learners import Learner, Trace
from limpet.metrics import SegmentMSE, benefit_auc, roc_auc, segment_mse
from limpet.metrics._validation import check_change_points
from limpet.metrics.mixture_error import PAPER_TAU


class Objective(Protocol):
    """Protocol of objectives: evaluate a new learner on a stream.

    Attributes
    ----------
    maximize : bool
        Whether larger values are better.
    """

    maximize: ClassVar[bool]

    def __call__(self, learner: Learner, stream: Stream) -> float:
        """Run the learner over the stream and return its value."""


class TraceObjective(ABC):
    """Base class of objectives that need only the trace of the rows before `stop`.

    A subclass defines `maximize`, `evaluate_trace` and, optionally, `stop`; `tune` may then run many learners at
    once. If it overrides `__call__`, learners are evaluated one after the other.
    """

    maximize: ClassVar[bool]
    stop: int | None = None

    def __call__(self, learner: Learner, stream: Stream) -> float:
        """Run the learner over the rows before `stop` and evaluate its trace."""
        return self.evaluate_trace(learner.process(stream.y[: self.stop]), stream)

    @abstractmethod
    def evaluate_trace(self, trace: Trace, stream: Stream) -> float:
        """Return the value of a learner with this trace."""


@dataclass(frozen=True)
class BenefitAUC(TraceObjective):
    """Area under benefit against false alarms; see `limpet.metrics.benefit_auc`.

    Parameters
    ----------
    tolerance : float
        Rows after a change point in which an alarm has a benefit.
    start, stop : int, optional
        The rows [start, stop) to evaluate. Default: all.
    change_points : sequence of int, optional
        Default: those of the stream.
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
        """Return the area for the change scores of a trace."""
        _check_rows(stream, self.start, self.stop)
        changes = stream.change_points if self.change_points is None else self.change_points
        if isinstance(changes, dict):
            advice = "Select those of one with BenefitAUC(change_points=…)."
            raise InvalidInputError(f"{stream.name}: change_points by several annotators. {advice}")
        if isinstance(changes, list) and not changes:
            raise InvalidInputError(f"{stream.name}: no change points. Use Stream(y, change_points=[…]).")
        return benefit_auc(trace.change_score, changes, self.tolerance, self.start, self.stop)


@dataclass(frozen=True)
class MeanError:
    """One of the paper's mean squared errors of the means.

    The stream must have its true means, and its first change point after row 1000.

    Parameters
    ----------
    segment : {"S_eval", "S_bc", "S_ac", "S_tot"}
        See `limpet.metrics.segment_mse`.
    """

    segment: str = "S_eval"

    maximize: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.segment not in SegmentMSE._fields:
            raise invalid_param_error("segment", f"must be {join_names(SegmentMSE._fields, 'or')}", self.segment)

    def __call__(self, learner: Learner, stream: Stream) -> float:
        """Run the learner over the stream and return the error of its means."""
        changes = stream.change_points
        if stream.means is None:
            advice = "BenefitAUC requires change points, LabelAUC labels."
            raise InvalidInputError(f"{stream.name}: MeanError requires the true means, which are missing. {advice}")
        if not isinstance(changes, list) or not changes or not PAPER_TAU < changes[0] < len(stream) - 1:
            raise InvalidInputError(
                f"{stream.name}: MeanError requires a change point after row {PAPER_TAU} and two rows from it on, "
                f"got change_points {changes} in {len(stream)} rows."
            )
        means = learner.process(stream.y, record="means").means
        if means.shape[1] != stream.means.shape[1]:
            constraint = f"must be {stream.means.shape[1]}, as {stream.name} has for MeanError"
            raise InvalidInputError(f"n_components: {constraint}, got {means.shape[1]}.")
        return float(getattr(segment_mse(means, stream.means, changes[0]), self.segment))


@dataclass(frozen=True)
class LabelAUC(TraceObjective):
    """Area under the ROC curve of the scores against the stream's labels.

    Parameters
    ----------
    start, stop : int, optional
        The rows [start, stop) to evaluate. Default: all.
    """

    start: int | None = None
    stop: int | None = None

    maximize: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_span(self.start, self.stop)

    def evaluate_trace(self, trace: Trace, stream: Stream) -> float:
        """Return the area for the scores of a trace."""
        if stream.labels is None:
            raise InvalidInputError(f"{stream.name}: no labels. Mark the anomalies with 1 in Stream(y, labels=…).")
        _check_rows(stream, self.start, None)
        span = slice(self.start, self.stop)
        return roc_auc(trace.score[span], stream.labels[span])


def _check_span(start: int | None, stop: int | None) -> None:
    first = 0 if start is None else check_int("start", start, 0)
    if stop is not None and check_int("stop", stop, 0) <= first:
        raise InvalidInputError(f"start, stop: must be start < stop, got {start!r}, {stop!r}.")


def _check_rows(stream: Stream, start: int | None, stop: int | None) -> None:
    if (start or 0) >= len(stream) or (stop or 0) > len(stream):
        constraint = f"must be within the {len(stream)} rows of {stream.name}"
        raise InvalidInputError(f"start, stop: {constraint}, got start={start}, stop={stop}.")
