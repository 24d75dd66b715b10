"""Fenwick tree: counts in bins with fast prefix sums, in a flat vector.

Entry i (from 1) holds the sum of the bins i − (i & −i) … i − 1. Reading a prefix sum and adding a count both take as
many steps as the number of bins has binary digits. If the number of bins is a power of two, the last entry is the sum
of all.

Counts are integers, two of them in one slot of a state (of 32 bits each, or 16). A state must never look as if it held
a NaN, so no count may reach 2^31 − 2^20 (or 2^15 − 2^4): callers halve all counts before.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import kernel

Counts = npt.NDArray[np.signedinteger]

MAX_COUNT = 2**30  # points counted, at which all counts are halved


@kernel
def fenwick_add(tree: Counts, n_bins: int, bin_index: int) -> None:
    """Add one to the count of a bin."""
    i = bin_index + 1
    while i <= n_bins:
        tree[i - 1] += 1
        i += i & -i


@kernel
def fenwick_count(tree: Counts, bin_index: int) -> int:
    """Return the count of a bin."""
    i = bin_index + 1
    total, range_start = int(tree[bin_index]), i - (i & -i)
    i -= 1
    while i > range_start:
        total -= int(tree[i - 1])
        i -= i & -i
    return total


@kernel
def fenwick_prefix_sum(tree: Counts, bin_index: int) -> int:
    """Return the sum of the counts of all bins before `bin_index`."""
    total = 0
    i = bin_index
    while i > 0:
        total += int(tree[i - 1])
        i -= i & -i
    return total


@kernel
def fenwick_halve(tree: Counts, n_bins: int, round_up: int) -> None:
    """Halve the suffix sums of the counts, rounded up or down."""
    for i in range(n_bins, 0, -1):  # from sums to the bins themselves …
        parent = i + (i & -i)
        if parent <= n_bins:
            tree[parent - 1] -= tree[i - 1]
    carry = round_up
    for i in range(n_bins, 0, -1):
        count = int(tree[i - 1]) + carry
        tree[i - 1], carry = count >> 1, count & 1
    for i in range(1, n_bins + 1):  # … and back
        parent = i + (i & -i)
        if parent <= n_bins:
            tree[parent - 1] += tree[i - 1]
