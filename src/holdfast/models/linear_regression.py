"""Linear regression with Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from holdfast.models.regression import (
    Regression,
    descend_gradient,
    linear_predictor,
    regression_functions,
    regression_layout,
    standardised,
)
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import at_least, log
from holdfast.scheme.functions import Functions
from holdfast.scheme.state import Vector

SMALLEST_VARIANCE = 1e-18


@dataclass(frozen=True)
class LinearRegression(Regression):
    """y = coef·x + intercept + noise, learnt by robust stochastic gradient descent.

    The noise variance is followed with the same step size, so that `score` is the surprise at y given x and `whitened`
    counts standard deviations of the residual. l2: penalty λ on the coefficients, in standardised units.

    >>> LinearRegression(l2=0.01)
    LinearRegression(l2=0.01)
    """

    support: ClassVar[str] = "a target is there, and all numbers are finite"

    def functions(self, width: int) -> Functions:
        """Compiled for this number of features."""
        return _functions(width - 1)

    def gamma_for_rate(self, rate: float, width: int) -> float:
        """The residual is one Gaussian number, however many features there are."""
        return super().gamma_for_rate(rate, 2)

    def predict(self, theta: Vector, features: Vector) -> Vector:
        """The expected target for each row."""
        view = regression_layout(features.shape[1]).view
        return view(theta, "reference")[-1] + view(theta, "scale")[-1] * self.predictor(theta, features)


@cache
def _functions(p: int) -> Functions:
    variance = regression_layout(p).size - 1
    residual = p + 1
    log_unit = 0.5 * math.log(2.0 * math.pi)

    @kernel
    def evaluate(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        e = standardised(y, p, theta, p) - linear_predictor(theta, y, work, p)
        work[residual] = e
        v = at_least(theta[variance], SMALLEST_VARIANCE)
        return 0.5 * e * e / v + 0.5 * log(v) + log(theta[2 * p + 1]) + log_unit

    @kernel
    def whitened(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        return work[residual] * work[residual] / at_least(theta[variance], SMALLEST_VARIANCE)

    @kernel
    def advance(theta: Vector, y: Vector, hyper: Vector, work: Vector, rho: float, missing: bool) -> None:
        descend_gradient(theta, hyper, work, p, rho, 1.0)
        theta[variance] += rho * (work[residual] * work[residual] - theta[variance])

    @kernel
    def valid(y: Vector) -> bool:
        return not math.isnan(y[p])

    return regression_functions(p, evaluate, whitened, advance, valid, scaled_target=True)
