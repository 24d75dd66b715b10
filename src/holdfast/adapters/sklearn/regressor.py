"""Robust linear regression by scikit-learn's rules."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.adapters.sklearn.streaming import with_updated_params
from holdfast.adapters.sklearn.supervised import VALIDATION_OPTIONS, SupervisedEstimator, mean_score
from holdfast.learners import SRA
from holdfast.models import LinearRegression
from holdfast.scheme.state import Vector


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
