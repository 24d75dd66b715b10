"""Base classes of the estimators: validate rows, learn unlabelled ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.core.state import Vector
from limpet.learners import Learner, Trace
from limpet.learners.input import LabeledArray

LearnerT = TypeVar("LearnerT", bound=Learner)
VALIDATION_OPTIONS = {"dtype": "float64", "order": "C", "ensure_all_finite": "allow-nan"}


def with_updated_params(learner: LearnerT, template: LearnerT) -> LearnerT:
    """Return the learner with the parameters of a template."""
    new_params, old_params = template.get_params(), learner.get_params()
    changed = {name: value for name, value in new_params.items() if value != old_params[name]}
    return learner.with_params(**changed) if changed else learner


class RowEstimator(BaseEstimator):  # type: ignore[misc]
    """Base class of estimators of rows, with NaN for missing values."""

    def _validate_rows(self, X: Any, reset: bool = False) -> Vector:
        return np.asarray(validate_data(self, X, reset=reset, **VALIDATION_OPTIONS))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class StreamEstimator(RowEstimator, ABC):
    """Base class of estimators that learn rows in order.

    `fit` starts from scratch, `partial_fit` continues. `learner_` is the learner; `alarms_` are the alarms of the last
    call.
    """

    learner_: Learner

    @abstractmethod
    def _new_learner(self) -> Learner:
        """Return a learner with the parameters of this estimator, which are checked."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn rows from scratch; y is ignored."""
        return self._learn(self._new_learner(), self._validate_rows(X, reset=True))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn more rows; y is ignored."""
        learner = self._new_learner()
        if not hasattr(self, "learner_"):
            return self._learn(learner, self._validate_rows(X, reset=True))
        return self._learn(with_updated_params(self.learner_, learner), self._validate_rows(X))

    def _learn(self, learner: Learner, rows: Vector) -> Self:
        alarms = learner.process(self._label_rows(rows)).alarms
        self.learner_, self.alarms_ = learner, alarms
        return self

    def _score_only(self, X: Any, far: float | None = None) -> Trace:
        """Score rows independently at this false-alarm rate, without learning."""
        check_is_fitted(self)
        return self._score_validated(self._validate_rows(X), far)

    def _score_validated(self, rows: Vector, far: float | None) -> Trace:
        clipped = np.clip(rows, -MAX_ABS_VALUE, MAX_ABS_VALUE)  # larger values are invalid for the learner
        trace: Trace = self.learner_.score_only(self._label_rows(clipped), far=far, independent=True)
        return trace

    def _label_rows(self, rows: Vector) -> Vector | LabeledArray:
        names = getattr(self, "feature_names_in_", None)
        return rows if names is None else LabeledArray(rows, tuple(map(str, names)))
