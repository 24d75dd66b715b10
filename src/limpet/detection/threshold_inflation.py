"""Inflate the alarm threshold when the evidence has heavy tails.

For exchangeable points, peaks of log M above a level u₀ exceed it by an exponential amount of mean 1. Volatility
clusters, long memory or a season make the tail heavier, and false alarms many times as frequent. Therefore the mean
excess m is estimated from the peaks, and the threshold h raised to u₀ + m²·(h − u₀) if m is significantly above 1.

Excesses are censored at a limit, so that real changes, whose peaks are unbounded, do not make the detector
unresponsive: the many small peaks between changes decide. The estimate persists after alarms.
"""

from __future__ import annotations

import math

from limpet._jit.compile import kernel
from limpet._jit.math import log
from limpet.core.state import Vector
from limpet.detection.layout import INFLATION_STATE

PEAK_EVIDENCE, N_UNCENSORED, TOTAL_EXCESS, INFLATION = (
    INFLATION_STATE,
    INFLATION_STATE + 1,
    INFLATION_STATE + 2,
    INFLATION_STATE + 3,
)  # INFLATION: m² − 1

PEAK_LEVEL_NATS = 3.4  # u₀
PEAK_START_EVIDENCE, PEAK_END_EVIDENCE = (
    29.964100047397025,
    11.023176380641601,
)  # e^u₀, e^(u₀ − 1): start and end of a peak
MAX_EXCESS_NATS = 2.5  # where excesses are censored
PEAK_DISCOUNT = 0.999  # of each peak
EXCESS_MARGIN_SE = 3.0  # standard errors
PRIOR_PEAKS = 20.0  # pseudo-observations of mean excess 1
MAX_INFLATION = 7.0


@kernel
def record_peak(state: Vector, offset: int, is_alarm: bool) -> None:
    """Record the end of a peak; an alarm censors it."""
    if state[offset + PEAK_EVIDENCE] == 0.0:  # a threshold below the level: no peak started
        return
    excess = log(state[offset + PEAK_EVIDENCE]) - PEAK_LEVEL_NATS
    state[offset + PEAK_EVIDENCE] = 0.0
    state[offset + TOTAL_EXCESS] *= PEAK_DISCOUNT
    state[offset + N_UNCENSORED] *= PEAK_DISCOUNT
    state[offset + TOTAL_EXCESS] += excess if excess < MAX_EXCESS_NATS else MAX_EXCESS_NATS
    if excess < MAX_EXCESS_NATS and not is_alarm:
        state[offset + N_UNCENSORED] += 1.0
    n = state[offset + N_UNCENSORED] + PRIOR_PEAKS
    min_mean_excess = (state[offset + TOTAL_EXCESS] + PRIOR_PEAKS) / (
        n + EXCESS_MARGIN_SE * math.sqrt(n)
    )  # a lower bound of m
    inflation = (
        min_mean_excess * min_mean_excess - 1.0 if min_mean_excess > 1.0 else 0.0
    )  # squared: the tail gets heavier farther out
    inflation = inflation if inflation < MAX_INFLATION else MAX_INFLATION
    state[offset + INFLATION] = inflation


@kernel
def track_peak(state: Vector, offset: int, evidence: float) -> None:
    """Track the peaks of M."""
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
