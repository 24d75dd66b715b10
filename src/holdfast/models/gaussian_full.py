"""A Gaussian with a full covariance as a component: [ mean (d) | covariance, lower triangle by rows (d(d+1)/2) ]."""

from __future__ import annotations

import math

from holdfast.models.component import Component
from holdfast.models.penalty import COVARIANCE, MEAN, centre_of, scale_of
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import NOTHING, at_least, fma, log
from holdfast.scheme.state import Vector

SMALLEST_PIVOT = 1e-10  # share of a variable's variance that is left at least when the others are known
SMALLEST_VARIANCE = 1e-18  # relative to the spread of the first points: a standard deviation of a billionth of it
CHUNK = 4  # pivots multiplied before a logarithm is taken, so that their product stays far from overflow


def size(d: int) -> int:
    """Mean and packed covariance."""
    return d + d * (d + 1) // 2


def work(d: int) -> int:
    """The factors L and L·D (packed), 1/D, z and the indices of observed coordinates."""
    return d * (d + 1) + 3 * d


@kernel
def evaluate(
    theta: Vector, at: int, y: Vector, y_at: int, d: int, work: Vector, work_at: int
) -> tuple[float, float, float]:
    """By the factors Σ = L·D·Lᵀ, which need no square root, and z = L⁻¹(y − μ): q = Σ z²/D, 1/|Σ| = Π 1/D."""
    lower = work_at
    scaled = lower + d * (d + 1) // 2  # L·D
    inverse = scaled + d * (d + 1) // 2
    z = inverse + d
    covariance = at + d
    exponent, precision, q = NOTHING, 1.0, NOTHING
    for i in range(d):
        row = i * (i + 1) // 2
        variance = theta[covariance + row + i]
        pivot = variance
        residual = y[y_at + i] - theta[at + i]
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
            pivot = at_least(pivot, SMALLEST_PIVOT * variance)
        inverse_pivot = 1.0 / at_least(pivot, SMALLEST_VARIANCE)
        work[inverse + i] = inverse_pivot
        work[z + i] = residual
        q += residual * residual * inverse_pivot
        precision *= inverse_pivot
        if i % CHUNK == CHUNK - 1 and i < d - 1:
            exponent += 0.5 * log(precision)
            precision = 1.0
    return exponent, precision, q


