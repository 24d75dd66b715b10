"""Ranks of a point among all earlier ones that were not far out, from a histogram.

The counts are kept cumulated in two levels, so that a rank is read off and a point is added by a few additions
without a branch. Among points of the same bin the order is drawn at random, which makes the ranks exactly uniform
for any law, with ties or without; the random numbers are a function of a counter in the memory.

Before the counts are too large for the room they have, all of them are halved: what is left stands for a sample of the
points, and ranks in it are as uniform as before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from holdfast.alarms.bets import FAR_OUT
from holdfast.alarms.layout import ABOVE, BELOW, BLOCKS, COUNTER, places_of
from holdfast.autopilot.sizes import Sizes
from holdfast.scheme.compiling import kernel
from holdfast.scheme.counting import Counts
from holdfast.scheme.state import Vector

WEYL, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S30, S27, S31, S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
TO_UNIT = 2.0**-53
PERIOD = 2.0**24  # of the counter in numbers of 32 bits


@kernel
def uniform(memory: Vector, at: int, short: bool) -> float:
    """The next random number in [0, 1): SplitMix64 of the counter (Steele, Lea and Flood, 2014)."""
    count = memory[at + COUNTER] + 1.0
    if short:
        count = count if count < PERIOD else 1.0
    memory[at + COUNTER] = count
    mixed = np.uint64(np.int64(count)) * WEYL  # by way of a signed number: processors have no other way
    mixed = (mixed ^ (mixed >> S30)) * FIRST
    mixed = (mixed ^ (mixed >> S27)) * SECOND
    return np.int64((mixed ^ (mixed >> S31)) >> S11) * TO_UNIT


@dataclass(frozen=True, eq=False)
class Histogram:
    """The compiled functions of a histogram."""

    bin_of: Callable[[float], int]
    """(r) → the bin of a residual that is not far out."""

    inliers: Callable[[Counts], int]
    """(counts) → how many points the histogram holds."""

    rank: Callable[[Counts, int, float], float]
    """(counts, b, u) → (how many are smaller + u·(how many are in the same bin + 1)) / (n + 1), uniform on [0, 1)."""

    alone: Callable[[Counts, int], bool]
    """(counts, b) → whether all points that the histogram holds are in bin b."""

    add: Callable[[Counts, int], None]
    """(counts, b): counts a point of bin b. Whoever goes on counting halves the counts when they are `most`."""

    halve: Callable[[Counts], None]
    """(counts): halves all counts; every running sum is half of what it was, rounded down."""


@cache
def histogram(sizes: Sizes) -> Histogram:
    """With as many bins as there is room for."""
    n_bins, n_blocks = sizes.bins, sizes.bins // 8
    bins_at, per_unit = places_of(sizes).bins, n_bins / (2.0 * FAR_OUT)
    last = BLOCKS + n_blocks - 1

    @kernel
    def bin_of(r: float) -> int:
        b = int((r + FAR_OUT) * per_unit)
        return b if b < n_bins else n_bins - 1

    @kernel
    def inliers(counts: Counts) -> int:
        return int(counts[last])

    @kernel
    def rank(counts: Counts, b: int, u: float) -> float:
        block = b >> 3
        before, within = int(counts[BLOCKS + block - 1]), int(counts[bins_at + b - 1])  # read first: no branch
        before, within = before if block > 0 else 0, within if b & 7 else 0
        here = float(int(counts[bins_at + b]) - within)
        return (float(before + within) + u * (here + 1.0)) / (float(inliers(counts)) + 1.0)

    @kernel
    def alone(counts: Counts, b: int) -> bool:
        within = int(counts[bins_at + b - 1]) if b & 7 else 0
        return int(counts[bins_at + b]) - within == inliers(counts)

    # What is added to the counts of blocks, and to those of a block's bins: to two at once, as a whole number of twice
    # the bits. None overflows into its neighbour, and none is cut off from it: two take the place of one number.
    pair = np.int32 if sizes.short else np.int64
    for_blocks = np.triu(np.ones((n_blocks, n_blocks), sizes.count)).view(pair)
    for_bins = np.triu(np.ones((8, 8), sizes.count)).view(pair)

    @kernel
    def add(counts: Counts, b: int) -> None:
        pairs, block = counts.view(pair), b >> 3
        for j in range(n_blocks // 2):
            pairs[BLOCKS // 2 + j] += for_blocks[block, j]
        for j in range(4):
            pairs[bins_at // 2 + 4 * block + j] += for_bins[b & 7, j]

    @kernel
    def halve(counts: Counts) -> None:
        counts[ABOVE], counts[BELOW] = (counts[ABOVE] + 1) >> 1, (counts[BELOW] + 1) >> 1
        before, halved = 0, 0
        for b in range(len(counts) - bins_at):  # of a length that the compiler does not know: it would unroll the loop
            counts[bins_at + b] = ((before + int(counts[bins_at + b])) >> 1) - halved
            if b & 7 == 7:
                before = int(counts[BLOCKS + (b >> 3)])
                counts[BLOCKS + (b >> 3)] = halved = before >> 1

    return Histogram(bin_of, inliers, rank, alone, add, halve)
