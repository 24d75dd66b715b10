"""What both detectors share: a learner that goes along with a series, and what it said of each row."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sktime.detection.base import BaseDetector

from holdfast.learners import SRA, StochasticApproximation, Trace, from_bytes
from holdfast.learners.reading import NamedRows
from holdfast.learners.trace import in_turn
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
        new = X[~X.index.isin(self._learnt.index)]
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
        places = learnt.index.get_indexer(X.index) if learnt.index.is_unique else np.full(len(X), -1)
        if not len(X) or places[0] < 0 or list(X.columns) != list(learnt.columns):
            return 0, 0
        at = int(places[0])
        in_row = places == np.arange(at, at + len(X))
        there = np.where(in_row, places, 0)
        same = in_row & _equal(learnt.to_numpy(np.float64)[there], X.to_numpy(np.float64))
        known = len(X) if same.all() else int(np.argmin(same))
        return (at, known) if known == len(X) or at + known == len(learnt) else (0, 0)

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
    """The values, with the names of the columns."""
    return NamedRows(np.ascontiguousarray(X.to_numpy(np.float64)), tuple(map(str, X.columns)))


def _equal(a: Vector, b: Vector) -> Any:
    return ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
