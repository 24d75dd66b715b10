"""Residuals: points in the units of their frame, freed of their lag-1 memory where they have one.

    z = (x − centre) / spread,    r = (z − φ·z₋) / √(1 − φ²),  re-standardised by median and MAD.

φ is the centred lag-1 coefficient of the pairs in which neither is far out. It is used only where it is clearly not 0,
looked at when 100, 200, 400, … points have been seen, and then follows its estimate at every point. A far-out point is
replaced by its prediction in what the next one is predicted from.
"""

from __future__ import annotations

import math

from limpet._jit.compile import kernel
from limpet._jit.sort import insertion_sort, median_of_sorted
from limpet.core.memory_profile import FULL
from limpet.core.state import Vector
from limpet.detection.bets import EXTREME_THRESHOLD_SD
from limpet.detection.layout import (
    ABOVE_COUNT,
    BELOW_COUNT,
    CENTER,
    CLUSTER_ABOVE,
    CLUSTER_BELOW,
    IS_DEGENERATE,
    LAST_VALUE,
    N_SEEN,
    NEXT_CHECK_POINTS,
    PAIR_SUMS,
    PHI,
    PREDICTED_FROM,
    RESIDUAL_CENTER,
    RESIDUAL_SPREAD,
    RING_INDEX,
    SPREAD,
    WARMUP_POINTS,
    channel_layout,
)
from limpet.detection.location_scale import median_mad
from limpet.detection.ranks import make_histogram

COUNTS_OFFSET, RING_OFFSET, COUNT_DTYPE = (
    channel_layout(FULL).counts_offset,
    channel_layout(FULL).ring_offset,
    FULL.count_dtype,
)
add_point, bin_index = make_histogram(FULL).add_point, make_histogram(FULL).bin_index

MAX_PAIR_SD = 3.5  # spreads within which both of a pair must be
SWITCH_ON_SE, SWITCH_OFF_SE = 3.5, 2.0  # standard errors
MAX_PHI = 0.99
MIN_SUSPECT_PHI, MIN_PHI_DIFFERENCE = 0.35, 0.15  # the coefficient from pairs; by how much it is above that from steps
SETTLING_POINTS, MAX_WAITS = 25, 8.0
MAX_RESIDUAL = 1e15


@kernel
def standardize(channel: Vector, x: float) -> float:
    """z, kept finite."""
    z = (x - channel[CENTER]) / channel[SPREAD]
    z = z if z < MAX_RESIDUAL else MAX_RESIDUAL
    return z if z > -MAX_RESIDUAL else -MAX_RESIDUAL


@kernel
def ring_value(channel: Vector, j: int) -> float:
    """The j-th oldest of the points in the ring, in units of the frame."""
    i = int(channel[RING_INDEX]) + j
    return standardize(channel, channel[RING_OFFSET + (i if i < WARMUP_POINTS else i - WARMUP_POINTS)])


@kernel
def add_pair(channel: Vector, z: float) -> None:
    """Takes the last point and this one as a pair, unless one is far out."""
    last = channel[LAST_VALUE]
    if abs(z) < MAX_PAIR_SD and abs(last) < MAX_PAIR_SD:
        channel[PAIR_SUMS] += 1.0
        channel[PAIR_SUMS + 1] += last
        channel[PAIR_SUMS + 2] += z
        channel[PAIR_SUMS + 3] += last * z
        channel[PAIR_SUMS + 4] += last * last
    channel[LAST_VALUE] = z


@kernel
def estimate_phi(channel: Vector) -> float:
    """The coefficient, as the pairs so far have it."""
    n = channel[PAIR_SUMS]
    if n < 10.0:
        return 0.0
    variance = channel[PAIR_SUMS + 4] - channel[PAIR_SUMS + 1] * channel[PAIR_SUMS + 1] / n
    covariance = channel[PAIR_SUMS + 3] - channel[PAIR_SUMS + 1] * channel[PAIR_SUMS + 2] / n
    phi = covariance / variance if variance > 1e-12 else 0.0
    phi = phi if phi < MAX_PHI else MAX_PHI
    return phi if phi > -MAX_PHI else -MAX_PHI


@kernel
def compute_residual(channel: Vector, z: float, phi: float) -> float:
    """r of a point, and what the next one is predicted from."""
    predicted = phi * channel[PREDICTED_FROM]
    r = z - predicted
    if phi != 0.0 or channel[RESIDUAL_CENTER] != 0.0 or channel[RESIDUAL_SPREAD] != 1.0:  # or else all of it comes to r
        r = (r / math.sqrt(1.0 - phi * phi) - channel[RESIDUAL_CENTER]) / channel[RESIDUAL_SPREAD]
    channel[PREDICTED_FROM] = z if abs(r) < EXTREME_THRESHOLD_SD else predicted
    return r


