"""Reference of a channel: center, spread and residuals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from limpet._jit.compile import kernel
from limpet._jit.math import averaging_step, maximum
from limpet.core.memory_profile import MemoryProfile
from limpet.core.state import Vector
from limpet.detection.bets import EXTREME_THRESHOLD_SD
from limpet.detection.layout import (
    CENTER,
    CHANNEL_EVIDENCE,
    CLUSTER_ABOVE,
    CLUSTER_BELOW,
    MEAN_PRODUCT,
    MEAN_SQUARE,
    N_SEEN,
    NEXT_CHECK_POINTS,
    PHI,
    RING_INDEX,
    SPREAD,
    channel_layout,
)
from limpet.detection.prewhitening import (
    MAX_PAIR_SD,
    MAX_PHI,
    add_pair,
    compute_residual,
    compute_ring_residuals,
    estimate_phi,
    rebuild_histogram,
    standardize,
    start_reference,
    toggle_prewhitening,
)

QUIET_EVIDENCE_THRESHOLD = 15.0  # evidence below is negligible
MIN_MOMENT_STEP = 0.0005  # of the averages
SWITCH_ON_SE, SWITCH_OFF_SE = 2.5, 1.5  # standard errors, and …
MIN_PHI_ON, MIN_PHI_OFF = 0.2, 0.1  # … lower limits: an inexact center looks like weak autocorrelation
CHECK_INTERVAL_POINTS = 64
MIN_MEAN_SQUARE = 1e-6

LocationScale = Callable[..., tuple[float, float]]


@dataclass(frozen=True, eq=False)
class ReferenceKernels:
    """Compiled functions; `channel` is its part of the state."""

    warm_up: Callable[..., Any]
    """(state, i, channel, workspace): process a point of the warm-up."""

    start: Callable[..., Any]
    """(state, i, channel, workspace) → whether the reference was built, at the end of the warm-up of channel i."""

    residual_and_switch: Callable[..., Any]
    """(channel, z, i) → (residual of a standardized point, whether prewhitening was switched on or off)."""

    rebuild: Callable[..., Any]
    """(channel, workspace): rebuild the reference after prewhitening was switched."""

    fill_radii: Callable[..., Any]
    """(state, offset, radius, workspace) → whether the radii of the last points were written to the ring buffer."""


@kernel
def unit_location_scale(state: Vector, i: int, work: Vector) -> tuple[float, float]:
    """Return center 0 and spread 1, for standardized points."""
    return 0.0, 1.0


def make_reference_kernels(
    profile: MemoryProfile, d: int, whiten: bool, location_scale: LocationScale
) -> ReferenceKernels:
    """Return the reference functions for d variables."""
    return (
        reference_from_ring(profile, d, whiten)
        if profile.is_full
        else reference_from_model(profile, d, whiten, location_scale)
    )


def reference_from_ring(profile: MemoryProfile, d: int, whiten: bool) -> ReferenceKernels:
    """Return functions that estimate everything from the ring buffer of the channel."""
    layout, warmup_points = channel_layout(profile), profile.warmup_points
    header_size, channel_size, ring_offset = layout.header_size, layout.channel_size, layout.ring_offset

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
        seen = state[offset + header_size + N_SEEN]
        for i in range(d):
            if state[offset + header_size + i * channel_size + N_SEEN] != seen or seen < warmup_points:
                return False
        for j in range(warmup_points):
            radius[ring_offset + j] = 0.0
        for i in range(d):
            base = offset + header_size + i * channel_size
            compute_ring_residuals(state[base : base + channel_size], workspace)
            for j in range(warmup_points):
                radius[ring_offset + j] += workspace[j] * workspace[j]
        for j in range(warmup_points):
            radius[ring_offset + j] = math.sqrt(radius[ring_offset + j])
        radius[RING_INDEX] = 0.0
        return True

    return ReferenceKernels(warm_up, start_channel, residual_and_switch, rebuild_histogram, fill_radii)


def reference_from_model(
    profile: MemoryProfile, d: int, whiten: bool, location_scale: LocationScale
) -> ReferenceKernels:
    """Return functions that take center and spread from the model.

    φ is the average of products over that of squares. It is checked periodically while the evidence is negligible, and
    the reference is cleared when φ is switched on or off.
    """
    layout, count_dtype = channel_layout(profile), profile.count_dtype
    counts_offset, ring_offset, ring_length = layout.counts_offset, layout.ring_offset, layout.ring_length

    @kernel
    def clipped_phi(channel: Vector) -> float:
        phi = channel[MEAN_PRODUCT] / maximum(channel[MEAN_SQUARE], MIN_MEAN_SQUARE)
        return MAX_PHI if phi > MAX_PHI else maximum(phi, -MAX_PHI)

    @kernel
    def previous_value(channel: Vector) -> float:
        """Return the point before the latest one, standardized; 0 if it is extreme."""
        index = int(channel[RING_INDEX]) - 2
        z = standardize(channel, channel[ring_offset + (index if index >= 0 else index + ring_length)])
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
        threshold = maximum(SWITCH_OFF_SE * error, MIN_PHI_OFF) if used else maximum(SWITCH_ON_SE * error, MIN_PHI_ON)
        if used == (abs(phi) > threshold):
            return False
        channel[PHI] = 0.0 if used else phi
        return True

    @kernel
    def warm_up(state: Vector, i: int, channel: Vector, workspace: Vector) -> None:
        if i < d:
            channel[CENTER], channel[SPREAD] = location_scale(state, i, workspace)
            if whiten and channel[N_SEEN] > 1.0:
                update_moments(
                    channel, standardize(channel, channel[ring_offset + latest_index(channel)]), previous_value(channel)
                )
        else:  # the radius of d variables of spread 1
            channel[CENTER], channel[SPREAD] = math.sqrt(d - 0.5), 0.7

    @kernel
    def latest_index(channel: Vector) -> int:
        index = int(channel[RING_INDEX]) - 1
        return index if index >= 0 else index + ring_length

    @kernel
    def start_channel(state: Vector, i: int, channel: Vector, workspace: Vector) -> bool:
        if whiten and i < d:
            toggle_phi(channel)
        return False

    @kernel
    def residual_and_switch(channel: Vector, z: float, i: int) -> tuple[float, bool]:
        if not whiten or i == d:
            return z, False
        last = previous_value(channel)
        update_moments(channel, z, last)
        r = z
        if channel[PHI] != 0.0:
            phi = clipped_phi(channel)
            channel[PHI] = phi if phi != 0.0 else channel[PHI]
            r = (z - channel[PHI] * last) / math.sqrt(1.0 - channel[PHI] * channel[PHI])
        return r, channel[N_SEEN] % CHECK_INTERVAL_POINTS == 0.0 and channel[
            CHANNEL_EVIDENCE
        ] < QUIET_EVIDENCE_THRESHOLD and toggle_phi(channel)

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
