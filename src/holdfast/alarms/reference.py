"""Where a channel has its frame and its residuals from: its own ring and lag-1 memory, or whoever knows the stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.alarms.bets import FAR_OUT
from holdfast.alarms.layout import (
    CENTRE,
    FAR_ABOVE,
    FAR_BELOW,
    NEXT_CHECK,
    OWN_EVIDENCE,
    PHI,
    PLACE,
    PRODUCTS,
    SEEN,
    SPREAD,
    SQUARES,
    places_of,
)
from holdfast.alarms.residual import (
    LARGEST_PHI,
    PAIR_LIMIT,
    begin,
    in_frame,
    lag_one,
    look_for_memory,
    pair,
    refill,
    residual,
    residuals_of_ring,
)
from holdfast.autopilot.sizes import Sizes
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import at_least, step_of
from holdfast.scheme.state import Vector

LITTLE = 15.0  # evidence: below, nothing has begun
SLOWLY = 0.0005  # the least step of the averages
SWITCH_ON, SWITCH_OFF = 2.5, 1.5  # standard errors, and …
LEAST_ON, LEAST_OFF = 0.2, 0.1  # … what is worth it: a centre that is not known exactly looks like a little memory
EVERY = 64  # points between two looks
LEAST_SQUARES = 1e-6

Frame = Callable[..., tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Reference:
    """The compiled functions; `own` is a channel's part of the memory, `room` scratch."""

    warm_up: Callable[..., Any]
    """(state, i, own, room): one more of the first points."""

    begin: Callable[..., Any]
    """(state, i, own, room): the end of the warm-up of channel i → whether the reference is made of those points."""

    rest_of: Callable[..., Any]
    """(own, z, i) → (residual of a point in units of the frame, whether the memory was switched on or off)."""

    make_anew: Callable[..., Any]
    """(own, room): the reference from the ring, after the memory was switched."""

    radii: Callable[..., Any]
    """(state, at, radius, room): the radii of the last points into the ring of the radius → whether there are any."""


@kernel
def no_frame(state: Vector, i: int, work: Vector) -> tuple[float, float]:
    """For points that come in units of their spread."""
    return 0.0, 1.0


def reference_functions(sizes: Sizes, d: int, whiten: bool, frame: Frame) -> Reference:
    """For d variables."""
    return by_ring(sizes, d, whiten) if sizes.whole else by_frame(sizes, d, whiten, frame)


def by_ring(sizes: Sizes, d: int, whiten: bool) -> Reference:
    """Everything is the channel's own."""
    places, warm = places_of(sizes), sizes.warm
    header, length, ring = places.header, places.channel, places.ring

    @kernel
    def warm_up(state: Vector, i: int, own: Vector, room: Vector) -> None:
        pass

    @kernel
    def begin_channel(state: Vector, i: int, own: Vector, room: Vector) -> bool:
        return begin(own, room, whiten and i < d)

    @kernel
    def rest_of(own: Vector, z: float, i: int) -> tuple[float, bool]:
        if not whiten or i == d:
            return z, False
        pair(own, z)
        if own[PHI] != 0.0:
            own[PHI] = lag_one(own)
        r = residual(own, z, own[PHI])
        return r, own[SEEN] >= own[NEXT_CHECK] and look_for_memory(own)

    @kernel
    def radii(state: Vector, at: int, radius: Vector, room: Vector) -> bool:
        """If every variable has all of the points."""
        seen = state[at + header + SEEN]
        for i in range(d):
            if state[at + header + i * length + SEEN] != seen or seen < warm:
                return False
        for j in range(warm):
            radius[ring + j] = 0.0
        for i in range(d):
            base = at + header + i * length
            residuals_of_ring(state[base : base + length], room)
            for j in range(warm):
                radius[ring + j] += room[j] * room[j]
        for j in range(warm):
            radius[ring + j] = math.sqrt(radius[ring + j])
        radius[PLACE] = 0.0
        return True

    return Reference(warm_up, begin_channel, rest_of, refill, radii)


