"""The change rule: a detector with a promised false-alarm rate.

Each channel (a variable, or the radius of all) ranks a point among all earlier ones since the last change (`ranks`).
Without a change the ranks are independent and uniform for any distribution, so every bet e on them (`bets`) has mean 1,
the Shiryaev–Roberts process M ← (1 + M)·e (`e_process`) grows by at most 1 per point on average, and M ≥ c/far
occurs at most once per c/far points [1]_ [2]_: c = 1 is the theorem, c = 0.46 makes the observed rate about `far`.
`observe` raises an alarm when M exceeds this limit; `threshold_inflation` raises the limit for streams whose points are
not exchangeable, `prewhitening` removes lag-1 autocorrelation first, `burst_guard` limits the effect of outliers, and
`localization` describes the change.

.. [1] Shin, J., Ramdas, A. and Rinaldo, A. (2024). E-detectors: a nonparametric framework for sequential change
   detection. New England Journal of Statistics in Data Science 2(2), 229–260.
.. [2] Vovk, V., Nouretdinov, I. and Gammerman, A. (2003). Testing exchangeability on-line. ICML.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from limpet._jit.compile import jit_entry_point, kernel, source_fingerprint
from limpet._jit.math import exp, log
from limpet._validation import check_positive
from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.core.memory_profile import FULL, MemoryProfile
from limpet.core.state import Vector
from limpet.detection.e_process import make_e_process
from limpet.detection.layout import (
    ALARM_RAISED,
    CENTER,
    CHANNEL_EVIDENCE,
    EVIDENCE_LIMIT,
    N_ALARMS,
    N_SEEN,
    PHI,
    RING_INDEX,
    channel_layout,
)
from limpet.detection.localization import ChangeReport, localize_change, recent_values
from limpet.detection.prewhitening import standardize
from limpet.detection.ranks import draw_uniform
from limpet.detection.reference_window import make_reference_kernels, unit_location_scale
from limpet.detection.threshold_inflation import PEAK_START_EVIDENCE, inflated_threshold, record_peak, track_peak
from limpet.exceptions import InvalidInputError

THRESHOLD_CONSTANT = 0.46  # c
PREWHITENING_FACTOR = (
    0.60 / THRESHOLD_CONSTANT
)  # c where φ is used, and then the more, the fewer points φ is known from
PHI_INFLATION_POINTS = 400.0


@dataclass(frozen=True, eq=False)
class ChangeDetector:
    """Change detector for one type of stream: sizes and compiled functions."""

    d: int
    profile: MemoryProfile

    state_size: int
    """Size of the state of a stream; zeros before the first point."""

    work_size: int

    observe: Callable[..., float]
    """(state, offset, y, y_offset, threshold, work, work_offset) → 1.0 if a change alarm is raised, else 0.0.

    Until the next point, `describe_change` describes the change; then the detector starts again."""

    tick: Callable[..., None]
    """(state, offset): count an invalid point."""

    log_evidence_margin: Callable[..., float]
    """(state, offset, threshold) → log((1 + M) / limit): an alarm is raised at about 0."""

    normalized_evidence: Callable[..., float]
    """(state, offset, threshold) → the same between 0 and 1: an alarm is raised at about ½."""

    shift_origin: Callable[..., None]
    """(state, offset, i, shift): move the origin of variable i."""

    run: Callable[..., None]
    """(state, rows, threshold, work, flags, evidence_margins): a compiled loop; evidence_margins may be empty."""

    def recent_values(self, state: Vector, n: int) -> Vector:
        """Return up to n latest values of the first variable, oldest first."""
        return recent_values(state[channel_layout(self.profile).header_size :], n, self.profile)

    def describe_change(self, state: Vector) -> ChangeReport:
        """Return the change whose alarm was raised at the last point."""
        if not state[ALARM_RAISED]:
            raise InvalidInputError("no change alarm was raised at the last point")
        return localize_change(state, self.d, self.profile)


def log_threshold(far: float) -> float:
    """Return the threshold for at most one false alarm per 1/far points: log(c/far)."""
    return math.log(THRESHOLD_CONSTANT / check_positive("far", far, maximum=0.1))


@cache
def make_change_detector(
    d: int,
    prewhiten: bool = True,
    adaptive_threshold: bool = True,
    profile: MemoryProfile = FULL,
    location_scale: Callable[..., tuple[float, float]] = unit_location_scale,
) -> ChangeDetector:
    """Return the change detector of d variables.

    Parameters
    ----------
    d
        Number of variables.
    prewhiten
        Whether lag-1 autocorrelation is removed first.
    adaptive_threshold
        Whether the threshold is inflated for heavy-tailed evidence.
    profile
        Sizes. The compact profile takes center and spread of each variable from the model of the stream, after the
        warm-up: location_scale(state, i, work).
    location_scale
        A kernel; see `profile`.
    """
    layout, e_process, is_full, is_float32 = (
        channel_layout(profile),
        make_e_process(profile),
        profile.is_full,
        profile.is_float32,
    )
    whiten, n_channels, warmup_points, n_bets = prewhiten, d + 1 if d > 1 else 1, profile.warmup_points, layout.n_bets
    header_size, channel_size, ring_offset, ring_length = (
        layout.header_size,
        layout.channel_size,
        layout.ring_offset,
        layout.ring_length,
    )
    workspace_size, reference = max(warmup_points, d), make_reference_kernels(profile, d, whiten, location_scale)
    start_channel, residual_and_switch, rebuild_reference, fill_radii = (
        reference.start,
        reference.residual_and_switch,
        reference.rebuild,
        reference.fill_radii,
    )
    warm_up = reference.warm_up
    step, skip_point, reset_channel, count_point = (
        e_process.step,
        e_process.skip_point,
        e_process.reset,
        e_process.count_point,
    )

    @kernel
    def store_value(channel: Vector, x: float) -> None:
        index = int(channel[RING_INDEX])
        channel[ring_offset + index] = x
        channel[RING_INDEX] = index + 1.0 if index + 1 < ring_length else 0.0

    @kernel
    def evidence_limit(state: Vector, offset: int, threshold: float) -> float:
        """Return the limit of M."""
        limit = exp(threshold)
        if whiten:
            factor = 1.0
            for i in range(d):
                base = offset + header_size + i * channel_size
                if state[base + PHI] != 0.0:
                    phi_factor = PREWHITENING_FACTOR * (1.0 + PHI_INFLATION_POINTS / state[base + N_SEEN])
                    factor = phi_factor if phi_factor > factor else factor
            limit *= factor
        return limit

    @kernel
    def observe(
        state: Vector, offset: int, y: Vector, y_offset: int, threshold: float, work: Vector, work_offset: int
    ) -> float:
        pay, workspace = (
            work[work_offset : work_offset + n_bets],
            work[work_offset + n_bets : work_offset + n_bets + workspace_size],
        )
        if state[offset + ALARM_RAISED] > 0.0:
            state[offset + ALARM_RAISED] = 0.0
            for i in range(n_channels):
                reset_channel(
                    state[offset + header_size + i * channel_size : offset + header_size + (i + 1) * channel_size]
                )
        squared_radius, all_present, reference_rebuilt, total = 0.0, True, False, 0.0
        for i in range(n_channels):
            base = offset + header_size + i * channel_size
            channel = state[base : base + channel_size]
            is_radius = i == d
            x = math.sqrt(squared_radius) if is_radius else y[y_offset + i]
            warmup_complete = False
            if d > 1 and is_radius and reference_rebuilt:
                channel[N_SEEN], warmup_complete = (
                    (float(warmup_points), True) if fill_radii(state, offset, channel, workspace) else (0.0, False)
                )
            elif (is_radius and not all_present) or not abs(x) <= MAX_ABS_VALUE:
                all_present = False
                skip_point(channel)
            else:
                count_point(channel)
                store_value(channel, x)
                if channel[N_SEEN] <= warmup_points:
                    warmup_complete = channel[N_SEEN] == warmup_points
                    all_present = False
                    warm_up(state, i, channel, workspace)
                else:
                    r, switched = residual_and_switch(channel, standardize(channel, x), i)
                    squared_radius += r * r
                    step(channel, r, draw_uniform(state, offset, is_float32), is_radius, pay)
                    if switched:
                        rebuild_reference(channel, workspace)
                        reference_rebuilt = True
            if warmup_complete:
                reference_rebuilt = start_channel(state, i, channel, workspace) or reference_rebuilt
            total += channel[CHANNEL_EVIDENCE]
        evidence = total / n_channels
        limit = evidence_limit(state, offset, threshold)
        if is_full:
            state[offset + EVIDENCE_LIMIT] = limit
        if adaptive_threshold:
            track_peak(state, offset, evidence)
        if evidence < limit or (adaptive_threshold and log(evidence) < inflated_threshold(state, offset, log(limit))):
            return 0.0
        if adaptive_threshold:
            record_peak(state, offset, True)
        state[offset + ALARM_RAISED] = 1.0
        state[offset + N_ALARMS] += 1.0
        return 1.0

    @kernel
    def tick(state: Vector, offset: int) -> None:
        if state[offset + ALARM_RAISED] == 0.0:
            for i in range(n_channels):
                skip_point(
                    state[offset + header_size + i * channel_size : offset + header_size + (i + 1) * channel_size]
                )

    @kernel
    def log_evidence_and_limit(state: Vector, offset: int, threshold: float) -> tuple[float, float]:
        """Return log(1 + M) and its limit."""
        if is_full:
            threshold = log(
                state[offset + EVIDENCE_LIMIT] if state[offset + EVIDENCE_LIMIT] > 0.0 else PEAK_START_EVIDENCE
            )
        evidence = 0.0
        for i in range(n_channels):
            evidence += state[offset + header_size + i * channel_size + CHANNEL_EVIDENCE]
        return log(1.0 + evidence / n_channels), inflated_threshold(
            state, offset, threshold
        ) if adaptive_threshold else threshold

    @kernel
    def log_evidence_margin(state: Vector, offset: int, threshold: float) -> float:
        log_evidence, log_limit = log_evidence_and_limit(state, offset, threshold)
        return log_evidence - log_limit

    @kernel
    def normalized_evidence(state: Vector, offset: int, threshold: float) -> float:
        log_evidence, log_limit = log_evidence_and_limit(state, offset, threshold)
        return log_evidence / (log_evidence + log_limit)

    @kernel
    def shift_origin(state: Vector, offset: int, i: int, shift: float) -> None:
        base = offset + header_size + i * channel_size
        state[base + CENTER] -= shift
        for j in range(ring_length):
            state[base + ring_offset + j] -= shift

    stamp = source_fingerprint([observe, log_evidence_margin])

    def run(state, rows, threshold, work, flags, evidence_margins):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of the cache key)
        records_margins = len(evidence_margins) > 0
        for t in range(len(rows)):
            flags[t] = observe(state, 0, rows[t], 0, threshold, work, 0)
            if records_margins:
                evidence_margins[t] = log_evidence_margin(state, 0, threshold)

    state_size, work_size = layout.state_size(d), n_bets + workspace_size
    run_loop = jit_entry_point(run, releases_gil=True)
    return ChangeDetector(
        d,
        profile,
        state_size,
        work_size,
        observe,
        tick,
        log_evidence_margin,
        normalized_evidence,
        shift_origin,
        run_loop,
    )
