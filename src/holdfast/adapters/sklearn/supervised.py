"""What the estimators of pairs share: settings, how pairs are read, and how often they are gone through."""

from __future__ import annotations

import math
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from holdfast.checks import require, require_whole
from holdfast.learners import SRA
from holdfast.models.base import Model
from holdfast.scheme.state import Vector

STEPS = 20.0  # over ρ: as many points a fit learns at least, going through the rows again where there are fewer
READ = {"dtype": "float64", "order": "C", "ensure_all_finite": "allow-nan"}


class SupervisedEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that learn from pairs by robust stochastic gradient descent."""

    def __init__(
        self,
        *,
        rho: float = 0.01,
        gamma: float | None = None,
        far: float = 1e-4,
        l2: float = 0.0,
        patience: int = 20,
        max_iter: int | None = None,
    ) -> None:
        self.rho = rho
        self.gamma = gamma
        self.far = far
        self.l2 = l2
        self.patience = patience
        self.max_iter = max_iter

    def _learner(self, model: type[Model]) -> SRA:
        return SRA(
            model=model(l2=self.l2),  # type: ignore[call-arg]
            rho=self.rho,
            gamma=self.gamma,
            far=self.far,
            patience=self.patience,
        )

    def _passes(self, n_rows: int) -> int:
        """How often `fit` goes through the rows."""
        if self.max_iter is not None:
            return require_whole("max_iter", self.max_iter, 1)
        return max(1, math.ceil(STEPS / require("rho", self.rho, high=1.0) / n_rows))

    def _features(self, X: Any) -> Vector:
        rows: Vector = validate_data(self, X, reset=False, **READ)
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
