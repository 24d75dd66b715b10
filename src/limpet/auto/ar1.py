"""Residual of each coordinate after its lag-1 autoregression."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from limpet._jit.compile import kernel
from limpet._jit.math import averaging_step, maximum
from limpet.auto.density_scorer import MIN_CORE_STEP
from limpet.core.state import Layout, Vector
from limpet.models._standardization import BoolArray
from limpet.models.components.gaussian_full import MIN_VARIANCE

MAX_POINTS_AFTER_CHANGE = 12.0  # effective sample size of the moments after a change

# state = for each coordinate [ mean | variance | lag-1 covariance | last value ], then the number of points
MEAN, VARIANCE, COVARIANCE, LAST_VALUE, VALUES_PER_VARIABLE = 0, 1, 2, 3, 4


class ResidualModel(NamedTuple):
    """Compiled functions of a prediction from previous points."""

    deseason: Callable[..., Any]  # (theta, point): subtract the seasonal profile from the point, before everything else
    compute_residual: Callable[..., Any]  # (theta, point, out, work): the residual; NaN where a coordinate is missing
    # (theta, point, out, work): the same for a point with unknown predecessors, by their expectation
    compute_isolated_residual: Callable[..., Any]
    # (theta, point, rejected, without_learning, work): right after `compute_residual`; every point is a predecessor.
    # Whether a rejected one is learned from is decided by the model.
    observe: Callable[..., Any]
    tick: Callable[..., Any]  # (theta): count an invalid point
    work_size: int


@kernel
def noop_tick(theta: Vector) -> None:
    """Do nothing, for a model that does not count time."""


@kernel
def noop_deseason(theta: Vector, point: Vector) -> None:
    """Do nothing, for a model without a season."""


def make_ar1(layout: Layout, d: int) -> ResidualModel:
    """Return the lag-1 autoregression for a layout of theta."""
    offset = layout.offset("ar1")

    @kernel
    def estimate_phi(theta: Vector, base: int) -> float:
        phi = theta[base + COVARIANCE] / maximum(theta[base + VARIANCE], MIN_VARIANCE)
        return 1.0 if phi > 1.0 else maximum(phi, -1.0)

    @kernel
    def compute_residual(theta: Vector, point: Vector, out: Vector, work: Vector) -> None:
        for i in range(d):
            base = offset + VALUES_PER_VARIABLE * i
            mean = theta[base + MEAN]
            out[i] = point[i] - mean - estimate_phi(theta, base) * (theta[base + LAST_VALUE] - mean)

    @kernel
    def compute_isolated_residual(theta: Vector, point: Vector, out: Vector, work: Vector) -> None:
        """Take φ times the deviation of the point as that of its predecessor."""
        for i in range(d):
            base = offset + VALUES_PER_VARIABLE * i
            phi = estimate_phi(theta, base)
            out[i] = (1.0 - phi * phi) * (point[i] - theta[base + MEAN])

    @kernel
    def observe(theta: Vector, point: Vector, rejected: bool, without_learning: bool, work: Vector) -> None:
        count = offset + VALUES_PER_VARIABLE * d
        if not rejected:
            theta[count] += 1.0
        step = averaging_step(theta[count], MIN_CORE_STEP)
        for i in range(d):
            base = offset + VALUES_PER_VARIABLE * i
            mean, before = theta[base + MEAN], theta[base + LAST_VALUE] - theta[base + MEAN]
            if point[i] != point[i]:  # missing: imputed by its expectation
                theta[base + LAST_VALUE] = mean + estimate_phi(theta, base) * before
                continue
            if not rejected:
                delta = point[i] - mean
                theta[base + MEAN] += step * delta
                theta[base + VARIANCE] += step * (delta * delta - theta[base + VARIANCE])
                theta[base + COVARIANCE] += step * (delta * before - theta[base + COVARIANCE])
            theta[base + LAST_VALUE] = point[i]

    return ResidualModel(noop_deseason, compute_residual, compute_isolated_residual, observe, noop_tick, 0)


def reset_ar1(state: Vector, mean: Vector, variance: Vector) -> None:
    """Reset level and spread after a change; keep φ."""
    moments = state[:-1].reshape(len(mean), VALUES_PER_VARIABLE)
    phi = np.clip(moments[:, COVARIANCE] / np.maximum(moments[:, VARIANCE], MIN_VARIANCE), -1.0, 1.0)
    moments[:, MEAN], moments[:, VARIANCE], moments[:, COVARIANCE] = mean, variance, phi * variance
    state[-1] = min(state[-1], MAX_POINTS_AFTER_CHANGE)


@kernel
def init_ar1(state: Vector, points: Vector, inliers: BoolArray, i: int, residuals: Vector) -> None:
    """Initialize the moments of coordinate i from inliers; compute residuals."""
    n, base = len(points), VALUES_PER_VARIABLE * i
    count, mean, variance, covariance = 0.0, 0.0, 0.0, 0.0
    for t in range(n):
        if inliers[t] and points[t, i] == points[t, i]:
            count += 1.0
            mean += points[t, i]
    mean = mean / count if count > 0.0 else 0.0
    before = math.nan
    for t in range(n):
        deviation = points[t, i] - mean if inliers[t] else math.nan
        variance += deviation * deviation if deviation == deviation else 0.0
        covariance += deviation * before if deviation * before == deviation * before else 0.0
        before = deviation
    variance = maximum(variance / maximum(count, 1.0), MIN_VARIANCE)
    covariance /= maximum(n - 1.0, 1.0)
    state[base + MEAN], state[base + LAST_VALUE] = mean, mean
    state[base + VARIANCE], state[base + COVARIANCE] = variance, covariance
    phi = covariance / variance
    phi = 1.0 if phi > 1.0 else maximum(phi, -1.0)
    before = 0.0
    for t in range(n):
        deviation = points[t, i] - mean
        residuals[t, i] = deviation - phi * before
        before = deviation if deviation == deviation else 0.0
