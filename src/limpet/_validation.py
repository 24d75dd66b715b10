"""Checks of numbers that users give, with messages that say what was expected and what came."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.exceptions import InvalidInputError

FloatArray = npt.NDArray[np.float64]


def check_floats(name: str, value: Any) -> FloatArray:
    """Reads the value as float64, or says what was expected."""
    try:
        values = np.asarray(value)
    except ValueError:  # rows of unequal length
        values = np.asarray(None)
    if values.dtype.kind not in "iuf":
        raise InvalidInputError(f"{name} must be a number or an array of numbers, got {value!r}")
    return values.astype(np.float64)


def check_positive(
    name: str, value: Any, *, allow_zero: bool = False, maximum: float = math.inf, allow_infinite: bool = False
) -> float:
    """The value as a float, if it is one number above 0 (or from 0 on) and at most `high`; infinity if allowed.

    >>> require("rho", 0.1, high=1.0)
    0.1
    """
    number = check_floats(name, value)
    if (
        number.ndim == 0
        and (np.isfinite(number) or (allow_infinite and number == math.inf))
        and (number > 0.0 or (allow_zero and number == 0.0))
        and number <= maximum
    ):
        return float(number)
    expected = ("of at least 0" if allow_zero else "above 0") + (
        "" if math.isinf(maximum) else f" and at most {maximum:g}"
    )
    kind = "number" if allow_infinite else "finite number"
    raise InvalidInputError(f"{name} must be one {kind} {expected}, got {value!r}")


def check_int(name: str, value: Any, minimum: int) -> int:
    """The value as an int, if it is a whole number of at least `least`.

    >>> require_whole("n_init", 10, 1)
    10
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise InvalidInputError(f"{name} must be a whole number of at least {minimum}, got {value!r}")
    return int(value)
