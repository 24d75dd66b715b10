"""Detectors of change points and anomalies with sktime's conventions.

Requires limpet[sktime].
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from limpet._optional import optional_import
from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.core.state import Vector
from limpet.exceptions import LimpetWarning
from limpet.learners import Detector, Learner, Trace, from_bytes
from limpet.learners.input import LabeledArray
from limpet.learners.results import concatenate

with optional_import("limpet.adapters.sktime", "sktime"):
    import pandas as pd
    from sktime.detection.base import BaseDetector

__all__ = ["AnomalyDetector", "ChangePointDetector"]


class StreamDetector(BaseDetector):  # type: ignore[misc]
    """Base class: `fit` starts, `update` extends a series; `predict` learns nothing.

    It returns the results of learned rows as of the time they were learned; other rows are the continuation.
    """

    _tags: ClassVar[dict[str, Any]] = {
        "learning_type": "unsupervised",
        "capability:multivariate": True,
        "capability:missing_values": True,
        "capability:update": True,
        "fit_is_empty": False,
        "X_inner_mtype": "pd.DataFrame",
        "python_dependencies": "limpet",
    }

    def __init__(
        self, far: float = 1e-4, n_components: int | str = 1, covariance: str = "full", lags: int = 0, season: int = 0
    ) -> None:
        self.far = far
        self.n_components = n_components
        self.covariance = covariance
        self.lags = lags
        self.season = season
        super().__init__()

    def _fit(self, X: pd.DataFrame) -> StreamDetector:
        self.learner_: Learner = Detector(**self.get_params())
        self.trace_: Trace = self.learner_.process(to_labeled_array(X))
        self._learned = self._X = X  # sktime's `update` appends new rows to it
        return self

    def _update(self, X: pd.DataFrame) -> StreamDetector:
        _, n_known = self._find_learned_rows(X)
        new = X[n_known:]
        if len(new) and has_range_index(new):  # an array, whose rows are the continuation
            new = new.set_axis(pd.RangeIndex(len(self._learned), len(self._learned) + len(new)))
        repeated = new.index.isin(self._learned.index)
        if repeated.any():
            n_rows = int(repeated.sum())
            message = f"{n_rows} rows are skipped: rows with the same index and other values were learned before."
            warnings.warn(LimpetWarning(message, "repeated", n_rows=n_rows), stacklevel=4)
            new = new[~repeated]
        if len(new):
            self.trace_ = concatenate([self.trace_, self.learner_.process(to_labeled_array(new))])
            self._learned = pd.concat([self._learned, new])
        self._X = self._learned
        return self

    def _trace_for(self, X: pd.DataFrame) -> tuple[Trace, int]:
        """Return the results including X, and the row of the first row of X."""
        X = X.to_frame() if isinstance(X, pd.Series) else X  # from sktime's `predict_points`
        first_row, n_known = self._find_learned_rows(X)
        if n_known == len(X):
            return self.trace_, first_row
        copy = from_bytes(self.learner_.to_bytes())
        trace = concatenate([self.trace_, copy.process(to_labeled_array(X[n_known:]))])
        return trace, len(self._learned) - n_known

    def _find_learned_rows(self, X: pd.DataFrame) -> tuple[int, int]:
        """Return the learned row equal to the first of X, and how many are equal."""
        learned = self._learned
        if not len(X) or list(X.columns) != list(learned.columns):
            return 0, 0
        values, learned_values = X.to_numpy(np.float64), learned.to_numpy(np.float64)
        matches: list[tuple[int, int]] = [(0, 0)]
        for row in map(int, np.flatnonzero(learned.index == X.index[0])):
            n: int = min(len(X), len(learned) - row)
            is_same = rows_equal(learned_values[row : row + n], values[:n])
            is_same &= learned.index[row : row + n] == X.index[:n]
            n_known = n if is_same.all() else int(np.argmin(is_same))
            if n_known == len(X) or row + n_known == len(learned):
                matches.append((row, n_known))
        last_row = len(learned) - len(X)
        if has_range_index(X) and last_row >= 0 and rows_equal(learned_values[last_row:], values).all():
            matches.append((last_row, len(X)))
        return max(matches, key=lambda each: each[1])

    def _predict(self, X: pd.DataFrame) -> pd.DataFrame:
        trace, first = self._trace_for(X)
        rows = [row for detected_row, row in self._events(trace) if first <= detected_row < first + len(X)]
        return pd.DataFrame({"ilocs": np.unique(np.maximum(np.array(rows, np.int64) - first, 0))}, dtype="int64")

    def _transform_scores(self, X: pd.DataFrame) -> pd.DataFrame:
        trace, first = self._trace_for(X)
        return pd.DataFrame({"scores": self._scores(trace)[first : first + len(X)]}, index=X.index)

    @abstractmethod
    def _events(self, trace: Trace) -> list[tuple[int, int]]:
        """Return for each event the row at which it was detected, and the row to report."""

    @abstractmethod
    def _scores(self, trace: Trace) -> Vector:
        """Return the score of each row."""

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return parameters for sktime's checks."""
        return [{}, {"far": 1e-2, "covariance": "diagonal"}]


def to_labeled_array(X: pd.DataFrame) -> LabeledArray:
    """Return the values with the names of the columns; infinities are clipped."""
    values = np.clip(X.to_numpy(np.float64), -MAX_ABS_VALUE, MAX_ABS_VALUE)
    return LabeledArray(np.ascontiguousarray(values), tuple(map(str, X.columns)))


def has_range_index(X: pd.DataFrame) -> bool:
    """Return whether the index counts rows from 0, as that of an array."""
    return isinstance(X.index, pd.RangeIndex) and X.index.step == 1 and X.index.start == 0


def rows_equal(a: Vector, b: Vector) -> Any:
    """Return which rows are equal."""
    return ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)


class AnomalyDetector(StreamDetector):
    """Detect anomalies of a series at a promised false-alarm rate.

    The model follows changes. `transform_scores` returns −log10 of the p-value of each row: 4 is one row in ten
    thousand.

    Parameters
    ----------
    far : float, default=1e-4
        On average at most one false alarm in 1/far rows.
    n_components : int or "auto", default=1
        Number of components of the Gaussian mixture.
    covariance : {"full", "diagonal"}
        Form of the covariance matrices.
    lags : int, default=0
        Number of preceding rows on which a row depends.
    season : int, default=0
        Number of rows in a period; 0 for none.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from limpet.adapters.sktime import AnomalyDetector
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


class ChangePointDetector(StreamDetector):
    """Detect change points of a series online, at a promised false-alarm rate.

    A change point is the first row of the new regime, as `limpet.Detector` estimates it when it detects the change.
    `transform_scores` returns its change score.

    Parameters
    ----------
    far : float, default=1e-4
        On average at most one false alarm in 1/far rows of a series that does not change.
    n_components, covariance, lags, season
        As in `AnomalyDetector`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from limpet.adapters.sktime import ChangePointDetector
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
