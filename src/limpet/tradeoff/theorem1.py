"""Theorem 1 (Karimi et al. 2019): clean data, without a threshold."""

from limpet.tradeoff._numeric import StepSizes
from limpet.tradeoff.constants import Constants
from limpet.tradeoff.theorem2 import step_sums


def karimi_bound(steps: StepSizes, constants: Constants) -> float:
    """Return the bound of Theorem 1 on ``E|h(θ_N)|²``, for clean data.

    ``2 c1 (V + σ0² L Σρ²) / Σρ + 2 c0``. It holds if no step exceeds :func:`karimi_step_limit`; otherwise the number
    is only the value of the formula. With steps ∝ ``1/√t`` it decreases as ``log n/√n``; the paper has ``log n/n``.

    Parameters
    ----------
    steps
        One constant step size (of ``constants.n + 1`` steps), or a sequence of all steps.
    constants
        Uses c0, c1, L, sigma0, V and, for a constant step, n.

    Examples
    --------
    >>> constants = Constants(V=2.0, n=99)
    >>> karimi_bound(0.1, constants)
    0.6
    >>> round(karimi_bound([0.1] * 100, constants), 12)
    0.6
    """
    rho_sum, rho_squared_sum = step_sums(steps, constants)
    noise = constants.L * constants.sigma0**2 * rho_squared_sum
    return 2.0 * constants.c1 * (constants.V + noise) / rho_sum + 2.0 * constants.c0


def karimi_step_limit(constants: Constants) -> float:
    """Return the largest step for which Theorem 1 holds, ``1 / (2 c1 L (1 + σ1²))``.

    The printed condition lacks L. It would depend on the units of V, which the algorithm does not know: V in other
    units changes c1 and L, but not c1·L.

    Examples
    --------
    >>> karimi_step_limit(Constants(c1=1.0, L=5.0, sigma1=1.0))
    0.05
    """
    return 1.0 / (2.0 * constants.c1 * constants.L * (1.0 + constants.sigma1**2))
