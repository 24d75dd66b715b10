"""Where the numbers of a change detector lie in its memory: a header, and the channels.

    [ header | channel 0 … channel d−1 | radius, if d > 1 ]

Each coordinate is a channel, and for d > 1 so is the radius, the length of the vector of residuals.
A memory of zeros is a detector that has seen nothing. Counts of points are whole numbers, two of them in a place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from limpet.core.memory_profile import FULL, MemoryProfile

# The header.
RANDOM_COUNTER = 0  # of random numbers drawn
ALARM_RAISED = 1  # 1 where an alarm was raised at the last point: what has been learnt goes with the next one
N_ALARMS = 2  # raised so far
INFLATION_STATE = 3  # where the second lock keeps its four numbers
EVIDENCE_LIMIT = 7  # what M is held against; 0 before the first point; not in the lean memory

# A channel.
N_SEEN = 0  # points since the start, up to `warm` of them for the frame
RING_INDEX = 1  # in the ring, of the oldest value
CENTER = 2
SPREAD = 3
EXTREME_LEAKY_COUNT = 4  # leaky count of far-out points
CLUSTER_ABOVE = 5  # agreeing far-out points: how many, their mean, SEEN at the last of them
CLUSTER_BELOW = 8
CHANNEL_EVIDENCE = 11  # Σ w·R
POINTS_SINCE_QUIET = 12  # of a lean memory: points since there was no evidence to speak of …
MEAN_PRODUCT, MEAN_SQUARE = 13, 15  # … and averages of z·z₋ and of z², in units of the frame
N_MISSING = 12  # points that passed without a value of this channel
IS_DEGENERATE = 13  # 1 where the first points had no spread: then their ranks say nothing
PHI = 14  # lag-1 coefficient; 0 where there is no memory
PREDICTED_FROM = 15  # what the next point is predicted from, in units of the frame
LAST_VALUE = 16  # the last point, in units of the frame
RESIDUAL_CENTER = 17
RESIDUAL_SPREAD = 18
PAIR_SUMS = 19  # how many, Σx, Σy, Σxy, Σxx
NEXT_CHECK_POINTS = 24  # SEEN at which the memory is looked at again
COUNTS_OFFSETS = {"full": 25, "compact": 16}

# The counts: far-out points above and below; then the inliers, cumulated by block of 8 bins and within the blocks.
ABOVE_COUNT, BELOW_COUNT, BLOCKS_OFFSET = 0, 1, 2


@dataclass(frozen=True)
class ChannelLayout:
    """Where the parts of a channel lie that take more room or less."""

    header_size: int
    """How long the header is."""

    counts_offset: int
    bins_offset: int
    """Among the counts: those of the inliers within the blocks."""

    n_counts: int
    ring_offset: int
    """The latest points, of this regime and of the one before."""

    ring_length: int
    wealth_offset: int
    """w·R of each bet."""

    n_bets: int
    aged_wealth_offset: int
    """The same, each term times its age in points, those without a value included; not in the lean memory."""

    channel_size: int
    """How long a channel is."""

    def state_size(self, d: int) -> int:
        """How many numbers a detector of d variables keeps."""
        return self.header_size + (d + 1 if d > 1 else 1) * self.channel_size


@cache
def channel_layout(profile: MemoryProfile) -> ChannelLayout:
    """For a memory of these sizes."""
    n_blocks = profile.n_rank_bins // 8
    n_counts = BLOCKS_OFFSET + n_blocks + profile.n_rank_bins
    counts_offset = COUNTS_OFFSETS[profile.name]
    ring_offset = counts_offset + profile.count_slots(n_counts)
    ring_length = profile.warmup_points if profile.is_full else profile.ring_points
    wealth_offset = ring_offset + ring_length
    n_bets = 2 * len(profile.shifts) + len(profile.wider_scales) + len(profile.narrower_scales)
    aged_wealth_offset = wealth_offset + n_bets
    channel_size = aged_wealth_offset + (n_bets if profile.is_full else 0)
    header_size = EVIDENCE_LIMIT + 1 if profile.is_full else EVIDENCE_LIMIT
    return ChannelLayout(
        header_size,
        counts_offset,
        BLOCKS_OFFSET + n_blocks,
        n_counts,
        ring_offset,
        ring_length,
        wealth_offset,
        n_bets,
        aged_wealth_offset,
        channel_size,
    )


FULL_LAYOUT = channel_layout(FULL)
WARMUP_POINTS, RING_OFFSET = FULL.warmup_points, FULL_LAYOUT.ring_offset
