"""What the estimators of pairs share: settings, how pairs are read, and how often they are gone through."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from holdfast.checks import require, require_whole
from holdfast.learners import SRA, Trace
from holdfast.models.base import Model
from holdfast.scheme.state import Vector

FIRST = 50  # rows that the units of features and target are taken from: with ten they are rough
WORSE = 3  # passes in a row that are no better, after which `fit` stops
READ = {"dtype": "float64", "order": "C", "ensure_all_finite": "allow-nan"}


def mean_score(trace: Trace) -> float:
    """Of the rows that were not dropped."""
    scores = trace.score[~trace.dropped & ~np.isnan(trace.score)]
    return float(scores.mean()) if len(scores) else math.inf


class SupervisedEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that learn from pairs by robust stochastic gradient descent."""

    def __init__(
        self,
        *,
        rho: float = 0.01,
        gamma: float | None = None,
        far: float = 1e-4,
        l2: float = 0.0,
        patience: int = 50,
        max_iter: int = 100,
        tol: float = 1e-3,
    ) -> None:
        self.rho = rho
        self.gamma = gamma
        self.far = far
        self.l2 = l2
        self.patience = patience
        self.max_iter = max_iter
        self.tol = tol

    def _learner(self, model: type[Model]) -> SRA:
        return SRA(
            model=model(l2=self.l2),  # type: ignore[call-arg]
            rho=self.rho,
            gamma=self.gamma,
            far=self.far,
            patience=self.patience,
            n_init=FIRST,
        )

    def _learn_well(self, learn: Callable[[], float]) -> int:
        """Goes through the rows until it gets no better at them, by more than `tol`; how often it went.

        learn: goes through the rows once; the mean score, −log f."""
        most, tol = require_whole("max_iter", self.max_iter, 1), require("tol", self.tol, zero=True)
        best, worse = math.inf, 0
        for times in range(1, most + 1):
            score = learn()
            worse = 0 if score < best - tol else worse + 1
            best = min(best, score)
            if worse == WORSE:
                return times
        return most

    def _features(self, X: Any) -> Vector:
        rows: Vector = validate_data(self, X, reset=False, **READ)
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
