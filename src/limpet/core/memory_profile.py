"""Memory profiles of a stream: full, or compact.

The compact profile stores numbers of 32 bits (except location and scale, which need all digits), counts of 16 bits,
fewer experts, a shorter ring buffer, coarser bins and fewer bets; it omits the residual scorer, the separate state of
the change score and the diagnostics of residuals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.signedinteger]
"""Counts of points, of type `MemoryProfile.count_dtype`."""


COUNTER_WRAP_POINTS = 2.0**22  # in 32 bits, 1 can still be added to twice this number


@dataclass(frozen=True)
class MemoryProfile:
    """Sizes of the state of a `Detector`."""

    name: str
    is_float32: bool  # Whether numbers have 32 bits and counts 16, instead of 64 and 32
    # Whether residual scorer, change score, residual diagnostics, and the change detector's separate standardization
    # and prewhitening are included
    is_full: bool
    step_sizes: tuple[float, ...]  # Of the experts in the ensemble, slow to fast …
    fast_expert: int  # … and the index of the expert whose lead over the slowest indicates a small shift
    ring_points: int  # Minimum number of latest points stored for re-initialization
    # Bins of the histogram of surprises: fine bins first, then coarse ones; widths in nats
    fine_bin_width: float
    n_fine_bins: int
    coarse_bin_width: float
    n_surprise_bins: int
    warmup_points: int  # Points from which the change detector estimates location and scale
    n_rank_bins: int  # Bins of the change detector's histogram; a multiple of 8
    # Alternatives of the bets: shifts up and down in sd, and other spreads; at least eight bets
    shifts: tuple[float, ...]
    wider_scales: tuple[float, ...]
    narrower_scales: tuple[float, ...]

    @property
    def n_bets(self) -> int:
        """Number of bets: each shift up and down, and each other spread."""
        return 2 * len(self.shifts) + len(self.wider_scales) + len(self.narrower_scales)

    @property
    def dtype(self) -> Any:
        """Type of a number."""
        return np.float32 if self.is_float32 else np.float64

    @property
    def count_dtype(self) -> Any:
        """Type of a count of points."""
        return np.int16 if self.is_float32 else np.int32

    @property
    def max_count(self) -> int:
        """Count at which all counts are halved, so that no state looks like NaN."""
        return 2**14 + 2**13 if self.is_float32 else 2**30

    def float64_slots(self, n: int) -> int:
        """Return the slots of n numbers of 64 bits."""
        return 2 * n if self.is_float32 else n

    def int32_slots(self, n: int) -> int:
        """Return the slots of n integers of 32 bits."""
        return n if self.is_float32 else (n + 1) // 2

    def count_slots(self, n: int) -> int:
        """Return the slots of n counts."""
        return (n + 1) // 2


MIN_POINTS_PER_COMPONENT = 12  # to fit a mixture

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
    """Return the profile with a ring buffer large enough for K components."""
    return replace(sizes, ring_points=max(sizes.ring_points, MIN_POINTS_PER_COMPONENT * K))


MEMORY_PROFILES = {profile.name: profile for profile in (FULL, COMPACT)}
