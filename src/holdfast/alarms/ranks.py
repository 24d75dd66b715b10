"""Ranks of a point among all earlier ones that were not far out, from a histogram of 64 bins.

The counts are kept cumulated in two levels, so that a rank is read off and a point is added by sixteen additions
without a branch. Among points of the same bin the order is drawn at random, which makes the ranks exactly uniform
for any law, with ties or without; the random numbers are a function of a counter in the memory.

After some 10⁹ points all counts are halved: what is left stands for a sample of the points, and ranks in it are as
uniform as before.
"""

from __future__ import annotations

import numpy as np

from holdfast.alarms.bets import FAR_OUT
from holdfast.alarms.layout import ABOVE, BELOW, BINS, BLOCKS, COUNTER
from holdfast.scheme.compiling import kernel
from holdfast.scheme.counting import MOST, Counts
from holdfast.scheme.state import Vector

N_BINS = 64
PER_UNIT = N_BINS / (2.0 * FAR_OUT)

WEYL, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S30, S27, S31, S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
TO_UNIT = 2.0**-53


@kernel
def uniform(memory: Vector, at: int) -> float:
    """The next random number in [0, 1): SplitMix64 of the counter (Steele, Lea and Flood, 2014)."""
    count = memory[at + COUNTER] + 1.0
    memory[at + COUNTER] = count
    mixed = np.uint64(count) * WEYL
    mixed = (mixed ^ (mixed >> S30)) * FIRST
    mixed = (mixed ^ (mixed >> S27)) * SECOND
    return np.int64((mixed ^ (mixed >> S31)) >> S11) * TO_UNIT


@kernel
def bin_of(r: float) -> int:
    """The bin of a residual that is not far out."""
    b = int((r + FAR_OUT) * PER_UNIT)
    return b if b < N_BINS else N_BINS - 1


@kernel
def inliers(counts: Counts) -> int:
    """How many points the histogram holds."""
    return int(counts[BLOCKS + 7])


@kernel
def rank(counts: Counts, b: int, u: float) -> float:
    """(how many are smaller + u·(how many are in the same bin + 1)) / (n + 1), uniform on [0, 1)."""
    block = b >> 3
    before = int(counts[BLOCKS + block - 1]) if block > 0 else 0
    within = int(counts[BINS + b - 1]) if b & 7 else 0
    return (float(before + within) + u * (float(int(counts[BINS + b]) - within) + 1.0)) / (float(inliers(counts)) + 1.0)


@kernel
def add(counts: Counts, b: int) -> None:
    """Counts a point of bin b."""
    block = b >> 3
    blocks, bins = counts[BLOCKS : BLOCKS + 8], counts[BINS + 8 * block : BINS + 8 * block + 8]
    b &= 7
    for j in range(8):
        blocks[j] += 1 if j >= block else 0
        bins[j] += 1 if j >= b else 0
    if blocks[7] >= MOST:
        halve(counts)


@kernel
def halve(counts: Counts) -> None:
    """Halves all counts: every running sum is half of what it was, rounded down."""
    counts[ABOVE], counts[BELOW] = (counts[ABOVE] + 1) >> 1, (counts[BELOW] + 1) >> 1
    before, halved = 0, 0
    for block in range(8):
        for j in range(8):
            b = BINS + 8 * block + j
            counts[b] = ((before + int(counts[b])) >> 1) - halved
        before = int(counts[BLOCKS + block])
        counts[BLOCKS + block] = halved = before >> 1
