"""Burst guard: limit the pay-off of bets on a few scattered outliers.

An extreme point counts for a shift of the level only as far as it agrees with earlier extreme points on the same side,
not at all while extreme points are on both sides, and for a wider spread only after more than eight of them. Limits
only lower pay-offs, so the false-alarm rate still holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from limpet._jit.compile import kernel
from limpet._jit.math import exp, log
from limpet.core.memory_profile import MemoryProfile
from limpet.core.state import Vector
from limpet.detection.bets import betting_table
from limpet.detection.layout import (
    ABOVE_COUNT,
    BELOW_COUNT,
    CLUSTER_ABOVE,
    CLUSTER_BELOW,
    EXTREME_LEAKY_COUNT,
    N_SEEN,
    channel_layout,
)
from limpet.detection.ranks import make_histogram

LEAK_PER_POINT = 0.25
SUSPECT_COUNT_THRESHOLD, BURST_COUNT_THRESHOLD, MAX_BURST_COUNT = (
    0.75,
    1.5,
    8.0,
)  # leaky counts: one recent extreme point; a burst; more than a burst
CLUSTER_EXPIRY_POINTS = 20.0  # points without an extreme one after which earlier ones are forgotten
BASE_AGREEMENT_NATS = 2.4  # about log(28/√(2π)): the same normal distribution against uniform within 28 spreads
MAX_AGREEMENT_NATS, MIN_AGREEMENT_NATS, DISAGREEMENT_THRESHOLD_NATS = 2.2, -4.0, -1.0
MAX_BURST_PAY, MAX_REGIME_PAY = 1.0, 12.182493960703473  # during a burst, and e^2.5 after it
MAX_OPPOSITE_PAY = 0.22313016014842982  # e^−1.5: of a shift up, on an extreme point below
MAX_SUSPECT_PAY = 7.38905609893065  # e^2: on an inlier beyond the shoulder, right after one extreme point
SHOULDER_THRESHOLD_SD = 2.0  # within a burst, inliers beyond may belong to it


@kernel
def cluster_log_ratio(channel: Vector, cluster: int, r: float) -> float:
    """Return the log-likelihood ratio that r belongs to its cluster; update it."""
    m, now = channel[cluster], channel[N_SEEN]
    if m == 0.0 or now - channel[cluster + 2] > CLUSTER_EXPIRY_POINTS:
        channel[cluster], channel[cluster + 1], channel[cluster + 2] = 1.0, r, now
        return 0.0
    channel[cluster + 2] = now
    deviation = r - channel[cluster + 1]
    v = 1.0 + 1.0 / m
    ratio = BASE_AGREEMENT_NATS - 0.5 * log(v) - 0.5 * deviation * deviation / v
    if ratio < DISAGREEMENT_THRESHOLD_NATS:
        if m == 1.0:
            channel[cluster + 1] = r
        else:
            channel[cluster] = m - 1.0
        return ratio if ratio > MIN_AGREEMENT_NATS else MIN_AGREEMENT_NATS
    channel[cluster] = m + 1.0
    channel[cluster + 1] += deviation / (m + 1.0)
    return ratio if ratio < MAX_AGREEMENT_NATS else MAX_AGREEMENT_NATS


@dataclass(frozen=True, eq=False)
class BurstGuard:
    """Compiled functions of the burst guard."""

    pay_extreme: Callable[..., Any]
    """(channel, r, is_radius, pay): the pay-off of the bets on an extreme point."""

    limit_inlier: Callable[..., Any]
    """(channel, r, pay): within a burst, limit the pay-off of the bets on an inlier far from the center."""


@cache
def make_burst_guard(profile: MemoryProfile) -> BurstGuard:
    """Return the burst guard for a memory profile."""
    table, layout, count_inliers, count_dtype = (
        betting_table(profile),
        channel_layout(profile),
        make_histogram(profile).count_inliers,
        profile.count_dtype,
    )
    n_bets, first_down, first_widening, first_narrowing = (
        table.n_bets,
        table.first_down,
        table.first_widening,
        table.first_narrowing,
    )
    extreme_probabilities, inlier_probabilities, counts_offset, ring_offset = (
        table.extreme_probabilities,
        table.inlier_probabilities,
        layout.counts_offset,
        layout.ring_offset,
    )
    max_count = profile.max_count

    @kernel
    def pay_extreme(channel: Vector, r: float, is_radius: bool, pay: Vector) -> None:
        above = r > 0.0
        counts, count_index = (
            channel[counts_offset:ring_offset].view(count_dtype),
            ABOVE_COUNT if above else BELOW_COUNT,
        )
        total = count_inliers(counts) + int(counts[ABOVE_COUNT]) + int(counts[BELOW_COUNT])
        rate = (float(counts[count_index]) + 1.0) / (float(total) + 2.0)
        if counts[count_index] < max_count:  # never reached in practice: inliers are halved before
            counts[count_index] += 1
        channel[EXTREME_LEAKY_COUNT] += 1.0
        scale_cap = MAX_BURST_PAY if channel[EXTREME_LEAKY_COUNT] <= MAX_BURST_COUNT else MAX_REGIME_PAY
        log_ratio = cluster_log_ratio(channel, CLUSTER_ABOVE if above else CLUSTER_BELOW, r)
        level_cap = scale_cap if is_radius else exp(log_ratio)
        side = 0 if above else 1
        opposite_cap = (
            MAX_OPPOSITE_PAY if channel[EXTREME_LEAKY_COUNT] > BURST_COUNT_THRESHOLD and not is_radius else level_cap
        )
        for k in range(n_bets):
            is_up = k < first_down
            cap = (level_cap if is_up == above else opposite_cap) if k < first_widening else scale_cap
            paid = extreme_probabilities[side, k] / rate + inlier_probabilities[k]
            pay[k] = paid if paid < cap or k >= first_narrowing else cap

    @kernel
    def limit_inlier(channel: Vector, r: float, pay: Vector) -> None:
        cap = 1.0 if channel[EXTREME_LEAKY_COUNT] >= BURST_COUNT_THRESHOLD else MAX_SUSPECT_PAY
        if channel[EXTREME_LEAKY_COUNT] <= MAX_BURST_COUNT:
            for k in range(first_widening, first_narrowing):
                pay[k] = pay[k] if pay[k] < cap else cap
        if channel[CLUSTER_ABOVE if r > 0.0 else CLUSTER_BELOW] < 2.0:
            first = 0 if r > 0.0 else first_down
            for k in range(first, first + first_down):
                pay[k] = pay[k] if pay[k] < cap else cap

    return BurstGuard(pay_extreme, limit_inlier)
