"""What an alarm says: what changed, in which variable, since when, by how much."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from holdfast.alarms.bets import Bets, bets_of
from holdfast.alarms.frame import compiled_centre_and_spread
from holdfast.alarms.layout import (
    CENTRE,
    DEGENERATE,
    GAPS,
    OWN_EVIDENCE,
    PLACE,
    SEEN,
    SINCE,
    SPREAD,
    places_of,
)
from holdfast.autopilot.sizes import FULL, Sizes
from holdfast.scheme.state import Vector

CLEAR_OF_SPREAD = 2.0  # spreads, the new or the old: what looked wider was a shift
CLEAR_SHIFT = 3.0  # standard errors: what the radius has seen was a shift after all


class Change(NamedTuple):
    """A change, as its alarm tells it."""

    kind: str
    """ "up", "down", "wider" or "narrower"."""

    variable: int
    """The variable that carries it."""

    onset_ago: int
    """How many points before the alarm the first point of the new regime came, as far as can be told."""

    shift: float
    """Of the level: the median of the points since the onset (of those in the ring) less that of the old regime."""

    shift_in_spreads: float
    """The same in spreads (1.4826·MAD) of the old regime; infinite if its points were all the same."""

    ratio: float
    """Spread of the points since the onset over that of the old regime; infinite if its points were all the same, NaN
    if fewer than three have come since."""

    shares: tuple[float, ...]
    """The part of every variable in the evidence; they sum to 1."""


class Size(NamedTuple):
    """How large a change is in one coordinate."""

    shift: float
    old_spread: float
    new_spread: float

    def in_spreads(self) -> float:
        """The shift in spreads of the old regime."""
        if self.old_spread > 0.0:
            return self.shift / self.old_spread
        return math.copysign(math.inf, self.shift) if self.shift else 0.0

    def ratio(self) -> float:
        """The new spread over the old one."""
        if self.old_spread > 0.0:
            return self.new_spread / self.old_spread
        return math.inf if self.new_spread > 0.0 else math.nan

    def far_out(self) -> bool:
        """Whether the new level is clear of both spreads."""
        return abs(self.shift) > CLEAR_OF_SPREAD * float(np.fmax(self.old_spread, self.new_spread))


def latest_in(own: Vector, n: int, kept: Sizes = FULL) -> Vector:
    """The latest n values of a channel, as far as they are kept, oldest first."""
    places = places_of(kept)
    ring, end, n = own[places.ring : places.ring + places.ring_length], int(own[PLACE]), min(n, places.ring_length)
    if n <= end:
        return np.array(ring[end - n : end], np.float64)
    return np.concatenate([ring[end - n :], ring[:end]], dtype=np.float64)


def size_in(own: Vector, ago: int, kept: Sizes) -> Size:
    """Of the change in the coordinate of this channel, from the points since the onset that are still in its ring."""
    with_value = own[SEEN] / (own[SEEN] + own[GAPS]) if kept.whole else 1.0  # of the points since then, about
    latest = latest_in(own, max(1, round((ago + 1) * with_value)), kept)
    n = len(latest)
    centre, spread, none = compiled_centre_and_spread(latest, n)
    old = 0.0 if kept.whole and own[DEGENERATE] else float(own[SPREAD])
    return Size(float(centre - own[CENTRE]), old, math.nan if n < 3 else 0.0 if none else float(spread))


def kind_of_bet(bets: Bets, bet: int) -> str:
    """What a bet was on."""
    if bet < bets.widenings:
        return "up" if bet < bets.downs else "down"
    return "wider" if bet < bets.narrowings else "narrower"


def tell(memory: Vector, d: int, kept: Sizes = FULL) -> Change:
    """The change whose alarm has been raised at the last point."""
    places = places_of(kept)
    channels = memory[places.header : places.memory_size(d)].reshape(-1, places.channel)
    evidence = channels[:, OWN_EVIDENCE].astype(np.float64)
    carrier, variable = int(np.argmax(evidence)), int(np.argmax(evidence[:d]))
    own = channels[carrier]
    wagers = own[places.wagers : places.ages]
    best = int(np.argmax(wagers))
    if kept.whole:
        ago = math.floor(own[places.ages + best] / wagers[best] + 0.5)
    else:
        ago = int(own[SINCE])
    kind = kind_of_bet(bets_of(kept), best)
    sizes = [size_in(own, ago, kept) for own in channels[:d]]
    if carrier < d:
        size = sizes[variable]
        if kind == "wider" and size.far_out():  # and all on one side
            kind = "up" if size.shift > 0.0 else "down"
    else:  # the radius: a shift of one variable that is clear, or else the spread of all
        kind = "wider" if kind == "up" else "narrower"
        shifts = [size.in_spreads() for size in sizes]
        clearest = int(np.argmax(np.abs(shifts)))
        if abs(shifts[clearest]) * math.sqrt(ago + 1.0) > CLEAR_SHIFT:
            kind, variable = "up" if shifts[clearest] > 0.0 else "down", clearest
        size = sizes[variable]
    shares = evidence[:d] / evidence[:d].sum()  # the radius is shared in proportion
    return Change(kind, variable, ago, size.shift, size.in_spreads(), size.ratio(), tuple(shares.tolist()))
