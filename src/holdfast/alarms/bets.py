"""The bets: what the rank of a point is worth under thirteen ways in which the stream may have changed.

A bet is a density ratio of normal laws: a level shifted by ±δ, or a spread times s. It is paid on cells of the normal
score of the point's rank, and on whether the point is far out; on both its mean is exactly 1 while nothing changes.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.alarms.layout import BETS
from holdfast.scheme.compiling import kernel
from holdfast.scheme.state import Vector

SHIFTS = (0.4, 0.8, 1.5, 3.0)
WIDER, NARROWER = (1.4, 2.0, 6.0), (0.7, 0.45)
LOCATION_WEIGHT, SCALE_WEIGHT = 0.7, 0.3

UPS, DOWNS, WIDENINGS, NARROWINGS = 0, 4, 8, 11  # where each group of bets begins

FAR_OUT = 4.0  # spreads from which a point is far out
CELLS = 64
LEAST_FAR_OUT = 0.02  # of a wider spread: it may be any law


def _below(x: float) -> float:
    """Φ(x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _within(edges: Vector, shift: float, scale: float) -> Vector:
    """Probabilities of the cells under N(shift, scale²)."""
    return np.diff([_below((edge - shift) / scale) for edge in edges])


def _tables() -> tuple[Vector, Vector, Vector, Vector]:
    """Payoff of each bet on each cell, on far-out points above and below (to be divided by their rate), weights."""
    edges = np.linspace(-FAR_OUT, FAR_OUT, CELLS + 1)
    whole = edges.copy()
    whole[0], whole[-1] = -np.inf, np.inf
    calm = _within(whole, 0.0, 1.0)
    laws = [(shift, 1.0) for shift in SHIFTS] + [(-shift, 1.0) for shift in SHIFTS]
    laws += [(0.0, scale) for scale in WIDER + NARROWER]
    inside, far = np.zeros((CELLS, BETS)), np.zeros((2, BETS))
    for k, (shift, scale) in enumerate(laws):
        far[0, k], far[1, k] = _below((shift - FAR_OUT) / scale), _below((-shift - FAR_OUT) / scale)
        if scale > 1.0:
            far[:, k] = np.maximum(far[:, k], LEAST_FAR_OUT)
        if scale < 1.0:
            far[:, k] = 0.0
        ratio = _within(edges, shift, scale) / calm
        inside[:, k] = ratio / (ratio @ calm) * (1.0 - far[:, k].sum())
    weights = np.zeros((2, BETS))
    weights[0, :WIDENINGS], weights[0, WIDENINGS:] = LOCATION_WEIGHT / WIDENINGS, SCALE_WEIGHT / (BETS - WIDENINGS)
    weights[1, :WIDENINGS] = 1.0 / WIDENINGS  # the radius: its location is the spread of all
    return inside, far, weights, np.array([_below(edge) for edge in edges[1:-1]])


def _same_everywhere(table: Vector) -> Vector:
    """Rounded to twelve digits: the last bits of `math.erfc` differ between systems."""
    return np.vectorize(lambda x: float(f"{x:.12g}"))(table)


INSIDE, FAR, WEIGHTS, EDGES = map(_same_everywhere, _tables())
KEPT = 1.0 - FAR.sum(axis=0)  # what a bet leaves to the points that are not far out


@kernel
def cell_of(v: float) -> int:
    """The cell of the normal score Φ⁻¹(v): halving by the values of Φ at the inner edges."""
    cell = 32 if v >= EDGES[31] else 0
    cell += 16 if v >= EDGES[cell + 15] else 0
    cell += 8 if v >= EDGES[cell + 7] else 0
    cell += 4 if v >= EDGES[cell + 3] else 0
    cell += 2 if v >= EDGES[cell + 1] else 0
    cell += 1 if v >= EDGES[cell] else 0
    return cell
