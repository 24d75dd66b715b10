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
class Sizes:
    """What a stream on autopilot is given room for."""

    name: str

    short: bool
    """Whether numbers have 32 bits and counts 16, or numbers 64 bits and counts 32."""

    whole: bool
    """Whether there is room for the residual view, the change score, the test of whiteness, and the detector's own
    frame and lag-1 memory."""

    steps: tuple[float, ...]
    """Of the experts in the bank, slow to quick …"""

    quick: int
    """… and the one of them whose lead over the slowest tells of a small shift."""

    ring: int
    """Latest points kept for the rescue, at least."""

    fine: float
    fine_bins: int
    coarse: float
    surprises: int
    """Surprises are counted in so many bins: the first ones of this width in nats, then coarse ones."""

    warm: int
    """Points from which the detector of changes takes its frame."""

    bins: int
    """Of its histogram; a multiple of 8."""

    shifts: tuple[float, ...]
    wider: tuple[float, ...]
    narrower: tuple[float, ...]
    """What its bets are on: levels shifted up or down, and other spreads; at least eight bets in all."""

    @property
    def number(self) -> Any:
        """The type of a number."""
        return np.float32 if self.short else np.float64

    @property
    def count(self) -> Any:
        """The type of a count of points."""
        return np.int16 if self.short else np.int32

    @property
    def most(self) -> int:
        """Points counted, at which all counts are halved: no state may look as if it held a NaN."""
        return 2**14 + 2**13 if self.short else 2**30

    def places_for_exact(self, n: int) -> int:
        """Places that n numbers of 64 bits take."""
        return 2 * n if self.short else n

    def places_for_whole(self, n: int) -> int:
        """Places that n whole numbers of 32 bits take."""
        return n if self.short else (n + 1) // 2

    def places_for_counts(self, n: int) -> int:
        """Places that n counts take."""
        return (n + 1) // 2


FEWEST = 12  # points for each component, for a mixture to be fitted

FULL = Sizes(
    name="full",
    short=False,
    whole=True,
    steps=(0.002, 0.006, 0.02, 0.06, 0.15),
    quick=3,
    ring=64,
    fine=0.125,
    fine_bins=64,
    coarse=0.5,
    surprises=128,
    warm=100,
    bins=64,
    shifts=(0.4, 0.8, 1.5, 3.0),
    wider=(1.4, 2.0, 6.0),
    narrower=(0.7, 0.45),
)
LEAN = Sizes(
    name="lean",
    short=True,
    whole=False,
    steps=(0.002, 0.015, 0.06),
    quick=2,
    ring=16,
    fine=0.25,
    fine_bins=24,
    coarse=2.0,
    surprises=40,
    warm=50,
    bins=16,
    shifts=(0.5, 1.2, 3.0),
    wider=(1.6, 4.0),
    narrower=(0.55,),
)


def enough_for(sizes: Sizes, K: int) -> Sizes:
    """With a ring that a mixture of K components can be fitted to."""
    return replace(sizes, ring=max(sizes.ring, FEWEST * K))


SIZES = {sizes.name: sizes for sizes in (FULL, LEAN)}
