"""Theorem 2 and Corollary 2: stochastic approximation on data with outliers, with a threshold and without."""

import math

import numpy as np

from holdfast.tradeoff._numbers import Gamma, StepSizes, check_gamma, match_form
from holdfast.tradeoff.constants import Constants
from holdfast.tradeoff.step_sums import step_sums
from holdfast.tradeoff.tails import tail


def noise_power(gamma: Gamma, constants: Constants) -> Gamma:
    """Second moment of the noise that stays when h vanishes (Lemma 2), ``α σ0² + (1-α) min(d U², γ²)``.

    Examples
    --------
    >>> round(noise_power(3.0, Constants(alpha=0.9, sigma0=1.0, U=20.0)), 12)
    1.8
    """
    effective_gamma = np.minimum(check_gamma(gamma), constants.outlier_radius)
    return match_form(
        gamma, constants.alpha * constants.sigma0**2 + (1.0 - constants.alpha) * np.square(effective_gamma)
    )


def bound(gamma: Gamma, rho: StepSizes, constants: Constants) -> Gamma:
    """Bound of Theorem 2 on ``E|h(θ_N)|²`` for SRA with threshold γ and step sizes ρ.

    ``2 (c0 + c1 (d0 + d1) tail(γ)) + 2 c1 (V + L (α σ0² + (1-α) min(d U², γ²)) Σρ²) / Σρ``. The paper prints
    ``d0 + 1``, which is the case ``d1 = 1``; its own proof gives ``d0 + d1``.

    It is promised where every step is below :func:`admissible_step`; elsewhere the number is only the
    formula's value.

    Parameters
    ----------
    gamma
        Threshold above 0, or an array of them; ``inf`` is Corollary 2.
    rho
        One constant step size (there are then ``constants.n + 1`` steps), or all of them in a sequence.
    constants
        The constants of the theory.

    Examples
    --------
    >>> constants = Constants(c1=0.01, L=2000.0, M=5.0, U=20.0)
    >>> round(bound(8.0, 0.002, constants), 6), round(bound(float("inf"), 0.002, constants), 6)
    (0.135592, 0.4002)
    """
    rho_sum, rho_squared_sum = step_sums(rho, constants)
    bias = constants.c0 + constants.c1 * (constants.d0 + constants.d1) * tail(gamma, constants.M)
    noise = constants.L * noise_power(gamma, constants) * rho_squared_sum
    return match_form(gamma, 2.0 * bias + 2.0 * constants.c1 * (constants.V + noise) / rho_sum)


def bound_without_threshold(rho: StepSizes, constants: Constants) -> float:
    """Bound of Corollary 2: no point is ever dropped (γ → inf) and every outlier is learnt from.

    With ``alpha = 1`` the value is that of Theorem 1, though for a narrower range of steps: the proof of
    Theorem 2 leaves σ1² + 2 in the limit where Theorem 1 has σ1² + 1.

    Examples
    --------
    >>> constants = Constants(alpha=1.0, V=2.0, n=99)
    >>> bound_without_threshold(0.1, constants)
    0.6
    """
    return bound(math.inf, rho, constants)
