"""Corollary 3: what a threshold gains over none."""

import numpy as np

from holdfast.tradeoff._numbers import Gamma, StepSizes, check_gamma, match_form
from holdfast.tradeoff.constants import Constants
from holdfast.tradeoff.step_sums import step_sums
from holdfast.tradeoff.tails import bounded_tail, tail


def gain(gamma: Gamma, rho: StepSizes, constants: Constants, gamma_star: float | None = None) -> Gamma:
    """By how much threshold γ lowers the bound: Corollary 2's value less Theorem 2's; negative, it harms.

    ``2 c1 L (1-α) max(0, d U² - γ²) Σρ²/Σρ  -  2 c1 (d0 + d1) tail(γ)`` (``d1 = 1`` in print).

    Where the update is bounded, ``|H| <= gamma_star``, the integral in the second term, the cost, becomes
    that of ``exp(-z²/(γ*-γ)²)`` from γ to γ* = ``gamma_star``, and vanishes from γ* on. There are then three
    regimes: a cost below γ*; a free gain from γ* up to √d·U; nothing beyond. (The inequality from which the
    paper draws this lets γ decide ``P(|H| >= z)``, which does not depend on γ: take the values below γ* as an
    indication, not as a promise.)

    Examples
    --------
    >>> constants = Constants(c1=0.01, L=2000.0, M=5.0, U=20.0)
    >>> round(gain(8.0, 0.002, constants), 6), round(gain(8.0, 0.002, constants, gamma_star=7.0), 6)
    (0.264608, 0.2688)
    """
    rho_sum, rho_squared_sum = step_sums(rho, constants)
    radius = constants.outlier_radius
    effective_gamma = np.minimum(check_gamma(gamma), radius)
    noise_avoided = (1.0 - constants.alpha) * (radius - effective_gamma) * (radius + effective_gamma)
    tail_mass = tail(gamma, constants.M) if gamma_star is None else bounded_tail(gamma, gamma_star)
    cost = (constants.d0 + constants.d1) * tail_mass
    return match_form(gamma, 2.0 * constants.c1 * (constants.L * noise_avoided * rho_squared_sum / rho_sum - cost))
