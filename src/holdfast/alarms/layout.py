"""Where the numbers of a change detector lie in its memory: a header, and the channels.

    [ header | channel 0 … channel d−1 | radius, if d > 1 ]

Each coordinate is a channel, and for d > 1 so is the radius, the length of the vector of residuals.
A memory of zeros is a detector that has seen nothing.
"""

from __future__ import annotations

from holdfast.scheme.compiling import kernel

WARM = 100  # points from which a channel takes its frame; as many are kept in its ring
BETS = 13

# The header.
COUNTER = 0  # of random numbers drawn
EVIDENCE = 1  # M, the mean over the channels
LIMIT = 2  # what M is held against; 0 before the first point
RAISED = 3  # 1 where an alarm was raised at the last point: what has been learnt goes with the next one
ALARMS = 4  # raised so far
LOCK = 5  # where the second lock keeps its four numbers
HEADER = 9

# A channel.
SEEN = 0  # points since the start, up to WARM of them for the frame
PLACE = 1  # in the ring, of the oldest value
CENTRE = 2
SPREAD = 3
DEGENERATE = 4  # 1 where the first points had no spread: then their ranks say nothing
PHI = 5  # lag-1 coefficient; 0 where there is no memory
PREDICTED_FROM = 6  # what the next point is predicted from, in units of the frame
LAST = 7  # the last point, in units of the frame
RESIDUAL_CENTRE = 8
RESIDUAL_SPREAD = 9
PAIRS = 10  # how many, Σx, Σy, Σxy, Σxx
NEXT_CHECK = 15  # SEEN at which the memory is looked at again
ABOVE = 16  # far-out points above and below
BELOW = 17
LEAKING = 18  # leaky count of far-out points
FAR_ABOVE = 19  # agreeing far-out points: how many, their mean, SEEN at the last of them
FAR_BELOW = 22
OWN_EVIDENCE = 25  # Σ w·R
GAPS = 26  # points that passed without a value of this channel
BLOCKS = 27  # cumulative counts of the inliers by block, 8 of them
BINS = BLOCKS + 8  # cumulative counts within the blocks
RING = BINS + 64
WAGERS = RING + WARM  # w·R of each bet
AGES = WAGERS + BETS  # the same, each term times its age in points, those without a value included
CHANNEL = AGES + BETS


@kernel
def channel_at(at: int, i: int) -> int:
    """Where channel i begins."""
    return at + HEADER + i * CHANNEL


def memory_size(d: int) -> int:
    """How many numbers a detector of d variables keeps."""
    return HEADER + (d + 1 if d > 1 else 1) * CHANNEL
