"""How much is kept of a stream: all that helps, or as little as still does.

The lean setting keeps numbers of 32 bits (a point's place and scale aside, which need all digits), counts of 16 bits,
fewer experts, a shorter ring, coarser bins and fewer bets; and it does without the residual view, the change score's
own memory and the look at what is left in the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class MemoryProfile:
    """What a stream on autopilot is given room for."""

    name: str

    is_float32: bool
    """Whether numbers have 32 bits and counts 16, or numbers 64 bits and counts 32."""

    is_full: bool
    """Whether there is room for the residual view, the change score, the test of whiteness, and the detector's own
    frame and lag-1 memory."""

    step_sizes: tuple[float, ...]
    """Of the experts in the bank, slow to quick …"""

    fast_expert: int
    """… and the one of them whose lead over the slowest tells of a small shift."""

    ring_points: int
    """Latest points kept for the rescue, at least."""

    fine_bin_width: float
    n_fine_bins: int
    coarse_bin_width: float
    n_surprise_bins: int
    """Surprises are counted in so many bins: the first ones of this width in nats, then coarse ones."""

    warmup_points: int
    """Points from which the detector of changes takes its frame."""

    n_rank_bins: int
    """Of its histogram; a multiple of 8."""

    shifts: tuple[float, ...]
    wider_scales: tuple[float, ...]
    narrower_scales: tuple[float, ...]
    """What its bets are on: levels shifted up or down, and other spreads; at least eight bets in all."""

    @property
    def dtype(self) -> Any:
        """The type of a number."""
        return np.float32 if self.is_float32 else np.float64

    @property
    def count_dtype(self) -> Any:
        """The type of a count of points."""
        return np.int16 if self.is_float32 else np.int32

    @property
    def max_count(self) -> int:
        """Points counted, at which all counts are halved: no state may look as if it held a NaN."""
        return 2**14 + 2**13 if self.is_float32 else 2**30

    def float64_slots(self, n: int) -> int:
        """Places that n numbers of 64 bits take."""
        return 2 * n if self.is_float32 else n

    def int32_slots(self, n: int) -> int:
        """Places that n whole numbers of 32 bits take."""
        return n if self.is_float32 else (n + 1) // 2

    def count_slots(self, n: int) -> int:
        """Places that n counts take."""
        return (n + 1) // 2


MIN_POINTS_PER_COMPONENT = 12  # points for each component, for a mixture to be fitted

FULL = MemoryProfile(
    name="full",
    is_float32=False,
    is_full=True,
    step_sizes=(0.002, 0.006, 0.02, 0.06, 0.15),
    fast_expert=3,
    ring_points=64,
    fine_bin_width=0.125,
    n_fine_bins=64,
    coarse_bin_width=0.5,
    n_surprise_bins=128,
    warmup_points=100,
    n_rank_bins=64,
    shifts=(0.4, 0.8, 1.5, 3.0),
    wider_scales=(1.4, 2.0, 6.0),
    narrower_scales=(0.7, 0.45),
)
COMPACT = MemoryProfile(
    name="compact",
    is_float32=True,
    is_full=False,
    step_sizes=(0.002, 0.015, 0.06),
    fast_expert=2,
    ring_points=16,
    fine_bin_width=0.25,
    n_fine_bins=24,
    coarse_bin_width=2.0,
    n_surprise_bins=38,
    warmup_points=50,
    n_rank_bins=16,
    shifts=(0.5, 1.2, 3.0),
    wider_scales=(1.6, 4.0),
    narrower_scales=(0.55,),
)


def profile_for(sizes: MemoryProfile, K: int) -> MemoryProfile:
    """With a ring that a mixture of K components can be fitted to."""
    return replace(sizes, ring_points=max(sizes.ring_points, MIN_POINTS_PER_COMPONENT * K))


MEMORY_PROFILES = {profile.name: profile for profile in (FULL, COMPACT)}
