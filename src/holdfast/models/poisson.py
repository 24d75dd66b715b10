"""A product of Poisson distributions as a component, for counts: [ rates (d) ]."""

from __future__ import annotations

import math

from holdfast.models.component import Component
from holdfast.models.penalty import MEAN, centre_of
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import at_least, log
from holdfast.scheme.state import Vector

SMALLEST_RATE = 1e-6  # one event in a million counts: an event where none has been seen is rare, not impossible


def size(d: int) -> int:
    """The rates."""
    return d


def work(d: int) -> int:
    """None."""
    return 0


@kernel
def valid(y: Vector) -> bool:
    """Counts are whole numbers from 0 on."""
    for value in y:  # noqa: SIM110  (Numba inlines a loop, not a generator)
        if value < 0.0 or value % 1.0 > 0.0:  # NaN, a missing count, is neither
            return False
    return True


@kernel
def log_probability(count: float, rate: float) -> float:
    """y·log λ − λ − log y!"""
    return count * log(rate) - rate - math.lgamma(count + 1.0)


@kernel
def squared_distance(count: float, rate: float) -> float:
    """Squared distance in standard deviations, by Anscombe's transform: (y − λ)²/λ would drop every rare event."""
    z = 2.0 * (math.sqrt(count + 0.375) - math.sqrt(rate + 0.375))
    return z * z


@kernel
def evaluate(
    theta: Vector, at: int, y: Vector, y_at: int, d: int, work: Vector, work_at: int
) -> tuple[float, float, float]:
    """The log-probability is the exponent."""
    exponent, q = 0.0, 0.0
    for i in range(d):
        rate = at_least(theta[at + i], SMALLEST_RATE)
        exponent += log_probability(y[y_at + i], rate)
        q += squared_distance(y[y_at + i], rate)
    return exponent, 1.0, q


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
    """A missing count is expected at its rate."""
    exponent, q = 0.0, 0.0
    for i in range(d):
        count = y[y_at + i]
        rate = at_least(theta[at + i], SMALLEST_RATE)
        if math.isnan(count):
            completed[completed_at + i] = theta[at + i]
        else:
            completed[completed_at + i] = count
            exponent += log_probability(count, rate)
            q += squared_distance(count, rate)
    return exponent, 1.0, q


@kernel
def advance(theta: Vector, at: int, y: Vector, y_at: int, d: int, a: float, completed: bool) -> None:
    """λ ← λ + a(y − λ)."""
    for i in range(d):
        theta[at + i] += a * (y[y_at + i] - theta[at + i])


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
    """None beyond weight and mean."""
    return 0.0


@kernel
def maximise(
    theta: Vector, at: int, weight: float, d: int, penalty: Vector, frame: Vector, out: Vector, out_at: int
) -> None:
    """λ = (s1·m + κc)/(s1 + κ)."""
    kappa = penalty[MEAN]
    for i in range(d):
        centre = centre_of(penalty, frame, d, i)
        out[out_at + i] = (weight * theta[at + i] + kappa * centre) / (weight + kappa)


@kernel
def place(theta: Vector, at: int, y: Vector, y_at: int, d: int, variances: Vector) -> None:
    """Rates at the counts, half an event up: a zero would be certain of zeros."""
    for i in range(d):
        theta[at + i] = y[y_at + i] + 0.5


@kernel
def spread(theta: Vector, at: int, d: int, variances: Vector, share: float) -> None:
    """The variance of a Poisson distribution is its rate."""
    for i in range(d):
        variances[i] += share * theta[at + i]


@kernel
def widen(theta: Vector, at: int, d: int, variances: Vector, share: float) -> None:
    """Keeps the rates away from zero: the fewer points they rest on (the larger the share), the further."""
    for i in range(d):
        theta[at + i] = at_least(theta[at + i], 0.5 * share)


POISSON = Component(
    size, work, evaluate, complete, advance, further_statistics, maximise, place, spread, widen, elliptical=False
)
