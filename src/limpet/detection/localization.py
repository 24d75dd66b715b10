"""What an alarm says: what changed, in which variable, since when, by how much."""

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
from limpet.detection.location_scale import median_mad_entry_point

LEVEL_SHIFT_THRESHOLD_SD = 2.0  # spreads, the new or the old: what looked wider was a shift
SHIFT_THRESHOLD_SE = 3.0  # standard errors: what the radius has seen was a shift after all


class ChangeReport(NamedTuple):
    """A change, as its alarm tells it."""

    kind: str
    """ "up", "down", "wider" or "narrower"."""

    variable: int
    """The variable that carries it."""

    delay: int
    """How many points before the alarm the first point of the new regime came, as far as can be told."""

    shift: float
    """Of the level: the median of the points since the onset (of those in the ring) less that of the old regime."""

    shift_sd: float
    """The same in spreads (1.4826·MAD) of the old regime; infinite if its points were all the same."""

    spread_ratio: float
    """Spread of the points since the onset over that of the old regime; infinite if its points were all the same, NaN
    if fewer than three have come since."""

    evidence_shares: tuple[float, ...]
    """The part of every variable in the evidence; they sum to 1."""


class EffectSize(NamedTuple):
    """How large a change is in one coordinate."""

    shift: float
    old_spread: float
    new_spread: float

    def shift_sd(self) -> float:
        """The shift in spreads of the old regime."""
        if self.old_spread > 0.0:
            return self.shift / self.old_spread
        return math.copysign(math.inf, self.shift) if self.shift else 0.0

    def spread_ratio(self) -> float:
        """The new spread over the old one."""
        if self.old_spread > 0.0:
            return self.new_spread / self.old_spread
        return math.inf if self.new_spread > 0.0 else math.nan

    def exceeds_spreads(self) -> bool:
        """Whether the new level is clear of both spreads."""
        return abs(self.shift) > LEVEL_SHIFT_THRESHOLD_SD * float(np.fmax(self.old_spread, self.new_spread))


def recent_values(channel: Vector, n: int, profile: MemoryProfile = FULL) -> Vector:
    """The latest n values of a channel, as far as they are kept, oldest first."""
    layout = channel_layout(profile)
    ring_values, end, n = (
        channel[layout.ring_offset : layout.ring_offset + layout.ring_length],
        int(channel[RING_INDEX]),
        min(n, layout.ring_length),
    )
    if n <= end:
        return np.array(ring_values[end - n : end], np.float64)
    return np.concatenate([ring_values[end - n :], ring_values[:end]], dtype=np.float64)


def effect_size(channel: Vector, delay: int, profile: MemoryProfile) -> EffectSize:
    """Of the change in the coordinate of this channel, from the points since the onset that are still in its ring."""
    present_share = (
        channel[N_SEEN] / (channel[N_SEEN] + channel[N_MISSING]) if profile.is_full else 1.0
    )  # of the points since then, about
    latest = recent_values(channel, max(1, round((delay + 1) * present_share)), profile)
    n = len(latest)
    center, spread, is_degenerate = median_mad_entry_point(latest, n)
    old = 0.0 if profile.is_full and channel[IS_DEGENERATE] else float(channel[SPREAD])
    return EffectSize(
        float(center - channel[CENTER]), old, math.nan if n < 3 else 0.0 if is_degenerate else float(spread)
    )


def direction_of_bet(bets: BettingTable, bet: int) -> str:
    """What a bet was on."""
    if bet < bets.first_widening:
        return "up" if bet < bets.first_down else "down"
    return "wider" if bet < bets.first_narrowing else "narrower"


def localize_change(state: Vector, d: int, profile: MemoryProfile = FULL) -> ChangeReport:
    """The change whose alarm has been raised at the last point."""
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
    kind = direction_of_bet(betting_table(profile), best_bet)
    sizes = [effect_size(channel, delay, profile) for channel in channels[:d]]
    if dominant_channel < d:
        size = sizes[variable]
        if kind == "wider" and size.exceeds_spreads():  # and all on one side
            kind = "up" if size.shift > 0.0 else "down"
    else:  # the radius: a shift of one variable that is clear, or else the spread of all
        kind = "wider" if kind == "up" else "narrower"
        shifts = [size.shift_sd() for size in sizes]
        largest_shift = int(np.argmax(np.abs(shifts)))
        if abs(shifts[largest_shift]) * math.sqrt(delay + 1.0) > SHIFT_THRESHOLD_SE:
            kind, variable = "up" if shifts[largest_shift] > 0.0 else "down", largest_shift
        size = sizes[variable]
    evidence_shares = evidence[:d] / evidence[:d].sum()  # the radius is shared in proportion
    return ChangeReport(
        kind, variable, delay, size.shift, size.shift_sd(), size.spread_ratio(), tuple(evidence_shares.tolist())
    )
