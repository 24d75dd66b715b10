"""The bound of Theorem 2 as a function of γ alone, each γ with the best step that it admits."""

import numpy as np

from holdfast.tradeoff._numbers import TAIL_CUTOFF_M, bisect_first_true
from holdfast.tradeoff.admissible import admissible_gamma, admissible_step
from holdfast.tradeoff.constants import Constants
from holdfast.tradeoff.corollary1 import step_size
from holdfast.tradeoff.stationarity import best_step, d_bound_d_gamma, d_bound_d_rho
from holdfast.tradeoff.tails import exceedance_bound

GRID_POINTS = 400  # thresholds at which the slope is looked at before it is bisected


def profile_step(gamma: float, constants: Constants) -> float:
    """Best step for a threshold among the admissible ones, or their supremum.

    For a given γ the bound is ``A/ρ + Bρ + C``: it falls up to :func:`best_step` and rises from there.

    Examples
    --------
    >>> profile_step(8.0, Constants(n=10_000)) == best_step(8.0, Constants(n=10_000))
    True
    >>> profile_step(8.0, Constants(n=1)) == admissible_step(8.0, Constants(n=1))
    True
    """
    return min(best_step(gamma, constants), admissible_step(gamma, constants))


def profile_slope(gamma: float, constants: Constants) -> float:
    """Slope in γ of the bound at :func:`profile_step`, which itself moves with γ.

    Where that is the best step, its move makes no difference (∂b/∂ρ = 0); where it is the limit, it does.

    Examples
    --------
    >>> profile_slope(8.0, Constants()) < 0.0 < profile_slope(15.0, Constants())
    True
    """
    rho = profile_step(gamma, constants)
    slope = d_bound_d_gamma(gamma, rho, constants)
    if rho < best_step(gamma, constants):
        limit_slope = (
            constants.d1 * float(exceedance_bound(gamma, constants.M)) / (constants.L * (constants.sigma1**2 + 2.0))
        )
        slope += d_bound_d_rho(gamma, rho, constants) * limit_slope
    return slope


def local_minima(constants: Constants) -> list[float]:
    """Finite thresholds at which the bound along :func:`profile_step` stops falling and begins to rise.

    All of them lie between two marks. Below the first, where the admissible step meets that of Corollary 1,
    every admissible ρ is smaller than Corollary 1's, so that the bound falls with γ. Above the second, √d·U,
    a threshold stops no outlier and the bound falls again. Between them the slope is looked at on a
    logarithmic grid, and each change of sign from fall to rise is bisected.

    Examples
    --------
    >>> [round(gamma, 4) for gamma in local_minima(Constants())]
    [13.3498]
    """
    floor = admissible_gamma(constants)
    high = min(constants.outlier_radius, TAIL_CUTOFF_M * constants.M)
    if constants.alpha == 1.0 or high <= floor:
        return []

    def is_past_crossing(gamma: float) -> bool:
        return admissible_step(gamma, constants) > step_size(gamma, constants.beta, constants.M)

    low = bisect_first_true(is_past_crossing, floor, high)
    if low >= high:
        return []
    # Measured from the floor, where the admissible step is 0 and everything changes fastest.
    grid = floor + np.geomspace(low - floor, high - floor, GRID_POINTS)
    grid[[0, -1]] = low, np.nextafter(high, low)
    rising = [profile_slope(float(gamma), constants) >= 0.0 for gamma in grid]
    minima = [low] if rising[0] else []
    for left, right, before, after in zip(grid, grid[1:], rising, rising[1:], strict=False):
        if after and not before:
            minima.append(
                bisect_first_true(lambda gamma: profile_slope(gamma, constants) >= 0.0, float(left), float(right))
            )
    return minima
