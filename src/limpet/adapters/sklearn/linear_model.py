"""Robust linear and logistic regression with scikit-learn's conventions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from limpet._validation import check_int, check_positive
from limpet.adapters.sklearn._base import VALIDATION_OPTIONS, RowEstimator, with_updated_params
from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError
from limpet.learners import SRA, Trace
from limpet.models import LinearRegression, LogisticRegression
from limpet.models.base import Model

N_INIT_ROWS = 50  # for the units of features and target; with ten they are rough
MAX_STALLED_PASSES = 3  # consecutive passes without improvement after which `fit` stops
MIN_PROBABILITY = 1e-15  # smaller ones are clipped in log odds


def mean_score(trace: Trace) -> float:
    """Return the mean score of the rows that were not rejected."""
    scores = trace.score[~trace.rejected & ~np.isnan(trace.score)]
    return float(scores.mean()) if len(scores) else math.inf


class SupervisedEstimator(RowEstimator):
    """Base class of estimators that learn from pairs (x, y)."""

    def __init__(
        self,
        *,
        rho: float = 0.01,
        gamma: float | None = None,
        reject_rate: float = 1e-4,
        l2: float = 0.0,
        patience: int = 50,
        max_iter: int = 100,
        tol: float = 1e-3,
    ) -> None:
        self.rho = rho
        self.gamma = gamma
        self.reject_rate = reject_rate
        self.l2 = l2
        self.patience = patience
        self.max_iter = max_iter
        self.tol = tol

    def _new_learner(self, model: Callable[..., Model]) -> SRA:
        settings: dict[str, Any] = {name: getattr(self, name) for name in ("rho", "gamma", "reject_rate", "patience")}
        return SRA(model=model(l2=self.l2), n_init=N_INIT_ROWS, **settings)

    def _fit_until_converged(self, learn: Callable[[], float]) -> int:
        """Call `learn` until its score improves by at most `tol`; count calls."""
        max_passes, tol = check_int("max_iter", self.max_iter, 1), check_positive("tol", self.tol, allow_zero=True)
        best, n_stalled = math.inf, 0
        for n_passes in range(1, max_passes + 1):
            score = learn()
            n_stalled = 0 if score < best - tol else n_stalled + 1
            best = min(best, score)
            if n_stalled == MAX_STALLED_PASSES:
                return n_passes
        return max_passes


class RobustClassifier(ClassifierMixin, SupervisedEstimator):  # type: ignore[misc]
    """Logistic regression that rejects implausible labels and follows changes.

    It learns by stochastic gradient descent. Labels with a probability below `reject_rate` are rejected. For more than
    two classes, each is compared with the rest. The first call of `partial_fit` needs all `classes`.

    Parameters
    ----------
    reject_rate : float
        Labels with a smaller probability are rejected.
    gamma : float, optional
        Instead of `reject_rate`, a threshold of the Pearson residual, √((1 − p)/p) for a label of probability p.
    rho, l2, patience, max_iter, tol
        As in `RobustRegressor`.

    Attributes
    ----------
    classes_ : array
    coef_, intercept_ : array
        Of shape (1, p) and (1,) for two classes, else (K, p) and (K,).
    n_iter_ : int
        Number of passes.
    learners_ : list of SRA
        One per class; one for two classes.

    Examples
    --------
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
        reject_rate: float = 0.02,
        l2: float = 0.0,
        patience: int = 50,
        max_iter: int = 100,
        tol: float = 1e-3,
    ) -> None:
        super().__init__(
            rho=rho, gamma=gamma, reject_rate=reject_rate, l2=l2, patience=patience, max_iter=max_iter, tol=tol
        )

    def fit(self, X: Any, y: Any) -> Self:
        """Learn pairs from scratch, in several passes."""
        rows, labels = validate_data(self, X, y, **VALIDATION_OPTIONS)
        check_classification_targets(labels)
        classes = np.unique(labels)
        learners = self._new_learners(classes)
        self.n_iter_ = self._fit_until_converged(lambda: self._learn(learners, classes, rows, labels))
        self.classes_, self.learners_ = classes, learners
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn more pairs in one pass; the first call needs all classes."""
        first = not hasattr(self, "learners_")
        if first and classes is None:
            raise InvalidInputError("classes: required in the first call of partial_fit, got None. Pass all labels.")
        all_classes = np.unique(column_or_1d(classes)) if first else self.classes_
        if classes is not None and not np.array_equal(np.unique(classes), all_classes):
            raise InvalidInputError(f"classes: must be {self.classes_}, as in the first call, got {classes}.")
        rows, labels = validate_data(self, X, y, reset=first, **VALIDATION_OPTIONS)
        check_classification_targets(labels)
        if len(unknown := np.setdiff1d(labels, all_classes)):
            raise InvalidInputError(f"y: must be one of the classes {all_classes}, got {unknown.tolist()[0]!r}.")
        learners = self._new_learners(all_classes)
        if not first:
            learners = list(map(with_updated_params, self.learners_, learners))
        self._learn(learners, all_classes, rows, labels)
        self.classes_, self.learners_, self.n_iter_ = all_classes, learners, 1
        return self

    def _new_learners(self, classes: npt.NDArray[Any]) -> list[SRA]:
        """Return a learner per class; for two classes one, of the second."""
        n_learners = len(classes) if len(classes) > 2 else len(classes) - 1
        return [self._new_learner(LogisticRegression) for _ in range(n_learners)]

    @staticmethod
    def _learn(learners: list[SRA], classes: npt.NDArray[Any], rows: Vector, labels: npt.NDArray[Any]) -> float:
        """Learn the pairs once, and return their mean score."""
        pairs = zip(learners, classes[len(classes) - len(learners) :], strict=True)
        scores = [mean_score(learner.process(rows, (labels == label).astype(np.float64))) for learner, label in pairs]
        return float(np.sum(scores))

    @property
    def coef_(self) -> Vector:
        """Coefficients, of shape (1, p) for two classes, else (K, p)."""
        return np.array([learner.coef for learner in self.learners_])

    @property
    def intercept_(self) -> Vector:
        """Intercepts, of shape (1,) for two classes, else (K,)."""
        return np.array([learner.intercept for learner in self.learners_])

    def _class_probabilities(self, X: Any) -> Vector:
        """Return the probability of the class of each learner against the rest."""
        check_is_fitted(self)
        rows = self._validate_rows(X)
        probabilities = [learner.predict(rows) for learner in self.learners_]
        return np.column_stack(probabilities) if probabilities else np.empty((len(rows), 0))

    def predict_proba(self, X: Any) -> Vector:
        """Return the probability of each class for each row, of shape (n, K)."""
        probabilities = self._class_probabilities(X)
        if len(self.classes_) <= 2:
            return np.column_stack([1.0 - probabilities.sum(axis=1), probabilities])
        total = probabilities.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0.0, probabilities, 1.0) / np.where(total > 0.0, total, len(self.classes_)))

    def decision_function(self, X: Any) -> Vector:
        """Return the log odds, of shape (n,) for the second of two classes, else (n, K)."""
        probabilities = np.clip(self._class_probabilities(X), MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
        odds = np.log(probabilities / (1.0 - probabilities))
        return np.asarray(odds[:, 0] if len(self.classes_) == 2 else odds)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most likely class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])


class RobustRegressor(RegressorMixin, SupervisedEstimator):  # type: ignore[misc]
    """Linear regression that rejects corrupted targets and follows changes.

    It learns by stochastic gradient descent. A pair whose residual exceeds γ standard deviations of the residuals is
    rejected. Features are standardised by the first rows, so that one step size suits all units; a missing feature
    (NaN) is imputed by the median of the first rows.

    Parameters
    ----------
    rho : float
        The step size; the memory is about 1/ρ pairs.
    gamma : float, optional
        The threshold in standard deviations of the residual; `math.inf` rejects nothing. Default: by `reject_rate`.
    reject_rate : float
        Share of clean pairs that exceed the threshold; 1e-4 corresponds to γ = 3.9.
    l2 : float
        Penalty on the coefficients, in standardised units.
    patience : int
        Consecutive rejections after which the threshold is lifted for fifty pairs, so that any change is followed.
        Longer runs of corrupted targets are learned.
    max_iter, tol
        `fit` stops after max_iter passes, or if the mean score has not improved by more than `tol` in three passes.
        `partial_fit` makes one pass.

    Attributes
    ----------
    coef_ : array of shape (p,)
    intercept_ : float
    n_iter_ : int
        Number of passes.
    learner_ : SRA
        The learner, with `n_rejected`.

    Examples
    --------
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
        """Learn pairs from scratch, in several passes."""
        learner = self._new_learner(LinearRegression)
        rows, targets = self._validate_pairs(X, y, reset=True)
        self.n_iter_ = self._fit_until_converged(lambda: mean_score(learner.process(rows, targets)))
        self.learner_: SRA = learner
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn more pairs in one pass."""
        learner = self._new_learner(LinearRegression)
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
        """Coefficients of shape (p,), in the units of the data."""
        return np.asarray(self.learner_.coef)

    @property
    def intercept_(self) -> float:
        """Intercept, in the units of the data."""
        return float(self.learner_.intercept)

    def predict(self, X: Any) -> Vector:
        """Return the expected target of each row."""
        check_is_fitted(self)
        return np.asarray(self.learner_.predict(self._validate_rows(X)))
