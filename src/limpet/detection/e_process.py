"""E-process of one channel: rank, pay-off of the bets, Shiryaev–Roberts update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from limpet._jit.compile import kernel
from limpet._jit.simd import LANES
from limpet._jit.simd_transpose import load_lanes, store_lanes
from limpet.core.memory_profile import MemoryProfile
from limpet.core.state import Vector
from limpet.detection.bets import EXTREME_THRESHOLD_SD, betting_table, score_cell
from limpet.detection.burst_guard import (
    LEAK_PER_POINT,
    SHOULDER_THRESHOLD_SD,
    SUSPECT_COUNT_THRESHOLD,
    make_burst_guard,
)
from limpet.detection.layout import (
    CHANNEL_EVIDENCE,
    CLUSTER_ABOVE,
    CLUSTER_BELOW,
    EXTREME_LEAKY_COUNT,
    IS_DEGENERATE,
    N_MISSING,
    N_SEEN,
    POINTS_SINCE_QUIET,
    RING_INDEX,
    channel_layout,
)
from limpet.detection.ranks import make_histogram
from limpet.detection.reference_window import QUIET_EVIDENCE_THRESHOLD

CONSTANT_PAY = 0.5  # less than fair: evidence on a constant stays small
COUNTER_WRAP_POINTS = 2.0**22  # in 32 bits, 1 can still be added to twice this number


@dataclass(frozen=True, eq=False)
class EProcess:
    """Compiled functions of a channel; `channel` is its part of the state."""

    step: Callable[..., Any]
    """(channel, r, u, is_radius, pay): process a residual; the evidence of the channel is the wealth of the bets."""

    skip_point: Callable[..., Any]
    """(channel): a point without a value of this channel."""

    reset: Callable[..., Any]
    """(channel): clear all but the ring buffer, which other functions read."""

    count_point: Callable[..., Any]
    """(channel): count a point."""


@cache
def make_e_process(profile: MemoryProfile) -> EProcess:
    """Return the e-process of a channel for a memory profile."""
    table, layout, burst_guard, rank_histogram = (
        betting_table(profile),
        channel_layout(profile),
        make_burst_guard(profile),
        make_histogram(profile),
    )
    n_bets, inlier_pay, all_weights, first_narrowing = (
        table.n_bets,
        table.inlier_pay,
        table.weights,
        table.first_narrowing,
    )
    counts_offset, ring_offset, wealth_offset, aged_wealth_offset, channel_size = (
        layout.counts_offset,
        layout.ring_offset,
        layout.wealth_offset,
        layout.aged_wealth_offset,
        layout.channel_size,
    )
    bin_index, rank, add_point, count_dtype, is_float32, is_full = (
        rank_histogram.bin_index,
        rank_histogram.rank,
        rank_histogram.add_point,
        profile.count_dtype,
        profile.is_float32,
        profile.is_full,
    )
    pay_extreme, limit_inlier, is_single_bin = (
        burst_guard.pay_extreme,
        burst_guard.limit_inlier,
        rank_histogram.is_single_bin,
    )
    count_inliers, halve, max_count = rank_histogram.count_inliers, rank_histogram.halve, profile.max_count

    @kernel
    def pay_inlier(channel: Vector, r: float, u: float, pay: Vector) -> None:
        """Compute the pay-off of a point that is not extreme; add it to the ranks."""
        counts, b = channel[counts_offset:ring_offset].view(count_dtype), bin_index(r)
        if (channel[IS_DEGENERATE] == 0.0) if is_full else not is_single_bin(counts, b):
            cell = score_cell(rank(counts, b, u))
            for k in range(n_bets):
                pay[k] = inlier_pay[cell, k]
        else:  # constant so far: only extreme points are evidence, and a constant never raises an alarm
            for k in range(n_bets):
                pay[k] = CONSTANT_PAY if k < first_narrowing else 0.0
        add_point(counts, b)
        if count_inliers(counts) >= max_count:
            halve(counts)
        if channel[EXTREME_LEAKY_COUNT] > 0.0:
            remaining = channel[EXTREME_LEAKY_COUNT] - LEAK_PER_POINT
            channel[EXTREME_LEAKY_COUNT] = remaining if remaining > 0.0 else 0.0
            if remaining >= SUSPECT_COUNT_THRESHOLD and abs(r) > SHOULDER_THRESHOLD_SD:
                limit_inlier(channel, r, pay)

    @kernel
    def update_wealth_with_ages(channel: Vector, pay: Vector, weights: Vector) -> None:
        """Apply R ← (1 + R)·e to every bet, and the same weighted by age."""
        wealth, paid = load_lanes(channel, wealth_offset), load_lanes(pay, 0)
        store_lanes(channel, aged_wealth_offset, (load_lanes(channel, aged_wealth_offset) + wealth) * paid)
        store_lanes(channel, wealth_offset, (wealth + load_lanes(weights, 0)) * paid)
        for k in range(LANES, n_bets):
            channel[aged_wealth_offset + k] = (channel[aged_wealth_offset + k] + channel[wealth_offset + k]) * pay[k]
            channel[wealth_offset + k] = (channel[wealth_offset + k] + weights[k]) * pay[k]

    @kernel
    def update_wealth_only(channel: Vector, pay: Vector, weights: Vector) -> None:
        for k in range(n_bets):
            channel[wealth_offset + k] = (channel[wealth_offset + k] + weights[k]) * pay[k]

    update_wealth = update_wealth_with_ages if is_full else update_wealth_only

    @kernel
    def update_evidence(channel: Vector, pay: Vector, is_radius: bool) -> float:
        """Apply R ← (1 + R)·e to every bet; return Σ w·R."""
        update_wealth(channel, pay, all_weights[1 if is_radius else 0])
        wealth = channel[wealth_offset:]
        first = (wealth[0] + wealth[1]) + (wealth[2] + wealth[3])
        second = (wealth[4] + wealth[5]) + (wealth[6] + wealth[7])
        third, k = 0.0, 8
        if n_bets >= 12:
            third, k = (wealth[8] + wealth[9]) + (wealth[10] + wealth[11]), 12
        while k < n_bets:
            third += wealth[k]
            k += 1
        return (first + second) + third

    @kernel
    def reset(channel: Vector) -> None:
        for j in range(ring_offset):
            channel[j] = channel[j] if j == RING_INDEX else 0.0
        for j in range(wealth_offset, channel_size):
            channel[j] = 0.0

    @kernel
    def count_point(channel: Vector) -> None:
        channel[N_SEEN] += 1.0
        if is_float32 and channel[N_SEEN] >= 2.0 * COUNTER_WRAP_POINTS:
            channel[N_SEEN] -= COUNTER_WRAP_POINTS
            channel[CLUSTER_ABOVE + 2] -= COUNTER_WRAP_POINTS
            channel[CLUSTER_BELOW + 2] -= COUNTER_WRAP_POINTS

    @kernel
    def skip_point(channel: Vector) -> None:
        if is_full:
            channel[N_MISSING] += 1.0
            for k in range(n_bets):
                channel[aged_wealth_offset + k] += channel[wealth_offset + k]
        else:
            channel[POINTS_SINCE_QUIET] += 1.0

    @kernel
    def step(channel: Vector, r: float, u: float, is_radius: bool, pay: Vector) -> None:
        if abs(r) <= EXTREME_THRESHOLD_SD:
            pay_inlier(channel, r, u, pay)
        else:
            pay_extreme(channel, r, is_radius, pay)
        channel[CHANNEL_EVIDENCE] = update_evidence(channel, pay, is_radius)
        if not is_full:
            channel[POINTS_SINCE_QUIET] = (
                channel[POINTS_SINCE_QUIET] + 1.0 if channel[CHANNEL_EVIDENCE] > QUIET_EVIDENCE_THRESHOLD else 0.0
            )

    return EProcess(step, skip_point, reset, count_point)
