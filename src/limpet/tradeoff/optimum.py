"""Threshold and step size that jointly minimize the bound of Theorem 2."""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from limpet._validation import check_positive
from limpet.tradeoff._numeric import (
    TAIL_CUTOFF_M,
    Gamma,
    StepSizes,
    bisect_first_true,
    check_gamma,
    exceedance_bound,
    match_form,
)
from limpet.tradeoff.constants import Constants
from limpet.tradeoff.corollary1 import step_size
from limpet.tradeoff.theorem2 import admissible_gamma, admissible_step, bound, noise_power, step_sums

# Slopes of the bound


def d_bound_d_gamma(gamma: Gamma, rho: StepSizes, constants: Constants) -> Gamma:
    """Return the slope ∂b/∂γ of the bound.

    ``2 c1 (2 L (1-α) γ Σρ²/Σρ - (d0 + d1) exp(-γ²/M²))`` for γ < √d·U; from √d·U on without the first term (at √d·U it
    is the slope to the right). The paper's appendix prints the first term without 2 c1 L. Its zero is Corollary 1,
    :func:`step_size`.

    Examples
    --------
    >>> constants = Constants.from_beta(beta=0.1, M=5.0)
    >>> from limpet.tradeoff import step_size
    >>> abs(d_bound_d_gamma(3.0, step_size(3.0, 0.1, 5.0), constants)) < 1e-12
    True
    """
    rho_sum, rho_squared_sum = step_sums(rho, constants)
    values = check_gamma(gamma)
    effective_gamma = np.where(values < constants.outlier_radius, values, 0.0)
    noise = 2.0 * constants.L * (1.0 - constants.alpha) * effective_gamma * rho_squared_sum / rho_sum
    bias = (constants.d0 + constants.d1) * exceedance_bound(values, constants.M)
    return match_form(gamma, 2.0 * constants.c1 * (noise - bias))


def d_bound_d_rho(gamma: Gamma, rho: float, constants: Constants) -> Gamma:
    """Return the slope ∂b/∂ρ of the bound at a constant step.

    It is ``2 c1 (L noise_power(γ) - V / ((n+1) ρ²))``.

    The paper's appendix prints the first term without 2 c1 L and without α σ0². Its zero is :func:`best_step`.

    Examples
    --------
    >>> constants = Constants(sigma0=0.0, alpha=0.0, L=1.0, V=1.0, n=99)
    >>> round(d_bound_d_rho(1.0, 0.2, constants), 12)
    1.5
    """
    step = check_positive("rho", rho)
    descent = constants.V / ((constants.n + 1) * step**2)
    return match_form(gamma, 2.0 * constants.c1 * (constants.L * noise_power(gamma, constants) - descent))


def best_step(gamma: Gamma, constants: Constants) -> Gamma:
    """Return the constant step that minimizes the bound for a threshold.

    ``√(V / ((n+1) L noise_power(γ)))`` solves ``∂b/∂ρ = 0``; see :func:`admissible_step` for the steps that Theorem 2
    admits. It is 0.0 for ``V = 0``, where V cannot decrease, and infinite without noise. The paper's Corollary 1 solves
    ``∂b/∂γ = 0`` instead.

    Examples
    --------
    >>> round(best_step(2.0, Constants(sigma0=0.0, alpha=0.0, L=1.0, V=1.0, n=99)), 12)
    0.05
    """
    power = np.asarray(noise_power(gamma, constants))
    if constants.V == 0.0:
        return match_form(gamma, np.zeros_like(power))
    with np.errstate(divide="ignore"):
        return match_form(gamma, np.sqrt(constants.V / ((constants.n + 1) * constants.L * power)))


# The bound as a function of γ alone, with the best admissible step of each γ

GRID_POINTS = 400  # thresholds at which the slope is evaluated before bisection


def profile_step(gamma: float, constants: Constants) -> float:
    """Return the best admissible step for a threshold, or the supremum.

    For a given γ the bound is ``A/ρ + Bρ + C``: it decreases up to :func:`best_step` and increases from there.

    >>> profile_step(8.0, Constants(n=10_000)) == best_step(8.0, Constants(n=10_000))
    True
    >>> profile_step(8.0, Constants(n=1)) == admissible_step(8.0, Constants(n=1))
    True
    """
    return min(best_step(gamma, constants), admissible_step(gamma, constants))


