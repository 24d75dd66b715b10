"""Where a channel has its frame and its residuals from: its own ring and lag-1 memory, or whoever knows the stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.alarms.layout import CENTRE, NEXT_CHECK, PHI, PLACE, SEEN, SPREAD, places_of
from holdfast.alarms.residual import begin, lag_one, look_for_memory, pair, refill, residual, residuals_of_ring
from holdfast.autopilot.sizes import Sizes
from holdfast.scheme.compiling import kernel
from holdfast.scheme.state import Vector

Frame = Callable[..., tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Reference:
    """The compiled functions; `own` is a channel's part of the memory, `room` scratch."""

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
    return by_ring(sizes, d, whiten) if sizes.whole else by_frame(d, frame)


def by_ring(sizes: Sizes, d: int, whiten: bool) -> Reference:
    """Everything is the channel's own."""
    places, warm = places_of(sizes), sizes.warm
    header, length, ring = places.header, places.channel, places.ring

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

    return Reference(begin_channel, rest_of, refill, radii)


def by_frame(d: int, frame: Frame) -> Reference:
    """Neither ring nor memory: centre and spread of a variable are asked for, frame(state, i, work)."""

    @kernel
    def begin_channel(state: Vector, i: int, own: Vector, room: Vector) -> bool:
        """The radius of d variables of spread 1 is about √(d − ½), and its spread 0.7."""
        own[CENTRE], own[SPREAD] = frame(state, i, room) if i < d else (math.sqrt(d - 0.5), 0.7)
        return False

    @kernel
    def rest_of(own: Vector, z: float, i: int) -> tuple[float, bool]:
        return z, False

    @kernel
    def make_anew(own: Vector, room: Vector) -> None:
        pass

    @kernel
    def radii(state: Vector, at: int, radius: Vector, room: Vector) -> bool:
        return False

    return Reference(begin_channel, rest_of, make_anew, radii)
