"""Outlier detector, and transformer to scores, with scikit-learn's conventions."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from limpet._validation import FALSE_ALARM_RATE, check_param, check_positive
from limpet.adapters.sklearn._base import StreamEstimator
from limpet.core.state import Vector
from limpet.learners import Detector, Learner, Trace

AUTO_CONTAMINATION = "auto"
MIN_MARGIN_LOG10 = 1e-9  # of the score of an outlier below the threshold
MIN_P_VALUE = 1e-300  # smaller p-values are clipped
SCORE_COLUMNS = ("score", "p_value", "rejected", "anomaly")


class OutlierDetector(OutlierMixin, StreamEstimator):  # type: ignore[misc]
    """Detect outliers of a stream, learned in one pass, following changes.

    `limpet.Detector` learns the rows in order. A row is an outlier if it is rarer than one in 1/far among the rows
    seen, and unusual by the latest estimate. `predict` and the scores do not learn, and score each row independently:
    season and autocorrelation need the learner, `lp.Detector(season=…)`.

    Parameters
    ----------
    far : float
        Share of normal rows that may be reported as outliers, up to 0.1. Alarms have a false-alarm rate of 1e-4.
    contamination : "auto" or float
        "auto": by `far`. A share up to 0.5: so many of the rows just learned are outliers, as for the detectors of
        scikit-learn.
    n_components : int or "auto"
        Number of components of the Gaussian mixture.
    covariance : {"full", "diagonal"}
        Form of the covariance matrices.

    Attributes
    ----------
    learner_ : Detector
        The learner, with `means` and `summary()`.
    alarms_ : list of Alarm
        The alarms of the last `fit` or `partial_fit`.
    offset_ : float
        The score below which a row is an outlier: log10 of `far`.

    Examples
    --------
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
        contamination: float | str = "auto",
        n_components: int | str = 1,
        covariance: str = "full",
    ) -> None:
        self.far = far
        self.contamination = contamination
        self.n_components = n_components
        self.covariance = covariance

    def _new_learner(self) -> Learner:
        check_param("far", self.far, FALSE_ALARM_RATE)
        if self.contamination != AUTO_CONTAMINATION:
            check_positive("contamination", self.contamination, maximum=0.5)
        return Detector(self.n_components, covariance=self.covariance)

    def _learn(self, learner: Learner, rows: Vector) -> Self:
        super()._learn(learner, rows)
        self.offset_ = math.log10(self.far)
        if self.contamination != AUTO_CONTAMINATION:
            scores = log10_p(self._score_validated(rows, None))
            self.offset_ = float(np.percentile(scores, 100.0 * float(self.contamination)))
        return self

    def score_samples(self, X: Any) -> Vector:
        """Return log10 of the p-values: −4 is one row in ten thousand."""
        check_is_fitted(self)
        if self.contamination != AUTO_CONTAMINATION:
            return log10_p(self._score_only(X))
        trace, threshold = self._score_only(X, 10.0**self.offset_), self.offset_
        scores = log10_p(trace)
        return np.where(trace.anomaly, np.minimum(scores, threshold - MIN_MARGIN_LOG10), np.maximum(scores, threshold))

    def decision_function(self, X: Any) -> Vector:
        """Return `score_samples` minus `offset_`, which is negative for outliers."""
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return −1 for outliers, 1 for other rows."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)


def log10_p(trace: Trace) -> Vector:
    """Return log10 of the p-values; 0 for rows without a p-value."""
    return np.asarray(np.log10(np.clip(np.where(np.isnan(trace.p_value), 1.0, trace.p_value), MIN_P_VALUE, 1.0)))


class StreamScores(TransformerMixin, StreamEstimator):  # type: ignore[misc]
    """Transform rows to score, p-value, and whether they are rejected and anomalies.

    The columns are named: `set_output(transform="pandas")` or "polars" gives a dataframe. `transform` does not learn; a
    row without values has score 0 and p-value 1. The score is −log f; rejected and anomaly are 0 or 1.

    Parameters
    ----------
    far : float
        The false-alarm rate.
    n_components : int or "auto"
        Number of components of the Gaussian mixture.
    covariance : {"full", "diagonal"}
        Form of the covariance matrices.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(20.0, 0.5, (1000, 1))
    >>> StreamScores().set_output(transform="pandas").fit(X).transform([[20.1], [35.0]]).round(2)
       score  p_value  rejected  anomaly
    0   0.44      0.8       0.0      0.0
    1  14.32      0.0       1.0      1.0
    """

    def __init__(self, *, far: float = 1e-4, n_components: int | str = 1, covariance: str = "full") -> None:
        self.far = far
        self.n_components = n_components
        self.covariance = covariance

    def _new_learner(self) -> Learner:
        return Detector(self.n_components, far=self.far, covariance=self.covariance)

    def transform(self, X: Any) -> Vector:
        """Return score, p-value, rejected and anomaly as columns."""
        trace = self._score_only(X)
        score, p_value = np.nan_to_num(trace.score), np.nan_to_num(trace.p_value, nan=1.0)
        return np.column_stack([score, p_value, trace.rejected, trace.anomaly]).astype(np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the columns."""
        check_is_fitted(self)
        return np.array(SCORE_COLUMNS, dtype=object)
