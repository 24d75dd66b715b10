"""Ranks of a point among earlier non-extreme points, and counts of extreme ones.

The counts are cumulated in two levels, so that reading a rank and adding a point take a few additions without a branch.
Among points of the same bin the order is random, which makes the ranks exactly uniform for any distribution, with or
without ties; the random numbers are a function of a counter in the state.

Before the counts overflow, all of them are halved: the rest represents a sample of the points, and ranks in it are
equally uniform.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from limpet._jit.compile import kernel
from limpet.core.memory_profile import Counts, MemoryProfile
from limpet.core.state import Vector
from limpet.detection.bets import EXTREME_THRESHOLD_SD
from limpet.detection.layout import ABOVE_COUNT, BELOW_COUNT, BLOCKS_OFFSET, RANDOM_COUNTER, channel_layout

SPLITMIX_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
SPLITMIX_FACTOR_1, SPLITMIX_FACTOR_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SHIFT_30_BITS, SHIFT_27_BITS, SHIFT_31_BITS, SHIFT_11_BITS = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
UNIT_INTERVAL_SCALE = 2.0**-53
FLOAT32_COUNTER_PERIOD = 2.0**24  # of the counter in numbers of 32 bits


@kernel
def draw_uniform(state: Vector, offset: int, is_float32: bool) -> float:
    """Return the next random number in [0, 1): SplitMix64 (Steele, Lea, Flood 2014)."""
    count = state[offset + RANDOM_COUNTER] + 1.0
    if is_float32:
        count = count if count < FLOAT32_COUNTER_PERIOD else 1.0
    state[offset + RANDOM_COUNTER] = count
    mixed = np.uint64(np.int64(count)) * SPLITMIX_INCREMENT  # via signed integers, which processors convert directly
    mixed = (mixed ^ (mixed >> SHIFT_30_BITS)) * SPLITMIX_FACTOR_1
    mixed = (mixed ^ (mixed >> SHIFT_27_BITS)) * SPLITMIX_FACTOR_2
    return np.int64((mixed ^ (mixed >> SHIFT_31_BITS)) >> SHIFT_11_BITS) * UNIT_INTERVAL_SCALE


class Histogram(NamedTuple):
    """Compiled functions of a histogram."""

    bin_index: Callable[[float], int]  # (r) → the bin of a residual that is not extreme
    count_inliers: Callable[[Counts], int]  # (counts) → number of points in the histogram
    # (counts, b, u) → (count of smaller ones + u·(count in the same bin + 1)) / (n + 1), uniform on [0, 1)
    rank: Callable[[Counts, int, float], float]
    is_single_bin: Callable[[Counts, int], bool]  # (counts, b) → whether all points are in bin b
    # (counts, b): count a point of bin b. Callers halve the counts at `max_count`.
    add_point: Callable[[Counts, int], None]
    # (counts, above): count an extreme point, above or below; return the rate of such points before it
    add_extreme: Callable[[Counts, bool], float]
    halve: Callable[[Counts], None]  # (counts): halve all counts; every prefix sum is halved and rounded down


@cache
def make_histogram(profile: MemoryProfile) -> Histogram:
    """Return the histogram functions for a memory profile."""
    n_bins, n_blocks, max_count = profile.n_rank_bins, profile.n_rank_bins // 8, profile.max_count
    bins_offset, bins_per_sd = channel_layout(profile).bins_offset, n_bins / (2.0 * EXTREME_THRESHOLD_SD)
    last_block = BLOCKS_OFFSET + n_blocks - 1

    @kernel
    def bin_index(r: float) -> int:
        b = int((r + EXTREME_THRESHOLD_SD) * bins_per_sd)
        return b if b < n_bins else n_bins - 1

    @kernel
    def count_inliers(counts: Counts) -> int:
        return int(counts[last_block])

    @kernel
    def rank(counts: Counts, b: int, u: float) -> float:
        block = b >> 3
        before, within = int(counts[BLOCKS_OFFSET + block - 1]), int(counts[bins_offset + b - 1])  # first: no branch
        before, within = before if block > 0 else 0, within if b & 7 else 0
        here = float(int(counts[bins_offset + b]) - within)
        return (float(before + within) + u * (here + 1.0)) / (float(count_inliers(counts)) + 1.0)

    @kernel
    def is_single_bin(counts: Counts, b: int) -> bool:
        within = int(counts[bins_offset + b - 1]) if b & 7 else 0
        return int(counts[bins_offset + b]) - within == count_inliers(counts)

    # Increments of the counts of blocks, and of those of a block's bins: two counts at once, as an integer of twice the
    # bits. None overflows into its neighbor.
    pair_dtype = np.int32 if profile.is_float32 else np.int64
    block_increments = np.triu(np.ones((n_blocks, n_blocks), profile.count_dtype)).view(pair_dtype)
    bin_increments = np.triu(np.ones((8, 8), profile.count_dtype)).view(pair_dtype)

    @kernel
    def add_point(counts: Counts, b: int) -> None:
        pairs, block = counts.view(pair_dtype), b >> 3
        for j in range(n_blocks // 2):
            pairs[BLOCKS_OFFSET // 2 + j] += block_increments[block, j]
        for j in range(4):
            pairs[bins_offset // 2 + 4 * block + j] += bin_increments[b & 7, j]

    @kernel
    def add_extreme(counts: Counts, above: bool) -> float:
        index = ABOVE_COUNT if above else BELOW_COUNT
        total = count_inliers(counts) + int(counts[ABOVE_COUNT]) + int(counts[BELOW_COUNT])
        rate = (float(counts[index]) + 1.0) / (float(total) + 2.0)
        if counts[index] < max_count:  # never reached in practice: inliers are halved before
            counts[index] += 1
        return rate

    @kernel
    def halve(counts: Counts) -> None:
        counts[ABOVE_COUNT], counts[BELOW_COUNT] = (counts[ABOVE_COUNT] + 1) >> 1, (counts[BELOW_COUNT] + 1) >> 1
        before, halved = 0, 0
        for b in range(len(counts) - bins_offset):  # a length unknown to the compiler, which would unroll the loop
            counts[bins_offset + b] = ((before + int(counts[bins_offset + b])) >> 1) - halved
            if b & 7 == 7:
                before = int(counts[BLOCKS_OFFSET + (b >> 3)])
                counts[BLOCKS_OFFSET + (b >> 3)] = halved = before >> 1

    return Histogram(bin_index, count_inliers, rank, is_single_bin, add_point, add_extreme, halve)
