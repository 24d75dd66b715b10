"""Where Theorem 2 holds: how large a step may be, and how low a threshold."""

import numpy as np

from holdfast.tradeoff._numbers import TAIL_CUTOFF_M, Gamma, bisect_first_true, match_form
from holdfast.tradeoff.constants import Constants
from holdfast.tradeoff.tails import tail


def admissible_step(gamma: Gamma, constants: Constants) -> Gamma:
    """Supremum of the steps for which Theorem 2 holds, ``(1 - 2 c1 d1 tail(γ)) / (2 c1 L (σ1² + 2))``.

    The step must be below it, not at it. It is 0.0 where no step is admissible: there the threshold cuts off
    so much of the clean data that the theorem says nothing.

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
    """Infimum of the thresholds for which Theorem 2 admits any step: where ``2 c1 d1 tail(γ) = 1``, else 0.

    Examples
    --------
    >>> round(admissible_gamma(Constants(c1=1.0, M=5.0)), 6), admissible_gamma(Constants(c1=0.01, M=5.0))
    (5.60582, 0.0)
    """
    reciprocal = 2.0 * constants.c1 * constants.d1
    if reciprocal * tail(0.0, constants.M) <= 1.0:
        return 0.0
    return bisect_first_true(
        lambda gamma: reciprocal * tail(gamma, constants.M) <= 1.0, 0.0, TAIL_CUTOFF_M * constants.M
    )
