"""The bets: what the rank of a point is worth under thirteen ways in which the stream may have changed.

A bet is a density ratio of normal laws: a level shifted by ±δ, or a spread times s. It is paid on cells of the normal
score of the point's rank, and on whether the point is far out; on both its mean is exactly 1 while nothing changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from holdfast.autopilot.sizes import FULL, Sizes
from holdfast.scheme.compiling import kernel
from holdfast.scheme.state import Vector

LOCATION_WEIGHT, SCALE_WEIGHT = 0.7, 0.3

FAR_OUT = 4.0  # spreads from which a point is far out
CELLS = 64
LEAST_FAR_OUT = 0.02  # of a wider spread: it may be any law


@dataclass(frozen=True, eq=False)
class Bets:
    """The tables of the bets; ups first, then `downs`, `widenings` and `narrowings`, each from this place on."""

    downs: int
    widenings: int
    narrowings: int
    n: int

    inside: Vector
    """(cells, bets): what is paid on a point that is not far out."""

    far: Vector
    """(2, bets): what is paid on a point far above or far below, to be divided by their rate."""

    kept: Vector
    """What a bet leaves to the points that are not far out."""

    weights: Vector
    """(2, bets): of a coordinate, and of the radius."""


def _below(x: float) -> float:
    """Φ(x)."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _within(edges: Vector, shift: float, scale: float) -> Vector:
    """Probabilities of the cells under N(shift, scale²)."""
    return np.diff([_below((edge - shift) / scale) for edge in edges])


def _same_everywhere(table: Vector) -> Vector:
    """Rounded to twelve digits: the last bits of `math.erfc` differ between systems."""
    return np.vectorize(lambda x: float(f"{x:.12g}"))(table)


CELL_EDGES = np.linspace(-FAR_OUT, FAR_OUT, CELLS + 1)
EDGES = _same_everywhere(np.array([_below(edge) for edge in CELL_EDGES[1:-1]]))
UPPER = np.append(EDGES, np.inf)  # where each cell ends

# Where to begin to look for the cell of v: the cell of the next lower one of a grid of values. But for a few in a
# thousand, which are far out in the tails, at most one edge lies between a value and the next one.
GRID = 2048
FIRST = np.searchsorted(EDGES, np.arange(GRID + 1) / GRID, side="right").astype(np.uint8)


@cache
def bets_of(sizes: Sizes) -> Bets:
    """The bets that there is room for."""
    whole = CELL_EDGES.copy()
    whole[0], whole[-1] = -np.inf, np.inf
    calm = _within(whole, 0.0, 1.0)
    laws = [(shift, 1.0) for shift in sizes.shifts] + [(-shift, 1.0) for shift in sizes.shifts]
    laws += [(0.0, scale) for scale in sizes.wider + sizes.narrower]
    n, downs = len(laws), len(sizes.shifts)
    widenings, narrowings = 2 * downs, 2 * downs + len(sizes.wider)
    inside, far = np.zeros((CELLS, n)), np.zeros((2, n))
    for k, (shift, scale) in enumerate(laws):
        far[0, k], far[1, k] = _below((shift - FAR_OUT) / scale), _below((-shift - FAR_OUT) / scale)
        if scale > 1.0:
            far[:, k] = np.maximum(far[:, k], LEAST_FAR_OUT)
        if scale < 1.0:
            far[:, k] = 0.0
        ratio = _within(CELL_EDGES, shift, scale) / calm
        inside[:, k] = ratio / (ratio @ calm) * (1.0 - far[:, k].sum())
    weights = np.zeros((2, n))
    weights[0, :widenings], weights[0, widenings:] = LOCATION_WEIGHT / widenings, SCALE_WEIGHT / (n - widenings)
    weights[1, :widenings] = 1.0 / widenings  # the radius: its location is the spread of all
    inside, far, weights = (_same_everywhere(table) for table in (inside, far, weights))
    return Bets(downs, widenings, narrowings, n, inside, far, 1.0 - far.sum(axis=0), weights)


BETS = bets_of(FULL)


@kernel
def cell_of(v: float) -> int:
    """The cell of the normal score Φ⁻¹(v), for v in [0, 1]: how many of the inner edges have a Φ of at most v.

    One step without a branch, and hardly ever a second one: halving takes six loads that wait for one another.
    """
    cell = int(FIRST[np.uint32(v * GRID)])
    cell += 1 if v >= UPPER[cell] else 0
    while v >= UPPER[cell]:
        cell += 1
    return cell
