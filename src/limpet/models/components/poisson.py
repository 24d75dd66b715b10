"""Component of counts, a product of Poisson distributions: [ rates (d) ]."""

from __future__ import annotations

import math

from limpet._jit.compile import kernel
from limpet._jit.math import log, maximum
from limpet.core.state import Vector
from limpet.models.components.base import Component, no_workspace
from limpet.models.priors import PRIOR_MEAN, prior_center

MIN_RATE = 1e-6  # one event in a million points: the first event of a variable is rare, not impossible


def n_parameters(d: int) -> int:
    """Return the number of rates."""
    return d


@kernel
def is_count_vector(y: Vector) -> bool:
    """Return whether all values are non-negative integers or missing."""
    for value in y:  # noqa: SIM110  (Numba inlines a loop, not a generator)
        if value < 0.0 or value % 1.0 > 0.0:  # NaN, a missing count, is neither
            return False
    return True


@kernel
def log_probability(count: float, rate: float) -> float:
    """Return y·log λ − λ − log y!."""
    return count * log(rate) - rate - math.lgamma(count + 1.0)


@kernel
def squared_distance(count: float, rate: float) -> float:
    """Return Anscombe's squared distance in sd; (y − λ)²/λ would reject rare events."""
    z = 2.0 * (math.sqrt(count + 0.375) - math.sqrt(rate + 0.375))
    return z * z


@kernel
def evaluate(
    theta: Vector, offset: int, y: Vector, y_offset: int, d: int, work: Vector, work_offset: int
) -> tuple[float, float, float]:
    """Return the log-probability as the exponent."""
    exponent, q = 0.0, 0.0
    for i in range(d):
        rate = maximum(theta[offset + i], MIN_RATE)
        exponent += log_probability(y[y_offset + i], rate)
        q += squared_distance(y[y_offset + i], rate)
    return exponent, 1.0, q


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
    """Impute a missing count by its rate."""
    exponent, q = 0.0, 0.0
    for i in range(d):
        count = y[y_offset + i]
        rate = maximum(theta[offset + i], MIN_RATE)
        if math.isnan(count):
            imputed[imputed_offset + i] = theta[offset + i]
        else:
            imputed[imputed_offset + i] = count
            exponent += log_probability(count, rate)
            q += squared_distance(count, rate)
    return exponent, 1.0, q


@kernel
def advance(theta: Vector, offset: int, y: Vector, y_offset: int, d: int, a: float, imputed: bool) -> None:
    """Apply λ ← λ + a(y − λ)."""
    for i in range(d):
        theta[offset + i] += a * (y[y_offset + i] - theta[offset + i])


@kernel
def higher_order_norm(
    theta: Vector, offset: int, weight: float, r: float, y: Vector, y_offset: int, d: int, units: Vector, imputed: bool
) -> float:
    """Return 0: no statistics beyond weight and mean."""
    return 0.0


@kernel
def m_step(
    theta: Vector, offset: int, weight: float, d: int, penalty: Vector, units: Vector, out: Vector, out_offset: int
) -> None:
    """Compute λ = (s1·m + κc)/(s1 + κ)."""
    kappa = penalty[PRIOR_MEAN]
    for i in range(d):
        center = prior_center(penalty, units, d, i)
        out[out_offset + i] = (weight * theta[offset + i] + kappa * center) / (weight + kappa)


@kernel
def init_at_point(theta: Vector, offset: int, y: Vector, y_offset: int, d: int, variances: Vector) -> None:
    """Set the rates to the counts plus ½: a rate of zero would allow zeros only."""
    for i in range(d):
        theta[offset + i] = y[y_offset + i] + 0.5


@kernel
def add_variances(theta: Vector, offset: int, d: int, variances: Vector, share: float) -> None:
    """Add the variances, which equal the rates."""
    for i in range(d):
        variances[i] += share * theta[offset + i]


@kernel
def regularize(theta: Vector, offset: int, d: int, variances: Vector, share: float) -> None:
    """Keep the rates above zero, more so for few points (a large share)."""
    for i in range(d):
        theta[offset + i] = maximum(theta[offset + i], 0.5 * share)


POISSON_PRODUCT = Component(
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
    elliptical=False,
)
