"""The two sums through which step sizes enter every bound: Σρ and Σρ²."""

import math

import numpy as np

from holdfast.checks import check_floats, check_positive
from holdfast.errors import InvalidInputError
from holdfast.tradeoff._numbers import StepSizes
from holdfast.tradeoff.constants import Constants


def step_sums(rho: StepSizes, constants: Constants) -> tuple[float, float]:
    """Sum of the steps ρ_1 … ρ_{n+1} and sum of their squares.

    One number stands for ``constants.n + 1`` equal steps; a sequence is taken as all the steps there are.

    Examples
    --------
    >>> step_sums(0.5, Constants(n=3)), step_sums([0.5, 0.25], Constants(n=3))
    ((2.0, 1.0), (0.75, 0.3125))
    """
    steps = check_floats("rho", rho)
    if steps.ndim == 0:
        step, count = check_positive("rho", rho), constants.n + 1
        return count * step, count * step**2
    if steps.ndim != 1 or steps.size == 0 or not np.all(np.isfinite(steps) & (steps > 0.0)):
        raise InvalidInputError(f"rho must be a finite number above 0 or a sequence of such numbers, got {rho!r}")
    return math.fsum(steps), math.fsum(steps**2)
