"""A Gaussian mixture that learns online, by scikit-learn's rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from holdfast.adapters.sklearn.gaussian import log_densities, log_sum_exp
from holdfast.adapters.sklearn.streaming import StreamEstimator
from holdfast.learners import SRA
from holdfast.scheme.state import Vector


class OnlineGaussianMixture(DensityMixin, StreamEstimator):  # type: ignore[misc]
    """A Gaussian mixture learnt in one pass, with `partial_fit`: outliers are dropped, changes are followed.

    The methods are those of scikit-learn's GaussianMixture. Rows are learnt in the order they come: `holdfast.SRA`
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
