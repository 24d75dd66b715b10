"""Checks of numbers that users give, with messages that say what was expected and what came."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.errors import BadInputError

FloatArray = npt.NDArray[np.float64]


def as_floats(name: str, value: Any) -> FloatArray:
    """Reads the value as float64, or says what was expected."""
    try:
        values = np.asarray(value)
    except ValueError:  # rows of unequal length
        values = np.asarray(None)
    if values.dtype.kind not in "iuf":
        raise BadInputError(f"{name} must be a number or an array of numbers, got {value!r}")
    return values.astype(np.float64)


def require(name: str, value: Any, *, zero: bool = False, high: float = math.inf, infinite: bool = False) -> float:
    """The value as a float, if it is one number above 0 (or from 0 on) and at most `high`; infinity if allowed.

    >>> require("rho", 0.1, high=1.0)
    0.1
    """
    number = as_floats(name, value)
    if (
        number.ndim == 0
        and (np.isfinite(number) or (infinite and number == math.inf))
        and (number > 0.0 or (zero and number == 0.0))
        and number <= high
    ):
        return float(number)
    expected = ("of at least 0" if zero else "above 0") + ("" if math.isinf(high) else f" and at most {high:g}")
    kind = "number" if infinite else "finite number"
    raise BadInputError(f"{name} must be one {kind} {expected}, got {value!r}")


def require_whole(name: str, value: Any, least: int) -> int:
    """The value as an int, if it is a whole number of at least `least`.

    >>> require_whole("n_init", 10, 1)
    10
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise BadInputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)