@kernel
def compute_ring_residuals(channel: Vector, out: Vector) -> None:
    """Residuals of the points in the ring, oldest first, with the coefficient as it is now."""
    channel[PREDICTED_FROM] = 0.0
    for j in range(WARMUP_POINTS):
        out[j] = compute_residual(channel, ring_value(channel, j), channel[PHI])


@kernel
def rebuild_histogram(channel: Vector, workspace: Vector) -> None:
    """Makes the reference anew from the points in the ring."""
    channel[RESIDUAL_CENTER] = 0.0
    channel[RESIDUAL_SPREAD] = 1.0
    compute_ring_residuals(channel, workspace)
    if channel[PHI] != 0.0:
        center, spread, is_degenerate = median_mad(workspace, WARMUP_POINTS)
        channel[RESIDUAL_CENTER] = center
        channel[RESIDUAL_SPREAD] = 1.0 if is_degenerate else spread
        compute_ring_residuals(channel, workspace)
    channel[CLUSTER_ABOVE] = 0.0  # they were in units of the old residuals
    channel[CLUSTER_BELOW] = 0.0
    counts = channel[COUNTS_OFFSET:RING_OFFSET].view(COUNT_DTYPE)
    for j in range(len(counts)):
        counts[j] = 0
    for j in range(WARMUP_POINTS):
        r = workspace[j]
        if r > EXTREME_THRESHOLD_SD:
            counts[ABOVE_COUNT] += 1
        elif r < -EXTREME_THRESHOLD_SD:
            counts[BELOW_COUNT] += 1
        else:
            add_point(counts, bin_index(r))


@kernel
def toggle_prewhitening(channel: Vector) -> bool:
    """Switches φ on or off; whether it was switched."""
    channel[NEXT_CHECK_POINTS] = 2.0 * channel[N_SEEN]
    phi = estimate_phi(channel)
    error = 1.0 / math.sqrt(channel[N_SEEN])
    used = channel[PHI] != 0.0
    if used == (abs(phi) > (SWITCH_OFF_SE if used else SWITCH_ON_SE) * error):
        return False
    channel[PHI] = 0.0 if used else phi
    return True


@kernel
def median_step(channel: Vector, lag: int, workspace: Vector) -> float:
    """The median of |z_t − z_{t−lag}| in the ring."""
    n = WARMUP_POINTS - lag
    for j in range(n):
        workspace[j] = abs(ring_value(channel, j + lag) - ring_value(channel, j))
    insertion_sort(workspace, n)
    return median_of_sorted(workspace, n)


@kernel
def is_unsettled(channel: Vector, workspace: Vector) -> bool:
    """Whether the level changed within the ring, which pairs of points take for memory.

    Steps do not see it: over two points they are √(1 + φ) times those over one.
    """
    phi = estimate_phi(channel)
    if phi < MIN_SUSPECT_PHI:
        return False
    step_1, step_2 = median_step(channel, 1, workspace), median_step(channel, 2, workspace)
    return step_2 * step_2 < (1.0 + phi - MIN_PHI_DIFFERENCE) * step_1 * step_1


@kernel
def start_reference(channel: Vector, workspace: Vector, whiten: bool) -> bool:
    """The end of the warm-up: the frame, the memory and the reference from the points in the ring.

    Where these have not settled it waits for some more points: whether it has begun.
    """
    for j in range(WARMUP_POINTS):
        workspace[j] = channel[RING_OFFSET + j]
    center, spread, is_degenerate = median_mad(workspace, WARMUP_POINTS)
    channel[CENTER] = center
    channel[SPREAD] = spread
    channel[IS_DEGENERATE] = 1.0 if is_degenerate else 0.0
    if whiten:
        for j in range(5):
            channel[PAIR_SUMS + j] = 0.0
        channel[LAST_VALUE] = ring_value(channel, 0)
        for j in range(1, WARMUP_POINTS):
            add_pair(channel, ring_value(channel, j))
        if channel[NEXT_CHECK_POINTS] < MAX_WAITS and is_unsettled(channel, workspace):
            channel[NEXT_CHECK_POINTS] += 1.0
            channel[N_SEEN] = WARMUP_POINTS - SETTLING_POINTS
            return False
        toggle_prewhitening(channel)
    rebuild_histogram(channel, workspace)
    return True
