"""Logistic regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from holdfast.models.regression import (
    Regression,
    capped_gradient_step,
    linear_predictor,
    make_regression_kernels,
)
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import exp, log
from holdfast.scheme.functions import ModelKernels
from holdfast.scheme.state import Vector


@dataclass(frozen=True)
class LogisticRegression(Regression):
    """P(y = 1 | x) = 1/(1 + exp(−coef·x − intercept)), learnt by robust stochastic gradient descent.

    The target is 0 or 1 (or a bool); any other is a bad point. `score` is the log-loss; `whitened` is the Pearson
    residual |y − p|/√(p(1−p)), so that γ drops labels the model finds incredible. l2: penalty λ on the coefficients.

    >>> LogisticRegression(l2=0.01)
    LogisticRegression(l2=0.01)
    """

    support_description: ClassVar[str] = "a target is 0 or 1, and features are finite"

    def kernels(self, width: int) -> ModelKernels:
        """Compiled for this number of features."""
        return _logistic_regression_kernels(width - 1)

    def gamma_for_rate(self, rate: float, width: int) -> float:
        """The γ beyond which the model gave the label a smaller probability than this."""
        return math.sqrt((1.0 - rate) / rate)

    def predict(self, theta: Vector, features: Vector) -> Vector:
        """The probability of 1 for each row."""
        result: Vector = 1.0 / (1.0 + np.exp(-np.clip(self.predict_standardized(theta, features), -700.0, 700.0)))
        return result


@cache
def _logistic_regression_kernels(p: int) -> ModelKernels:
    residual, odds = p + 1, p + 2

    @kernel
    def evaluate(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """log(1 + exp(−z)), z the linear predictor with the sign of the label."""
        z = linear_predictor(theta, y, work, p)
        z = z if y[p] > 0.5 else -z
        exp_neg_margin = exp(-abs(z))
        error_probability = (
            exp_neg_margin / (1.0 + exp_neg_margin) if z > 0.0 else 1.0 / (1.0 + exp_neg_margin)
        )  # the probability of the other label
        work[residual] = error_probability if y[p] > 0.5 else -error_probability
        work[odds] = exp(-z)
        return log(1.0 + exp_neg_margin) + (0.0 if z > 0.0 else -z)

    @kernel
    def whitened(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """(y − p)²/(p(1 − p)) is the odds of the other label."""
        return work[odds]

    @kernel
    def advance(theta: Vector, y: Vector, hyper: Vector, work: Vector, rho: float, missing: bool) -> None:
        capped_gradient_step(theta, hyper, work, p, rho, 0.25)

    @kernel
    def is_valid(y: Vector) -> bool:
        return y[p] == 0.0 or y[p] == 1.0

    return make_regression_kernels(p, evaluate, whitened, advance, is_valid, scaled_target=False)
