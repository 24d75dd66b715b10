"""Localize a detected change: variable, onset, direction and effect size."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from limpet.core.memory_profile import FULL, MemoryProfile
from limpet.core.state import Vector
from limpet.detection.bets import BettingTable, betting_table
from limpet.detection.layout import (
    CENTER,
    CHANNEL_EVIDENCE,
    IS_DEGENERATE,
    N_MISSING,
    N_SEEN,
    POINTS_SINCE_QUIET,
    RING_INDEX,
    SPREAD,
    channel_layout,
)
from limpet.detection.reference_window import median_mad_entry_point

LEVEL_SHIFT_THRESHOLD_SD = 2.0  # spreads, old or new, from which a wider spread is reported as a shift
SHIFT_THRESHOLD_SE = 3.0  # from here on a change of the radius is reported as a shift


class ChangeReport(NamedTuple):
    """A detected change."""

    direction: str
    """ "up", "down", "wider" or "narrower"."""

    variable: int
    """The variable with the largest share."""

    delay: int
    """Estimated number of points from the first point of the new regime to the alarm."""

    shift: float
    """Shift of the median: points since the onset (those in the ring buffer) minus the old regime."""

    shift_sd: float
    """The same in spreads (1.4826·MAD) of the old regime; infinite if that was constant."""

    spread_ratio: float
    """Spread of the points since the onset over that of the old regime; infinite if that was constant, NaN for fewer
    than three points."""

    evidence_shares: tuple[float, ...]
    """Share of each variable in the evidence; they sum to 1."""


class EffectSize(NamedTuple):
    """Effect size of a change in one coordinate."""

    shift: float
    old_spread: float
    new_spread: float

    def shift_sd(self) -> float:
        """Return the shift in spreads of the old regime."""
        if self.old_spread > 0.0:
            return self.shift / self.old_spread
        return math.copysign(math.inf, self.shift) if self.shift else 0.0

    def spread_ratio(self) -> float:
        """Return the new spread over the old one."""
        if self.old_spread > 0.0:
            return self.new_spread / self.old_spread
        return math.inf if self.new_spread > 0.0 else math.nan

    def exceeds_spreads(self) -> bool:
        """Return whether the shift exceeds both spreads clearly."""
        return abs(self.shift) > LEVEL_SHIFT_THRESHOLD_SD * float(np.fmax(self.old_spread, self.new_spread))


def recent_values(channel: Vector, n: int, profile: MemoryProfile = FULL) -> Vector:
    """Return up to n latest values of a channel, oldest first."""
    layout = channel_layout(profile)
    ring_values = channel[layout.ring_offset : layout.ring_offset + layout.ring_length]
    end, n = int(channel[RING_INDEX]), min(n, layout.ring_length)
    if n <= end:
        return np.array(ring_values[end - n : end], np.float64)
    return np.concatenate([ring_values[end - n :], ring_values[:end]], dtype=np.float64)


def effect_size(channel: Vector, delay: int, profile: MemoryProfile) -> EffectSize:
    """Return the effect size in a coordinate, from points since the onset."""
    # The share of present ones among the points since the onset, approximately.
    present_share = channel[N_SEEN] / (channel[N_SEEN] + channel[N_MISSING]) if profile.is_full else 1.0
    latest = recent_values(channel, max(1, round((delay + 1) * present_share)), profile)
    n = len(latest)
    center, spread, is_degenerate = median_mad_entry_point(latest, n)
    old = 0.0 if profile.is_full and channel[IS_DEGENERATE] else float(channel[SPREAD])
    new = math.nan if n < 3 else 0.0 if is_degenerate else float(spread)
    return EffectSize(float(center - channel[CENTER]), old, new)


def direction_of_bet(bets: BettingTable, bet: int) -> str:
    """Return the direction of a bet."""
    if bet < bets.first_widening:
        return "up" if bet < bets.first_down else "down"
    return "wider" if bet < bets.first_narrowing else "narrower"


def localize_change(state: Vector, d: int, profile: MemoryProfile = FULL) -> ChangeReport:
    """Return the change whose alarm was raised at the last point."""
    layout = channel_layout(profile)
    channels = state[layout.header_size : layout.state_size(d)].reshape(-1, layout.channel_size)
    evidence = channels[:, CHANNEL_EVIDENCE].astype(np.float64)
    dominant_channel, variable = int(np.argmax(evidence)), int(np.argmax(evidence[:d]))
    channel = channels[dominant_channel]
    wealth = channel[layout.wealth_offset : layout.aged_wealth_offset]
    best_bet = int(np.argmax(wealth))
    if profile.is_full:
        delay = math.floor(channel[layout.aged_wealth_offset + best_bet] / wealth[best_bet] + 0.5)
    else:
        delay = int(channel[POINTS_SINCE_QUIET])
    direction = direction_of_bet(betting_table(profile), best_bet)
    sizes = [effect_size(channel, delay, profile) for channel in channels[:d]]
    if dominant_channel < d:
        size = sizes[variable]
        if direction == "wider" and size.exceeds_spreads():
            direction = "up" if size.shift > 0.0 else "down"
    else:  # the radius: a clear shift of one variable, or else a spread
        direction = "wider" if direction == "up" else "narrower"
        shifts = [size.shift_sd() for size in sizes]
        largest_shift = int(np.argmax(np.abs(shifts)))
        if abs(shifts[largest_shift]) * math.sqrt(delay + 1.0) > SHIFT_THRESHOLD_SE:
            direction, variable = "up" if shifts[largest_shift] > 0.0 else "down", largest_shift
        size = sizes[variable]
    evidence_shares = evidence[:d] / evidence[:d].sum()  # the evidence of the radius is split in proportion
    return ChangeReport(
        direction, variable, delay, size.shift, size.shift_sd(), size.spread_ratio(), tuple(evidence_shares.tolist())
    )
