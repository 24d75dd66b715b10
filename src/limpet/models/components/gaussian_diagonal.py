"""Gaussian component with diagonal covariance: [ mean (d) | variances (d) ]."""

from __future__ import annotations

import math

from limpet._jit.compile import kernel
from limpet._jit.math import NEGATIVE_ZERO, fma, log, maximum
from limpet.core.state import Vector
from limpet.models.components.base import Component, no_workspace
from limpet.models.components.gaussian_full import LOG_CHUNK_PIVOTS, MIN_VARIANCE
from limpet.models.priors import PRIOR_COVARIANCE, PRIOR_MEAN, prior_center, prior_scale


def n_parameters(d: int) -> int:
    """Return the number of means and variances."""
    return 2 * d


@kernel
def evaluate(
    theta: Vector, offset: int, y: Vector, y_offset: int, d: int, work: Vector, work_offset: int
) -> tuple[float, float, float]:
    """Compute q = Σ (y − μ)²/σ² and 1/|Σ| = Π 1/σ²."""
    exponent, precision, q = NEGATIVE_ZERO, 1.0, NEGATIVE_ZERO
    for i in range(d):
        inverse = 1.0 / maximum(theta[offset + d + i], MIN_VARIANCE)
        delta = y[y_offset + i] - theta[offset + i]
        q += delta * delta * inverse
        precision *= inverse
        if i % LOG_CHUNK_PIVOTS == LOG_CHUNK_PIVOTS - 1 and i < d - 1:
            exponent += 0.5 * log(precision)
            precision = 1.0
    return exponent, precision, q


@kernel
def impute(
    theta: Vector,
    offset: int,
    y: Vector,
    y_offset: int,
    d: int,
    work: Vector,
    work_offset: int,
    imputed: Vector,
    imputed_offset: int,
) -> tuple[float, float, float]:
    """Impute a missing coordinate by its mean, with its variance."""
    exponent, q = 0.0, 0.0
    for i in range(d):
        inverse = 1.0 / maximum(theta[offset + d + i], MIN_VARIANCE)
        if math.isnan(y[y_offset + i]):
            imputed[imputed_offset + i] = theta[offset + i]
            imputed[imputed_offset + d + i] = theta[offset + d + i]
        else:
            delta = y[y_offset + i] - theta[offset + i]
            q += delta * delta * inverse
            exponent += 0.5 * log(inverse)
            imputed[imputed_offset + i] = y[y_offset + i]
            imputed[imputed_offset + d + i] = 0.0
    return exponent, 1.0, q


@kernel
def advance(theta: Vector, offset: int, y: Vector, y_offset: int, d: int, a: float, imputed: bool) -> None:
    """Apply μ ← μ + aδ and σ² ← (1−a)(σ² + aδ²), plus imputed variances."""
    for i in range(d):
        delta = y[y_offset + i] - theta[offset + i]
        moved = (1.0 - a) * fma(a * delta, delta, theta[offset + d + i])
        if imputed:
            moved += a * y[y_offset + d + i]
        theta[offset + d + i] = moved
        theta[offset + i] = fma(a, delta, theta[offset + i])


@kernel
def higher_order_norm(
    theta: Vector, offset: int, weight: float, r: float, y: Vector, y_offset: int, d: int, units: Vector, imputed: bool
) -> float:
    """Return Σ_i (w(σ² + μ²) − r·E[y²])², in the units of the data."""
    total = 0.0
    for i in range(d):
        scale = units[d + i]
        mean_i = units[i] + scale * theta[offset + i]
        y_i = units[i] + scale * y[y_offset + i]
        moment = y_i * y_i
        if imputed:
            moment += scale * scale * y[y_offset + d + i]
        h = weight * (scale * scale * theta[offset + d + i] + mean_i * mean_i) - r * moment
        total += h * h
    return total


@kernel
def m_step(
    theta: Vector, offset: int, weight: float, d: int, penalty: Vector, units: Vector, out: Vector, out_offset: int
) -> None:
    """As for a full covariance, of which the diagonal is kept."""
    kappa, nu = penalty[PRIOR_MEAN], penalty[PRIOR_COVARIANCE]
    pull = weight * kappa / (weight + kappa) if kappa > 0.0 else 0.0
    for i in range(d):
        center = prior_center(penalty, units, d, i)
        deviation = theta[offset + i] - center
        prior_sd = prior_scale(penalty, units, d, i)
        out[out_offset + i] = (weight * theta[offset + i] + kappa * center) / (weight + kappa)
        s = weight * theta[offset + d + i] + pull * deviation * deviation + nu * prior_sd * prior_sd
        out[out_offset + d + i] = s / (weight + nu)


@kernel
def init_at_point(theta: Vector, offset: int, y: Vector, y_offset: int, d: int, variances: Vector) -> None:
    """Set the mean to y, and the variances."""
    for i in range(d):
        theta[offset + i] = y[y_offset + i]
        theta[offset + d + i] = variances[i]


@kernel
def add_variances(theta: Vector, offset: int, d: int, variances: Vector, share: float) -> None:
    """Add the variances."""
    for i in range(d):
        variances[i] += share * theta[offset + d + i]


@kernel
def regularize(theta: Vector, offset: int, d: int, variances: Vector, share: float) -> None:
    """Apply σ² ← (1 − share)·σ² + share·variances."""
    for i in range(d):
        theta[offset + d + i] += share * (variances[i] - theta[offset + d + i])


DIAGONAL_GAUSSIAN = Component(
    n_parameters,
    no_workspace,
    evaluate,
    impute,
    advance,
    higher_order_norm,
    m_step,
    init_at_point,
    add_variances,
    regularize,
)
