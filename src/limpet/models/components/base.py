"""What a mixture needs to know of its components, whatever their family.

A component's parameters lie in `theta` from index `at`, its mean first: d numbers. They are the *centred* form of
the expected sufficient statistics divided by the weight (mean and covariance rather than first and second moments),
so that the stochastic step ŝ ← ŝ − ρ(ŝ − s̄(y)) becomes "move by the share `a` towards the point", and nothing cancels
however far from zero the data lie. All functions are compiled (`limpet._jit.compile.kernel`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from limpet.core.state import Vector


@dataclass(frozen=True)
class Component:
    """The functions of one family of components."""

    n_parameters: Callable[[int], int]
    """d → how many parameters a component has."""

    work_size: Callable[[int], int]
    """d → how many numbers of working area `evaluate` and `complete` need for one component."""

    evaluate: Callable[[Vector, int, Vector, int, int, Vector, int], tuple[float, float, float]]
    """(theta, at, y, y_at, d, work, work_at) → (exponent, precision, q).

    The density at y is exp(exponent)·√precision, times exp(−q/2) for an elliptical family; q is the squared distance
    from the mean in standard deviations.
    """

    impute: Callable[[Vector, int, Vector, int, int, Vector, int, Vector, int], tuple[float, float, float]]
    """(theta, at, y, y_at, d, work, work_at, completed, completed_at) → as `evaluate`, over the coordinates that are
    not NaN; writes the expected point given them, and after it the component's further expected statistics."""

    advance: Callable[[Vector, int, Vector, int, int, float, bool], None]
    """(theta, at, y, y_at, d, a, completed): moves by the share a towards y; `completed`: y comes from `complete`."""

    higher_order_norm: Callable[[Vector, int, float, float, Vector, int, int, Vector, bool], float]
    """(theta, at, weight, responsibility, y, y_at, d, frame, completed) → the squared length of the part of H that
    belongs to statistics beyond weight and mean, in the units of the data and about its origin."""

    m_step: Callable[[Vector, int, float, int, Vector, Vector, Vector, int], None]
    """(theta, at, weight, d, penalty, frame, out, out_at): the M-step under a conjugate penalty."""

    init_at_point: Callable[[Vector, int, Vector, int, int, Vector], None]
    """(theta, at, y, y_at, d, variances): a component at the point y with these variances, to start from."""

    add_variances: Callable[[Vector, int, int, Vector, float], None]
    """(theta, at, d, variances, share): adds share times the component's variances to `variances`."""

    regularize: Callable[[Vector, int, int, Vector, float], None]
    """(theta, at, d, variances, share): blends in these variances by the share, so that no component collapses."""

    elliptical: bool = True
    """Whether the density depends on the point through q alone."""
