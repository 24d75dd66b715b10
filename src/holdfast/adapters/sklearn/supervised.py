"""What the estimators of pairs share: settings, how pairs are read, and how often they are gone through."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from holdfast.checks import check_int, check_positive
from holdfast.learners import SRA, Trace
from holdfast.models.base import Model
from holdfast.scheme.state import Vector

N_INIT_ROWS = 50  # rows that the units of features and target are taken from: with ten they are rough
MAX_STALLED_PASSES = 3  # passes in a row that are no better, after which `fit` stops
VALIDATION_OPTIONS = {"dtype": "float64", "order": "C", "ensure_all_finite": "allow-nan"}


def mean_score(trace: Trace) -> float:
    """Of the rows that were not dropped."""
    scores = trace.score[~trace.rejected & ~np.isnan(trace.score)]
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

    def _make_learner(self, model: type[Model]) -> SRA:
        return SRA(
            model=model(l2=self.l2),  # type: ignore[call-arg]
            rho=self.rho,
            gamma=self.gamma,
            far=self.far,
            patience=self.patience,
            n_init=N_INIT_ROWS,
        )

    def _fit_until_converged(self, learn: Callable[[], float]) -> int:
        """Goes through the rows until it gets no better at them, by more than `tol`; how often it went.

        learn: goes through the rows once; the mean score, −log f."""
        max_passes, tol = check_int("max_iter", self.max_iter, 1), check_positive("tol", self.tol, allow_zero=True)
        best, n_stalled = math.inf, 0
        for n_passes in range(1, max_passes + 1):
            score = learn()
            n_stalled = 0 if score < best - tol else n_stalled + 1
            best = min(best, score)
            if n_stalled == MAX_STALLED_PASSES:
                return n_passes
        return max_passes

    def _validate_features(self, X: Any) -> Vector:
        rows: Vector = validate_data(self, X, reset=False, **VALIDATION_OPTIONS)
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
