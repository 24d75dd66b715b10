"""A mixture learned online in plain numpy, as a careful practitioner would write it: one stream, or many at once."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
MIN_VARIANCE_SHARE = 1e-6  # of the variance of the first points: the least that a component may have
MIN_WEIGHT = 1e-100  # of a component that has had no points for ages


class OnlineEM:
    """Stepwise EM [1] for K Gaussians on the line; no threshold, no alarm.

    All arrays end in a dimension of length K. What comes before is nothing for one stream, or a dimension for many of
    them: numpy's counterpart of a fleet.

    first: the first points, (n, …); the means start at their K quantiles.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(rng.choice([-3.0, 3.0], 5000), 1.0)
    >>> model = OnlineEM(y[:20], n_components=2)
    >>> scores = [model.update(x) for x in y[20:]]
    >>> model.means.round()
    array([-3.,  3.])

    [1] O. Cappé, E. Moulines: On-line expectation–maximization algorithm for latent data models. JRSS B 71 (2009).
    """

    def __init__(self, first: FloatArray, n_components: int = 2, step: float = 0.01) -> None:
        first = np.asarray(first, np.float64)
        self.step = step
        self.center = first.mean(axis=0)  # moments are taken about it, so that no digits are lost
        parts = np.array_split(np.sort(first, axis=0) - self.center, n_components)
        means = np.stack([part.mean(axis=0) for part in parts], axis=-1)
        spread = first.var(axis=0)[..., None] + np.finfo(float).tiny
        self._min_variance = MIN_VARIANCE_SHARE * spread
        self._weights = np.full(means.shape, 1.0 / n_components)
        self._first = self._weights * means
        self._second = self._weights * (means**2 + spread / n_components**2)
        self._maximize()

    @property
    def means(self) -> FloatArray:
        """(…, K)."""
        means: FloatArray = self._means + np.asarray(self.center)[..., None]
        return means

    def update(self, x: float | FloatArray) -> FloatArray:
        """Return the score −log f(x) of each stream, then learn x."""
        z = np.asarray(x - self.center)[..., None]
        log_joint = self._constants - 0.5 * (z - self._means) ** 2 / self._variances
        top = log_joint.max(axis=-1, keepdims=True)
        joint = np.exp(log_joint - top)
        total = joint.sum(axis=-1, keepdims=True)
        responsibilities = joint / total
        self._weights += self.step * (responsibilities - self._weights)
        responsibilities *= z
        self._first += self.step * (responsibilities - self._first)
        responsibilities *= z
        self._second += self.step * (responsibilities - self._second)
        self._maximize()
        score: FloatArray = -(top + np.log(total))[..., 0]
        return score

    def _maximize(self) -> None:
        weights = np.maximum(self._weights, MIN_WEIGHT)
        self._means = self._first / weights
        self._variances = np.maximum(self._second / weights - self._means**2, self._min_variance)
        self._constants = np.log(weights) - 0.5 * np.log(2.0 * math.pi * self._variances)
