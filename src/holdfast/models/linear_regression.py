"""Linear regression with Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from holdfast.models.regression import (
    Regression,
    capped_gradient_step,
    linear_predictor,
    make_regression_kernels,
    make_regression_layout,
    standardize_entry,
)
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import log, maximum
from holdfast.scheme.functions import ModelKernels
from holdfast.scheme.state import Vector

MIN_NOISE_VARIANCE = 1e-18


@dataclass(frozen=True)
class LinearRegression(Regression):
    """y = coef·x + intercept + noise, learnt by robust stochastic gradient descent.

    The noise variance is followed with the same step size, so that `score` is the surprise at y given x and `whitened`
    counts standard deviations of the residual. l2: penalty λ on the coefficients, in standardised units.

    >>> LinearRegression(l2=0.01)
    LinearRegression(l2=0.01)
    """

    support_description: ClassVar[str] = "a target is there, and all numbers are finite"

    def kernels(self, width: int) -> ModelKernels:
        """Compiled for this number of features."""
        return _linear_regression_kernels(width - 1)

    def gamma_for_rate(self, rate: float, width: int) -> float:
        """The residual is one Gaussian number, however many features there are."""
        return super().gamma_for_rate(rate, 2)

    def predict(self, theta: Vector, features: Vector) -> Vector:
        """The expected target for each row."""
        view = make_regression_layout(features.shape[1]).view
        return view(theta, "reference")[-1] + view(theta, "scale")[-1] * self.predict_standardized(theta, features)


@cache
def _linear_regression_kernels(p: int) -> ModelKernels:
    variance = make_regression_layout(p).size - 1
    residual = p + 1
    log_normalizer = 0.5 * math.log(2.0 * math.pi)

    @kernel
    def evaluate(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        e = standardize_entry(y, p, theta, p) - linear_predictor(theta, y, work, p)
        work[residual] = e
        v = maximum(theta[variance], MIN_NOISE_VARIANCE)
        return 0.5 * e * e / v + 0.5 * log(v) + log(theta[2 * p + 1]) + log_normalizer

    @kernel
    def whitened(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        return work[residual] * work[residual] / maximum(theta[variance], MIN_NOISE_VARIANCE)

    @kernel
    def advance(theta: Vector, y: Vector, hyper: Vector, work: Vector, rho: float, missing: bool) -> None:
        capped_gradient_step(theta, hyper, work, p, rho, 1.0)
        theta[variance] += rho * (work[residual] * work[residual] - theta[variance])

    @kernel
    def is_valid(y: Vector) -> bool:
        return not math.isnan(y[p])

    return make_regression_kernels(p, evaluate, whitened, advance, is_valid, scaled_target=True)
