"""The frame follows the stream where numbers have 32 bits: these cannot tell apart points far from their origin.

When the estimate has gone far from the origin, in its own standard deviations, the origin goes there. All that is kept
in the frame's coordinates is told anew; spreads stay as they are, for small numbers and large ones are equally exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.autopilot.bank import REVIEW, SLOW, Bank
from holdfast.autopilot.rescue import missing_in
from holdfast.autopilot.sizes import Sizes
from holdfast.models.component import Component
from holdfast.scheme.compiling import kernel
from holdfast.scheme.state import Layout, Vector

FAR = 256.0  # standard deviations from the origin
LARGEST = 1e15  # scales of the frame: the square of a number further out has no place in 32 bits


@dataclass(frozen=True, eq=False)
class Moving:
    """The compiled functions."""

    astray: Callable[..., Any]
    """(theta, i, work) → how far the origin of variable i should go, now; 0 if it is well where it is."""

    move: Callable[..., Any]
    """(theta, i, by): the origin of variable i goes there."""


@kernel
def never_astray(theta: Vector, i: int, work: Vector) -> float:
    """For numbers of 64 bits."""
    return 0.0


@kernel
def stay(theta: Vector, i: int, by: float) -> None:
    """For numbers of 64 bits."""


def moving_functions(bank: Bank, component: Component, layout: Layout, K: int, d: int, sizes: Sizes) -> Moving:
    """For a stream whose fields lie in theta as `layout` says."""
    if not sizes.short:
        return Moving(never_astray, stay)
    n_experts, expert_size = layout.fields["experts"]
    reference, scale, experts, value = (layout.at(name) for name in ("reference", "scale", "experts", "value"))
    exact, size, counts = sizes.places_for_exact(d), component.size(d), layout.at("counts")
    own_ring = "ring" in layout.fields
    ring, length = (layout.at("ring"), layout.fields["ring"][0]) if own_ring else (0, 0)
    missing, frame = missing_in(sizes), bank.frame

    @kernel
    def astray(theta: Vector, i: int, work: Vector) -> float:
        if theta[counts + SLOW] % REVIEW != 0.0:
            return 0.0
        centre, spread = frame(theta, i, work)
        return centre if abs(centre) > FAR * spread else 0.0

    @kernel
    def move_mixture(theta: Vector, own: int, components: int, i: int, by: float) -> None:
        for k in range(components):
            theta[own + components + k * size + i] -= by

    @kernel
    def move(theta: Vector, i: int, by: float) -> None:
        origin = theta[reference : reference + exact].view(np.float64)
        unit = theta[scale : scale + exact].view(np.float64)
        origin[i] += unit[i] * by
        for e in range(n_experts):
            move_mixture(theta, experts + e * expert_size, K, i, by)
        move_mixture(theta, value, K, i, by)
        move_mixture(theta, value + expert_size, 1, i, by)
        for j in range(length):
            if theta[ring + j * d + i] != missing:
                theta[ring + j * d + i] -= by

    return Moving(astray, move)
