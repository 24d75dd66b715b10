"""The guard against bursts: a few scattered outliers must not pass for a new regime.

A far-out point counts for a shift of the level only as far as it agrees with the far-out points before it on the same
side, not at all while the burst falls on both sides, and for a wider spread only after more than eight of them. Every
limit lowers what a bet is paid and never raises it, so the promise is not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.alarms.bets import bets_of
from holdfast.alarms.layout import ABOVE, BELOW, FAR_ABOVE, FAR_BELOW, LEAKING, SEEN, places_of
from holdfast.alarms.ranks import histogram
from holdfast.autopilot.sizes import Sizes
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import exp, log
from holdfast.scheme.state import Vector

LEAK = 0.25
SUSPECT, BURST, MANY = 0.75, 1.5, 8.0  # leaky counts: one far-out point just now; a burst; too many for a burst
FORGET = 20.0  # points without a far-out one after which the earlier ones are forgotten
AGREEMENT = 2.4  # about log(28/√(2π)): of the same normal law, rather than anywhere within 28 spreads
MOST_AGREEMENT, LEAST_AGREEMENT, DISAGREEMENT = 2.2, -4.0, -1.0
FEW_PAY, MANY_PAY = 1.0, 12.182493960703473  # while there are few, and e^2.5 afterwards
OPPOSITE_PAY = 0.22313016014842982  # e^−1.5: of a shift up, on a point far below
SUSPECT_PAY = 7.38905609893065  # e^2: on an inlier beyond the shoulder, right after one far-out point
SHOULDER = 2.0  # spreads: within a burst, inliers beyond may belong to it


@kernel
def agreement(own: Vector, side: int, r: float) -> float:
    """Log-likelihood ratio: does the far-out point r belong to those before it? `side` is where they are kept."""
    m, now = own[side], own[SEEN]
    if m == 0.0 or now - own[side + 2] > FORGET:
        own[side], own[side + 1], own[side + 2] = 1.0, r, now
        return 0.0
    own[side + 2] = now
    gap = r - own[side + 1]
    v = 1.0 + 1.0 / m
    ratio = AGREEMENT - 0.5 * log(v) - 0.5 * gap * gap / v
    if ratio < DISAGREEMENT:
        if m == 1.0:
            own[side + 1] = r
        else:
            own[side] = m - 1.0
        return ratio if ratio > LEAST_AGREEMENT else LEAST_AGREEMENT
    own[side] = m + 1.0
    own[side + 1] += gap / (m + 1.0)
    return ratio if ratio < MOST_AGREEMENT else MOST_AGREEMENT


@dataclass(frozen=True, eq=False)
class Guard:
    """The compiled functions of the guard."""

    pay_far_out: Callable[..., Any]
    """(own, r, radius, pay): what the bets are paid on a far-out point."""

    limit_inside: Callable[..., Any]
    """(own, r, pay): within a burst, limits what the bets are paid on an inlier far from the centre."""


@cache
def guard_functions(sizes: Sizes) -> Guard:
    """For a channel of these sizes."""
    bets, places, inliers, count_type = bets_of(sizes), places_of(sizes), histogram(sizes).inliers, sizes.count
    n, downs, widenings, narrowings = bets.n, bets.downs, bets.widenings, bets.narrowings
    far, kept, counts_at, ring = bets.far, bets.kept, places.counts, places.ring
    most_counted = sizes.most

    @kernel
    def pay_far_out(own: Vector, r: float, radius: bool, pay: Vector) -> None:
        above = r > 0.0
        counts, count = own[counts_at:ring].view(count_type), ABOVE if above else BELOW
        total = inliers(counts) + int(counts[ABOVE]) + int(counts[BELOW])
        rate = (float(counts[count]) + 1.0) / (float(total) + 2.0)
        if counts[count] < most_counted:  # as many as that have never been seen: inliers are halved in time
            counts[count] += 1
        own[LEAKING] += 1.0
        wide = FEW_PAY if own[LEAKING] <= MANY else MANY_PAY
        agreed = agreement(own, FAR_ABOVE if above else FAR_BELOW, r)
        level = wide if radius else exp(agreed)
        side = 0 if above else 1
        opposite = OPPOSITE_PAY if own[LEAKING] > BURST and not radius else level
        for k in range(n):
            up = k < downs
            most = (level if up == above else opposite) if k < widenings else wide
            paid = far[side, k] / rate + kept[k]
            pay[k] = paid if paid < most or k >= narrowings else most

    @kernel
    def limit_inside(own: Vector, r: float, pay: Vector) -> None:
        most = 1.0 if own[LEAKING] >= BURST else SUSPECT_PAY
        if own[LEAKING] <= MANY:
            for k in range(widenings, narrowings):
                pay[k] = pay[k] if pay[k] < most else most
        if own[FAR_ABOVE if r > 0.0 else FAR_BELOW] < 2.0:
            first = 0 if r > 0.0 else downs
            for k in range(first, first + downs):
                pay[k] = pay[k] if pay[k] < most else most

    return Guard(pay_far_out, limit_inside)
