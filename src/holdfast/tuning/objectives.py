"""What a setting is chosen by: the paper's two criteria, and the ranking of labelled anomalies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from holdfast.datasets import Stream
from holdfast.errors import BadInputError
from holdfast.learners import StochasticApproximation
from holdfast.metrics import benefit_auc, roc_auc, segment_mse


class Objective(Protocol):
    """A learner that has seen nothing, and a stream → how well it does; `largest` says whether more is better."""

    largest: ClassVar[bool]

    def __call__(self, learner: StochasticApproximation, stream: Stream) -> float:
        """Runs the learner over the stream and measures it."""


@dataclass(frozen=True)
class BenefitAUC:
    """The area under benefit against false alarms on rows [start, stop); see `holdfast.metrics.benefit_auc`.

    change_points: those of the stream, unless given.
    """

    tolerance: float
    start: int | None = None
    stop: int | None = None
    change_points: Sequence[int] | None = None

    largest: ClassVar[bool] = True

    def __call__(self, learner: StochasticApproximation, stream: Stream) -> float:
        """Runs the learner over the stream and scores its change score."""
        changes = stream.change_points if self.change_points is None else self.change_points
        if isinstance(changes, dict):
            raise BadInputError(
                f"{stream.name} has changes by several annotators: BenefitAUC(change_points=…) says which"
            )
        scores = learner.process(stream.y[: self.stop]).change_score
        return benefit_auc(scores, changes, self.tolerance, self.start, self.stop)


@dataclass(frozen=True)
class MeanError:
    """One of the paper's mean squared errors, by default S_eval, of the time before the stream is really used."""

    segment: str = "S_eval"

    largest: ClassVar[bool] = False

    def __call__(self, learner: StochasticApproximation, stream: Stream) -> float:
        """Runs the learner over the stream and compares its means with the true ones."""
        if stream.means is None or not isinstance(stream.change_points, list):
            raise BadInputError(f"{stream.name} does not tell its true means")
        means = learner.process(stream.y, record="means").means
        error: float = getattr(segment_mse(means, stream.means, stream.change_points[0]), self.segment)
        return error


@dataclass(frozen=True)
class LabelAUC:
    """The area under the ROC curve of the score against the stream's labels, on rows [start, stop)."""

    start: int | None = None
    stop: int | None = None

    largest: ClassVar[bool] = True

    def __call__(self, learner: StochasticApproximation, stream: Stream) -> float:
        """Runs the learner over the stream and ranks the labelled rows."""
        if stream.labels is None:
            raise BadInputError(f"{stream.name} has no labels")
        span = slice(self.start, self.stop)
        return roc_auc(learner.process(stream.y[: self.stop]).score[span], stream.labels[span])
