"""What an alarm says: what changed, in which variable, since when, by how much."""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.alarms.bets import DOWNS, NARROWINGS, WIDENINGS
from holdfast.alarms.frame import centre_and_spread
from holdfast.alarms.layout import (
    AGES,
    AGO,
    BETS,
    CARRIER,
    CENTRE,
    CHANNEL,
    HEADER,
    KIND,
    OLD_SPREAD,
    OWN_EVIDENCE,
    PLACE,
    RATIO,
    RING,
    SHIFT,
    SPREAD,
    WAGERS,
    WARM,
    channel_at,
)
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import at_least
from holdfast.scheme.state import Vector

UP, DOWN, WIDER, NARROWER = 1.0, 2.0, 3.0, 4.0
KINDS = ("none", "up", "down", "wider", "narrower")
CLEAR_OF_SPREAD = 2.0  # spreads, the new or the old: what looked wider was a shift
CLEAR_SHIFT = 3.0  # standard errors: what the radius has seen was a shift after all


class Change(NamedTuple):
    """The last change alarm."""

    kind: str
    """ "up", "down", "wider" or "narrower"; "none" before the first alarm."""

    variable: int
    """The variable that carries it."""

    onset_ago: int
    """How many points before the alarm the first point of the new regime came, as far as can be told."""

    shift: float
    """Of the level: the median of the points since the onset (at most 100) less that of the old regime."""

    shift_in_spreads: float
    """The same in spreads (1.4826·MAD) of the old regime."""

    ratio: float
    """Spread of the points since the onset over that of the old regime; NaN if there were fewer than three."""

    shares: tuple[float, ...]
    """The part of every variable in the evidence; they sum to 1."""


def last_change(memory: Vector, d: int) -> Change:
    """The last alarm of a memory."""
    kind = int(memory[KIND])
    shift, ratio, spread = memory[SHIFT], memory[RATIO], memory[OLD_SPREAD]
    return Change(
        KINDS[kind],
        int(memory[CARRIER]),
        int(memory[AGO]),
        float(shift),
        float(shift / spread) if spread > 0.0 else 0.0,
        float(ratio) if ratio >= 0.0 else math.nan,
        tuple(memory[HEADER : HEADER + d].tolist()),
    )


@kernel
def strongest_bet(own: Vector) -> int:
    """The bet that has won most."""
    best = 0
    for k in range(1, BETS):
        if own[WAGERS + k] > own[WAGERS + best]:
            best = k
    return best


@kernel
def size_of_change(memory: Vector, at: int, own: Vector, ago: float, room: Vector) -> None:
    """Writes shift and ratio of a coordinate, from the points since the onset that are still in its ring."""
    n = int(ago) + 1
    n = n if n < WARM else WARM
    place = int(own[PLACE]) - n
    for j in range(n):
        i = place + j if place + j >= 0 else place + j + WARM
        room[j] = own[RING + i]
    centre, spread, none = centre_and_spread(room, n)
    memory[at + SHIFT] = centre - own[CENTRE]
    memory[at + OLD_SPREAD] = own[SPREAD]
    memory[at + RATIO] = -1.0 if n < 3 else 0.0 if none else spread / own[SPREAD]


@kernel
def tell(memory: Vector, at: int, d: int, room: Vector) -> None:
    """Writes what the alarm says into the header."""
    channels = d + 1 if d > 1 else 1
    total, carrier, loudest = 0.0, 0, 0
    for i in range(channels):
        evidence = memory[channel_at(at, d, i) + OWN_EVIDENCE]
        if evidence > memory[channel_at(at, d, carrier) + OWN_EVIDENCE]:
            carrier = i
        if i < d:
            loudest = carrier
            total += evidence
    for i in range(d):  # the radius is shared in proportion
        memory[at + HEADER + i] = memory[channel_at(at, d, i) + OWN_EVIDENCE] / total
    own = memory[channel_at(at, d, carrier) : channel_at(at, d, carrier) + CHANNEL]
    best = strongest_bet(own)
    ago = math.floor(own[AGES + best] / own[WAGERS + best] + 0.5)
    kind = UP if best < DOWNS else DOWN if best < WIDENINGS else WIDER if best < NARROWINGS else NARROWER
    memory[at + AGO] = ago
    if carrier < d:
        memory[at + CARRIER] = carrier
        size_of_change(memory, at, own, ago, room)
        shift, new_spread = memory[at + SHIFT], memory[at + RATIO] * memory[at + OLD_SPREAD]
        if kind == WIDER and abs(shift) > CLEAR_OF_SPREAD * at_least(new_spread, memory[at + OLD_SPREAD]):
            kind = UP if shift > 0.0 else DOWN  # far out, and all on one side
    else:  # the radius: a shift of one variable that is clear, or else the spread of all
        kind = WIDER if kind == UP else NARROWER
        memory[at + CARRIER] = loudest
        clearest, shift = -1, 0.0
        for i in range(d):
            coordinate = memory[channel_at(at, d, i) : channel_at(at, d, i) + CHANNEL]
            size_of_change(memory, at, coordinate, ago, room)
            size = memory[at + SHIFT] / memory[at + OLD_SPREAD]
            if abs(size) * math.sqrt(ago + 1.0) > CLEAR_SHIFT and abs(size) > abs(shift):
                clearest, shift = i, size
        if clearest >= 0:
            kind = UP if shift > 0.0 else DOWN
            memory[at + CARRIER] = clearest
        chosen = channel_at(at, d, int(memory[at + CARRIER]))
        size_of_change(memory, at, memory[chosen : chosen + CHANNEL], ago, room)
    memory[at + KIND] = kind
