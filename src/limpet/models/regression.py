"""Linear and logistic regression by stochastic gradient descent.

theta = [ reference (p+1) | scale (p+1) | coefficients (p) | intercept | variance ]

Reference and scale are estimated from the first points; the last entry of each belongs to the target. The coefficients
are learned on (x − reference)/scale, so that one step size suits all units; the estimates `coef` and `intercept` are
in units of the data. A missing feature (NaN) is imputed by its reference. H = λθ + ∇ℓ(θ) (Section 3.3 of the paper);
the intercept is not penalized.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from limpet._jit.compile import kernel
from limpet._jit.math import exp, log, maximum
from limpet._validation import check_positive
from limpet.core.model_kernels import AdvanceKernel, EvaluateKernel, ModelKernels, SquaredNormKernel
from limpet.core.state import Layout, Vector
from limpet.models._standardization import clip_coordinate, fit_location_scale, standardize
from limpet.models.base import Model

HYPER_L2 = 0  # hyper = [ λ ]


@cache
def make_regression_layout(p: int) -> Layout:
    """Return the fields of theta for p features."""
    return Layout({"reference": (p + 1,), "scale": (p + 1,), "coef": (p,), "intercept": (1,), "variance": (1,)})


@kernel
def standardize_entry(y: Vector, i: int, theta: Vector, p: int) -> float:
    """Return entry i of the point in standardized units, 0 if it is missing."""
    x = (y[i] - theta[i]) / theta[p + 1 + i]
    return 0.0 if math.isnan(x) else clip_coordinate(x)


@kernel
def linear_predictor(theta: Vector, y: Vector, work: Vector, p: int) -> float:
    """Return b·x + b0; store standardized features and their squared length."""
    coef = 2 * p + 2
    result, squared_length = theta[coef + p], 0.0
    for i in range(p):
        x = standardize_entry(y, i, theta, p)
        work[i] = x
        squared_length += x * x
        result += theta[coef + i] * x
    work[p] = squared_length
    return result


@kernel
def capped_gradient_step(theta: Vector, hyper: Vector, work: Vector, p: int, rho: float, curvature: float) -> None:
    """Apply θ ← θ − ρH, the step at most 1/(curvature·(1 + |x|²) + λ): no overshoot."""
    coef, e = 2 * p + 2, work[p + 1]
    rho = min(rho, 1.0 / (curvature * (1.0 + work[p]) + hyper[HYPER_L2]))
    for i in range(p):
        theta[coef + i] -= rho * (hyper[HYPER_L2] * theta[coef + i] - e * work[i])
    theta[coef + p] += rho * e


def make_regression_kernels(
    p: int,
    evaluate: EvaluateKernel,
    whitened: SquaredNormKernel,
    advance: AdvanceKernel,
    is_valid: Callable[[Vector], bool],
    scaled_target: bool,
) -> ModelKernels:
    """Return the functions of Algorithm 1 for a regression on p features.

    `evaluate` stores the features in work[:p], their squared length in work[p] and the residual in work[p + 1], and
    may use one further entry. With `scaled_target`, the target is standardized.
    """
    coef, scale = 2 * p + 2, p + 1

    @kernel
    def full(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """Return ‖H‖² over coefficients and intercept, H = λb − e·x."""
        e = work[p + 1]
        total = e * e
        for i in range(p):
            h = hyper[HYPER_L2] * theta[coef + i] - e * work[i]
            total += h * h
        return total

    @kernel
    def estimate(theta: Vector, hyper: Vector, work: Vector, out: Vector) -> None:
        for i in range(p):
            out[i] = theta[coef + i] * theta[scale + p] / theta[scale + i]

    def init(points: Vector, theta: Vector, hyper: Vector, seed: int) -> None:
        """Initialize reference and scale from the first points, coefficients by 0."""
        theta[:] = 0.0
        theta[: p + 1], theta[p + 1 : 2 * p + 2] = fit_location_scale(points)
        if not scaled_target:
            theta[p], theta[2 * p + 1] = 0.0, 1.0
        theta[-1] = 1.0

    return ModelKernels(
        layout=make_regression_layout(p),
        width=p + 1,
        work_size=p + 3,
        evaluate=evaluate,
        norms={"whitened": whitened, "full": full},
        advance=advance,
        init=init,
        is_valid=is_valid,
        estimate=estimate,
        estimate_shape=(p,),
        handles_missing=True,
    )


@dataclass(frozen=True)
class Regression(Model):
    """Base class of regressions; `l2` is λ of the coefficients in standardized units."""

    l2: float = 0.0

    estimates: ClassVar[tuple[str, ...]] = ("coef", "intercept")
    recordable: ClassVar[str] = "coef"
    supervised: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("l2", self.l2, allow_zero=True)

    def hyperparameters(self, width: int) -> Vector:
        """Return [ λ ]."""
        return np.array([self.l2])

    def estimate(self, name: str, theta: Vector, width: int) -> Any:
        """Return `coef` (p,) or `intercept`, in the units of the data."""
        p = width - 1
        view = make_regression_layout(p).view
        reference, scale = view(theta, "reference"), view(theta, "scale")
        coef = view(theta, "coef") * scale[p] / scale[:p]
        if name == "coef":
            return coef
        return float(reference[p] + scale[p] * view(theta, "intercept")[0] - coef @ reference[:p])

    @staticmethod
    def predict_standardized(theta: Vector, features: Vector) -> Vector:
        """Return b·x + b0 for each row, in standardized units of the target."""
        p = features.shape[1]
        view = make_regression_layout(p).view
        x = standardize(features, view(theta, "reference")[:p], view(theta, "scale")[:p])
        return np.nan_to_num(x, nan=0.0) @ view(theta, "coef") + view(theta, "intercept")


MIN_NOISE_VARIANCE = 1e-18


@dataclass(frozen=True)
class LinearRegression(Regression):
    """Linear regression y = coef·x + intercept + noise, robust and online.

    The noise variance is estimated with the same step size: `score` is −log p(y | x), and the norm `whitened` is in
    standard deviations of the residual.

    Parameters
    ----------
    l2
        Penalty λ on the coefficients, in standardized units.

    Examples
    --------
    >>> LinearRegression(l2=0.01)
    LinearRegression(l2=0.01)
    """

    support_description: ClassVar[str] = "finite numbers, the target not missing"

    def kernels(self, width: int) -> ModelKernels:
        """Return the compiled functions for this number of features."""
        return _linear_regression_kernels(width - 1)

    def gamma_for_rate(self, rate: float, width: int) -> float:
        """Return the γ of a single Gaussian residual, for any number of features."""
        return super().gamma_for_rate(rate, 2)

    def predict(self, theta: Vector, features: Vector) -> Vector:
        """Return the expected target of each row."""
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


@dataclass(frozen=True)
class LogisticRegression(Regression):
    """Logistic regression P(y = 1 | x) = 1/(1 + exp(−coef·x − intercept)).

    The target is 0 or 1 (or a bool); a point with any other is invalid. `score` is the log-loss; the norm `whitened`
    is the Pearson residual |y − p|/√(p(1−p)): γ rejects labels that are improbable under the model.

    Parameters
    ----------
    l2
        Penalty λ on the coefficients, in standardized units.

    Examples
    --------
    >>> LogisticRegression(l2=0.01)
    LogisticRegression(l2=0.01)
    """

    support_description: ClassVar[str] = "finite features, a target of 0 or 1"

    def kernels(self, width: int) -> ModelKernels:
        """Return the compiled functions for this number of features."""
        return _logistic_regression_kernels(width - 1)

    def gamma_for_rate(self, rate: float, width: int) -> float:
        """Return the γ beyond which the label had a smaller probability than `rate`."""
        return math.sqrt((1.0 - rate) / rate)

    def predict(self, theta: Vector, features: Vector) -> Vector:
        """Return the probability of 1 for each row."""
        return 1.0 / (1.0 + np.exp(-np.clip(self.predict_standardized(theta, features), -700.0, 700.0)))


@cache
def _logistic_regression_kernels(p: int) -> ModelKernels:
    residual, odds = p + 1, p + 2

    @kernel
    def evaluate(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """Return log(1 + exp(−z)), z the linear predictor with the sign of the label."""
        z = linear_predictor(theta, y, work, p)
        z = z if y[p] > 0.5 else -z
        exp_neg_margin = exp(-abs(z))
        other_probability = exp_neg_margin / (1.0 + exp_neg_margin) if z > 0.0 else 1.0 / (1.0 + exp_neg_margin)
        work[residual] = other_probability if y[p] > 0.5 else -other_probability
        work[odds] = exp(-z)
        return log(1.0 + exp_neg_margin) + (0.0 if z > 0.0 else -z)

    @kernel
    def whitened(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        """Return the odds of the other label, (y − p)²/(p(1 − p))."""
        return work[odds]

    @kernel
    def advance(theta: Vector, y: Vector, hyper: Vector, work: Vector, rho: float, missing: bool) -> None:
        capped_gradient_step(theta, hyper, work, p, rho, 0.25)

    @kernel
    def is_valid(y: Vector) -> bool:
        return y[p] == 0.0 or y[p] == 1.0

    return make_regression_kernels(p, evaluate, whitened, advance, is_valid, scaled_target=False)
