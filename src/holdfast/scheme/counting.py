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

from holdfast.scheme.compiling import kernel

Counts = npt.NDArray[np.signedinteger]

MOST = 2**30  # points counted, at which all counts are halved


@kernel
def add_count(tree: Counts, bins: int, place: int) -> None:
    """Adds one to the count of bin `place`."""
    i = place + 1
    while i <= bins:
        tree[i - 1] += 1
        i += i & -i


@kernel
def count_at(tree: Counts, place: int) -> int:
    """The count of bin `place` alone."""
    i = place + 1
    total, least = int(tree[place]), i - (i & -i)
    i -= 1
    while i > least:
        total -= int(tree[i - 1])
        i -= i & -i
    return total


@kernel
def count_below(tree: Counts, place: int) -> int:
    """The sum of the counts of the bins before `place`."""
    total = 0
    i = place
    while i > 0:
        total += int(tree[i - 1])
        i -= i & -i
    return total


@kernel
def halve_counts(tree: Counts, bins: int, up: int) -> None:
    """Halves the sums of the counts from each bin on; rounded up if up is 1, down if it is 0."""
    for i in range(bins, 0, -1):  # from sums to the bins themselves …
        above = i + (i & -i)
        if above <= bins:
            tree[above - 1] -= tree[i - 1]
    odd = up
    for i in range(bins, 0, -1):
        count = int(tree[i - 1]) + odd
        tree[i - 1], odd = count >> 1, count & 1
    for i in range(1, bins + 1):  # … and back
        above = i + (i & -i)
        if above <= bins:
            tree[above - 1] += tree[i - 1]