@kernel
def advance(theta: Vector, at: int, y: Vector, y_at: int, d: int, a: float, completed: bool) -> None:
    """μ ← μ + aδ and Σ ← (1−a)(Σ + aδδᵀ) with δ = y − μ; plus a times the conditional covariance, if completed."""
    covariance = at + d
    keep = 1.0 - a
    for i in range(d):
        row = i * (i + 1) // 2
        delta = y[y_at + i] - theta[at + i]
        for j in range(i + 1):
            other = y[y_at + j] - theta[at + j]
            moved = keep * fma(a * delta, other, theta[covariance + row + j])
            if completed:
                moved += a * y[y_at + d + row + j]
            theta[covariance + row + j] = moved
    for i in range(d):
        theta[at + i] = fma(a, y[y_at + i] - theta[at + i], theta[at + i])


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
    """Marginal density of the observed coordinates; E[y | observed] and the conditional covariance of the rest.

    The factors of the observed block are extended by one row at a time for each missing coordinate m: the row holds
    L⁻¹Σ_om, from which the conditional mean is μ_m + row·D⁻¹z and the conditional covariance Σ_mm' − row·D⁻¹row'.
    """
    lower = work_at
    inverse = lower + d * (d + 1)
    z = inverse + d
    order = z + d  # the observed coordinates first, then the missing ones
    covariance = at + d
    observed = 0
    for i in range(d):
        if not math.isnan(y[y_at + i]):
            work[order + observed] = i
            observed += 1
    last = observed
    for i in range(d):
        if math.isnan(y[y_at + i]):
            work[order + last] = i
            last += 1
    exponent, precision, q = NOTHING, 1.0, NOTHING
    for p in range(d):
        i = int(work[order + p])
        residual = 0.0 if p >= observed else y[y_at + i] - theta[at + i]
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
            inverse_pivot = 1.0 / at_least(at_least(pivot, SMALLEST_PIVOT * variance), SMALLEST_VARIANCE)
            work[inverse + p] = inverse_pivot
            work[z + p] = residual
            q += residual * residual * inverse_pivot
            exponent += 0.5 * log(inverse_pivot)
            completed[completed_at + i] = y[y_at + i]
        else:
            completed[completed_at + i] = theta[at + i] - residual
    for i in range(d * (d + 1) // 2):
        completed[completed_at + d + i] = 0.0
    for p in range(observed, d):
        i = int(work[order + p])
        for r in range(observed, p + 1):
            j = int(work[order + r])
            high, low = max(i, j), min(i, j)
            s = theta[covariance + high * (high + 1) // 2 + low]
            for m in range(observed):
                s -= work[lower + p * d + m] * work[lower + r * d + m] * work[inverse + m]
            completed[completed_at + d + high * (high + 1) // 2 + low] = max(s, 0.0) if i == j else s
    return exponent, precision, q


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
    """‖w(Σ + μμᵀ) − r·E[yyᵀ]‖² over all d² entries, in the units of the data."""
    covariance = at + d
    total = 0.0
    for i in range(d):
        row = i * (i + 1) // 2
        mean_i = frame[i] + frame[d + i] * theta[at + i]
        y_i = frame[i] + frame[d + i] * y[y_at + i]
        for j in range(i + 1):
            scale = frame[d + i] * frame[d + j]
            mean_j = frame[j] + frame[d + j] * theta[at + j]
            y_j = frame[j] + frame[d + j] * y[y_at + j]
            moment = y_i * y_j
            if completed:
                moment += scale * y[y_at + d + row + j]
            h = weight * (scale * theta[covariance + row + j] + mean_i * mean_j) - r * moment
            total += h * h if i == j else 2.0 * h * h
    return total


@kernel
def maximise(
    theta: Vector, at: int, weight: float, d: int, penalty: Vector, frame: Vector, out: Vector, out_at: int
) -> None:
    """Means drawn towards the centre c, covariances towards Ψ = diag(scale²), as if those had been seen before.

    μ = (s1·m + κc)/(s1 + κ);  Σ = (s1·C + s1κ/(s1 + κ)·(m−c)(m−c)ᵀ + νΨ)/(s1 + ν).
    """
    kappa, nu = penalty[MEAN], penalty[COVARIANCE]
    pull = weight * kappa / (weight + kappa) if kappa > 0.0 else 0.0
    for i in range(d):
        row = i * (i + 1) // 2
        centre_i = centre_of(penalty, frame, d, i)
        off_i = theta[at + i] - centre_i
        out[out_at + i] = (weight * theta[at + i] + kappa * centre_i) / (weight + kappa)
        for j in range(i + 1):
            off_j = theta[at + j] - centre_of(penalty, frame, d, j)
            s = weight * theta[at + d + row + j] + pull * off_i * off_j
            if i == j:
                spread = scale_of(penalty, frame, d, i)
                s += nu * spread * spread
            out[out_at + d + row + j] = s / (weight + nu)


@kernel
def place(theta: Vector, at: int, y: Vector, y_at: int, d: int, variances: Vector) -> None:
    """Mean y, and a diagonal covariance."""
    for i in range(d):
        theta[at + i] = y[y_at + i]
        for j in range(i + 1):
            theta[at + d + i * (i + 1) // 2 + j] = variances[i] if i == j else 0.0


@kernel
def spread(theta: Vector, at: int, d: int, variances: Vector, share: float) -> None:
    """The diagonal of the covariance."""
    for i in range(d):
        variances[i] += share * theta[at + d + i * (i + 1) // 2 + i]


@kernel
def widen(theta: Vector, at: int, d: int, variances: Vector, share: float) -> None:
    """Σ ← (1 − share)·Σ + share·diag(variances)."""
    for i in range(d):
        for j in range(i + 1):
            theta[at + d + i * (i + 1) // 2 + j] *= 1.0 - share
        theta[at + d + i * (i + 1) // 2 + i] += share * variances[i]


FULL = Component(size, work, evaluate, complete, advance, further_statistics, maximise, place, spread, widen)
