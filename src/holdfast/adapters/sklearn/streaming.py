"""What the estimators of unlabelled rows share: how rows are read, and how they are learnt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.learners import SRA, Trace
from holdfast.learners.reading import NamedRows
from holdfast.scheme.state import Vector


class StreamEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the estimators that learn rows one after another, in the order they come.

    `fit` begins anew, `partial_fit` goes on. NaN marks what is missing. What learns is `learner_`, one of holdfast's;
    `alarms_` are those that the last call raised.
    """

    learner_: SRA

    @abstractmethod
    def _new_learner(self) -> SRA:
        """With the settings of this estimator."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learns the rows, forgetting all that was learnt before; y is not used."""
        rows = self._rows(X, reset=True)
        self.learner_ = self._new_learner()
        return self._learn(rows)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learns more rows; y is not used."""
        first = not hasattr(self, "learner_")
        rows = self._rows(X, reset=first)
        if first:
            self.learner_ = self._new_learner()
        return self._learn(rows)

    def _learn(self, rows: Vector) -> Self:
        self.alarms_ = self.learner_.process(self._named(rows)).alarms
        return self

    def _assessed(self, X: Any, far: float | None = None) -> Trace:
        """What the learner makes of each row, at this rate of false alarms; it learns nothing."""
        check_is_fitted(self)
        trace: Trace = self.learner_.assess(self._named(self._rows(X, reset=False)), far=far)
        return trace

    def _rows(self, X: Any, reset: bool) -> Vector:
        rows: Vector = validate_data(
            self, X, reset=reset, dtype="float64", order="C", ensure_all_finite="allow-nan", copy=None
        )
        return rows

    def _named(self, rows: Vector) -> Vector | NamedRows:
        names = getattr(self, "feature_names_in_", None)
        return rows if names is None else NamedRows(rows, tuple(map(str, names)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
