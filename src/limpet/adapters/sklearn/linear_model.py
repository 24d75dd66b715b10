"""Robust linear regression by scikit-learn's rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from limpet._validation import check_int, check_positive
from limpet.adapters.sklearn._base import with_updated_params
from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError
from limpet.learners import SRA, Trace
from limpet.models import LinearRegression, LogisticRegression
from limpet.models.base import Model

# What the estimators of pairs share: settings, how pairs are read, and how often they are gone through.

N_INIT_ROWS = 50  # rows that the units of features and target are taken from: with ten they are rough
MAX_STALLED_PASSES = 3  # passes in a row that are no better, after which `fit` stops
VALIDATION_OPTIONS = {"dtype": "float64", "order": "C", "ensure_all_finite": "allow-nan"}


def mean_score(trace: Trace) -> float:
    """Of the rows that were not dropped."""
    scores = trace.score[~trace.rejected & ~np.isnan(trace.score)]
    return float(scores.mean()) if len(scores) else math.inf


class SupervisedEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that learn from pairs by robust stochastic gradient descent."""

    def __init__(
        self,
        *,
        rho: float = 0.01,
        gamma: float | None = None,
        far: float = 1e-4,
        l2: float = 0.0,
        patience: int = 50,
        max_iter: int = 100,
        tol: float = 1e-3,
    ) -> None:
        self.rho = rho
        self.gamma = gamma
        self.far = far
        self.l2 = l2
        self.patience = patience
        self.max_iter = max_iter
        self.tol = tol

    def _make_learner(self, model: type[Model]) -> SRA:
        return SRA(
            model=model(l2=self.l2),  # type: ignore[call-arg]
            rho=self.rho,
            gamma=self.gamma,
            far=self.far,
            patience=self.patience,
            n_init=N_INIT_ROWS,
        )

    def _fit_until_converged(self, learn: Callable[[], float]) -> int:
        """Goes through the rows until it gets no better at them, by more than `tol`; how often it went.

        learn: goes through the rows once; the mean score, −log f."""
        max_passes, tol = check_int("max_iter", self.max_iter, 1), check_positive("tol", self.tol, allow_zero=True)
        best, n_stalled = math.inf, 0
        for n_passes in range(1, max_passes + 1):
            score = learn()
            n_stalled = 0 if score < best - tol else n_stalled + 1
            best = min(best, score)
            if n_stalled == MAX_STALLED_PASSES:
                return n_passes
        return max_passes

    def _validate_features(self, X: Any) -> Vector:
        rows: Vector = validate_data(self, X, reset=False, **VALIDATION_OPTIONS)
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


# Robust logistic regression by scikit-learn's rules.

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


class RobustRegressor(RegressorMixin, SupervisedEstimator):  # type: ignore[misc]
    """Linear regression by stochastic gradient descent that drops corrupted targets and follows changes.

    A pair whose residual is more than γ standard deviations of the residuals is not learnt from. Features are
    standardised by their first rows, so that one step size suits all units; one that is NaN is taken to be as usual.

    rho: the step size: about 1/ρ pairs are remembered. gamma: the threshold, in standard deviations of the residual;
        by default that which a share `far` of clean pairs exceeds, 3.9; `math.inf` switches it off.
    l2: penalty on the coefficients, in standardised units.
    patience: pairs dropped in a row after which the threshold is lifted for fifty, so that no change is too large; more
        corrupted targets than that in a row are learnt from.
    max_iter, tol: `fit` goes through the rows until three times in a row they are no less surprising, by more than
        `tol`, or so often. `partial_fit` goes through them once.

    coef_ (p,), intercept_, n_iter_, learner_: the learner, with `n_rejected` and all else.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> y = X @ (2.0, -1.0) + 3.0 + rng.normal(0.0, 0.1, 5000)
    >>> y[::20] += 100.0
    >>> model = RobustRegressor().fit(X, y)
    >>> model.coef_.round(1), round(model.intercept_, 1)
    (array([ 2., -1.]), 3.0)
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Learns the pairs, forgetting all that was learnt before."""
        learner = self._make_learner(LinearRegression)
        rows, targets = self._validate_pairs(X, y, reset=True)
        self.n_iter_ = self._fit_until_converged(lambda: mean_score(learner.process(rows, targets)))
        self.learner_: SRA = learner
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learns more pairs, each once."""
        learner = self._make_learner(LinearRegression)
        first = not hasattr(self, "learner_")
        rows, targets = self._validate_pairs(X, y, reset=first)
        self.learner_ = learner if first else with_updated_params(self.learner_, learner)
        self.learner_.process(rows, targets)
        self.n_iter_ = 1
        return self

    def _validate_pairs(self, X: Any, y: Any, reset: bool) -> tuple[Vector, Vector]:
        rows, targets = validate_data(self, X, y, reset=reset, y_numeric=True, **VALIDATION_OPTIONS)
        return rows, np.asarray(targets, np.float64)

    @property
    def coef_(self) -> Vector:
        """(p,), in the units of the data."""
        return np.asarray(self.learner_.coef)

    @property
    def intercept_(self) -> float:
        """In the units of the data."""
        return float(self.learner_.intercept)

    def predict(self, X: Any) -> Vector:
        """The expected target of each row."""
        check_is_fitted(self)
        return np.asarray(self.learner_.predict(self._validate_features(X)))
