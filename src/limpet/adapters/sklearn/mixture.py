"""A Gaussian mixture that learns online, by scikit-learn's rules."""

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
from limpet.learners import SRA

# The density of a Gaussian mixture at rows of which some coordinates may be missing.


def log_densities(rows: Vector, weights: Vector, means: Vector, covariances: Vector) -> Vector:
    """(n, K): log w_k + log N(x; μ_k, Σ_k) over the coordinates that are there; log w_k where none is.

    >>> one = np.ones(1), np.zeros((1, 2)), np.eye(2)[None]
    >>> log_densities(np.array([[0.0, 0.0], [0.0, np.nan]]), *one).round(4)
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
    """log Σ_k exp of each row."""
    max_logs = logs.max(axis=1, keepdims=True)
    result: Vector = (max_logs + np.log(np.exp(logs - max_logs).sum(axis=1, keepdims=True)))[:, 0]
    return result


class OnlineGaussianMixture(DensityMixin, StreamEstimator):  # type: ignore[misc]
    """A Gaussian mixture learnt in one pass, with `partial_fit`: outliers are dropped, changes are followed.

    The methods are those of scikit-learn's GaussianMixture. Rows are learnt in the order they come: `limpet.SRA`
    finds its step size and its threshold by itself, unless ρ and γ are given.

    n_components: K. covariance: "full" or "diagonal". gamma, rho: threshold and step size, to set them by hand.

    weights_ (K,), means_ (K, d), covariances_ (K, d, d): the estimate. learner_: the learner. alarms_: what the last
        `fit` or `partial_fit` raised.

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
        self,
        n_components: int = 1,
        *,
        covariance: str = "full",
        gamma: float | None = None,
        rho: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.gamma = gamma
        self.rho = rho

    def _new_learner(self) -> SRA:
        return SRA(self.n_components, self.gamma, self.rho, covariance=self.covariance)

    @property
    def weights_(self) -> Vector:
        """(K,)."""
        return np.asarray(self.learner_.weights)

    @property
    def means_(self) -> Vector:
        """(K, d)."""
        return np.asarray(self.learner_.means)

    @property
    def covariances_(self) -> Vector:
        """(K, d, d)."""
        return np.asarray(self.learner_.covariances)

    def _log_densities(self, X: Any) -> Vector:
        check_is_fitted(self)
        return log_densities(self._validate_rows(X, reset=False), self.weights_, self.means_, self.covariances_)

    def score_samples(self, X: Any) -> Vector:
        """log f of each row, by the estimate; over the coordinates that are there."""
        return log_sum_exp(self._log_densities(X))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of log f over the rows."""
        return float(self.score_samples(X).mean())

    def predict_proba(self, X: Any) -> Vector:
        """(n, K): how likely each component is, for each row."""
        logs = self._log_densities(X)
        return np.asarray(np.exp(logs - log_sum_exp(logs)[:, None]))

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """The most likely component of each row."""
        return np.asarray(self._log_densities(X).argmax(axis=1))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Vector, npt.NDArray[np.int64]]:
        """Rows drawn from the estimate, and the component of each."""
        check_is_fitted(self)
        rng = check_random_state(random_state)
        labels = rng.choice(len(self.weights_), n_samples, p=self.weights_)
        factors = np.linalg.cholesky(self.covariances_)
        noise = rng.standard_normal((n_samples, self.means_.shape[1]))
        return self.means_[labels] + np.einsum("nij,nj->ni", factors[labels], noise), labels
