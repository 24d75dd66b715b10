"""Numerics: checks, bisection, and the tail that a threshold cuts off."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from limpet._validation import FloatArray, check_floats, check_positive, invalid_param_error

Gamma = TypeVar("Gamma", float, NDArray[np.float64])
StepSizes: TypeAlias = float | Sequence[float] | NDArray[np.float64]

TAIL_CUTOFF_M = 40.0  # in units of M: from here on exp(-z²/M²) and its tail are zero in float64


def check_gamma(gamma: Any, *, allow_zero: bool = False, require_finite: bool = False) -> FloatArray:
    """Return the thresholds as an array; ``inf`` means no threshold."""
    values = check_floats("gamma", gamma)
    if np.all(values >= 0.0 if allow_zero else values > 0.0) and not (require_finite and np.any(np.isinf(values))):
        return values
    expected = ("at least 0" if allow_zero else "above 0") + (" and finite" if require_finite else "")
    raise invalid_param_error("gamma", f"must be {expected}", gamma)


def match_form(gamma: Gamma, values: Any) -> Gamma:
    """Return ``values`` in the form of ``gamma``: a float or an array."""
    return cast(Gamma, float(values) if np.ndim(gamma) == 0 else np.asarray(values, dtype=np.float64))


def bisect_first_true(predicate: Callable[[float], bool], low: float, high: float) -> float:
    """Return the first float for which ``predicate`` is true, by bisection."""
    while True:
        middle = low + 0.5 * (high - low)
        if not low < middle < high:
            return high
        if predicate(middle):
            high = middle
        else:
            low = middle


erfc = np.vectorize(math.erfc, otypes=[np.float64])
HALF_SQRT_PI = 0.5 * math.sqrt(math.pi)


def tail(gamma: Gamma, M: float) -> Gamma:
    """Return the integral of ``exp(-z²/M²)`` from γ to infinity.

    It is ``M √π/2 · erfc(γ/M)``, and 0 for γ = inf. By Lemma 1 it bounds the bias caused by rejecting the points with
    ``|H| > γ``.

    Examples
    --------
    >>> round(tail(0.0, M=2.0), 6), round(tail(3.0, M=5.0), 6), tail(float("inf"), M=5.0)
    (1.772454, 1.755367, 0.0)
    """
    M, values = check_positive("M", M), check_gamma(gamma, allow_zero=True)
    return match_form(gamma, M * HALF_SQRT_PI * erfc(values / M))


def exceedance_bound(gamma: FloatArray | float, M: float) -> FloatArray:
    """Return ``exp(-γ²/M²)``, minus the slope of :func:`tail`.

    >>> float(exceedance_bound(0.0, M=1.0)), float(exceedance_bound(1e300, M=1.0))
    (1.0, 0.0)
    """
    M = check_positive("M", M)
    return np.asarray(np.exp(-np.square(np.minimum(np.asarray(gamma) / M, TAIL_CUTOFF_M))))


def bounded_tail(gamma: Gamma, gamma_star: float) -> Gamma:
    """Return :func:`tail` for bounded updates, ``|H| <= γ*``.

    It is the integral of ``exp(-z²/(γ*-γ)²)`` from γ to γ* (in the text after Corollary 3), which is
    ``w √π/2 · (erfc(γ/w) - erfc(γ*/w))`` with ``w = γ* - γ``, and 0 from γ* on.

    >>> round(bounded_tail(1.0, gamma_star=3.0), 6), bounded_tail(3.0, gamma_star=3.0)
    (0.789815, 0.0)
    """
    gamma_star, values = check_positive("gamma_star", gamma_star), check_gamma(gamma, allow_zero=True)
    clipped_gamma = np.minimum(values, gamma_star)
    width = np.where(clipped_gamma < gamma_star, gamma_star - clipped_gamma, 1.0)
    area = width * HALF_SQRT_PI * (erfc(clipped_gamma / width) - erfc(gamma_star / width))
    return match_form(gamma, np.where(clipped_gamma < gamma_star, area, 0.0))
