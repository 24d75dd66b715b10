"""Counts in bins whose running sums are always at hand: Fenwick's tree, in a flat vector of whole numbers.

Entry i (from 1) holds the sum of the bins i − (i & −i) … i − 1; both reading a running sum and adding a count
take as many steps as the number of bins has binary digits. Of a number of bins that is a power of two, the last entry
is the sum of all.

Counts are whole numbers, two of them in the place of one number of a state (of 32 bits each, or 16). No state may look
as if it held a NaN, so none may reach 2^31 − 2^20 (or 2^15 − 2^4); whoever counts halves all of his counts before.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import kernel

Counts = npt.NDArray[np.signedinteger]

MAX_COUNT = 2**30  # points counted, at which all counts are halved


@kernel
def fenwick_add(tree: Counts, n_bins: int, bin_index: int) -> None:
    """Adds one to the count of bin `place`."""
    i = bin_index + 1
    while i <= n_bins:
        tree[i - 1] += 1
        i += i & -i


@kernel
def fenwick_count(tree: Counts, bin_index: int) -> int:
    """The count of bin `place` alone."""
    i = bin_index + 1
    total, range_start = int(tree[bin_index]), i - (i & -i)
    i -= 1
    while i > range_start:
        total -= int(tree[i - 1])
        i -= i & -i
    return total


@kernel
def fenwick_prefix_sum(tree: Counts, bin_index: int) -> int:
    """The sum of the counts of the bins before `place`."""
    total = 0
    i = bin_index
    while i > 0:
        total += int(tree[i - 1])
        i -= i & -i
    return total


@kernel
def fenwick_halve(tree: Counts, n_bins: int, round_up: int) -> None:
    """Halves the sums of the counts from each bin on; rounded up if up is 1, down if it is 0."""
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
