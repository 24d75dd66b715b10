"""Robust logistic regression by scikit-learn's rules."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from holdfast.adapters.sklearn.streaming import with_updated_params
from holdfast.adapters.sklearn.supervised import VALIDATION_OPTIONS, SupervisedEstimator, mean_score
from holdfast.errors import InvalidInputError
from holdfast.learners import SRA
from holdfast.models import LogisticRegression
from holdfast.scheme.state import Vector

MIN_PROBABILITY = 1e-15


class RobustClassifier(ClassifierMixin, SupervisedEstimator):  # type: ignore[misc]
    """Logistic regression by stochastic gradient descent that drops incredible labels and follows changes.

    A label to which the model gives less than the probability `far` is not learnt from. More than two classes are each
    held against the rest. Give `partial_fit` all `classes` with the first rows.

    far: the least probability of a label that is believed. The other settings are those of `RobustRegressor`; gamma,
        instead of `far`, is in terms of the Pearson residual, √((1 − p)/p) for a label of probability p.

    classes_, coef_ (1 or K, p), intercept_ (1 or K,), n_iter_, learners_: one a class, or one for two classes.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> y = np.where(X[:, 0] - X[:, 1] > 0.0, "up", "down")
    >>> model = RobustClassifier().fit(X, y)
    >>> model.predict([[2.0, -1.0], [-2.0, 1.0]])
    array(['up', 'down'], dtype='<U4')
    """

    def __init__(
        self,
        *,
        rho: float = 0.01,
        gamma: float | None = None,
        far: float = 0.02,
        l2: float = 0.0,
        patience: int = 50,
        max_iter: int = 100,
        tol: float = 1e-3,
    ) -> None:
        super().__init__(rho=rho, gamma=gamma, far=far, l2=l2, patience=patience, max_iter=max_iter, tol=tol)

    def fit(self, X: Any, y: Any) -> Self:
        """Learns the pairs, forgetting all that was learnt before."""
        rows, labels = validate_data(self, X, y, **VALIDATION_OPTIONS)
        check_classification_targets(labels)
        classes = np.unique(labels)
        learners = self._make_learners(classes)
        self.n_iter_ = self._fit_until_converged(lambda: self._learn(learners, classes, rows, labels))
        self.classes_, self.learners_ = classes, learners
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learns more pairs, each once; the first call needs all classes that there are."""
        first = not hasattr(self, "learners_")
        if first and classes is None:
            raise InvalidInputError("the first call of partial_fit needs classes: all labels that there will be")
        all_classes = np.unique(column_or_1d(classes)) if first else self.classes_
        if classes is not None and not np.array_equal(np.unique(classes), all_classes):
            raise InvalidInputError(f"expected the classes {self.classes_} of the first call, got {classes}")
        rows, labels = validate_data(self, X, y, reset=first, **VALIDATION_OPTIONS)
        check_classification_targets(labels)
        unknown = np.setdiff1d(labels, all_classes)
        if len(unknown):
            raise InvalidInputError(f"unknown class {unknown.tolist()[0]!r}; the classes are {all_classes}")
        learners = self._make_learners(all_classes)
        if not first:
            learners = [
                with_updated_params(previous, learner)
                for previous, learner in zip(self.learners_, learners, strict=True)
            ]
        self._learn(learners, all_classes, rows, labels)
        self.classes_, self.learners_, self.n_iter_ = all_classes, learners, 1
        return self

    def _make_learners(self, classes: npt.NDArray[Any]) -> list[SRA]:
        """One a class; for two classes one, of the second."""
        return [
            self._make_learner(LogisticRegression)
            for _ in range(len(classes) if len(classes) > 2 else len(classes) - 1)
        ]

    @staticmethod
    def _learn(learners: list[SRA], classes: npt.NDArray[Any], rows: Vector, labels: npt.NDArray[Any]) -> float:
        """Goes through the pairs once; their mean score."""
        pairs = zip(learners, classes[len(classes) - len(learners) :], strict=True)
        scores = [mean_score(learner.process(rows, (labels == label).astype(np.float64))) for learner, label in pairs]
        return float(np.sum(scores))

    @property
    def coef_(self) -> Vector:
        """(1, p) for two classes, else (K, p)."""
        return np.array([learner.coef for learner in self.learners_])

    @property
    def intercept_(self) -> Vector:
        """(1,) for two classes, else (K,)."""
        return np.array([learner.intercept for learner in self.learners_])

    def _class_probabilities(self, X: Any) -> Vector:
        """(n, learners): how likely the class of each learner is, by itself."""
        check_is_fitted(self)
        rows = self._validate_features(X)
        probabilities = [learner.predict(rows) for learner in self.learners_]
        return np.column_stack(probabilities) if probabilities else np.empty((len(rows), 0))

    def predict_proba(self, X: Any) -> Vector:
        """(n, K): how likely each class is, for each row."""
        probabilities = self._class_probabilities(X)
        if len(self.classes_) <= 2:
            return np.column_stack([1.0 - probabilities.sum(axis=1), probabilities])
        total = probabilities.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0.0, probabilities, 1.0) / np.where(total > 0.0, total, len(self.classes_)))

    def decision_function(self, X: Any) -> Vector:
        """The logarithm of the odds: (n,) of the second class of two, else (n, K)."""
        probabilities = np.clip(self._class_probabilities(X), MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
        odds = np.log(probabilities / (1.0 - probabilities))
        return np.asarray(odds[:, 0] if len(self.classes_) == 2 else odds)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most likely class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])
