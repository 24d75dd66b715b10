"""One channel's step: rank, pay the bets, Shiryaev–Roberts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.alarms.bets import FAR_OUT, bets_of, cell_of
from holdfast.alarms.guard import LEAK, SHOULDER, SUSPECT, guard_functions
from holdfast.alarms.layout import (
    DEGENERATE,
    FAR_ABOVE,
    FAR_BELOW,
    GAPS,
    LEAKING,
    OWN_EVIDENCE,
    PLACE,
    SEEN,
    SINCE,
    places_of,
)
from holdfast.alarms.ranks import histogram
from holdfast.alarms.reference import LITTLE
from holdfast.autopilot.sizes import Sizes
from holdfast.scheme.abreast import lanes_at, put_lanes
from holdfast.scheme.compiling import kernel
from holdfast.scheme.lanes import LANES
from holdfast.scheme.state import Vector

CONSTANT_PAY = 0.5  # less than what is fair: wagers on a constant stay small
LONG = 2.0**22  # points: in 32 bits one is still added to twice as many


@dataclass(frozen=True, eq=False)
class Channel:
    """The compiled functions of a channel; `own` is its part of the memory."""

    step: Callable[..., Any]
    """(own, r, u, radius, pay): takes one residual; the channel's evidence is what the mixture of bets has won."""

    pass_time: Callable[..., Any]
    """(own): a point without a value of this channel."""

    forget: Callable[..., Any]
    """(own): all but the ring; whoever looks for the latest points finds them there."""

    count: Callable[..., Any]
    """(own): one more point."""


@cache
def channel_functions(sizes: Sizes) -> Channel:
    """For a channel of these sizes."""
    bets, places, guard, bins = bets_of(sizes), places_of(sizes), guard_functions(sizes), histogram(sizes)
    n, inside, all_weights, narrowings = bets.n, bets.inside, bets.weights, bets.narrowings
    counts_at, ring, wagers_at, ages_at, end = places.counts, places.ring, places.wagers, places.ages, places.channel
    bin_of, rank, add, count_type, short, whole = (
        bins.bin_of,
        bins.rank,
        bins.add,
        sizes.count,
        sizes.short,
        sizes.whole,
    )
    pay_far_out, limit_inside, alone = guard.pay_far_out, guard.limit_inside, bins.alone
    inliers, halve, most = bins.inliers, bins.halve, sizes.most

    @kernel
    def pay_inside(own: Vector, r: float, u: float, pay: Vector) -> None:
        """What the bets are paid on a point that is not far out; the point joins the reference."""
        counts, b = own[counts_at:ring].view(count_type), bin_of(r)
        if (own[DEGENERATE] == 0.0) if whole else not alone(counts, b):
            cell = cell_of(rank(counts, b, u))
            for k in range(n):
                pay[k] = inside[cell, k]
        else:  # all points were the same: only being far out tells, and a constant must never raise an alarm
            for k in range(n):
                pay[k] = CONSTANT_PAY if k < narrowings else 0.0
        add(counts, b)
        if inliers(counts) >= most:
            halve(counts)
        if own[LEAKING] > 0.0:
            left = own[LEAKING] - LEAK
            own[LEAKING] = left if left > 0.0 else 0.0
            if left >= SUSPECT and abs(r) > SHOULDER:
                limit_inside(own, r, pay)

    @kernel
    def roll_with_ages(own: Vector, pay: Vector, weights: Vector) -> None:
        """R ← (1 + R)·e for every bet, and the same weighted by age; the first of them side by side."""
        wagers, paid = lanes_at(own, wagers_at), lanes_at(pay, 0)
        put_lanes(own, ages_at, (lanes_at(own, ages_at) + wagers) * paid)
        put_lanes(own, wagers_at, (wagers + lanes_at(weights, 0)) * paid)
        for k in range(LANES, n):
            own[ages_at + k] = (own[ages_at + k] + own[wagers_at + k]) * pay[k]
            own[wagers_at + k] = (own[wagers_at + k] + weights[k]) * pay[k]

    @kernel
    def roll_alone(own: Vector, pay: Vector, weights: Vector) -> None:
        for k in range(n):
            own[wagers_at + k] = (own[wagers_at + k] + weights[k]) * pay[k]

    roll_each = roll_with_ages if whole else roll_alone

    @kernel
    def roll(own: Vector, pay: Vector, radius: bool) -> float:
        """R ← (1 + R)·e for every bet; Σ w·R."""
        roll_each(own, pay, all_weights[1 if radius else 0])
        wagers = own[wagers_at:]
        first = (wagers[0] + wagers[1]) + (wagers[2] + wagers[3])
        second = (wagers[4] + wagers[5]) + (wagers[6] + wagers[7])
        third, k = 0.0, 8
        if n >= 12:
            third, k = (wagers[8] + wagers[9]) + (wagers[10] + wagers[11]), 12
        while k < n:
            third += wagers[k]
            k += 1
        return (first + second) + third

    @kernel
    def forget(own: Vector) -> None:
        for j in range(ring):
            own[j] = own[j] if j == PLACE else 0.0
        for j in range(wagers_at, end):
            own[j] = 0.0

    @kernel
    def count(own: Vector) -> None:
        own[SEEN] += 1.0
        if short and own[SEEN] >= 2.0 * LONG:
            own[SEEN] -= LONG
            own[FAR_ABOVE + 2] -= LONG
            own[FAR_BELOW + 2] -= LONG

    @kernel
    def pass_time(own: Vector) -> None:
        if whole:
            own[GAPS] += 1.0
            for k in range(n):
                own[ages_at + k] += own[wagers_at + k]
        else:
            own[SINCE] += 1.0

    @kernel
    def step(own: Vector, r: float, u: float, radius: bool, pay: Vector) -> None:
        if abs(r) <= FAR_OUT:
            pay_inside(own, r, u, pay)
        else:
            pay_far_out(own, r, radius, pay)
        own[OWN_EVIDENCE] = roll(own, pay, radius)
        if not whole:
            own[SINCE] = own[SINCE] + 1.0 if own[OWN_EVIDENCE] > LITTLE else 0.0

    return Channel(step, pass_time, forget, count)
