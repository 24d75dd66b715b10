"""Move the origin of standardized coordinates of 32 bits with the stream.

Numbers of 32 bits cannot resolve points far from the origin. If the estimate is far from the origin in its standard
deviations, the origin is moved there, and all standardized values are shifted. Spreads remain, because their relative
precision does not depend on their size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from limpet._jit.compile import kernel
from limpet.auto.expert_ensemble import REVIEW_INTERVAL_POINTS, SLOWEST_EXPERT, ExpertEnsemble
from limpet.auto.reinitialization import missing_sentinel
from limpet.core.memory_profile import MemoryProfile
from limpet.core.state import Layout, Vector
from limpet.models.components.base import Component

RECENTER_THRESHOLD_SD = 256.0  # standard deviations from the origin
MAX_FLOAT32_COORDINATE = 1e15  # in standardized units: squares of larger numbers overflow in 32 bits


@dataclass(frozen=True, eq=False)
class Recentering:
    """The compiled functions."""

    recentering_offset: Callable[..., Any]
    """(theta, i, work) → by how much the origin of variable i must move now, 0 if it may remain."""

    shift_origin: Callable[..., Any]
    """(theta, i, shift): move the origin of variable i."""


@kernel
def no_offset(theta: Vector, i: int, work: Vector) -> float:
    """Return 0, for numbers of 64 bits."""
    return 0.0


@kernel
def noop(theta: Vector, i: int, shift: float) -> None:
    """Do nothing, for numbers of 64 bits."""


def make_recentering_kernels(
    ensemble: ExpertEnsemble, component: Component, layout: Layout, K: int, d: int, profile: MemoryProfile
) -> Recentering:
    """Return the kernels for a layout of theta."""
    if not profile.is_float32:
        return Recentering(no_offset, noop)
    n_experts, expert_size = layout.fields["experts"]
    reference, scale, experts, value = (
        layout.offset(name) for name in ("reference", "scale", "experts", "value_scorer")
    )
    float64_slots, size, counts = profile.float64_slots(d), component.n_parameters(d), layout.offset("counts")
    has_ring = "recent_points" in layout.fields
    ring, ring_length = (layout.offset("recent_points"), layout.fields["recent_points"][0]) if has_ring else (0, 0)
    missing_value, location_scale = missing_sentinel(profile), ensemble.location_scale

    @kernel
    def recentering_offset(theta: Vector, i: int, work: Vector) -> float:
        if theta[counts + SLOWEST_EXPERT] % REVIEW_INTERVAL_POINTS != 0.0:
            return 0.0
        center, spread = location_scale(theta, i, work)
        return center if abs(center) > RECENTER_THRESHOLD_SD * spread else 0.0

    @kernel
    def shift_mixture(theta: Vector, base: int, components: int, i: int, shift: float) -> None:
        for k in range(components):
            theta[base + components + k * size + i] -= shift

    @kernel
    def shift_origin(theta: Vector, i: int, shift: float) -> None:
        origin = theta[reference : reference + float64_slots].view(np.float64)
        unit = theta[scale : scale + float64_slots].view(np.float64)
        origin[i] += unit[i] * shift
        for e in range(n_experts):
            shift_mixture(theta, experts + e * expert_size, K, i, shift)
        shift_mixture(theta, value, K, i, shift)
        shift_mixture(theta, value + expert_size, 1, i, shift)
        for j in range(ring_length):
            if theta[ring + j * d + i] != missing_value:
                theta[ring + j * d + i] -= shift

    return Recentering(recentering_offset, shift_origin)
