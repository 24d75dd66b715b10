"""An outlier detector by scikit-learn's rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin

from holdfast.adapters.sklearn.streaming import StreamEstimator
from holdfast.learners import SRA
from holdfast.scheme.state import Vector

CLEARLY = 1e-9  # by how much, of the rate, a decision lies on its side of it
RAREST = 1e-300


class OutlierDetector(OutlierMixin, StreamEstimator):  # type: ignore[misc]
    """Which rows do not belong to their stream; learnt in one pass, not led astray by outliers, and following changes.

    Rows are learnt in the order they come, by `holdfast.SRA`. A row is an outlier if it is rarer than one in 1/far
    among the rows seen, and unusual by the latest estimate. `predict` and the scores learn nothing.

    far: the share of normal rows that may be called outliers. n_components, covariance: of the Gaussian mixture.
    lags, season: how far back a row depends on those before it, and after how many rows things repeat themselves.

    learner_: the learner, with `means`, `summary()` and all else. alarms_: what the last `fit` or `partial_fit` raised,
        changes among them. offset_: log10 of `far`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal((5.0, 900.0), (1.0, 40.0), (2000, 2))
    >>> detector = OutlierDetector().fit(X)
    >>> detector.predict([[5.5, 930.0], [5.5, 1400.0]])
    array([ 1, -1])
    >>> detector.partial_fit(X + (8.0, 0.0)).predict([[13.0, 900.0], [5.0, 900.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        far: float = 0.02,
        n_components: int | str = 1,
        covariance: str = "full",
        lags: int = 0,
        season: int = 0,
    ) -> None:
        self.far = far
        self.n_components = n_components
        self.covariance = covariance
        self.lags = lags
        self.season = season

    def _new_learner(self) -> SRA:
        learner = SRA(self.n_components, far=self.far, covariance=self.covariance, lags=self.lags, season=self.season)
        self.offset_ = math.log10(self.far)
        return learner

    def score_samples(self, X: Any) -> Vector:
        """log10 of the p-value of each row: 0 is nothing special, −4 is one row in ten thousand."""
        trace = self._assessed(X)
        p = np.clip(np.where(np.isnan(trace.p_value), 1.0, trace.p_value), RAREST, 1.0)
        far = self.learner_.far
        p = np.where(trace.anomaly, np.minimum(p, far * (1.0 - CLEARLY)), np.maximum(p, far * (1.0 + CLEARLY)))
        return np.asarray(np.log10(p))

    def decision_function(self, X: Any) -> Vector:
        """The same less `offset_`: below 0 for outliers."""
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """−1 for outliers, 1 for all other rows."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)
