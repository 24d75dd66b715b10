"""Layout of the state of a change detector: a header, and the channels.

    [ header | channel 0 … channel d−1 | radius, if d > 1 ]

Each coordinate is a channel, and for d > 1 so is the radius, the length of the vector of residuals.
A state of zeros is a detector without points. Counts of points are integers, two of them in a slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from limpet.core.memory_profile import FULL, MemoryProfile

# The header.
RANDOM_COUNTER = 0  # number of random numbers drawn
ALARM_RAISED = 1  # 1 if an alarm was raised at the last point: the next point resets the channels
N_ALARMS = 2  # alarms raised
INFLATION_STATE = 3  # four numbers: see PEAK_EVIDENCE in `change_detector`
EVIDENCE_LIMIT = 7  # limit of M; 0 before the first point; not in the compact profile

# A channel.
N_SEEN = 0  # points since the start, those of the warm-up included
RING_INDEX = 1  # index of the oldest value in the ring buffer
CENTER = 2
SPREAD = 3
EXTREME_LEAKY_COUNT = 4  # leaky count of extreme points
CLUSTER_ABOVE = 5  # agreeing extreme points: count, mean, N_SEEN at the last of them
CLUSTER_BELOW = 8
CHANNEL_EVIDENCE = 11  # Σ w·R
POINTS_SINCE_QUIET = 12  # compact profile: points since the evidence was negligible …
MEAN_PRODUCT, MEAN_SQUARE = 13, 15  # … and averages of z·z₋ and of z², standardized
N_MISSING = 12  # points without a value of this channel
IS_DEGENERATE = 13  # 1 if the first points had no spread: their ranks carry no information
PHI = 14  # lag-1 coefficient; 0 without prewhitening
PREDICTED_FROM = 15  # the value from which the next point is predicted, standardized
LAST_VALUE = 16  # the last point, standardized
RESIDUAL_CENTER = 17
RESIDUAL_SPREAD = 18
PAIR_SUMS = 19  # count, Σx, Σy, Σxy, Σxx
NEXT_CHECK_POINTS = 24  # N_SEEN at which prewhitening is checked again
COUNTS_OFFSETS = {"full": 25, "compact": 16}

# The counts: extreme points above and below; then the inliers, cumulated by block of 8 bins and within the blocks.
ABOVE_COUNT, BELOW_COUNT, BLOCKS_OFFSET = 0, 1, 2


@dataclass(frozen=True)
class ChannelLayout:
    """Offsets and sizes of a channel that depend on the memory profile."""

    header_size: int
    counts_offset: int
    bins_offset: int  # among the counts, of those of inliers within the blocks
    n_counts: int
    ring_offset: int  # of the ring buffer of latest points, of this regime and of the previous one
    ring_length: int
    wealth_offset: int  # of w·R of each bet
    # Of the same with each term times its age in points, missing ones included; not in the compact profile
    aged_wealth_offset: int
    channel_size: int

    def state_size(self, d: int) -> int:
        """Return the size of the state of a detector of d variables."""
        return self.header_size + (d + 1 if d > 1 else 1) * self.channel_size


@cache
def channel_layout(profile: MemoryProfile) -> ChannelLayout:
    """Return the layout of a channel for a memory profile."""
    bins_offset, counts_offset = BLOCKS_OFFSET + profile.n_rank_bins // 8, COUNTS_OFFSETS[profile.name]
    n_counts = bins_offset + profile.n_rank_bins
    ring_offset = counts_offset + profile.count_slots(n_counts)
    ring_length = profile.warmup_points if profile.is_full else profile.ring_points
    wealth_offset = ring_offset + ring_length
    aged_wealth_offset = wealth_offset + profile.n_bets
    return ChannelLayout(
        header_size=EVIDENCE_LIMIT + 1 if profile.is_full else EVIDENCE_LIMIT,
        counts_offset=counts_offset,
        bins_offset=bins_offset,
        n_counts=n_counts,
        ring_offset=ring_offset,
        ring_length=ring_length,
        wealth_offset=wealth_offset,
        aged_wealth_offset=aged_wealth_offset,
        channel_size=aged_wealth_offset + (profile.n_bets if profile.is_full else 0),
    )


WARMUP_POINTS = FULL.warmup_points
