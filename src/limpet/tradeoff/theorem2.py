"""Theorem 2, Corollaries 2 and 3: outliers, with and without threshold."""

import math

import numpy as np

from limpet._validation import check_floats, check_positive, invalid_param_error
from limpet.tradeoff._numeric import (
    TAIL_CUTOFF_M,
    Gamma,
    StepSizes,
    bisect_first_true,
    bounded_tail,
    check_gamma,
    match_form,
    tail,
)
from limpet.tradeoff.constants import Constants

# Domain of Theorem 2


def admissible_step(gamma: Gamma, constants: Constants) -> Gamma:
    """Return the supremum of steps for which Theorem 2 holds, or 0.0.

    ``(1 - 2 c1 d1 tail(γ)) / (2 c1 L (σ1² + 2))``. Steps must be strictly below. No step is admissible if the threshold
    rejects too much of the clean data.

    Examples
    --------
    >>> constants = Constants(c1=0.01, L=2000.0, M=5.0, sigma1=1.0)
    >>> round(admissible_step(3.0, constants), 6), admissible_step(3.0, Constants(c1=1.0, M=5.0))
    (0.008041, 0.0)
    """
    margin = 1.0 - 2.0 * constants.c1 * constants.d1 * tail(gamma, constants.M)
    scale = 2.0 * constants.c1 * constants.L * (constants.sigma1**2 + 2.0)
    return match_form(gamma, np.maximum(margin, 0.0) / scale)


def admissible_gamma(constants: Constants) -> float:
    """Return the infimum of thresholds with admissible steps, or 0.

    It is where ``2 c1 d1 tail(γ) = 1``.

    Examples
    --------
    >>> round(admissible_gamma(Constants(c1=1.0, M=5.0)), 6), admissible_gamma(Constants(c1=0.01, M=5.0))
    (5.60582, 0.0)
    """

    def is_admissible(gamma: float) -> bool:
        return 2.0 * constants.c1 * constants.d1 * tail(gamma, constants.M) <= 1.0

    return 0.0 if is_admissible(0.0) else bisect_first_true(is_admissible, 0.0, TAIL_CUTOFF_M * constants.M)


# Bounds


def step_sums(rho: StepSizes, constants: Constants) -> tuple[float, float]:
    """Return the sum of the steps ρ_1 … ρ_{n+1} and the sum of their squares.

    A number means ``constants.n + 1`` equal steps, a sequence all steps.

    >>> step_sums(0.5, Constants(n=3)), step_sums([0.5, 0.25], Constants(n=3))
    ((2.0, 1.0), (0.75, 0.3125))
    """
    steps = check_floats("rho", rho)
    if steps.ndim == 0:
        step, count = check_positive("rho", rho), constants.n + 1
        return count * step, count * step**2
    if steps.ndim != 1 or steps.size == 0 or not np.all(np.isfinite(steps) & (steps > 0.0)):
        raise invalid_param_error("rho", "must be one or more finite numbers above 0", rho)
    return math.fsum(steps), math.fsum(steps**2)


def gain(gamma: Gamma, rho: StepSizes, constants: Constants, gamma_star: float | None = None) -> Gamma:
    """Return the gain of a threshold γ over none (Corollary 3).

    It is the bound of Corollary 2 minus that of Theorem 2,
    ``2 c1 L (1-α) max(0, d U² - γ²) Σρ²/Σρ  -  2 c1 (d0 + d1) tail(γ)`` (printed with ``d1 = 1``). If it is negative,
    the threshold increases the bound.

    If the update is bounded, ``|H| <= gamma_star``, the integral in the second term, the cost, becomes that of
    ``exp(-z²/(γ*-γ)²)`` from γ to γ* = ``gamma_star``, and vanishes from γ* on. This gives three regimes: a cost below
    γ*; a gain without cost from γ* to √d·U; no effect beyond. (The inequality from which the paper derives this makes
    ``P(|H| >= z)`` depend on γ, which it does not: values below γ* are indicative, not guaranteed.)

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


def noise_power(gamma: Gamma, constants: Constants) -> Gamma:
    """Return ``α σ0² + (1-α) min(d U², γ²)``, the noise power at h = 0 (Lemma 2).

    >>> round(noise_power(3.0, Constants(alpha=0.9, sigma0=1.0, U=20.0)), 12)
    1.8
    """
    effective_gamma = np.minimum(check_gamma(gamma), constants.outlier_radius)
    power = constants.alpha * constants.sigma0**2 + (1.0 - constants.alpha) * np.square(effective_gamma)
    return match_form(gamma, power)


def bound(gamma: Gamma, rho: StepSizes, constants: Constants) -> Gamma:
    """Return the bound of Theorem 2 on ``E|h(θ_N)|²`` for SRA.

    ``2 (c0 + c1 (d0 + d1) tail(γ)) + 2 c1 (V + L (α σ0² + (1-α) min(d U², γ²)) Σρ²) / Σρ``. The paper prints
    ``d0 + 1``, which is the case ``d1 = 1``; its proof gives ``d0 + d1``.

    It holds if every step is below :func:`admissible_step`; otherwise the number is only the value of the formula.

    Parameters
    ----------
    gamma
        Threshold above 0, or an array of them; ``inf`` is Corollary 2.
    rho
        One constant step size (of ``constants.n + 1`` steps), or a sequence of all steps.
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
    """Return the bound of Corollary 2: no point is rejected (γ → inf).

    With ``alpha = 1`` the value is that of Theorem 1, but for a narrower range of steps: the limit in the proof of
    Theorem 2 has σ1² + 2 where Theorem 1 has σ1² + 1.

    Examples
    --------
    >>> constants = Constants(alpha=1.0, V=2.0, n=99)
    >>> bound_without_threshold(0.1, constants)
    0.6
    """
    return bound(math.inf, rho, constants)
