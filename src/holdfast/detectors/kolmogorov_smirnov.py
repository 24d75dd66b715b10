"""The exact test of Kolmogorov and Smirnov for two samples of equal size, as a table."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from holdfast.checks import FloatArray

MAX_SAMPLE_POINTS = 10_000  # beyond, the usual implementations no longer compute the exact value


@lru_cache(maxsize=32)
def exact_p_values(size: int) -> FloatArray:
    """p_h = P(size·D ≥ h) for h = 0 … size, where D is the distance of the distributions of two samples of this size.

    The distance of two samples of n points is a whole number of n-ths, so that n + 1 numbers are all there are [1]_:
    p_h = 2 (C(2n, n−h) − C(2n, n−2h) + C(2n, n−3h) − …) / C(2n, n). Whole numbers all the way to one correctly rounded
    division: nothing cancels. Ties are treated as if there were none, as is usual (p is then too large).

    >>> exact_p_values(3)
    array([1. , 1. , 0.6, 0.1])

    .. [1] Gnedenko, B. V. and Korolyuk, V. S. (1951). On the maximum discrepancy between two empirical distributions.
       Doklady Akademii Nauk SSSR 80, 525–528.
    """
    paths = [1] * (size + 1)  # C(2n, n − j) at j
    for j in range(size - 1, -1, -1):
        paths[j] = paths[j + 1] * (size + j + 1) // (size - j)
    tail_counts = [paths[0]]
    for h in range(1, size + 1):
        tail_counts.append(2 * (sum(paths[h :: 2 * h]) - sum(paths[2 * h :: 2 * h])))
    table = np.array([count / paths[0] for count in tail_counts])
    table.flags.writeable = False
    return table
