"""Prewhitening: residuals after removing lag-1 autocorrelation.

    z = (x − center) / spread,    r = (z − φ·z₋) / √(1 − φ²),  re-standardized by median and MAD.

φ is the centered lag-1 coefficient of pairs without extreme points. It is used only if it is clearly not 0, which is
checked after 100, 200, 400, … points, and is then re-estimated at every point. In predictions of the next point, an
extreme point is replaced by its own prediction.
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

MAX_PAIR_SD = 3.5  # limit of both values of a pair
SWITCH_ON_SE, SWITCH_OFF_SE = 3.5, 2.0  # standard errors
MAX_PHI = 0.99
MIN_SUSPECT_PHI, MIN_PHI_DIFFERENCE = 0.35, 0.15  # φ from pairs, and by how much it exceeds φ from steps
SETTLING_POINTS, MAX_WAITS = 25, 8.0
MAX_RESIDUAL = 1e15


@kernel
def standardize(channel: Vector, x: float) -> float:
    """Return z, clipped to finite values."""
    z = (x - channel[CENTER]) / channel[SPREAD]
    z = z if z < MAX_RESIDUAL else MAX_RESIDUAL
    return z if z > -MAX_RESIDUAL else -MAX_RESIDUAL


@kernel
def ring_value(channel: Vector, j: int) -> float:
    """Return the j-th oldest point in the ring buffer, standardized."""
    i = int(channel[RING_INDEX]) + j
    return standardize(channel, channel[RING_OFFSET + (i if i < WARMUP_POINTS else i - WARMUP_POINTS)])


@kernel
def add_pair(channel: Vector, z: float) -> None:
    """Add the last point and this one as a pair, unless one is extreme."""
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
    """Return the coefficient estimated from the pairs."""
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
    """Return the residual of a point; store the next predictor."""
    predicted = phi * channel[PREDICTED_FROM]
    r = z - predicted
    if phi != 0.0 or channel[RESIDUAL_CENTER] != 0.0 or channel[RESIDUAL_SPREAD] != 1.0:  # else r is unchanged
        r = (r / math.sqrt(1.0 - phi * phi) - channel[RESIDUAL_CENTER]) / channel[RESIDUAL_SPREAD]
    channel[PREDICTED_FROM] = z if abs(r) < EXTREME_THRESHOLD_SD else predicted
    return r


@kernel
def compute_ring_residuals(channel: Vector, out: Vector) -> None:
    """Compute residuals of the points in the ring buffer, oldest first."""
    channel[PREDICTED_FROM] = 0.0
    for j in range(WARMUP_POINTS):
        out[j] = compute_residual(channel, ring_value(channel, j), channel[PHI])


@kernel
def rebuild_histogram(channel: Vector, workspace: Vector) -> None:
    """Rebuild the reference from the points in the ring buffer."""
    channel[RESIDUAL_CENTER] = 0.0
    channel[RESIDUAL_SPREAD] = 1.0
    compute_ring_residuals(channel, workspace)
    if channel[PHI] != 0.0:
        center, spread, is_degenerate = median_mad(workspace, WARMUP_POINTS)
        channel[RESIDUAL_CENTER] = center
        channel[RESIDUAL_SPREAD] = 1.0 if is_degenerate else spread
        compute_ring_residuals(channel, workspace)
    channel[CLUSTER_ABOVE] = 0.0  # in units of the old residuals
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
    """Switch φ on or off; return whether it was switched."""
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
    """Return the median of |z_t − z_{t−lag}| in the ring buffer."""
    n = WARMUP_POINTS - lag
    for j in range(n):
        workspace[j] = abs(ring_value(channel, j + lag) - ring_value(channel, j))
    insertion_sort(workspace, n)
    return median_of_sorted(workspace, n)


@kernel
def is_unsettled(channel: Vector, workspace: Vector) -> bool:
    """Return whether the level changed within the ring buffer.

    Steps are not affected: over two points they are √(1 + φ) times those over one.
    """
    phi = estimate_phi(channel)
    if phi < MIN_SUSPECT_PHI:
        return False
    step_1, step_2 = median_step(channel, 1, workspace), median_step(channel, 2, workspace)
    return step_2 * step_2 < (1.0 + phi - MIN_PHI_DIFFERENCE) * step_1 * step_1


@kernel
def start_reference(channel: Vector, workspace: Vector, whiten: bool) -> bool:
    """Estimate center, spread, φ and reference at the end of the warm-up.

    Return False, and wait for more points, if these have not settled.
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
