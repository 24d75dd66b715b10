"""What the estimators of unlabelled rows share: how rows are read, and how they are learnt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.core.state import Vector
from limpet.learners import SRA, Trace
from limpet.learners.input import LabelledArray


def with_updated_params(learner: SRA, template: SRA) -> SRA:
    """The learner, with the settings that are wanted if `set_params` has changed them since."""
    new_params, old_params = template.get_params(), learner.get_params()
    changed = {name: value for name, value in new_params.items() if value != old_params[name]}
    return learner.with_params(**changed) if changed else learner


class StreamEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the estimators that learn rows one after another, in the order they come.

    `fit` begins anew, `partial_fit` goes on. NaN marks what is missing. What learns is `learner_`, one of limpet's;
    `alarms_` are those that the last call raised.
    """

    learner_: SRA

    @abstractmethod
    def _new_learner(self) -> SRA:
        """With the settings of this estimator, which are checked."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learns the rows, forgetting all that was learnt before; y is not used."""
        return self._learn(self._new_learner(), self._validate_rows(X, reset=True))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learns more rows; y is not used."""
        learner = self._new_learner()
        if not hasattr(self, "learner_"):
            return self._learn(learner, self._validate_rows(X, reset=True))
        return self._learn(with_updated_params(self.learner_, learner), self._validate_rows(X, reset=False))

    def _learn(self, learner: SRA, rows: Vector) -> Self:
        alarms = learner.process(self._label_rows(rows)).alarms
        self.learner_, self.alarms_ = learner, alarms
        return self

    def _score_only(self, X: Any, far: float | None = None) -> Trace:
        """What the learner makes of each row by itself, at this rate of false alarms; it learns nothing."""
        check_is_fitted(self)
        return self._score_validated(self._validate_rows(X, reset=False), far)

    def _score_validated(self, rows: Vector, far: float | None) -> Trace:
        clipped = np.clip(rows, -MAX_ABS_VALUE, MAX_ABS_VALUE)  # what is larger is as far out as can be
        trace: Trace = self.learner_.score_only(self._label_rows(clipped), far=far, independent=True)
        return trace

    def _validate_rows(self, X: Any, reset: bool) -> Vector:
        rows: Vector = validate_data(
            self, X, reset=reset, dtype="float64", order="C", ensure_all_finite="allow-nan", copy=None
        )
        return rows

    def _label_rows(self, rows: Vector) -> Vector | LabelledArray:
        names = getattr(self, "feature_names_in_", None)
        return rows if names is None else LabelledArray(rows, tuple(map(str, names)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
