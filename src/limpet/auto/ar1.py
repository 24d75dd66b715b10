"""What the last point tells of the next: the residual of each coordinate after its lag-1 autoregression."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from limpet._jit.compile import kernel
from limpet._jit.math import averaging_step, maximum
from limpet.auto.density_scorer import MIN_CORE_STEP
from limpet.core.state import Layout, Vector
from limpet.models._outlier_screening import BoolArray

MAX_POINTS_AFTER_CHANGE = 12.0  # points that the moments go by after a change
MIN_VARIANCE = 1e-18  # variance, in the frame's units

# lag = for each coordinate [ mean | variance | covariance with the one before | last value ], then the points counted
MEAN, VARIANCE, COVARIANCE, LAST_VALUE, VALUES_PER_VARIABLE = 0, 1, 2, 3, 4


def ar1_fields(d: int) -> dict[str, tuple[int, ...]]:
    """What is kept."""
    return {"ar1": (VALUES_PER_VARIABLE * d + 1,)}


@dataclass(frozen=True, eq=False)
class ResidualModel:
    """The compiled functions of what is known of a point from those before it; `work` is its own area."""

    deseason: Callable[..., Any]
    """(theta, point): takes out of the point what the time of the season tells; before everything else."""

    compute_residual: Callable[..., Any]
    """(theta, point, out, work): what the past did not tell; NaN where a coordinate is missing."""

    compute_isolated_residual: Callable[..., Any]
    """(theta, point, out): the same for a point of which it is not known what came before, by what is likely to."""

    learn: Callable[..., Any]
    """(theta, point, rejected, work): right after `residual`; a point that is rejected becomes past. Whether it teaches
    anything, the memory decides."""

    observe_only: Callable[..., Any]
    """(theta, point, work): the same for a point that teaches nothing."""

    tick: Callable[..., Any]
    """(theta): a point has passed that could not be used."""

    work_size: int


@kernel
def noop_tick(theta: Vector) -> None:
    """For a memory that does not count time."""


@kernel
def noop_deseason(theta: Vector, point: Vector) -> None:
    """For a memory without a season."""


def make_ar1(layout: Layout, d: int) -> ResidualModel:
    """The lag-1 autoregression of a stream whose fields lie in theta as `layout` says."""
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
    def compute_isolated_residual(theta: Vector, point: Vector, out: Vector) -> None:
        """Given a point, the one before it is likely to have been φ times as far from the mean."""
        for i in range(d):
            base = offset + VALUES_PER_VARIABLE * i
            phi = estimate_phi(theta, base)
            out[i] = (1.0 - phi * phi) * (point[i] - theta[base + MEAN])

    @kernel
    def learn(theta: Vector, point: Vector, rejected: bool, work: Vector) -> None:
        count = offset + VALUES_PER_VARIABLE * d
        if not rejected:
            theta[count] += 1.0
        step = averaging_step(theta[count], MIN_CORE_STEP)
        for i in range(d):
            base = offset + VALUES_PER_VARIABLE * i
            mean, before = theta[base + MEAN], theta[base + LAST_VALUE] - theta[base + MEAN]
            if point[i] != point[i]:  # missing: what is expected of it
                theta[base + LAST_VALUE] = mean + estimate_phi(theta, base) * before
                continue
            if not rejected:
                delta = point[i] - mean
                theta[base + MEAN] += step * delta
                theta[base + VARIANCE] += step * (delta * delta - theta[base + VARIANCE])
                theta[base + COVARIANCE] += step * (delta * before - theta[base + COVARIANCE])
            theta[base + LAST_VALUE] = point[i]

    @kernel
    def observe_only(theta: Vector, point: Vector, work: Vector) -> None:
        learn(theta, point, True, work)

    return ResidualModel(noop_deseason, compute_residual, compute_isolated_residual, learn, observe_only, noop_tick, 0)


def reset_ar1(state: Vector, mean: Vector, variance: Vector) -> None:
    """After a change: another level and spread, the same dependence, and few points that it is known from."""
    moments = state[:-1].reshape(len(mean), VALUES_PER_VARIABLE)
    phi = np.clip(moments[:, COVARIANCE] / np.maximum(moments[:, VARIANCE], MIN_VARIANCE), -1.0, 1.0)
    moments[:, MEAN], moments[:, VARIANCE], moments[:, COVARIANCE] = mean, variance, phi * variance
    state[-1] = min(state[-1], MAX_POINTS_AFTER_CHANGE)


@kernel
def init_ar1(state: Vector, points: Vector, inliers: BoolArray, i: int, residuals: Vector) -> None:
    """The moments of coordinate i of the normal points (n, d) and their predecessors; the residuals of all points."""
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
    state[base + MEAN], state[base + LAST_VALUE], state[base + VARIANCE], state[base + COVARIANCE] = (
        mean,
        mean,
        variance,
        covariance,
    )
    phi = covariance / variance
    phi = 1.0 if phi > 1.0 else maximum(phi, -1.0)
    before = 0.0
    for t in range(n):
        deviation = points[t, i] - mean
        residuals[t, i] = deviation - phi * before
        before = deviation if deviation == deviation else 0.0
