"""Counts in bins whose running sums are always at hand: Fenwick's tree, in a flat vector.

Entry i (from 1) holds the sum of the bins i − (i & −i) … i − 1; both reading a running sum and adding a count
take as many steps as the number of bins has binary digits.
"""

from __future__ import annotations

from holdfast.scheme.compiling import kernel
from holdfast.scheme.state import Vector


@kernel
def add_count(tree: Vector, at: int, bins: int, place: int, amount: float) -> None:
    """Adds to the count of bin `place`; the tree's `bins` entries begin at index `at`."""
    i = place + 1
    while i <= bins:
        tree[at + i - 1] += amount
        i += i & -i


@kernel
def count_at(tree: Vector, at: int, place: int) -> float:
    """The count of bin `place` alone."""
    i = place + 1
    total, least = tree[at + place], i - (i & -i)
    i -= 1
    while i > least:
        total -= tree[at + i - 1]
        i -= i & -i
    return total


@kernel
def count_below(tree: Vector, at: int, place: int) -> float:
    """The sum of the counts of the bins before `place`."""
    total = 0.0
    i = place
    while i > 0:
        total += tree[at + i - 1]
        i -= i & -i
    return total
