"""Where the numbers of a change detector lie in its memory: a header, and the channels.

    [ header | channel 0 … channel d−1 | radius, if d > 1 ]

Each coordinate is a channel, and for d > 1 so is the radius, the length of the vector of residuals.
A memory of zeros is a detector that has seen nothing. Counts of points are whole numbers, two of them in a place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from holdfast.autopilot.sizes import FULL, Sizes

# The header.
COUNTER = 0  # of random numbers drawn
RAISED = 1  # 1 where an alarm was raised at the last point: what has been learnt goes with the next one
ALARMS = 2  # raised so far
LOCK = 3  # where the second lock keeps its four numbers
LIMIT = 7  # what M is held against; 0 before the first point; not in the lean memory

# A channel.
SEEN = 0  # points since the start, up to `warm` of them for the frame
PLACE = 1  # in the ring, of the oldest value
CENTRE = 2
SPREAD = 3
LEAKING = 4  # leaky count of far-out points
FAR_ABOVE = 5  # agreeing far-out points: how many, their mean, SEEN at the last of them
FAR_BELOW = 8
OWN_EVIDENCE = 11  # Σ w·R
SINCE = 12  # of a lean memory: points since there was no evidence to speak of
GAPS = 12  # points that passed without a value of this channel
DEGENERATE = 13  # 1 where the first points had no spread: then their ranks say nothing
PHI = 14  # lag-1 coefficient; 0 where there is no memory
PREDICTED_FROM = 15  # what the next point is predicted from, in units of the frame
LAST = 16  # the last point, in units of the frame
RESIDUAL_CENTRE = 17
RESIDUAL_SPREAD = 18
PAIRS = 19  # how many, Σx, Σy, Σxy, Σxx
NEXT_CHECK = 24  # SEEN at which the memory is looked at again
COUNTS = {"full": 25, "lean": 13}

# The counts: far-out points above and below; then the inliers, cumulated by block of 8 bins and within the blocks.
ABOVE, BELOW, BLOCKS = 0, 1, 2


@dataclass(frozen=True)
class Places:
    """Where the parts of a channel lie that take more room or less."""

    header: int
    """How long the header is."""

    counts: int
    bins: int
    """Among the counts: those of the inliers within the blocks."""

    n_counts: int
    ring: int
    """The latest points, of this regime and of the one before."""

    ring_length: int
    wagers: int
    """w·R of each bet."""

    bets: int
    ages: int
    """The same, each term times its age in points, those without a value included; not in the lean memory."""

    channel: int
    """How long a channel is."""

    def memory_size(self, d: int) -> int:
        """How many numbers a detector of d variables keeps."""
        return self.header + (d + 1 if d > 1 else 1) * self.channel


@cache
def places_of(sizes: Sizes) -> Places:
    """For a memory of these sizes."""
    blocks = sizes.bins // 8
    n_counts = BLOCKS + blocks + sizes.bins
    counts = COUNTS[sizes.name]
    ring = counts + sizes.places_for_counts(n_counts)
    ring_length = sizes.warm if sizes.whole else sizes.ring
    wagers = ring + ring_length
    bets = 2 * len(sizes.shifts) + len(sizes.wider) + len(sizes.narrower)
    ages = wagers + bets
    channel = ages + (bets if sizes.whole else 0)
    header = LIMIT + 1 if sizes.whole else LIMIT
    return Places(header, counts, BLOCKS + blocks, n_counts, ring, ring_length, wagers, bets, ages, channel)


PLACES = places_of(FULL)
WARM, RING = FULL.warm, PLACES.ring