def profile_slope(gamma: float, constants: Constants) -> float:
    """Return the slope in γ of the bound at :func:`profile_step`, which depends on γ.

    Where that is the best step, its change has no effect (∂b/∂ρ = 0); where it is the limit, it has.

    >>> profile_slope(8.0, Constants()) < 0.0 < profile_slope(15.0, Constants())
    True
    """
    rho = profile_step(gamma, constants)
    slope = d_bound_d_gamma(gamma, rho, constants)
    if rho < best_step(gamma, constants):
        exceedance = float(exceedance_bound(gamma, constants.M))
        limit_slope = constants.d1 * exceedance / (constants.L * (constants.sigma1**2 + 2.0))
        slope += d_bound_d_rho(gamma, rho, constants) * limit_slope
    return slope


def local_minima(constants: Constants) -> list[float]:
    """Return the thresholds at which the bound has a local minimum.

    All of them are between two limits. Below the first, where the admissible step equals that of Corollary 1, every
    admissible ρ is smaller than Corollary 1's, so that the bound decreases with γ. Above the second, √d·U, a threshold
    rejects no outlier and the bound decreases again. Between them the slope is evaluated on a logarithmic grid, and
    each change of sign from negative to positive is bisected.

    >>> [round(gamma, 4) for gamma in local_minima(Constants())]
    [13.3498]
    """
    floor = admissible_gamma(constants)
    high = min(constants.outlier_radius, TAIL_CUTOFF_M * constants.M)
    if constants.alpha == 1.0 or high <= floor:
        return []

    def is_past_crossing(gamma: float) -> bool:
        return admissible_step(gamma, constants) > step_size(gamma, constants.beta, constants.M)

    def is_rising(gamma: float) -> bool:
        return profile_slope(gamma, constants) >= 0.0

    low = bisect_first_true(is_past_crossing, floor, high)
    if low >= high:
        return []
    # Relative to the floor, where the admissible step is 0 and the slope changes fastest.
    grid = floor + np.geomspace(low - floor, high - floor, GRID_POINTS)
    grid[[0, -1]] = low, np.nextafter(high, low)
    rising = [is_rising(float(gamma)) for gamma in grid]
    minima = [low] if rising[0] else []
    for left, right, before, after in zip(grid, grid[1:], rising, rising[1:], strict=False):
        if after and not before:
            minima.append(bisect_first_true(is_rising, float(left), float(right)))
    return minima


@dataclass(frozen=True, slots=True)
class Optimum:
    """Minimum of the bound of Theorem 2: see :func:`optimum`."""

    gamma: float
    rho: float
    bound: float
    kind: Literal["interior", "boundary", "infinity"]
    explanation: str


def optimum(constants: Constants) -> Optimum:
    """Minimize the bound of Theorem 2 over all γ and all admissible constant ρ.

    ``kind`` is the type of the minimum:

    - ``"interior"``: both slopes are zero, so that Corollary 1 and :func:`best_step` give the same ρ;
    - ``"boundary"``: ρ is :func:`admissible_step`. Steps must be strictly below, so that ``bound`` is
      approached and not attained;
    - ``"infinity"``: no threshold lowers the bound, γ is inf and the bound is that of Corollary 2 (ρ may be
      at the limit here too). This includes ``V = 0``, with ρ = 0.0: smaller steps are better.

    The finite candidates come from :func:`~limpet.tradeoff.optimum.local_minima`, and are compared with
    γ = inf. Corollary 1 alone does not find the optimum: it only relates the two parameters.

    Examples
    --------
    >>> best = optimum(Constants(c1=0.01, L=2000.0, M=5.0, U=20.0, V=1.0, n=10_000))
    >>> best.kind, round(best.gamma, 4), round(best.rho, 7), round(best.bound, 6)
    ('interior', 9.3364, 0.0001639, 0.025873)
    """
    if constants.V == 0.0:
        reason = "With V = 0 the bound is smallest without threshold, as rho approaches 0."
        return Optimum(math.inf, 0.0, 2.0 * constants.c0, "infinity", reason)
    unbiased = replace(constants, c0=0.0)  # 2 c0 is in every bound and would blur the comparison
    gamma = min(
        [*local_minima(constants), math.inf], key=lambda gamma: bound(gamma, profile_step(gamma, constants), unbiased)
    )
    rho = profile_step(gamma, constants)
    value = bound(gamma, rho, constants)
    is_at_limit = rho < best_step(gamma, constants)
    if math.isinf(gamma):
        step = f"{rho:.4g}, the admissible limit" if is_at_limit else f"{rho:.4g}"
        reason = f"No threshold lowers the bound: use gamma = inf, with a step of {step}."
        return Optimum(gamma, rho, value, "infinity", reason)
    if is_at_limit:
        reason = f"Larger steps would lower the bound further, but Theorem 2 admits only rho below {rho:.4g}."
        return Optimum(gamma, rho, value, "boundary", reason)
    reason = f"A threshold below {gamma:.4g} rejects too much of the data, one above accepts too much noise."
    return Optimum(gamma, rho, value, "interior", reason)