def by_frame(sizes: Sizes, d: int, whiten: bool, frame: Frame) -> Reference:
    """No room for either: centre and spread of a variable are asked for, frame(state, i, work), and φ is the average
    of products over that of squares. It is looked at from time to time, while nothing seems to happen, and the
    reference begins again from nothing when it is switched."""
    places, count_type = places_of(sizes), sizes.count
    counts_at, ring, ring_length = places.counts, places.ring, places.ring_length

    @kernel
    def coefficient(own: Vector) -> float:
        phi = own[PRODUCTS] / at_least(own[SQUARES], LEAST_SQUARES)
        return LARGEST_PHI if phi > LARGEST_PHI else at_least(phi, -LARGEST_PHI)

    @kernel
    def before_last(own: Vector) -> float:
        """The point before the latest one in the ring, in units of the frame; 0 if it is far out."""
        place = int(own[PLACE]) - 2
        z = in_frame(own, own[ring + (place if place >= 0 else place + ring_length)])
        return z if abs(z) < FAR_OUT else 0.0

    @kernel
    def learn_pair(own: Vector, z: float, last: float) -> None:
        if abs(z) < PAIR_LIMIT and abs(last) < PAIR_LIMIT:
            step = step_of(own[SEEN], SLOWLY)
            own[PRODUCTS] += step * (z * last - own[PRODUCTS])
            own[SQUARES] += step * (last * last - own[SQUARES])

    @kernel
    def switch(own: Vector) -> bool:
        """Switches φ on or off; whether it was switched."""
        phi, used = coefficient(own), own[PHI] != 0.0
        error = 1.0 / math.sqrt(own[SEEN])
        enough = at_least(SWITCH_OFF * error, LEAST_OFF) if used else at_least(SWITCH_ON * error, LEAST_ON)
        if used == (abs(phi) > enough):
            return False
        own[PHI] = 0.0 if used else phi
        return True

    @kernel
    def warm_up(state: Vector, i: int, own: Vector, room: Vector) -> None:
        if i < d:
            own[CENTRE], own[SPREAD] = frame(state, i, room)
            if whiten and own[SEEN] > 1.0:
                learn_pair(own, in_frame(own, own[ring + latest_place(own)]), before_last(own))
        else:  # the radius of d variables of spread 1
            own[CENTRE], own[SPREAD] = math.sqrt(d - 0.5), 0.7

    @kernel
    def latest_place(own: Vector) -> int:
        place = int(own[PLACE]) - 1
        return place if place >= 0 else place + ring_length

    @kernel
    def begin_channel(state: Vector, i: int, own: Vector, room: Vector) -> bool:
        if whiten and i < d:
            switch(own)
        return False

    @kernel
    def rest_of(own: Vector, z: float, i: int) -> tuple[float, bool]:
        if not whiten or i == d:
            return z, False
        last = before_last(own)
        learn_pair(own, z, last)
        r = z
        if own[PHI] != 0.0:
            phi = coefficient(own)
            own[PHI] = phi if phi != 0.0 else own[PHI]
            r = (z - own[PHI] * last) / math.sqrt(1.0 - own[PHI] * own[PHI])
        return r, own[SEEN] % EVERY == 0.0 and own[OWN_EVIDENCE] < LITTLE and switch(own)

    @kernel
    def make_anew(own: Vector, room: Vector) -> None:
        own[FAR_ABOVE] = 0.0
        own[FAR_BELOW] = 0.0
        counts = own[counts_at:ring].view(count_type)
        for j in range(len(counts)):
            counts[j] = 0

    @kernel
    def radii(state: Vector, at: int, radius: Vector, room: Vector) -> bool:
        return False

    return Reference(warm_up, begin_channel, rest_of, make_anew, radii)
