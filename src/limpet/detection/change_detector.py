"""The change rule: a detector with a promised false-alarm rate.

Each channel (a variable, or the radius of all) ranks a point among all earlier ones since the last change (`ranks`).
Without a change the ranks are independent and uniform for any distribution, so every bet e on them (`bets`) has mean 1,
the Shiryaev–Roberts process M ← (1 + M)·e (`make_e_process`) grows by at most 1 per point on average, and M ≥ c/far
occurs at most once per c/far points [1]_ [2]_: c = 1 is the theorem, c = 0.46 makes the observed rate about `far`.
`observe` raises an alarm when M exceeds this limit. `reference_window` removes lag-1 autocorrelation first, and
`localization` describes the change.

The limit is higher for streams whose points are not exchangeable. For exchangeable points, peaks of log M above a level
u₀ exceed it by an exponential amount of mean 1. Volatility clusters, long memory or a season make the tail heavier, and
false alarms many times as frequent. Therefore the mean excess m is estimated from the peaks, and the threshold h raised
to u₀ + m²·(h − u₀) if m is significantly above 1. Excesses are censored at a limit, so that real changes, whose peaks
are unbounded, do not make the detector unresponsive: the many small peaks between changes decide. The estimate persists
after alarms.

.. [1] Shin, J., Ramdas, A. and Rinaldo, A. (2024). E-detectors: a nonparametric framework for sequential change
   detection. New England Journal of Statistics in Data Science 2(2), 229–260.
.. [2] Vovk, V., Nouretdinov, I. and Gammerman, A. (2003). Testing exchangeability on-line. ICML.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from limpet._jit.compile import jit_entry_point, kernel
from limpet._jit.math import exp, log, minimum
from limpet._jit.simd import LANES
from limpet._jit.simd_transpose import load_lanes, store_lanes
from limpet._validation import FALSE_ALARM_RATE, check_param
from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.core.memory_profile import COUNTER_WRAP_POINTS, FULL, Counts, MemoryProfile
from limpet.core.state import Vector
from limpet.detection.bets import (
    EXTREME_THRESHOLD_SD,
    LEAK_PER_POINT,
    SHOULDER_THRESHOLD_SD,
    SUSPECT_COUNT_THRESHOLD,
    betting_table,
    make_burst_guard,
    score_cell,
)
from limpet.detection.layout import (
    ALARM_RAISED,
    CENTER,
    CHANNEL_EVIDENCE,
    CLUSTER_ABOVE,
    CLUSTER_BELOW,
    EVIDENCE_LIMIT,
    EXTREME_LEAKY_COUNT,
    INFLATION_STATE,
    IS_DEGENERATE,
    N_ALARMS,
    N_MISSING,
    N_SEEN,
    PHI,
    POINTS_SINCE_QUIET,
    RING_INDEX,
    channel_layout,
)
from limpet.detection.localization import ChangeReport, localize_change, recent_values
from limpet.detection.ranks import draw_uniform, make_histogram
from limpet.detection.reference_window import (
    QUIET_EVIDENCE_THRESHOLD,
    LocationScale,
    reference_from_model,
    reference_from_ring,
    standardize,
    unit_location_scale,
)
from limpet.exceptions import InvalidInputError

THRESHOLD_CONSTANT = 0.46  # c
PREWHITENING_FACTOR = 0.60 / THRESHOLD_CONSTANT  # of the limit where φ is used: the more, the fewer points φ is …
PHI_INFLATION_POINTS = 400.0  # … known from
PAY_ON_CONSTANT = 0.5  # less than fair: evidence on a constant stays small

PEAK_EVIDENCE, N_UNCENSORED, TOTAL_EXCESS, INFLATION = range(INFLATION_STATE, INFLATION_STATE + 4)  # INFLATION: m² − 1
PEAK_LEVEL_NATS = 3.4  # u₀
PEAK_START_EVIDENCE, PEAK_END_EVIDENCE = 29.964100047397025, 11.023176380641601  # e^u₀, e^(u₀ − 1)
MAX_EXCESS_NATS = 2.5  # where excesses are censored
PEAK_DISCOUNT = 0.999  # of each peak
EXCESS_MARGIN_SE = 3.0  # standard errors
PRIOR_PEAKS = 20.0  # pseudo-observations of mean excess 1
MAX_INFLATION = 7.0


class EProcess(NamedTuple):
    """Compiled functions of a channel; `channel` is its part of the state."""

    # (channel, r, u, is_radius, pay): process a residual; the evidence of the channel is the wealth of the bets
    step: Callable[..., Any]
    skip_point: Callable[..., Any]  # (channel): a point without a value of this channel
    reset: Callable[..., Any]  # (channel): clear all but the ring buffer, which other functions read
    count_point: Callable[..., Any]  # (channel): count a point


@cache
def make_e_process(profile: MemoryProfile) -> EProcess:
    """Return the e-process of a channel: rank, pay-offs, Shiryaev–Roberts update."""
    table, layout, histogram = betting_table(profile), channel_layout(profile), make_histogram(profile)
    n_bets, is_full, is_float32 = profile.n_bets, profile.is_full, profile.is_float32
    inlier_pay, all_weights, first_narrowing = table.inlier_pay, table.weights, table.first_narrowing
    counts_offset, ring_offset, channel_size = layout.counts_offset, layout.ring_offset, layout.channel_size
    wealth_offset, aged_wealth_offset = layout.wealth_offset, layout.aged_wealth_offset
    pay_extreme, limit_inlier = make_burst_guard(profile)
    bin_index, count_inliers, rank, is_single_bin, add_point, add_extreme, halve = histogram
    max_count, count_dtype = profile.max_count, profile.count_dtype

    @kernel
    def pay_inlier(channel: Vector, r: float, u: float, counts: Counts, pay: Vector) -> None:
        """Compute the pay-off of a point that is not extreme; add it to the ranks."""
        b = bin_index(r)
        if (channel[IS_DEGENERATE] == 0.0) if is_full else not is_single_bin(counts, b):
            cell = score_cell(rank(counts, b, u))
            for k in range(n_bets):
                pay[k] = inlier_pay[cell, k]
        else:  # constant so far: only extreme points are evidence, and a constant never raises an alarm
            for k in range(n_bets):
                pay[k] = PAY_ON_CONSTANT if k < first_narrowing else 0.0
        add_point(counts, b)
        if count_inliers(counts) >= max_count:
            halve(counts)
        if channel[EXTREME_LEAKY_COUNT] > 0.0:
            remaining = channel[EXTREME_LEAKY_COUNT] - LEAK_PER_POINT
            channel[EXTREME_LEAKY_COUNT] = remaining if remaining > 0.0 else 0.0
            if remaining >= SUSPECT_COUNT_THRESHOLD and abs(r) > SHOULDER_THRESHOLD_SD:
                limit_inlier(channel, r, pay)

    @kernel
    def update_wealth_with_ages(channel: Vector, pay: Vector, weights: Vector) -> None:
        """Apply R ← (1 + R)·e to every bet, and the same weighted by age."""
        wealth, paid = load_lanes(channel, wealth_offset), load_lanes(pay, 0)
        store_lanes(channel, aged_wealth_offset, (load_lanes(channel, aged_wealth_offset) + wealth) * paid)
        store_lanes(channel, wealth_offset, (wealth + load_lanes(weights, 0)) * paid)
        for k in range(LANES, n_bets):
            channel[aged_wealth_offset + k] = (channel[aged_wealth_offset + k] + channel[wealth_offset + k]) * pay[k]
            channel[wealth_offset + k] = (channel[wealth_offset + k] + weights[k]) * pay[k]

    @kernel
    def update_wealth_only(channel: Vector, pay: Vector, weights: Vector) -> None:
        for k in range(n_bets):
            channel[wealth_offset + k] = (channel[wealth_offset + k] + weights[k]) * pay[k]

    update_wealth = update_wealth_with_ages if is_full else update_wealth_only

    @kernel
    def sum_wealth(channel: Vector) -> float:
        """Return Σ w·R."""
        wealth = channel[wealth_offset:]
        first = (wealth[0] + wealth[1]) + (wealth[2] + wealth[3])
        second = (wealth[4] + wealth[5]) + (wealth[6] + wealth[7])
        third, k = 0.0, 8
        if n_bets >= 12:
            third, k = (wealth[8] + wealth[9]) + (wealth[10] + wealth[11]), 12
        while k < n_bets:
            third += wealth[k]
            k += 1
        return (first + second) + third

    @kernel
    def reset(channel: Vector) -> None:
        for j in range(ring_offset):
            channel[j] = channel[j] if j == RING_INDEX else 0.0
        for j in range(wealth_offset, channel_size):
            channel[j] = 0.0

    @kernel
    def count_point(channel: Vector) -> None:
        channel[N_SEEN] += 1.0
        if is_float32 and channel[N_SEEN] >= 2.0 * COUNTER_WRAP_POINTS:
            channel[N_SEEN] -= COUNTER_WRAP_POINTS
            channel[CLUSTER_ABOVE + 2] -= COUNTER_WRAP_POINTS
            channel[CLUSTER_BELOW + 2] -= COUNTER_WRAP_POINTS

    @kernel
    def skip_point(channel: Vector) -> None:
        if is_full:
            channel[N_MISSING] += 1.0
            for k in range(n_bets):
                channel[aged_wealth_offset + k] += channel[wealth_offset + k]
        else:
            channel[POINTS_SINCE_QUIET] += 1.0

    @kernel
    def step(channel: Vector, r: float, u: float, is_radius: bool, pay: Vector) -> None:
        counts = channel[counts_offset:ring_offset].view(count_dtype)
        if abs(r) <= EXTREME_THRESHOLD_SD:
            pay_inlier(channel, r, u, counts, pay)
        else:
            pay_extreme(channel, r, add_extreme(counts, r > 0.0), is_radius, pay)
        update_wealth(channel, pay, all_weights[1 if is_radius else 0])
        channel[CHANNEL_EVIDENCE] = sum_wealth(channel)
        if not is_full:
            is_quiet = channel[CHANNEL_EVIDENCE] <= QUIET_EVIDENCE_THRESHOLD
            channel[POINTS_SINCE_QUIET] = 0.0 if is_quiet else channel[POINTS_SINCE_QUIET] + 1.0

    return EProcess(step, skip_point, reset, count_point)


@kernel
def record_peak(state: Vector, offset: int, is_alarm: bool) -> None:
    """Record the end of a peak of M; an alarm censors it."""
    if state[offset + PEAK_EVIDENCE] == 0.0:  # a threshold below the level: no peak started
        return
    excess = log(state[offset + PEAK_EVIDENCE]) - PEAK_LEVEL_NATS
    state[offset + PEAK_EVIDENCE] = 0.0
    state[offset + TOTAL_EXCESS] *= PEAK_DISCOUNT
    state[offset + N_UNCENSORED] *= PEAK_DISCOUNT
    state[offset + TOTAL_EXCESS] += minimum(excess, MAX_EXCESS_NATS)
    if excess < MAX_EXCESS_NATS and not is_alarm:
        state[offset + N_UNCENSORED] += 1.0
    n = state[offset + N_UNCENSORED] + PRIOR_PEAKS
    m = (state[offset + TOTAL_EXCESS] + PRIOR_PEAKS) / (n + EXCESS_MARGIN_SE * math.sqrt(n))  # a lower bound
    inflation = m * m - 1.0 if m > 1.0 else 0.0  # squared: the tail gets heavier farther out
    state[offset + INFLATION] = minimum(inflation, MAX_INFLATION)


@kernel
def track_peak(state: Vector, offset: int, evidence: float) -> None:
    """Track the peaks of M: they start above e^u₀ and end below e^(u₀ − 1)."""
    peak = state[offset + PEAK_EVIDENCE]
    if evidence > PEAK_START_EVIDENCE and evidence > peak:
        state[offset + PEAK_EVIDENCE] = evidence
    elif peak > 0.0 and evidence < PEAK_END_EVIDENCE:
        record_peak(state, offset, False)


@kernel
def inflated_threshold(state: Vector, offset: int, threshold: float) -> float:
    """Return the inflated threshold, on the scale of log M."""
    above = threshold - PEAK_LEVEL_NATS
    return threshold + (state[offset + INFLATION] * above if above > 0.0 else 0.0)


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
            raise InvalidInputError("state: must have a change alarm at the last point, got none.")
        return localize_change(state, self.d, self.profile)


def log_threshold(far: float) -> float:
    """Return the threshold for at most one false alarm per 1/far points: log(c/far)."""
    check_param("far", far, FALSE_ALARM_RATE)
    return math.log(THRESHOLD_CONSTANT / far)


@cache
def make_change_detector(
    d: int,
    prewhiten: bool = True,
    adaptive_threshold: bool = True,
    profile: MemoryProfile = FULL,
    location_scale: LocationScale = unit_location_scale,
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
    layout = channel_layout(profile)
    is_full, is_float32 = profile.is_full, profile.is_float32
    n_channels, warmup_points, n_bets = d + 1 if d > 1 else 1, profile.warmup_points, profile.n_bets
    header_size, channel_size = layout.header_size, layout.channel_size
    ring_offset, ring_length, workspace_size = layout.ring_offset, layout.ring_length, max(warmup_points, d)
    warm_up, start_channel, residual_and_switch, rebuild_reference, fill_radii = (
        reference_from_ring(d, prewhiten) if is_full else reference_from_model(profile, d, prewhiten, location_scale)
    )
    step, skip_point, reset_channel, count_point = make_e_process(profile)

    @kernel
    def store_value(channel: Vector, x: float) -> None:
        index = int(channel[RING_INDEX])
        channel[ring_offset + index] = x
        channel[RING_INDEX] = index + 1.0 if index + 1 < ring_length else 0.0

    @kernel
    def evidence_limit(state: Vector, offset: int, threshold: float) -> float:
        limit = exp(threshold)
        if prewhiten:
            factor = 1.0
            for i in range(d):
                base = offset + header_size + i * channel_size
                if state[base + PHI] != 0.0:
                    phi_factor = PREWHITENING_FACTOR * (1.0 + PHI_INFLATION_POINTS / state[base + N_SEEN])
                    factor = phi_factor if phi_factor > factor else factor
            limit *= factor
        return limit

    @kernel
    def is_change(state: Vector, offset: int, evidence: float, threshold: float) -> bool:
        """Track evidence peaks; return whether it is at its limit, which peaks raise."""
        limit = evidence_limit(state, offset, threshold)
        if is_full:
            state[offset + EVIDENCE_LIMIT] = limit
        if adaptive_threshold:
            track_peak(state, offset, evidence)
        if evidence < limit:
            return False
        return not (adaptive_threshold and log(evidence) < inflated_threshold(state, offset, log(limit)))

    @kernel
    def observe(
        state: Vector, offset: int, y: Vector, y_offset: int, threshold: float, work: Vector, work_offset: int
    ) -> float:
        pay = work[work_offset : work_offset + n_bets]
        workspace = work[work_offset + n_bets : work_offset + n_bets + workspace_size]
        if state[offset + ALARM_RAISED] > 0.0:
            state[offset + ALARM_RAISED] = 0.0
            for i in range(n_channels):
                base = offset + header_size + i * channel_size
                reset_channel(state[base : base + channel_size])
        squared_radius, all_present, reference_rebuilt, total = 0.0, True, False, 0.0
        for i in range(n_channels):
            base = offset + header_size + i * channel_size
            channel = state[base : base + channel_size]
            is_radius = i == d
            x = math.sqrt(squared_radius) if is_radius else y[y_offset + i]
            warmup_complete = False
            if d > 1 and is_radius and reference_rebuilt:
                warmup_complete = fill_radii(state, offset, channel, workspace)
                channel[N_SEEN] = float(warmup_points) if warmup_complete else 0.0
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
        if not is_change(state, offset, total / n_channels, threshold):
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
                base = offset + header_size + i * channel_size
                skip_point(state[base : base + channel_size])

    @kernel
    def log_evidence_and_limit(state: Vector, offset: int, threshold: float) -> tuple[float, float]:
        """Return log(1 + M) and its limit."""
        if is_full:
            limit = state[offset + EVIDENCE_LIMIT]
            threshold = log(limit if limit > 0.0 else PEAK_START_EVIDENCE)
        evidence = 0.0
        for i in range(n_channels):
            evidence += state[offset + header_size + i * channel_size + CHANNEL_EVIDENCE]
        log_limit = inflated_threshold(state, offset, threshold) if adaptive_threshold else threshold
        return log(1.0 + evidence / n_channels), log_limit

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

    def run(state, rows, threshold, work, flags, evidence_margins):  # type: ignore[no-untyped-def]
        records_margins = len(evidence_margins) > 0
        for t in range(len(rows)):
            flags[t] = observe(state, 0, rows[t], 0, threshold, work, 0)
            if records_margins:
                evidence_margins[t] = log_evidence_margin(state, 0, threshold)

    return ChangeDetector(
        d=d,
        profile=profile,
        state_size=layout.state_size(d),
        work_size=n_bets + workspace_size,
        observe=observe,
        tick=tick,
        log_evidence_margin=log_evidence_margin,
        normalized_evidence=normalized_evidence,
        shift_origin=shift_origin,
        run=jit_entry_point(run, releases_gil=True),
    )
