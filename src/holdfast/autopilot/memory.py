"""What the last point tells of the next: the residual of each coordinate after its lag-1 autoregression."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.autopilot.view import SLOWLY
from holdfast.models.trusting import Flags
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import at_least, step_of
from holdfast.scheme.state import Layout, Vector

KNOWN_ANEW = 12.0  # points that the moments go by after a change
SMALLEST = 1e-18  # variance, in the frame's units

# lag = for each coordinate [ mean | variance | covariance with the one before | last value ], then the points counted
MEAN, VARIANCE, COVARIANCE, LAST, PER_VARIABLE = 0, 1, 2, 3, 4


def lag_fields(d: int) -> dict[str, tuple[int, ...]]:
    """What is kept."""
    return {"lag": (PER_VARIABLE * d + 1,)}


@dataclass(frozen=True, eq=False)
class Memory:
    """The compiled functions of what is known of a point from those before it; `work` is its own area."""

    deseason: Callable[..., Any]
    """(theta, point): takes out of the point what the time of the season tells; before everything else."""

    residual: Callable[..., Any]
    """(theta, point, out, work): what the past did not tell; NaN where a coordinate is missing."""

    residual_alone: Callable[..., Any]
    """(theta, point, out): the same for a point of which it is not known what came before, by what is likely to."""

    learn: Callable[..., Any]
    """(theta, point, rejected, work): right after `residual`; a point that is rejected becomes past. Whether it teaches
    anything, the memory decides."""

    pass_by: Callable[..., Any]
    """(theta, point, work): the same for a point that teaches nothing."""

    tick: Callable[..., Any]
    """(theta): a point has passed that could not be used."""

    work_size: int


@kernel
def no_clock(theta: Vector) -> None:
    """For a memory that does not count time."""


@kernel
def no_season(theta: Vector, point: Vector) -> None:
    """For a memory without a season."""


def lag_memory(layout: Layout, d: int) -> Memory:
    """The lag-1 autoregression of a stream whose fields lie in theta as `layout` says."""
    at = layout.at("lag")

    @kernel
    def slope(theta: Vector, own: int) -> float:
        phi = theta[own + COVARIANCE] / at_least(theta[own + VARIANCE], SMALLEST)
        return 1.0 if phi > 1.0 else at_least(phi, -1.0)

    @kernel
    def residual(theta: Vector, point: Vector, out: Vector, work: Vector) -> None:
        for i in range(d):
            own = at + PER_VARIABLE * i
            mean = theta[own + MEAN]
            out[i] = point[i] - mean - slope(theta, own) * (theta[own + LAST] - mean)

    @kernel
    def residual_alone(theta: Vector, point: Vector, out: Vector) -> None:
        """Given a point, the one before it is likely to have been φ times as far from the mean."""
        for i in range(d):
            own = at + PER_VARIABLE * i
            phi = slope(theta, own)
            out[i] = (1.0 - phi * phi) * (point[i] - theta[own + MEAN])

    @kernel
    def learn(theta: Vector, point: Vector, rejected: bool, work: Vector) -> None:
        count = at + PER_VARIABLE * d
        if not rejected:
            theta[count] += 1.0
        step = step_of(theta[count], SLOWLY)
        for i in range(d):
            own = at + PER_VARIABLE * i
            mean, before = theta[own + MEAN], theta[own + LAST] - theta[own + MEAN]
            if point[i] != point[i]:  # missing: what is expected of it
                theta[own + LAST] = mean + slope(theta, own) * before
                continue
            if not rejected:
                delta = point[i] - mean
                theta[own + MEAN] += step * delta
                theta[own + VARIANCE] += step * (delta * delta - theta[own + VARIANCE])
                theta[own + COVARIANCE] += step * (delta * before - theta[own + COVARIANCE])
            theta[own + LAST] = point[i]

    @kernel
    def pass_by(theta: Vector, point: Vector, work: Vector) -> None:
        learn(theta, point, True, work)

    return Memory(no_season, residual, residual_alone, learn, pass_by, no_clock, 0)


def recentre_lag(lag: Vector, mean: Vector, variance: Vector) -> None:
    """After a change: another level and spread, the same dependence, and few points that it is known from."""
    own = lag[:-1].reshape(len(mean), PER_VARIABLE)
    slope = np.clip(own[:, COVARIANCE] / np.maximum(own[:, VARIANCE], SMALLEST), -1.0, 1.0)
    own[:, MEAN], own[:, VARIANCE], own[:, COVARIANCE] = mean, variance, slope * variance
    lag[-1] = min(lag[-1], KNOWN_ANEW)


@kernel
def start_lag(lag: Vector, points: Vector, normal: Flags, i: int, rests: Vector) -> None:
    """The moments of coordinate i of the normal points (n, d) and their predecessors; the residuals of all points."""
    n, own = len(points), PER_VARIABLE * i
    count, mean, variance, covariance = 0.0, 0.0, 0.0, 0.0
    for t in range(n):
        if normal[t] and points[t, i] == points[t, i]:
            count += 1.0
            mean += points[t, i]
    mean = mean / count if count > 0.0 else 0.0
    before = math.nan
    for t in range(n):
        off = points[t, i] - mean if normal[t] else math.nan
        variance += off * off if off == off else 0.0
        covariance += off * before if off * before == off * before else 0.0
        before = off
    variance = at_least(variance / at_least(count, 1.0), SMALLEST)
    covariance /= at_least(n - 1.0, 1.0)
    lag[own + MEAN], lag[own + LAST], lag[own + VARIANCE], lag[own + COVARIANCE] = mean, mean, variance, covariance
    phi = covariance / variance
    phi = 1.0 if phi > 1.0 else at_least(phi, -1.0)
    before = 0.0
    for t in range(n):
        off = points[t, i] - mean
        rests[t, i] = off - phi * before
        before = off if off == off else 0.0
