"""Bets against exchangeability: pay-off of a rank under 13 alternatives.

A bet is a density ratio of normal distributions: a level shifted by ±δ, or a spread times s. It pays on cells of the
normal score of the point's rank, and on whether the point is extreme; its mean is exactly 1 under exchangeability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from limpet._jit.compile import kernel
from limpet.core.memory_profile import FULL, MemoryProfile
from limpet.core.state import Vector

LOCATION_WEIGHT, SCALE_WEIGHT = 0.7, 0.3

EXTREME_THRESHOLD_SD = 4.0  # from here on a point is extreme
N_CELLS = 64
MIN_EXTREME_PROBABILITY = 0.02  # of a wider spread, for any distribution


@dataclass(frozen=True, eq=False)
class BettingTable:
    """Tables of the bets, shifts up first, then down, wider and narrower."""

    first_down: int
    first_widening: int
    first_narrowing: int
    n_bets: int

    inlier_pay: Vector
    """(cells, bets): the pay-off of a point that is not extreme."""

    extreme_probabilities: Vector
    """(2, bets): probabilities of extreme points above and below; their pay-off is this divided by their rate."""

    inlier_probabilities: Vector
    """(bets,): the probability of points that are not extreme."""

    weights: Vector
    """(2, bets): weights of the bets for a coordinate and for the radius."""


def _normal_cdf(x: float) -> float:
    """Return Φ(x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _cell_probabilities(edges: Vector, shift: float, scale: float) -> Vector:
    """Return the probabilities of the cells under N(shift, scale²)."""
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
    n_bets, first_down = len(alternatives), len(profile.shifts)
    first_widening, first_narrowing = 2 * first_down, 2 * first_down + len(profile.wider_scales)
    inlier_pay, extreme_probabilities = np.zeros((N_CELLS, n_bets)), np.zeros((2, n_bets))
    for k, (shift, scale) in enumerate(alternatives):
        extreme_probabilities[0, k], extreme_probabilities[1, k] = (
            _normal_cdf((shift - EXTREME_THRESHOLD_SD) / scale),
            _normal_cdf((-shift - EXTREME_THRESHOLD_SD) / scale),
        )
        if scale > 1.0:
            extreme_probabilities[:, k] = np.maximum(extreme_probabilities[:, k], MIN_EXTREME_PROBABILITY)
        if scale < 1.0:
            extreme_probabilities[:, k] = 0.0
        ratio = _cell_probabilities(CELL_EDGES, shift, scale) / null_probabilities
        inlier_pay[:, k] = ratio / (ratio * null_probabilities).sum() * (1.0 - extreme_probabilities[:, k].sum())
    weights = np.zeros((2, n_bets))
    weights[0, :first_widening], weights[0, first_widening:] = (
        LOCATION_WEIGHT / first_widening,
        SCALE_WEIGHT / (n_bets - first_widening),
    )
    weights[1, :first_widening] = 1.0 / first_widening  # the radius: its location is the spread of all variables
    inlier_pay, extreme_probabilities, weights = (
        _round_to_12_digits(table) for table in (inlier_pay, extreme_probabilities, weights)
    )
    return BettingTable(
        first_down,
        first_widening,
        first_narrowing,
        n_bets,
        inlier_pay,
        extreme_probabilities,
        1.0 - extreme_probabilities.sum(axis=0),
        weights,
    )


FULL_BETTING_TABLE = betting_table(FULL)


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
