"""What linear and logistic regression have in common: stochastic gradient descent in standardised coordinates.

theta = [ reference (p+1) | scale (p+1) | coefficients (p) | intercept | variance ]

Reference and scale come from the first points; the last entry of each belongs to the target. The coefficients are
learnt on (x − reference)/scale, so that one step size suits all units; `coef` and `intercept` are given in those of
the data. A feature that is missing (NaN) is taken at its reference. H = λθ + ∇ℓ(θ) (Section 3.3 of the paper); the
intercept is not penalised.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from holdfast.checks import check_positive
from holdfast.models.base import Model
from holdfast.models.frame import clip_coordinate, fit_location_scale, standardize
from holdfast.scheme.compiling import kernel
from holdfast.scheme.functions import AdvanceKernel, EvaluateKernel, ModelKernels, SquaredNormKernel
from holdfast.scheme.state import Layout, Vector

HYPER_L2 = 0  # hyper = [ λ ]


@cache
def make_regression_layout(p: int) -> Layout:
    """The fields of theta for p features."""
    return Layout({"reference": (p + 1,), "scale": (p + 1,), "coef": (p,), "intercept": (1,), "variance": (1,)})


def init_regression(points: Vector, theta: Vector, scaled_target: bool) -> None:
    """Reference and scale from the first points; no effect of any feature yet, whatever outliers there are."""
    p = points.shape[1] - 1
    reference, scale = fit_location_scale(points)
    if not scaled_target:
        reference[p], scale[p] = 0.0, 1.0
    theta[:] = 0.0
    theta[: p + 1] = reference
    theta[p + 1 : 2 * p + 2] = scale
    theta[-1] = 1.0


@kernel
def standardize_entry(y: Vector, i: int, theta: Vector, p: int) -> float:
    """Entry i of the point in standardised coordinates; 0, the reference, if it is missing."""
    x = (y[i] - theta[i]) / theta[p + 1 + i]
    if math.isnan(x):
        return 0.0
    return clip_coordinate(x)


@kernel
def linear_predictor(theta: Vector, y: Vector, work: Vector, p: int) -> float:
    """b·x + b0; leaves the standardised features in `work` and their squared length in work[p]."""
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
def gradient_norm(theta: Vector, hyper: Vector, work: Vector, p: int) -> float:
    """‖H‖² over coefficients and intercept, H = λb − e·x; the residual e is in work[p + 1]."""
    e = work[p + 1]
    total = e * e
    for i in range(p):
        h = hyper[HYPER_L2] * theta[2 * p + 2 + i] - e * work[i]
        total += h * h
    return total


@kernel
def capped_gradient_step(theta: Vector, hyper: Vector, work: Vector, p: int, rho: float, curvature: float) -> None:
    """θ ← θ − ρH, the step cut at 1/(curvature·(1 + |x|²) + λ): neither point nor penalty is ever overshot."""
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
    """Algorithm 1's functions for a regression on p features, given what is particular to it.

    `evaluate` leaves the features in work[:p], their squared length in work[p] and the residual in work[p + 1]; one
    further entry of `work` is its own. scaled_target: whether the target is standardised as the features are.
    """
    coef, scale = 2 * p + 2, p + 1

    @kernel
    def full(theta: Vector, y: Vector, hyper: Vector, work: Vector, missing: bool) -> float:
        return gradient_norm(theta, hyper, work, p)

    @kernel
    def estimate(theta: Vector, hyper: Vector, work: Vector, out: Vector) -> None:
        for i in range(p):
            out[i] = theta[coef + i] * theta[scale + p] / theta[scale + i]

    def init(points: Vector, theta: Vector, hyper: Vector, seed: int) -> None:
        init_regression(points, theta, scaled_target)

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
    """Base of the regressions. l2: the penalty λ on the coefficients, in standardised units."""

    l2: float = 0.0

    estimates: ClassVar[tuple[str, ...]] = ("coef", "intercept")
    recordable: ClassVar[str] = "coef"
    supervised: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("l2", self.l2, allow_zero=True)

    def hyperparameters(self, width: int) -> Vector:
        """[ λ ]."""
        return np.array([self.l2])

    def estimate(self, name: str, theta: Vector, width: int) -> Any:
        """`coef` (p,) and `intercept`, in the units of the data."""
        p = width - 1
        view = make_regression_layout(p).view
        reference, scale = view(theta, "reference"), view(theta, "scale")
        coef = view(theta, "coef") * scale[p] / scale[:p]
        if name == "coef":
            return coef
        return float(reference[p] + scale[p] * view(theta, "intercept")[0] - coef @ reference[:p])

    @staticmethod
    def predict_standardized(theta: Vector, features: Vector) -> Vector:
        """b·x + b0 for each row, in standardised units of the target."""
        p = features.shape[1]
        view = make_regression_layout(p).view
        x = standardize(features, view(theta, "reference")[:p], view(theta, "scale")[:p])
        result: Vector = np.nan_to_num(x, nan=0.0) @ view(theta, "coef") + view(theta, "intercept")
        return result
