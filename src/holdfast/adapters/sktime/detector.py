"""What both detectors share: a learner that goes along with a series, and what it said of each row."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sktime.detection.base import BaseDetector

from holdfast.errors import HoldfastWarning
from holdfast.learners import SRA, StochasticApproximation, Trace, from_bytes
from holdfast.learners.reading import NamedRows
from holdfast.learners.trace import in_turn
from holdfast.scheme.algorithm import LARGEST
from holdfast.scheme.state import Vector


class StreamDetector(BaseDetector):  # type: ignore[misc]
    """Base of the detectors: `fit` begins with a series, `update` goes on with more of it, `predict` learns nothing.

    `predict` tells of rows that were learnt what was said when they came, and takes others to be what comes next.
    """

    _tags: ClassVar[dict[str, Any]] = {
        "learning_type": "unsupervised",
        "capability:multivariate": True,
        "capability:missing_values": True,
        "capability:update": True,
        "fit_is_empty": False,
        "X_inner_mtype": "pd.DataFrame",
        "python_dependencies": "holdfast",
    }

    def __init__(
        self,
        far: float = 1e-4,
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
        super().__init__()

    def _fit(self, X: pd.DataFrame) -> StreamDetector:
        settings = {"covariance": self.covariance, "lags": self.lags, "season": self.season}
        self.learner_: StochasticApproximation = SRA(self.n_components, far=self.far, **settings)  # type: ignore[arg-type]
        self.trace_: Trace = self.learner_.process(named(X))
        self._learnt = self._X = X  # sktime's `update` combines it with what comes, as a dataframe
        return self

    def _update(self, X: pd.DataFrame) -> StreamDetector:
        _, known = self._known(X)
        new = X[known:]
        if len(new) and numbered(new):  # an array, whose rows come next
            new = new.set_axis(pd.RangeIndex(len(self._learnt), len(self._learnt) + len(new)))
        again = new.index.isin(self._learnt.index)
        if again.any():
            told = f"{again.sum()} rows are passed over: rows of the same times were learnt before, with other values"
            warnings.warn(told, HoldfastWarning, stacklevel=4)
            new = new[~again]
        if len(new):
            self.trace_ = in_turn([self.trace_, self.learner_.process(named(new))])
            self._learnt = pd.concat([self._learnt, new])
        self._X = self._learnt
        return self

    def _said(self, X: pd.DataFrame) -> tuple[Trace, int]:
        """What is said of the rows of X, and the row of the stream that the first of them is."""
        X = X.to_frame() if isinstance(X, pd.Series) else X  # as sktime's `predict_points` has it
        at, known = self._known(X)
        if known == len(X):
            return self.trace_, at
        copy = from_bytes(self.learner_.to_bytes())
        said = in_turn([self.trace_, copy.process(named(X[known:]))])
        return said, len(self._learnt) - known

    def _known(self, X: pd.DataFrame) -> tuple[int, int]:
        """Where the first row of X was learnt, and how many rows from there on are those that were learnt."""
        learnt = self._learnt
        if not len(X) or list(X.columns) != list(learnt.columns):
            return 0, 0
        values, before = X.to_numpy(np.float64), learnt.to_numpy(np.float64)
        found: list[tuple[int, int]] = [(0, 0)]
        for at in map(int, np.flatnonzero(learnt.index == X.index[0])):
            n: int = min(len(X), len(learnt) - at)
            same = equal(before[at : at + n], values[:n]) & (learnt.index[at : at + n] == X.index[:n])
            known = n if same.all() else int(np.argmin(same))
            if known == len(X) or at + known == len(learnt):
                found.append((at, known))
        last = len(learnt) - len(X)
        if numbered(X) and last >= 0 and equal(before[last:], values).all():  # an array that has just been learnt
            found.append((last, len(X)))
        return max(found, key=lambda each: each[1])

    def _predict(self, X: pd.DataFrame) -> pd.DataFrame:
        trace, first = self._said(X)
        told = [row for noticed, row in self._events(trace) if first <= noticed < first + len(X)]
        return pd.DataFrame({"ilocs": np.unique(np.maximum(np.array(told, np.int64) - first, 0))}, dtype="int64")

    def _transform_scores(self, X: pd.DataFrame) -> pd.DataFrame:
        trace, first = self._said(X)
        return pd.DataFrame({"scores": self._scores(trace)[first : first + len(X)]}, index=X.index)

    @abstractmethod
    def _events(self, trace: Trace) -> list[tuple[int, int]]:
        """Of each event the row of the stream at which it was noticed, and the row that it is told of."""

    @abstractmethod
    def _scores(self, trace: Trace) -> Vector:
        """The score of each row."""

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings for sktime's checks."""
        return [{}, {"far": 1e-2, "covariance": "diagonal"}]


def named(X: pd.DataFrame) -> NamedRows:
    """The values, with the names of the columns; what is infinite is as far out as can be."""
    values = np.clip(X.to_numpy(np.float64), -LARGEST, LARGEST)
    return NamedRows(np.ascontiguousarray(values), tuple(map(str, X.columns)))


def numbered(X: pd.DataFrame) -> bool:
    """Whether rows are merely counted from 0, as those of an array are."""
    return isinstance(X.index, pd.RangeIndex) and X.index.step == 1 and X.index.start == 0


def equal(a: Vector, b: Vector) -> Any:
    """Which rows are the same."""
    return ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
