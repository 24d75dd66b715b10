"""Reference of a channel: center, spread, prewhitened residuals (lag 1).

    z = (x − center) / spread,    r = (z − φ·z₋) / √(1 − φ²)

φ is used only if it is clearly not 0. In the full profile everything is estimated from the ring buffer of the channel:
center and spread by median and MAD, φ as the centered lag-1 coefficient of pairs without extreme points, checked after
100, 200, 400, … points and then re-estimated at every point; residuals are re-standardized by median and MAD, and in
predictions of the next point an extreme point is replaced by its own prediction. In the compact profile center and
spread are those of the model of the stream, and φ is the average of products over that of squares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from limpet._jit.compile import jit_entry_point, kernel
from limpet._jit.math import averaging_step, maximum, minimum
from limpet._jit.sort import insertion_sort, median_of_sorted
from limpet.core.memory_profile import FULL, MemoryProfile
from limpet.core.state import Vector
from limpet.detection.bets import EXTREME_THRESHOLD_SD
from limpet.detection.layout import (
    ABOVE_COUNT,
    BELOW_COUNT,
    CENTER,
    CHANNEL_EVIDENCE,
    CLUSTER_ABOVE,
    CLUSTER_BELOW,
    IS_DEGENERATE,
    LAST_VALUE,
    MEAN_PRODUCT,
    MEAN_SQUARE,
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
from limpet.detection.ranks import make_histogram

MAD_TO_SD = 1.4826022185056018
QUANTILE_80_OF_NORMAL = 1.2815515655446004  # of |x|
MIN_RELATIVE_SPREAD, MIN_ABSOLUTE_SPREAD = 1e-14, 1e-300  # rounding errors of a constant
MAX_RESIDUAL = 1e15
MAX_PAIR_SD = 3.5  # limit of both values of a pair
MAX_PHI = 0.99

# φ in the full profile
RING_SWITCH_ON_SE, RING_SWITCH_OFF_SE = 3.5, 2.0  # standard errors
MIN_SUSPECT_PHI, MIN_PHI_DIFFERENCE = 0.35, 0.15  # φ from pairs, and by how much it exceeds φ from steps
SETTLING_POINTS, MAX_SETTLING_WAITS = 25, 8.0

# φ in the compact profile
QUIET_EVIDENCE_THRESHOLD = 15.0  # evidence below is negligible
MIN_MOMENT_STEP = 0.0005  # of the averages
PREWHITEN_ON_SE, SWITCH_OFF_SE = 2.5, 1.5  # standard errors, and …
MIN_PHI_ON, MIN_PHI_OFF = 0.2, 0.1  # … lower limits: an inexact center looks like weak autocorrelation
CHECK_INTERVAL_POINTS = 64
MIN_MEAN_SQUARE = 1e-6

FULL_LAYOUT = channel_layout(FULL)
COUNTS_OFFSET, RING_OFFSET, COUNT_DTYPE = FULL_LAYOUT.counts_offset, FULL_LAYOUT.ring_offset, FULL.count_dtype
FULL_HEADER_SIZE, FULL_CHANNEL_SIZE = FULL_LAYOUT.header_size, FULL_LAYOUT.channel_size
add_point, bin_index = make_histogram(FULL).add_point, make_histogram(FULL).bin_index


class ReferenceKernels(NamedTuple):
    """Compiled functions; `channel` is its part of the state."""

    warm_up: Callable[..., Any]  # (state, i, channel, workspace): process a point of the warm-up
    # (state, i, channel, workspace) → whether the reference was built, at the end of the warm-up of channel i
    start: Callable[..., Any]
    # (channel, z, i) → (residual of a standardized point, whether prewhitening was switched on or off)
    residual_and_switch: Callable[..., Any]
    rebuild: Callable[..., Any]  # (channel, workspace): rebuild the reference after prewhitening was switched
    # (state, offset, radius, workspace) → whether the radii of the last points were written to the ring buffer
    fill_radii: Callable[..., Any]


@kernel
def standardize(channel: Vector, x: float) -> float:
    """Return z, clipped to finite values."""
    z = (x - channel[CENTER]) / channel[SPREAD]
    z = z if z < MAX_RESIDUAL else MAX_RESIDUAL
    return z if z > -MAX_RESIDUAL else -MAX_RESIDUAL


@kernel
def median_mad(values: Vector, n: int) -> tuple[float, float, bool]:
    """Return median, 1.4826·MAD, and whether values are constant; overwrite them.

    If more than half of the numbers are equal, the 80 % quantile of the deviations replaces the MAD; if that is 0 too,
    a minimum relative to the center.
    """
    insertion_sort(values, n)
    center = median_of_sorted(values, n)
    for j in range(n):
        values[j] = abs(values[j] - center)
    insertion_sort(values, n)
    spread = MAD_TO_SD * median_of_sorted(values, n)
    min_spread = MIN_RELATIVE_SPREAD * abs(center) + MIN_ABSOLUTE_SPREAD
    if spread <= min_spread:
        spread = values[(4 * n) // 5] / QUANTILE_80_OF_NORMAL
    is_degenerate = spread <= min_spread
    return center, min_spread if is_degenerate else spread, is_degenerate


def _median_mad(values: Vector, n: int) -> tuple[float, float, bool]:
    return median_mad(values, n)


median_mad_entry_point = jit_entry_point(_median_mad)
"""`median_mad`, callable from Python."""


# The full profile: everything from the ring buffer


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
    return maximum(minimum(phi, MAX_PHI), -MAX_PHI)


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
    phi, error, used = estimate_phi(channel), 1.0 / math.sqrt(channel[N_SEEN]), channel[PHI] != 0.0
    if used == (abs(phi) > (RING_SWITCH_OFF_SE if used else RING_SWITCH_ON_SE) * error):
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
        if channel[NEXT_CHECK_POINTS] < MAX_SETTLING_WAITS and is_unsettled(channel, workspace):
            channel[NEXT_CHECK_POINTS] += 1.0
            channel[N_SEEN] = WARMUP_POINTS - SETTLING_POINTS
            return False
        toggle_prewhitening(channel)
    rebuild_histogram(channel, workspace)
    return True


def reference_from_ring(d: int, whiten: bool) -> ReferenceKernels:
    """Return the reference functions of the full profile for d variables."""

    @kernel
    def warm_up(state: Vector, i: int, channel: Vector, workspace: Vector) -> None:
        pass

    @kernel
    def start_channel(state: Vector, i: int, channel: Vector, workspace: Vector) -> bool:
        return start_reference(channel, workspace, whiten and i < d)

    @kernel
    def residual_and_switch(channel: Vector, z: float, i: int) -> tuple[float, bool]:
        if not whiten or i == d:
            return z, False
        add_pair(channel, z)
        if channel[PHI] != 0.0:
            channel[PHI] = estimate_phi(channel)
        r = compute_residual(channel, z, channel[PHI])
        return r, channel[N_SEEN] >= channel[NEXT_CHECK_POINTS] and toggle_prewhitening(channel)

    @kernel
    def fill_radii(state: Vector, offset: int, radius: Vector, workspace: Vector) -> bool:
        """Fill them if every variable has all of the points."""
        first = offset + FULL_HEADER_SIZE
        seen = state[first + N_SEEN]
        for i in range(d):
            if state[first + i * FULL_CHANNEL_SIZE + N_SEEN] != seen or seen < WARMUP_POINTS:
                return False
        for j in range(WARMUP_POINTS):
            radius[RING_OFFSET + j] = 0.0
        for i in range(d):
            base = first + i * FULL_CHANNEL_SIZE
            compute_ring_residuals(state[base : base + FULL_CHANNEL_SIZE], workspace)
            for j in range(WARMUP_POINTS):
                radius[RING_OFFSET + j] += workspace[j] * workspace[j]
        for j in range(WARMUP_POINTS):
            radius[RING_OFFSET + j] = math.sqrt(radius[RING_OFFSET + j])
        radius[RING_INDEX] = 0.0
        return True

    return ReferenceKernels(warm_up, start_channel, residual_and_switch, rebuild_histogram, fill_radii)


# The compact profile: center and spread from the model of the stream

LocationScale = Callable[..., tuple[float, float]]


@kernel
def unit_location_scale(state: Vector, i: int, work: Vector) -> tuple[float, float]:
    """Return center 0 and spread 1, for standardized points."""
    return 0.0, 1.0


def reference_from_model(
    profile: MemoryProfile, d: int, whiten: bool, location_scale: LocationScale
) -> ReferenceKernels:
    """Return the reference functions of the compact profile for d variables.

    φ is checked periodically while the evidence is negligible; switching it clears the reference.
    """
    layout, count_dtype = channel_layout(profile), profile.count_dtype
    counts_offset, ring_offset, ring_length = layout.counts_offset, layout.ring_offset, layout.ring_length

    @kernel
    def clipped_phi(channel: Vector) -> float:
        phi = channel[MEAN_PRODUCT] / maximum(channel[MEAN_SQUARE], MIN_MEAN_SQUARE)
        return MAX_PHI if phi > MAX_PHI else maximum(phi, -MAX_PHI)

    @kernel
    def recent_value(channel: Vector, age: int) -> float:
        """Return the latest point (age 1) or the one before (age 2), standardized."""
        index = int(channel[RING_INDEX]) - age
        return standardize(channel, channel[ring_offset + (index if index >= 0 else index + ring_length)])

    @kernel
    def previous_value(channel: Vector) -> float:
        """Return the point before the latest one, standardized; 0 if it is extreme."""
        z = recent_value(channel, 2)
        return z if abs(z) < EXTREME_THRESHOLD_SD else 0.0

    @kernel
    def update_moments(channel: Vector, z: float, last: float) -> None:
        if abs(z) < MAX_PAIR_SD and abs(last) < MAX_PAIR_SD:
            step = averaging_step(channel[N_SEEN], MIN_MOMENT_STEP)
            channel[MEAN_PRODUCT] += step * (z * last - channel[MEAN_PRODUCT])
            channel[MEAN_SQUARE] += step * (last * last - channel[MEAN_SQUARE])

    @kernel
    def toggle_phi(channel: Vector) -> bool:
        """Switch φ on or off; return whether it was switched."""
        phi, used = clipped_phi(channel), channel[PHI] != 0.0
        error = 1.0 / math.sqrt(channel[N_SEEN])
        threshold = (
            maximum(SWITCH_OFF_SE * error, MIN_PHI_OFF) if used else maximum(PREWHITEN_ON_SE * error, MIN_PHI_ON)
        )
        if used == (abs(phi) > threshold):
            return False
        channel[PHI] = 0.0 if used else phi
        return True

    @kernel
    def warm_up(state: Vector, i: int, channel: Vector, workspace: Vector) -> None:
        if i < d:
            channel[CENTER], channel[SPREAD] = location_scale(state, i, workspace)
            if whiten and channel[N_SEEN] > 1.0:
                update_moments(channel, recent_value(channel, 1), previous_value(channel))
        else:  # the radius of d variables of spread 1
            channel[CENTER], channel[SPREAD] = math.sqrt(d - 0.5), 0.7

    @kernel
    def start_channel(state: Vector, i: int, channel: Vector, workspace: Vector) -> bool:
        if whiten and i < d:
            toggle_phi(channel)
        return False

    @kernel
    def residual_and_switch(channel: Vector, z: float, i: int) -> tuple[float, bool]:
        if not whiten or i == d:
            return z, False
        last, r = previous_value(channel), z
        update_moments(channel, z, last)
        if channel[PHI] != 0.0:
            phi = clipped_phi(channel)
            channel[PHI] = phi if phi != 0.0 else channel[PHI]
            r = (z - channel[PHI] * last) / math.sqrt(1.0 - channel[PHI] * channel[PHI])
        is_quiet = channel[CHANNEL_EVIDENCE] < QUIET_EVIDENCE_THRESHOLD
        return r, channel[N_SEEN] % CHECK_INTERVAL_POINTS == 0.0 and is_quiet and toggle_phi(channel)

    @kernel
    def rebuild(channel: Vector, workspace: Vector) -> None:
        channel[CLUSTER_ABOVE] = 0.0
        channel[CLUSTER_BELOW] = 0.0
        counts = channel[counts_offset:ring_offset].view(count_dtype)
        for j in range(len(counts)):
            counts[j] = 0

    @kernel
    def fill_radii(state: Vector, offset: int, radius: Vector, workspace: Vector) -> bool:
        return False

    return ReferenceKernels(warm_up, start_channel, residual_and_switch, rebuild, fill_radii)
