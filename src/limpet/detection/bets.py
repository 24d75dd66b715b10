"""Bets against exchangeability: pay-off of a rank, limits within bursts.

A bet is a density ratio of normal distributions: a level shifted by ±δ, or a spread times s. It pays on cells of the
normal score of the point's rank, and on whether the point is extreme; its mean is exactly 1 under exchangeability.

The *burst guard* limits the pay-off of bets on a few scattered outliers. An extreme point counts for a shift of the
level only as far as it agrees with earlier extreme points on the same side, not at all while extreme points are on both
sides, and for a wider spread only after more than eight of them. Limits only lower pay-offs, so the false-alarm rate
still holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from limpet._jit.compile import kernel
from limpet._jit.math import exp, log
from limpet.core.memory_profile import MemoryProfile
from limpet.core.state import Vector
from limpet.detection.layout import CLUSTER_ABOVE, CLUSTER_BELOW, EXTREME_LEAKY_COUNT, N_SEEN

LOCATION_WEIGHT, SCALE_WEIGHT = 0.7, 0.3

EXTREME_THRESHOLD_SD = 4.0  # from here on a point is extreme
N_CELLS = 64
MIN_EXTREME_PROBABILITY = 0.02  # of a wider spread, for any distribution


class BettingTable(NamedTuple):
    """Tables of the bets, shifts up first, then down, wider and narrower."""

    first_down: int
    first_widening: int
    first_narrowing: int
    inlier_pay: Vector  # (cells, bets): the pay-off of a point that is not extreme
    # (2, bets): probabilities of extreme points above and below; their pay-off is this divided by their rate
    extreme_probabilities: Vector
    inlier_probabilities: Vector  # (bets,): the probability of points that are not extreme
    weights: Vector  # (2, bets): weights of the bets for a coordinate and for the radius


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _cell_probabilities(edges: Vector, shift: float, scale: float) -> Vector:
    return np.diff([_normal_cdf((edge - shift) / scale) for edge in edges])


def _round_to_12_digits(table: Vector) -> Vector:
    """Round to twelve digits: the last bits of `math.erfc` differ between systems."""
    return np.vectorize(lambda x: float(f"{x:.12g}"))(table)


CELL_EDGES = np.linspace(-EXTREME_THRESHOLD_SD, EXTREME_THRESHOLD_SD, N_CELLS + 1)
CELL_EDGE_PROBABILITIES = _round_to_12_digits(np.array([_normal_cdf(edge) for edge in CELL_EDGES[1:-1]]))
CELL_UPPER_PROBABILITIES = np.append(CELL_EDGE_PROBABILITIES, np.inf)  # upper edge of each cell

# The first cell to check for v: the cell of the next lower value of a grid. Except for a few grid values per thousand,
# far in the tails, at most one edge lies between neighbors.
LOOKUP_GRID_CELLS = 2048
FIRST_CELL_LOOKUP = np.searchsorted(
    CELL_EDGE_PROBABILITIES, np.arange(LOOKUP_GRID_CELLS + 1) / LOOKUP_GRID_CELLS, side="right"
).astype(np.uint8)


@cache
def betting_table(profile: MemoryProfile) -> BettingTable:
    """Return the bets of a memory profile."""
    open_edges = CELL_EDGES.copy()
    open_edges[0], open_edges[-1] = -np.inf, np.inf
    null_probabilities = _cell_probabilities(open_edges, 0.0, 1.0)
    alternatives = [(shift, 1.0) for shift in profile.shifts] + [(-shift, 1.0) for shift in profile.shifts]
    alternatives += [(0.0, scale) for scale in profile.wider_scales + profile.narrower_scales]
    n_bets, first_down, first_widening = profile.n_bets, len(profile.shifts), 2 * len(profile.shifts)
    inlier_pay, extreme_probabilities = np.zeros((N_CELLS, n_bets)), np.zeros((2, n_bets))
    for k, (shift, scale) in enumerate(alternatives):
        extreme_probabilities[0, k] = _normal_cdf((shift - EXTREME_THRESHOLD_SD) / scale)
        extreme_probabilities[1, k] = _normal_cdf((-shift - EXTREME_THRESHOLD_SD) / scale)
        if scale > 1.0:
            extreme_probabilities[:, k] = np.maximum(extreme_probabilities[:, k], MIN_EXTREME_PROBABILITY)
        if scale < 1.0:
            extreme_probabilities[:, k] = 0.0
        ratio = _cell_probabilities(CELL_EDGES, shift, scale) / null_probabilities
        inlier_pay[:, k] = ratio / (ratio * null_probabilities).sum() * (1.0 - extreme_probabilities[:, k].sum())
    weights = np.zeros((2, n_bets))
    weights[0, :first_widening] = LOCATION_WEIGHT / first_widening
    weights[0, first_widening:] = SCALE_WEIGHT / (n_bets - first_widening)
    weights[1, :first_widening] = 1.0 / first_widening  # the radius: its location is the spread of all variables
    inlier_pay, extreme_probabilities, weights = map(_round_to_12_digits, (inlier_pay, extreme_probabilities, weights))
    return BettingTable(
        first_down=first_down,
        first_widening=first_widening,
        first_narrowing=first_widening + len(profile.wider_scales),
        inlier_pay=inlier_pay,
        extreme_probabilities=extreme_probabilities,
        inlier_probabilities=1.0 - extreme_probabilities.sum(axis=0),
        weights=weights,
    )


@kernel
def score_cell(v: float) -> int:
    """Return the cell of the normal score Φ⁻¹(v), for v in [0, 1].

    It is the number of inner edges with a Φ of at most v. A table and one step without a branch almost always suffice;
    bisection takes six dependent loads.
    """
    cell = int(FIRST_CELL_LOOKUP[np.uint32(v * LOOKUP_GRID_CELLS)])
    cell += 1 if v >= CELL_UPPER_PROBABILITIES[cell] else 0
    while v >= CELL_UPPER_PROBABILITIES[cell]:
        cell += 1
    return cell


# The burst guard

LEAK_PER_POINT = 0.25
SUSPECT_COUNT_THRESHOLD = 0.75  # leaky counts: one recent extreme point; …
BURST_COUNT_THRESHOLD, MAX_BURST_COUNT = 1.5, 8.0  # … a burst; more than a burst
CLUSTER_EXPIRY_POINTS = 20.0  # points without an extreme one after which earlier ones are forgotten
BASE_AGREEMENT_NATS = 2.4  # about log(28/√(2π)): the same normal distribution against uniform within 28 spreads
MAX_AGREEMENT_NATS, MIN_AGREEMENT_NATS, DISAGREEMENT_THRESHOLD_NATS = 2.2, -4.0, -1.0
MAX_BURST_PAY, MAX_REGIME_PAY = 1.0, 12.182493960703473  # during a burst, and e^2.5 after it
MAX_OPPOSITE_PAY = 0.22313016014842982  # e^−1.5: of a shift up, on an extreme point below
MAX_SUSPECT_PAY = 7.38905609893065  # e^2: on an inlier beyond the shoulder, right after one extreme point
SHOULDER_THRESHOLD_SD = 2.0  # within a burst, inliers beyond may belong to it


class BurstGuard(NamedTuple):
    """Compiled functions; `channel` is its part of the state."""

    # (channel, r, rate, is_radius, pay): the pay-off of the bets on an extreme point, `rate` that of such points
    pay_extreme: Callable[..., Any]
    # (channel, r, pay): within a burst, limit the pay-off of the bets on an inlier far from the center
    limit_inlier: Callable[..., Any]


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


@cache
def make_burst_guard(profile: MemoryProfile) -> BurstGuard:
    """Return the burst guard for a memory profile."""
    table, n_bets = betting_table(profile), profile.n_bets
    first_down, first_widening, first_narrowing = table.first_down, table.first_widening, table.first_narrowing
    extreme_probabilities, inlier_probabilities = table.extreme_probabilities, table.inlier_probabilities

    @kernel
    def pay_extreme(channel: Vector, r: float, rate: float, is_radius: bool, pay: Vector) -> None:
        above = r > 0.0
        channel[EXTREME_LEAKY_COUNT] += 1.0
        scale_cap = MAX_BURST_PAY if channel[EXTREME_LEAKY_COUNT] <= MAX_BURST_COUNT else MAX_REGIME_PAY
        log_ratio = cluster_log_ratio(channel, CLUSTER_ABOVE if above else CLUSTER_BELOW, r)
        level_cap = scale_cap if is_radius else exp(log_ratio)
        side = 0 if above else 1
        in_burst = channel[EXTREME_LEAKY_COUNT] > BURST_COUNT_THRESHOLD
        opposite_cap = MAX_OPPOSITE_PAY if in_burst and not is_radius else level_cap
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
