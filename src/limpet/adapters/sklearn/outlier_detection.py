"""An outlier detector by scikit-learn's rules."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from limpet._validation import check_positive
from limpet.adapters.sklearn._base import StreamEstimator
from limpet.core.state import Vector
from limpet.learners import SRA, Trace

AUTO_CONTAMINATION = "auto"
MIN_MARGIN_LOG10 = 1e-9  # by how much an outlier lies below the line, at the least
MIN_P_VALUE = 1e-300  # what is rarer is not told from 0


class OutlierDetector(OutlierMixin, StreamEstimator):  # type: ignore[misc]
    """Which rows do not belong to their stream; learnt in one pass, not led astray by outliers, and following changes.

    Rows are learnt in the order they come, by `limpet.SRA`. A row is an outlier if it is rarer than one in 1/far
    among the rows seen, and unusual by the latest estimate. `predict` and the scores learn nothing, and judge each row
    by itself: what the season or the rows before it tell is known to the learner, `lp.SRA(season=…)`, and not here.

    far: the share of normal rows that may be called outliers, up to 0.1; the alarms keep to one in ten thousand rows.
    contamination: "auto" goes by `far`; a share up to 0.5 instead calls as many rows of those just learnt outliers, as
        scikit-learn's detectors do.
    n_components, covariance: of the Gaussian mixture.

    learner_: the learner, with `means`, `summary()` and all else. alarms_: what the last `fit` or `partial_fit` raised,
        changes among them. offset_: the score below which a row is an outlier; log10 of `far`.

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

    def _new_learner(self) -> SRA:
        check_positive("far", self.far, maximum=0.1)
        if self.contamination != AUTO_CONTAMINATION:
            check_positive("contamination", self.contamination, maximum=0.5)
        return SRA(self.n_components, covariance=self.covariance)

    def _learn(self, learner: SRA, rows: Vector) -> Self:
        super()._learn(learner, rows)
        self.offset_ = math.log10(self.far)
        if self.contamination != AUTO_CONTAMINATION:
            scores = neg_log10_p(self._score_validated(rows, None))
            self.offset_ = float(np.percentile(scores, 100.0 * float(self.contamination)))
        return self

    def score_samples(self, X: Any) -> Vector:
        """log10 of the p-value of each row: 0 is nothing special, −4 is one row in ten thousand."""
        check_is_fitted(self)
        if self.contamination != AUTO_CONTAMINATION:
            return neg_log10_p(self._score_only(X))
        trace, threshold = self._score_only(X, 10.0**self.offset_), self.offset_
        scores = neg_log10_p(trace)
        return np.where(trace.anomaly, np.minimum(scores, threshold - MIN_MARGIN_LOG10), np.maximum(scores, threshold))

    def decision_function(self, X: Any) -> Vector:
        """The same less `offset_`: below 0 for outliers."""
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """−1 for outliers, 1 for all other rows."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)


def neg_log10_p(trace: Trace) -> Vector:
    """log10 of the p-values; 0 where there is nothing to judge a row by."""
    return np.asarray(np.log10(np.clip(np.where(np.isnan(trace.p_value), 1.0, trace.p_value), MIN_P_VALUE, 1.0)))
