"""What every file of this package needs of numbers: checks with clear messages, and one bisection."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.checks import FloatArray, check_floats
from holdfast.errors import InvalidInputError

Gamma = TypeVar("Gamma", float, NDArray[np.float64])
StepSizes: TypeAlias = float | Sequence[float] | NDArray[np.float64]

TAIL_CUTOFF_M = 40.0  # in units of M: from here on exp(-z²/M²) and its tail are zero in float64


def check_gamma(gamma: Any, *, allow_zero: bool = False, require_finite: bool = False) -> FloatArray:
    """Return the thresholds as an array, 0-d for one number, if each is positive; ``inf`` means none."""
    values = check_floats("gamma", gamma)
    if np.all(values >= 0.0 if allow_zero else values > 0.0) and not (require_finite and np.any(np.isinf(values))):
        return values
    expected = ("at least 0" if allow_zero else "above 0") + (" and finite" if require_finite else "")
    raise InvalidInputError(f"gamma must be {expected}, got {gamma!r}")


def match_form(gamma: Gamma, values: Any) -> Gamma:
    """Give ``values`` the form in which ``gamma`` came: a float for a float, an array for an array."""
    return cast(Gamma, float(values) if np.ndim(gamma) == 0 else np.asarray(values, dtype=np.float64))


def bisect_first_true(predicate: Callable[[float], bool], low: float, high: float) -> float:
    """Bisect down to neighbouring floats for where ``predicate`` turns true; ``high`` counts as true."""
    while True:
        middle = low + 0.5 * (high - low)
        if not low < middle < high:
            return high
        if predicate(middle):
            high = middle
        else:
            low = middle
