"""A Gaussian mixture that learns online, with scikit-learn's conventions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from limpet.adapters.sklearn._base import StreamEstimator
from limpet.core.state import Vector
from limpet.learners import SRA, Detector, Learner


def log_densities(rows: Vector, weights: Vector, means: Vector, covariances: Vector) -> Vector:
    """Return log w_k + log N(x, μ_k, Σ_k) of the present coordinates, (n, K).

    >>> estimate = np.ones(1), np.zeros((1, 2)), np.eye(2)[None]
    >>> log_densities(np.array([[0.0, 0.0], [0.0, np.nan]]), *estimate).round(4)
    array([[-1.8379],
           [-0.9189]])
    """
    result = np.tile(np.log(weights), (len(rows), 1))
    present = ~np.isnan(rows)
    for pattern in np.unique(present, axis=0):
        if not pattern.any():
            continue
        has_pattern = (present == pattern).all(axis=1)
        for k, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
            factor = np.linalg.cholesky(covariance[np.ix_(pattern, pattern)])
            whitened = np.linalg.solve(factor, (rows[has_pattern][:, pattern] - mean[pattern]).T)
            log_normalizer = np.log(np.diag(factor)).sum() + 0.5 * pattern.sum() * math.log(2.0 * math.pi)
            result[has_pattern, k] -= 0.5 * (whitened * whitened).sum(axis=0) + log_normalizer
    return result


def log_sum_exp(logs: Vector) -> Vector:
    """Return log Σ_k exp of each row."""
    max_logs = logs.max(axis=1, keepdims=True)
    return np.asarray((max_logs + np.log(np.exp(logs - max_logs).sum(axis=1, keepdims=True)))[:, 0])


class OnlineGaussianMixture(DensityMixin, StreamEstimator):  # type: ignore[misc]
    """A Gaussian mixture with `partial_fit` that rejects outliers.

    The methods are those of scikit-learn's GaussianMixture. Rows are learned in order.

    Parameters
    ----------
    n_components : int
        K, the number of components.
    covariance : {"full", "diagonal"}
        Form of the covariance matrices.
    gamma, rho : float, optional
        Threshold and step size of `limpet.SRA`. Default: `limpet.Detector`, which adapts both.

    Attributes
    ----------
    weights_, means_, covariances_ : array
        The estimate, of shape (K,), (K, d) and (K, d, d).
    learner_ : Learner
        The learner.
    alarms_ : list of Alarm
        The alarms of the last `fit` or `partial_fit`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(rng.choice([-4.0, 4.0], (3000, 1)), 1.0)
    >>> X[::50] = 1000.0
    >>> mixture = OnlineGaussianMixture(n_components=2)
    >>> for part in np.array_split(X, 10):
    ...     mixture = mixture.partial_fit(part)
    >>> np.sort(mixture.means_, axis=0).round(0)
    array([[-4.],
           [ 4.]])
    """

    def __init__(
        self, n_components: int = 1, *, covariance: str = "full", gamma: float | None = None, rho: float | None = None
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.gamma = gamma
        self.rho = rho

    def _new_learner(self) -> Learner:
        if self.gamma is None and self.rho is None:
            return Detector(self.n_components, covariance=self.covariance)
        return SRA(self.n_components, self.gamma, self.rho, covariance=self.covariance)

    @property
    def weights_(self) -> Vector:
        """Weights of the components, of shape (K,)."""
        return np.asarray(self.learner_.weights)

    @property
    def means_(self) -> Vector:
        """Means of the components, of shape (K, d)."""
        return np.asarray(self.learner_.means)

    @property
    def covariances_(self) -> Vector:
        """Covariances of the components, of shape (K, d, d)."""
        return np.asarray(self.learner_.covariances)

    def _log_densities(self, X: Any) -> Vector:
        check_is_fitted(self)
        return log_densities(self._validate_rows(X), self.weights_, self.means_, self.covariances_)

    def score_samples(self, X: Any) -> Vector:
        """Return log f of each row over its present coordinates."""
        return log_sum_exp(self._log_densities(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of log f over the rows."""
        return float(self.score_samples(X).mean())

    def predict_proba(self, X: Any) -> Vector:
        """Return the probability of each component for each row, of shape (n, K)."""
        logs = self._log_densities(X)
        return np.asarray(np.exp(logs - log_sum_exp(logs)[:, None]))

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the most likely component of each row."""
        return np.asarray(self._log_densities(X).argmax(axis=1))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Vector, npt.NDArray[np.int64]]:
        """Draw rows from the estimate; return them and their components."""
        check_is_fitted(self)
        rng = check_random_state(random_state)
        labels = rng.choice(len(self.weights_), n_samples, p=self.weights_)
        factors = np.linalg.cholesky(self.covariances_)
        noise = rng.standard_normal((n_samples, self.means_.shape[1]))
        return self.means_[labels] + np.einsum("nij,nj->ni", factors[labels], noise), labels
