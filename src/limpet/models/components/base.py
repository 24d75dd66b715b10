"""Interface of mixture components.

The parameters of a component are in `theta` from index `offset`, the d numbers of the mean first. They are the
*centered* form of the expected sufficient statistics divided by the weight (mean and covariance, not first and second
moments), so that the stochastic step ŝ ← ŝ − ρ(ŝ − s̄(y)) becomes "move by the share `a` towards the point", without
cancellation for data far from zero. All functions are kernels (`limpet._jit.compile.kernel`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from limpet.core.state import Vector


@dataclass(frozen=True)
class Component:
    """Functions of one family of components."""

    n_parameters: Callable[[int], int]  # d → number of parameters of a component
    work_size: Callable[[int], int]  # d → size of the workspace of `evaluate` and `impute` for one component
    # (theta, offset, y, y_offset, d, work, work_offset) → (exponent, precision, q). The density at y is
    # exp(exponent)·√precision, times exp(−q/2) for an elliptical family; q is the squared distance from the mean in
    # standard deviations.
    evaluate: Callable[[Vector, int, Vector, int, int, Vector, int], tuple[float, float, float]]
    # (theta, offset, y, y_offset, d, work, work_offset, imputed, imputed_offset) → as `evaluate`, over the observed
    # coordinates; writes the expected point given them, followed by the component's further expected statistics
    impute: Callable[[Vector, int, Vector, int, int, Vector, int, Vector, int], tuple[float, float, float]]
    # (theta, offset, y, y_offset, d, a, imputed): move by the share a towards y; `imputed`: y is from `impute`
    advance: Callable[[Vector, int, Vector, int, int, float, bool], None]
    # (theta, offset, weight, responsibility, y, y_offset, d, units, imputed) → the squared length of the part of H for
    # statistics beyond weight and mean, in the units of the data and about its origin. units: [ reference | scale ].
    higher_order_norm: Callable[[Vector, int, float, float, Vector, int, int, Vector, bool], float]
    # (theta, offset, weight, d, penalty, units, out, out_offset): the M-step under a conjugate prior
    m_step: Callable[[Vector, int, float, int, Vector, Vector, Vector, int], None]
    # (theta, offset, y, y_offset, d, variances): initialize a component at the point y with these variances
    init_at_point: Callable[[Vector, int, Vector, int, int, Vector], None]
    # (theta, offset, d, variances, share): add share times the component's variances to `variances`
    add_variances: Callable[[Vector, int, int, Vector, float], None]
    # (theta, offset, d, variances, share): shrink to these variances by the share: no component collapses
    regularize: Callable[[Vector, int, int, Vector, float], None]
    elliptical: bool = True  # Whether the density depends on the point through q alone


def no_workspace(d: int) -> int:
    """Return 0, as the `work_size` of a component that needs no workspace."""
    return 0
