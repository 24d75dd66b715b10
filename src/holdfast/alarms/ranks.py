"""Ranks of a point among all earlier ones that were not far out, from a histogram of 64 bins.

The counts are kept cumulated in two levels, so that a rank is read off and a point is added by sixteen additions
without a branch. Among points of the same bin the order is drawn at random, which makes the ranks exactly uniform
for any law, with ties or without; the random numbers are a function of a counter in the memory.
"""

from __future__ import annotations

import numpy as np

from holdfast.alarms.bets import FAR_OUT
from holdfast.alarms.layout import BINS, BLOCKS, COUNTER
from holdfast.scheme.compiling import kernel
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
def inliers(own: Vector) -> float:
    """How many points the histogram holds."""
    return own[BLOCKS + 7]


@kernel
def rank(own: Vector, b: int, u: float) -> float:
    """(how many are smaller + u·(how many are in the same bin + 1)) / (n + 1), uniform on [0, 1)."""
    block = b >> 3
    before = own[BLOCKS + block - 1] if block > 0 else 0.0
    within = own[BINS + b - 1] if b & 7 else 0.0
    return (before + within + u * (own[BINS + b] - within + 1.0)) / (inliers(own) + 1.0)


@kernel
def add(own: Vector, b: int) -> None:
    """Counts a point of bin b."""
    block = b >> 3
    blocks, bins = own[BLOCKS : BLOCKS + 8], own[BINS + 8 * block : BINS + 8 * block + 8]
    b &= 7
    for j in range(8):
        blocks[j] += 1.0 if j >= block else 0.0
        bins[j] += 1.0 if j >= b else 0.0
