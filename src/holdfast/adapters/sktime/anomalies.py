"""A detector of anomalies by sktime's conventions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from holdfast.adapters.sktime.detector import StreamDetector
from holdfast.learners import Trace
from holdfast.scheme.state import Vector


class AnomalyDetector(StreamDetector):
    """Rows of a series that do not belong, at a promised rate of false alarms; changes are followed.

    `transform_scores` gives −log10 of the p-value of each row: 4 is one row in ten thousand.

    Parameters
    ----------
    far : float, default=1e-4
        At most one false alarm in 1/far rows.
    n_components : int or "auto", default=1
        Gaussians that a row may come from.
    covariance : {"full", "diagonal"}
        Of each of them.
    lags : int, default=0
        How far back a row depends on those before it.
    season : int, default=0
        After how many rows things repeat themselves.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from holdfast.adapters.sktime import AnomalyDetector
    >>> series = pd.Series(np.random.default_rng(0).normal(20.0, 0.5, 2000))
    >>> series[700] = 35.0
    >>> AnomalyDetector().fit_predict(series)
       ilocs
    0    700
    """

    _tags: ClassVar[dict[str, Any]] = {"task": "anomaly_detection"}

    def _events(self, trace: Trace) -> list[tuple[int, int]]:
        return [(row, row) for row in np.flatnonzero(trace.anomaly).tolist()]

    def _scores(self, trace: Trace) -> Vector:
        return np.asarray(-np.log10(np.nan_to_num(np.maximum(trace.p_value, 1e-300), nan=1.0)))
