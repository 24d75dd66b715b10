"""A change detector with a promised false-alarm rate, for any law of the points.

Each channel ranks a point among all earlier ones since the last change. While nothing changes the ranks are
independent and uniform whatever the law, so every bet e on them has mean 1, M ← (1 + M)·e grows by no more than 1 a
point on average, and M ≥ c/far comes at most once in c/far points [1]_ [2]_: c = 1 is the theorem, c = 0.46 makes the
observed rate about `far`.

.. [1] Shin, J., Ramdas, A. and Rinaldo, A. (2024). E-detectors: a nonparametric framework for sequential change
   detection. New England Journal of Statistics in Data Science 2(2), 229–260.
.. [2] Vovk, V., Nouretdinov, I. and Gammerman, A. (2003). Testing exchangeability on-line. ICML.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from holdfast.alarms.channel import forget, pass_time, step
from holdfast.alarms.layout import (
    ALARMS,
    BETS,
    CHANNEL,
    HEADER,
    LIMIT,
    NEXT_CHECK,
    OWN_EVIDENCE,
    PHI,
    PLACE,
    RAISED,
    RING,
    SEEN,
    WARM,
    channel_at,
    memory_size,
)
from holdfast.alarms.lock import FROM, follow, raised, record
from holdfast.alarms.ranks import uniform
from holdfast.alarms.residual import (
    begin,
    in_frame,
    lag_one,
    look_for_memory,
    pair,
    refill,
    residual,
    residuals_of_ring,
)
from holdfast.alarms.story import Change, tell
from holdfast.checks import require
from holdfast.errors import BadInputError
from holdfast.scheme.algorithm import LARGEST
from holdfast.scheme.compiling import compiled, fingerprint, kernel
from holdfast.scheme.elementary import exp, log
from holdfast.scheme.state import Vector

CONSTANT = 0.46  # c
WITH_MEMORY = 0.60 / CONSTANT  # c where φ is used, and then the more, the fewer points φ is known from
POINTS_FOR_PHI = 400.0


@dataclass(frozen=True, eq=False)
class ChangeDetector:
    """The detector of one kind of stream: sizes and compiled pieces."""

    d: int

    size: int
    """Numbers of memory a stream needs; zeros before the first point."""

    work_size: int

    observe: Callable[..., float]
    """(memory, at, y, y_at, threshold, work, work_at) → 1.0 if a change alarm is raised at this point, else 0.0.

    Until the next point is observed, `tell` has the change in words; then everything begins anew."""

    tick: Callable[..., None]
    """(memory, at): a point has passed that could not be used."""

    certainty: Callable[..., float]
    """(memory, at) → log((1 + M) / limit): an alarm comes at about 0."""

    run: Callable[..., None]
    """(memory, rows, threshold, work, flags, certainties): a compiled loop; certainties may be empty."""

    def latest(self, memory: Vector, n: int) -> Vector:
        """The latest n values of a single variable (at most `WARM`), oldest first: (n, 1)."""
        own = memory[HEADER:]
        return np.roll(own[RING : RING + WARM], -int(own[PLACE]))[WARM - n :, None]

    def tell(self, memory: Vector) -> Change:
        """The change whose alarm has been raised at the last point."""
        if not memory[RAISED]:
            raise BadInputError("no change alarm was raised at the last point")
        return tell(memory, self.d)


def threshold_for(far: float) -> float:
    """The threshold for at most one false alarm in 1/far points: log(c/far)."""
    return math.log(CONSTANT / require("far", far, high=0.1))


@cache
def change_detector(d: int, memory: bool = True, lock: bool = True) -> ChangeDetector:
    """The detector of d variables.

    memory: whether their lag-1 memory is taken out first. lock: whether the second lock is on.
    """
    whiten, channels = memory, d + 1 if d > 1 else 1

    @kernel
    def radii_of_rings(state: Vector, at: int, radius: Vector, room: Vector) -> bool:
        """The radii of the last points into the ring of the radius, if every variable has all of them."""
        seen = state[channel_at(at, 0) + SEEN]
        for i in range(d):
            if state[channel_at(at, i) + SEEN] != seen or seen < WARM:
                return False
        for j in range(WARM):
            radius[RING + j] = 0.0
        for i in range(d):
            base = channel_at(at, i)
            residuals_of_ring(state[base : base + CHANNEL], room)
            for j in range(WARM):
                radius[RING + j] += room[j] * room[j]
        for j in range(WARM):
            radius[RING + j] = math.sqrt(radius[RING + j])
        radius[PLACE] = 0.0
        return True

    @kernel
    def limit_of(state: Vector, at: int, threshold: float) -> float:
        """What M is held against."""
        limit = exp(threshold)
        if whiten:
            factor = 1.0
            for i in range(d):
                base = channel_at(at, i)
                if state[base + PHI] != 0.0:
                    needed = WITH_MEMORY * (1.0 + POINTS_FOR_PHI / state[base + SEEN])
                    factor = needed if needed > factor else factor
            limit *= factor
        return limit

    @kernel
    def observe(state: Vector, at: int, y: Vector, y_at: int, threshold: float, work: Vector, work_at: int) -> float:
        pay, room = work[work_at : work_at + BETS], work[work_at + BETS : work_at + BETS + WARM]
        if state[at + RAISED] > 0.0:
            state[at + RAISED] = 0.0
            for i in range(channels):
                forget(state[channel_at(at, i) : channel_at(at, i) + CHANNEL])
        squares, whole, renewed, total = 0.0, True, False, 0.0
        for i in range(channels):
            base = channel_at(at, i)
            own = state[base : base + CHANNEL]
            radius = i == d
            x = math.sqrt(squares) if radius else y[y_at + i]
            fresh = False
            if d > 1 and radius and renewed:
                own[SEEN], fresh = (WARM, True) if radii_of_rings(state, at, own, room) else (0.0, False)
            elif (radius and not whole) or not abs(x) <= LARGEST:
                whole = False
                pass_time(own)
            else:
                own[SEEN] += 1.0
                place = int(own[PLACE])
                own[RING + place] = x
                own[PLACE] = place + 1.0 if place + 1 < WARM else 0.0
                if own[SEEN] <= WARM:
                    fresh = own[SEEN] == WARM
                    whole = False
                else:
                    z = in_frame(own, x)
                    switched = False
                    if whiten and not radius:
                        pair(own, z)
                        if own[PHI] != 0.0:
                            own[PHI] = lag_one(own)
                        r = residual(own, z, own[PHI])
                        if own[SEEN] >= own[NEXT_CHECK]:
                            switched = look_for_memory(own)
                    else:
                        r = z
                    squares += r * r
                    step(own, r, uniform(state, at), radius, pay)
                    if switched:
                        refill(own, room)
                        renewed = True
            if fresh:
                renewed = begin(own, room, whiten and not radius) or renewed
            total += own[OWN_EVIDENCE]
        evidence = total / channels
        limit = limit_of(state, at, threshold)
        state[at + LIMIT] = limit
        if lock:
            follow(state, at, evidence)
        if evidence < limit or (lock and log(evidence) < raised(state, at, log(limit))):
            return 0.0
        if lock:
            record(state, at, True)
        state[at + RAISED] = 1.0
        state[at + ALARMS] += 1.0
        return 1.0

    @kernel
    def tick(state: Vector, at: int) -> None:
        if state[at + RAISED] == 0.0:
            for i in range(channels):
                pass_time(state[channel_at(at, i) : channel_at(at, i) + CHANNEL])

    @kernel
    def certainty(state: Vector, at: int) -> float:
        limit = state[at + LIMIT]
        threshold = log(limit if limit > 0.0 else FROM)
        evidence = 0.0
        for i in range(channels):
            evidence += state[channel_at(at, i) + OWN_EVIDENCE]
        return log(1.0 + evidence / channels) - (raised(state, at, threshold) if lock else threshold)

    stamp = fingerprint([observe, certainty])

    def run(state, rows, threshold, work, flags, certainties):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        recording = len(certainties) > 0
        for t in range(len(rows)):
            flags[t] = observe(state, 0, rows[t], 0, threshold, work, 0)
            if recording:
                certainties[t] = certainty(state, 0)

    return ChangeDetector(d, memory_size(d), BETS + WARM, observe, tick, certainty, compiled(run, releases_gil=True))
