"""The slopes of Theorem 2's bound in γ and in ρ, and the step size at which the second is zero."""

import numpy as np

from holdfast.checks import check_positive
from holdfast.tradeoff._numbers import Gamma, StepSizes, check_gamma, match_form
from holdfast.tradeoff.constants import Constants
from holdfast.tradeoff.step_sums import step_sums
from holdfast.tradeoff.tails import exceedance_bound
from holdfast.tradeoff.theorem2 import noise_power


def d_bound_d_gamma(gamma: Gamma, rho: StepSizes, constants: Constants) -> Gamma:
    """Slope ∂b/∂γ of the bound, ``2 c1 (2 L (1-α) γ Σρ²/Σρ - (d0 + d1) exp(-γ²/M²))`` for γ < √d·U.

    From √d·U on the first term is gone (at √d·U itself this is the slope to the right). The paper's appendix
    prints the first term without 2 c1 L. Its zero is Corollary 1, :func:`step_size`.

    Examples
    --------
    >>> constants = Constants.from_beta(beta=0.1, M=5.0)
    >>> from holdfast.tradeoff import step_size
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
    """Slope ∂b/∂ρ of the bound at a constant step, ``2 c1 (L noise_power(γ) - V / ((n+1) ρ²))``.

    The paper's appendix prints the first term without 2 c1 L and without α σ0². Its zero is
    :func:`best_step`.

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
    """Constant step that minimises the bound for a given threshold, ``√(V / ((n+1) L noise_power(γ)))``.

    It solves ``∂b/∂ρ = 0``; whether Theorem 2 admits it is for :func:`admissible_step` to say. It is 0.0 for
    ``V = 0``, where there is nothing to learn, and infinite where there is no noise. The paper's Corollary 1
    solves ``∂b/∂γ = 0`` instead.

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
