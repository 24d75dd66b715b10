"""Gaussian component with full covariance: [ mean | lower triangle by rows ]."""

from __future__ import annotations

import math

from limpet._jit.compile import kernel
from limpet._jit.math import NEGATIVE_ZERO, fma, log, maximum
from limpet.core.state import Vector
from limpet.models.components.base import Component
from limpet.models.priors import PRIOR_COVARIANCE, PRIOR_MEAN, prior_center, prior_scale

MIN_PIVOT_SHARE = 1e-10  # share of a variable's variance that is left at least when the others are known
MIN_VARIANCE = 1e-18  # relative to the spread of the first points: a standard deviation of a billionth of it
LOG_CHUNK_PIVOTS = 4  # pivots multiplied before a logarithm is taken, so that their product stays far from overflow


def n_parameters(d: int) -> int:
    """Return the number of entries of mean and packed covariance."""
    return d + d * (d + 1) // 2


def work_size(d: int) -> int:
    """Return the size of L, L·D, 1/D, z and the indices of coordinates."""
    return d * (d + 1) + 3 * d


@kernel
def evaluate(
    theta: Vector, offset: int, y: Vector, y_offset: int, d: int, work: Vector, work_offset: int
) -> tuple[float, float, float]:
    """Factorize Σ = L·D·Lᵀ: z = L⁻¹(y − μ), q = Σ z²/D, 1/|Σ| = Π 1/D."""
    lower = work_offset
    scaled = lower + d * (d + 1) // 2  # L·D
    inverse = scaled + d * (d + 1) // 2
    z = inverse + d
    covariance = offset + d
    exponent, precision, q = NEGATIVE_ZERO, 1.0, NEGATIVE_ZERO
    for i in range(d):
        row = i * (i + 1) // 2
        variance = theta[covariance + row + i]
        pivot = variance
        residual = y[y_offset + i] - theta[offset + i]
        for j in range(i):
            s = theta[covariance + row + j]
            for m in range(j):
                s -= work[scaled + row + m] * work[lower + j * (j + 1) // 2 + m]
            work[scaled + row + j] = s
            factor = s * work[inverse + j]
            work[lower + row + j] = factor
            pivot -= factor * s
            residual -= factor * work[z + j]
        if i > 0:
            pivot = maximum(pivot, MIN_PIVOT_SHARE * variance)
        inverse_pivot = 1.0 / maximum(pivot, MIN_VARIANCE)
        work[inverse + i] = inverse_pivot
        work[z + i] = residual
        q += residual * residual * inverse_pivot
        precision *= inverse_pivot
        if i % LOG_CHUNK_PIVOTS == LOG_CHUNK_PIVOTS - 1 and i < d - 1:
            exponent += 0.5 * log(precision)
            precision = 1.0
    return exponent, precision, q


@kernel
def advance(theta: Vector, offset: int, y: Vector, y_offset: int, d: int, a: float, imputed: bool) -> None:
    """Apply μ ← μ + aδ and Σ ← (1−a)(Σ + aδδᵀ), plus imputed covariances."""
    covariance = offset + d
    retained_share = 1.0 - a
    for i in range(d):
        row = i * (i + 1) // 2
        delta = y[y_offset + i] - theta[offset + i]
        for j in range(i + 1):
            delta_j = y[y_offset + j] - theta[offset + j]
            moved = retained_share * fma(a * delta, delta_j, theta[covariance + row + j])
            if imputed:
                moved += a * y[y_offset + d + row + j]
            theta[covariance + row + j] = moved
    for i in range(d):
        theta[offset + i] = fma(a, y[y_offset + i] - theta[offset + i], theta[offset + i])


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
    """Compute the density of observed coordinates; impute the others.

    The factors of the observed block are extended by one row at a time for each missing coordinate m: the row holds
    L⁻¹Σ_om, from which the conditional mean is μ_m + row·D⁻¹z and the conditional covariance Σ_mm' − row·D⁻¹row'.
    """
    lower = work_offset
    inverse = lower + d * (d + 1)
    z = inverse + d
    order = z + d  # the observed coordinates first, then the missing ones
    covariance = offset + d
    observed = 0
    for i in range(d):
        if not math.isnan(y[y_offset + i]):
            work[order + observed] = i
            observed += 1
    last = observed
    for i in range(d):
        if math.isnan(y[y_offset + i]):
            work[order + last] = i
            last += 1
    exponent, precision, q = NEGATIVE_ZERO, 1.0, NEGATIVE_ZERO
    for p in range(d):
        i = int(work[order + p])
        residual = 0.0 if p >= observed else y[y_offset + i] - theta[offset + i]
        variance = theta[covariance + i * (i + 1) // 2 + i]
        pivot = variance
        known = min(p, observed)
        for r in range(known):  # work[lower + p·d + r] = L_pr · D_r
            j = int(work[order + r])
            high, low = max(i, j), min(i, j)
            s = theta[covariance + high * (high + 1) // 2 + low]
            for m in range(r):
                s -= work[lower + p * d + m] * work[lower + r * d + m] * work[inverse + m]
            work[lower + p * d + r] = s
            pivot -= s * s * work[inverse + r]
            residual -= s * work[inverse + r] * work[z + r]
        if p < observed:
            inverse_pivot = 1.0 / maximum(maximum(pivot, MIN_PIVOT_SHARE * variance), MIN_VARIANCE)
            work[inverse + p] = inverse_pivot
            work[z + p] = residual
            q += residual * residual * inverse_pivot
            exponent += 0.5 * log(inverse_pivot)
            imputed[imputed_offset + i] = y[y_offset + i]
        else:
            imputed[imputed_offset + i] = theta[offset + i] - residual
    for i in range(d * (d + 1) // 2):
        imputed[imputed_offset + d + i] = 0.0
    for p in range(observed, d):
        i = int(work[order + p])
        for r in range(observed, p + 1):
            j = int(work[order + r])
            high, low = max(i, j), min(i, j)
            s = theta[covariance + high * (high + 1) // 2 + low]
            for m in range(observed):
                s -= work[lower + p * d + m] * work[lower + r * d + m] * work[inverse + m]
            imputed[imputed_offset + d + high * (high + 1) // 2 + low] = max(s, 0.0) if i == j else s
    return exponent, precision, q


@kernel
def higher_order_norm(
    theta: Vector, offset: int, weight: float, r: float, y: Vector, y_offset: int, d: int, units: Vector, imputed: bool
) -> float:
    """Return ‖w(Σ + μμᵀ) − r·E[yyᵀ]‖² over all d² entries, in the units of the data."""
    covariance = offset + d
    total = 0.0
    for i in range(d):
        row = i * (i + 1) // 2
        mean_i = units[i] + units[d + i] * theta[offset + i]
        y_i = units[i] + units[d + i] * y[y_offset + i]
        for j in range(i + 1):
            scale = units[d + i] * units[d + j]
            mean_j = units[j] + units[d + j] * theta[offset + j]
            y_j = units[j] + units[d + j] * y[y_offset + j]
            moment = y_i * y_j
            if imputed:
                moment += scale * y[y_offset + d + row + j]
            h = weight * (scale * theta[covariance + row + j] + mean_i * mean_j) - r * moment
            total += h * h if i == j else 2.0 * h * h
    return total


@kernel
def m_step(
    theta: Vector, offset: int, weight: float, d: int, penalty: Vector, units: Vector, out: Vector, out_offset: int
) -> None:
    """Shrink means towards the center c and covariances towards Ψ = diag(scale²).

    μ = (s1·m + κc)/(s1 + κ);  Σ = (s1·C + s1κ/(s1 + κ)·(m−c)(m−c)ᵀ + νΨ)/(s1 + ν).
    """
    kappa, nu = penalty[PRIOR_MEAN], penalty[PRIOR_COVARIANCE]
    pull = weight * kappa / (weight + kappa) if kappa > 0.0 else 0.0
    for i in range(d):
        row = i * (i + 1) // 2
        center_i = prior_center(penalty, units, d, i)
        deviation_i = theta[offset + i] - center_i
        out[out_offset + i] = (weight * theta[offset + i] + kappa * center_i) / (weight + kappa)
        for j in range(i + 1):
            deviation_j = theta[offset + j] - prior_center(penalty, units, d, j)
            s = weight * theta[offset + d + row + j] + pull * deviation_i * deviation_j
            if i == j:
                prior_sd = prior_scale(penalty, units, d, i)
                s += nu * prior_sd * prior_sd
            out[out_offset + d + row + j] = s / (weight + nu)


@kernel
def init_at_point(theta: Vector, offset: int, y: Vector, y_offset: int, d: int, variances: Vector) -> None:
    """Set the mean to y and the covariance to a diagonal matrix."""
    for i in range(d):
        theta[offset + i] = y[y_offset + i]
        for j in range(i + 1):
            theta[offset + d + i * (i + 1) // 2 + j] = variances[i] if i == j else 0.0


@kernel
def add_variances(theta: Vector, offset: int, d: int, variances: Vector, share: float) -> None:
    """Add the diagonal of the covariance."""
    for i in range(d):
        variances[i] += share * theta[offset + d + i * (i + 1) // 2 + i]


@kernel
def regularize(theta: Vector, offset: int, d: int, variances: Vector, share: float) -> None:
    """Apply Σ ← (1 − share)·Σ + share·diag(variances)."""
    for i in range(d):
        for j in range(i + 1):
            theta[offset + d + i * (i + 1) // 2 + j] *= 1.0 - share
        theta[offset + d + i * (i + 1) // 2 + i] += share * variances[i]


FULL_GAUSSIAN = Component(
    n_parameters,
    work_size,
    evaluate,
    impute,
    advance,
    higher_order_norm,
    m_step,
    init_at_point,
    add_variances,
    regularize,
)
