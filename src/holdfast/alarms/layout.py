"""Where the numbers of a change detector lie in its memory: a header, and the channels.

    [ header | channel 0 … channel d−1 | radius, if d > 1 ]

Each coordinate is a channel, and for d > 1 so is the radius, the length of the vector of residuals.
A memory of zeros is a detector that has seen nothing. Counts of points are whole numbers of 32 bits, two in a place.
"""

from __future__ import annotations

from holdfast.scheme.compiling import kernel

WARM = 100  # points from which a channel takes its frame; as many are kept in its ring
BETS = 13

# The header.
COUNTER = 0  # of random numbers drawn
LIMIT = 1  # what M is held against; 0 before the first point
RAISED = 2  # 1 where an alarm was raised at the last point: what has been learnt goes with the next one
ALARMS = 3  # raised so far
LOCK = 4  # where the second lock keeps its four numbers
HEADER = 8

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
LEAKING = 16  # leaky count of far-out points
FAR_ABOVE = 17  # agreeing far-out points: how many, their mean, SEEN at the last of them
FAR_BELOW = 20
OWN_EVIDENCE = 23  # Σ w·R
GAPS = 24  # points that passed without a value of this channel
COUNTS = 25  # where the counts begin
RING = COUNTS + 37  # the latest points, of this regime and of the one before
WAGERS = RING + WARM  # w·R of each bet
AGES = WAGERS + BETS  # the same, each term times its age in points, those without a value included
CHANNEL = AGES + BETS

# The counts, `own[COUNTS:RING].view(np.int32)`: far-out points above and below; then the inliers, cumulated by block
# and within the blocks.
ABOVE, BELOW, BLOCKS, BINS, N_COUNTS = 0, 1, 2, 10, 74


@kernel
def channel_at(at: int, i: int) -> int:
    """Where channel i begins."""
    return at + HEADER + i * CHANNEL


def memory_size(d: int) -> int:
    """How many numbers a detector of d variables keeps."""
    return HEADER + (d + 1 if d > 1 else 1) * CHANNEL
