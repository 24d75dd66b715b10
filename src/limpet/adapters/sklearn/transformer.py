"""Scores of rows as columns for the next step of a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from limpet.adapters.sklearn._base import StreamEstimator
from limpet.core.state import Vector
from limpet.learners import Detector, Learner

SCORE_COLUMNS = ("score", "p_value", "rejected", "anomaly")


class StreamScores(TransformerMixin, StreamEstimator):  # type: ignore[misc]
    """Transform rows to score, p-value, and whether they are rejected and anomalies.

    The columns are named: `set_output(transform="pandas")` or "polars" gives a dataframe. `transform` does not learn; a
    row without values has score 0 and p-value 1.

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
        """Return score, p-value, rejected and anomaly as columns.

        The score is −log f; rejected and anomaly are 0 or 1.
        """
        trace = self._score_only(X)
        score, p_value = np.nan_to_num(trace.score), np.nan_to_num(trace.p_value, nan=1.0)
        return np.column_stack([score, p_value, trace.rejected, trace.anomaly]).astype(np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the columns."""
        check_is_fitted(self)
        return np.array(SCORE_COLUMNS, dtype=object)
