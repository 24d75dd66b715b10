"""One channel's step: rank, pay the bets, Shiryaev–Roberts."""

from __future__ import annotations

import numpy as np

from holdfast.alarms.bets import FAR_OUT, INSIDE, NARROWINGS, WEIGHTS, cell_of
from holdfast.alarms.guard import LEAK, SHOULDER, SUSPECT, limit_inside, pay_far_out
from holdfast.alarms.layout import (
    AGES,
    BETS,
    CHANNEL,
    COUNTS,
    DEGENERATE,
    GAPS,
    LEAKING,
    OWN_EVIDENCE,
    PLACE,
    RING,
    WAGERS,
)
from holdfast.alarms.ranks import add, bin_of, rank
from holdfast.scheme.compiling import kernel
from holdfast.scheme.state import Vector

CONSTANT_PAY = 0.5  # less than what is fair: wagers on a constant stay small


@kernel
def pay_inside(own: Vector, r: float, u: float, pay: Vector) -> None:
    """What the bets are paid on a point that is not far out; the point joins the reference."""
    counts, b = own[COUNTS:RING].view(np.int32), bin_of(r)
    if own[DEGENERATE] == 0.0:
        cell = cell_of(rank(counts, b, u))
        for k in range(BETS):
            pay[k] = INSIDE[cell, k]
    else:  # the first points were all the same: only being far out tells, and a constant must never raise an alarm
        for k in range(BETS):
            pay[k] = CONSTANT_PAY if k < NARROWINGS else 0.0
    add(counts, b)
    if own[LEAKING] > 0.0:
        left = own[LEAKING] - LEAK
        own[LEAKING] = left if left > 0.0 else 0.0
        if left >= SUSPECT and abs(r) > SHOULDER:
            limit_inside(own, r, pay)


@kernel
def roll(own: Vector, pay: Vector, radius: bool) -> float:
    """R ← (1 + R)·e for every bet, and the same weighted by age; Σ w·R."""
    wagers, ages = own[WAGERS : WAGERS + BETS], own[AGES : AGES + BETS]
    weights = WEIGHTS[1 if radius else 0]
    for k in range(BETS):
        ages[k] = (ages[k] + wagers[k]) * pay[k]
        wagers[k] = (wagers[k] + weights[k]) * pay[k]
    first = (wagers[0] + wagers[1]) + (wagers[2] + wagers[3])
    second = (wagers[4] + wagers[5]) + (wagers[6] + wagers[7])
    third = (wagers[8] + wagers[9]) + (wagers[10] + wagers[11])
    return (first + second) + (third + wagers[12])


@kernel
def forget(own: Vector) -> None:
    """All but the ring: whoever looks for the latest points finds them there."""
    for j in range(RING):
        own[j] = own[j] if j == PLACE else 0.0
    for j in range(WAGERS, CHANNEL):
        own[j] = 0.0


@kernel
def pass_time(own: Vector) -> None:
    """A point without a value of this channel."""
    own[GAPS] += 1.0
    for k in range(BETS):
        own[AGES + k] += own[WAGERS + k]


@kernel
def step(own: Vector, r: float, u: float, radius: bool, pay: Vector) -> None:
    """Takes one residual; the channel's evidence is what the mixture of bets has won."""
    if abs(r) <= FAR_OUT:
        pay_inside(own, r, u, pay)
    else:
        pay_far_out(own, r, radius, pay)
    own[OWN_EVIDENCE] = roll(own, pay, radius)
