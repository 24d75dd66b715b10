"""Threshold γ of the whitened norm for a given rejection rate of clean points."""

from __future__ import annotations

import math
from functools import cache

from limpet._validation import check_positive


def chi_square_tail(x: float, d: int) -> float:
    """Return P(X > x) of a chi-square variable with d degrees of freedom.

    >>> round(chi_square_tail(3.841458820694124, 1), 12), round(chi_square_tail(5.991464547107979, 2), 12)
    (0.05, 0.05)
    """
    half = 0.5 * x
    if d % 2:
        result, term, k = math.erfc(math.sqrt(half)), math.sqrt(half / math.pi) * 2.0 * math.exp(-half), 1
    else:
        result, term, k = math.exp(-half), half * math.exp(-half), 2
    while k < d:
        result += term
        k += 2
        term *= x / k
    return result


@cache
def gamma_for_rate(rate: float, d: int) -> float:
    """Return the γ, in sd, that a d-dimensional Gaussian point exceeds at a rate.

    >>> round(gamma_for_rate(1e-4, 1), 4), round(gamma_for_rate(1e-4, 3), 4)
    (3.8906, 4.5943)
    """
    check_positive("rate", rate, maximum=0.5)
    low, high = 0.0, 1.0
    while chi_square_tail(high, d) > rate:
        high *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if chi_square_tail(middle, d) > rate:
            low = middle
        else:
            high = middle
    return math.sqrt(high)
