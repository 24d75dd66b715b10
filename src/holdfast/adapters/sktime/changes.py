"""A detector of change points by sktime's conventions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from holdfast.adapters.sktime.detector import StreamDetector
from holdfast.learners import Trace
from holdfast.scheme.state import Vector


class ChangePointDetector(StreamDetector):
    """Change points of a series as it comes, at a promised rate of false alarms; outliers raise none.

    A change point is the first row of the new regime, as `holdfast.SRA` sees it when it notices the change.
    `transform_scores` gives its change score.

    Parameters
    ----------
    far : float, default=1e-4
        At most one false alarm in 1/far rows of a series that does not change.
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
    >>> from holdfast.adapters.sktime import ChangePointDetector
    >>> level = np.repeat([20.0, 21.0], 1000)
    >>> series = pd.Series(level + np.random.default_rng(7).normal(0.0, 0.5, 2000))
    >>> detector = ChangePointDetector().fit(series[:500])
    >>> detector.update_predict(series[500:])
       ilocs
    0    500
    """

    _tags: ClassVar[dict[str, Any]] = {"task": "change_point_detection"}

    def _events(self, trace: Trace) -> list[tuple[int, int]]:
        return [(alarm.row, alarm.onset) for alarm in trace.alarms if alarm.kind == "change"]

    def _scores(self, trace: Trace) -> Vector:
        return np.nan_to_num(trace.change_score)
