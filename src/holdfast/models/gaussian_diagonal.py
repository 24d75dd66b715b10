"""A Gaussian with a diagonal covariance as a component: [ mean (d) | variances (d) ]."""

from __future__ import annotations

import math

from holdfast.models.component import Component
from holdfast.models.gaussian_full import CHUNK, SMALLEST_VARIANCE
from holdfast.models.penalty import COVARIANCE, MEAN, centre_of, scale_of
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import NOTHING, at_least, fma, log
from holdfast.scheme.state import Vector


def size(d: int) -> int:
    """Mean and variances."""
    return 2 * d


def work(d: int) -> int:
    """None."""
    return 0


@kernel
def evaluate(
    theta: Vector, at: int, y: Vector, y_at: int, d: int, work: Vector, work_at: int
) -> tuple[float, float, float]:
    """q = Σ (y − μ)²/σ², 1/|Σ| = Π 1/σ²."""
    exponent, precision, q = NOTHING, 1.0, NOTHING
    for i in range(d):
        inverse = 1.0 / at_least(theta[at + d + i], SMALLEST_VARIANCE)
        delta = y[y_at + i] - theta[at + i]
        q += delta * delta * inverse
        precision *= inverse
        if i % CHUNK == CHUNK - 1 and i < d - 1:
            exponent += 0.5 * log(precision)
            precision = 1.0
    return exponent, precision, q


@kernel
def complete(
    theta: Vector,
    at: int,
    y: Vector,
    y_at: int,
    d: int,
    work: Vector,
    work_at: int,
    completed: Vector,
    completed_at: int,
) -> tuple[float, float, float]:
    """The observed coordinates' density; a missing one is expected at its mean, with its variance."""
    exponent, q = 0.0, 0.0
    for i in range(d):
        inverse = 1.0 / at_least(theta[at + d + i], SMALLEST_VARIANCE)
        if math.isnan(y[y_at + i]):
            completed[completed_at + i] = theta[at + i]
            completed[completed_at + d + i] = theta[at + d + i]
        else:
            delta = y[y_at + i] - theta[at + i]
            q += delta * delta * inverse
            exponent += 0.5 * log(inverse)
            completed[completed_at + i] = y[y_at + i]
            completed[completed_at + d + i] = 0.0
    return exponent, 1.0, q


@kernel
def advance(theta: Vector, at: int, y: Vector, y_at: int, d: int, a: float, completed: bool) -> None:
    """μ ← μ + aδ and σ² ← (1−a)(σ² + aδ²), plus a times the conditional variance, if completed."""
    for i in range(d):
        delta = y[y_at + i] - theta[at + i]
        moved = (1.0 - a) * fma(a * delta, delta, theta[at + d + i])
        if completed:
            moved += a * y[y_at + d + i]
        theta[at + d + i] = moved
        theta[at + i] = fma(a, delta, theta[at + i])


@kernel
def further_statistics(
    theta: Vector,
    at: int,
    weight: float,
    r: float,
    y: Vector,
    y_at: int,
    d: int,
    frame: Vector,
    completed: bool,
) -> float:
    """Σ_i (w(σ² + μ²) − r·E[y²])², in the units of the data."""
    total = 0.0
    for i in range(d):
        scale = frame[d + i]
        mean_i = frame[i] + scale * theta[at + i]
        y_i = frame[i] + scale * y[y_at + i]
        moment = y_i * y_i
        if completed:
            moment += scale * scale * y[y_at + d + i]
        h = weight * (scale * scale * theta[at + d + i] + mean_i * mean_i) - r * moment
        total += h * h
    return total


@kernel
def maximise(
    theta: Vector, at: int, weight: float, d: int, penalty: Vector, frame: Vector, out: Vector, out_at: int
) -> None:
    """As for a full covariance, of which the diagonal is kept."""
    kappa, nu = penalty[MEAN], penalty[COVARIANCE]
    pull = weight * kappa / (weight + kappa) if kappa > 0.0 else 0.0
    for i in range(d):
        centre = centre_of(penalty, frame, d, i)
        off = theta[at + i] - centre
        spread = scale_of(penalty, frame, d, i)
        out[out_at + i] = (weight * theta[at + i] + kappa * centre) / (weight + kappa)
        s = weight * theta[at + d + i] + pull * off * off + nu * spread * spread
        out[out_at + d + i] = s / (weight + nu)


@kernel
def place(theta: Vector, at: int, y: Vector, y_at: int, d: int, variances: Vector) -> None:
    """Mean y, these variances."""
    for i in range(d):
        theta[at + i] = y[y_at + i]
        theta[at + d + i] = variances[i]


@kernel
def spread(theta: Vector, at: int, d: int, variances: Vector, share: float) -> None:
    """The variances."""
    for i in range(d):
        variances[i] += share * theta[at + d + i]


@kernel
def widen(theta: Vector, at: int, d: int, variances: Vector, share: float) -> None:
    """σ² ← (1 − share)·σ² + share·variances."""
    for i in range(d):
        theta[at + d + i] += share * (variances[i] - theta[at + d + i])


DIAGONAL = Component(size, work, evaluate, complete, advance, further_statistics, maximise, place, spread, widen)
