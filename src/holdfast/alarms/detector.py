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

from holdfast.alarms.channel import channel_functions
from holdfast.alarms.layout import (
    ALARMS,
    CENTRE,
    LIMIT,
    OWN_EVIDENCE,
    PHI,
    PLACE,
    RAISED,
    SEEN,
    places_of,
)
from holdfast.alarms.lock import FROM, follow, raised, record
from holdfast.alarms.ranks import uniform
from holdfast.alarms.reference import no_frame, reference_functions
from holdfast.alarms.residual import in_frame
from holdfast.alarms.story import Change, latest_in, tell
from holdfast.autopilot.sizes import FULL, Sizes
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
    sizes: Sizes

    size: int
    """Numbers of memory a stream needs; zeros before the first point."""

    work_size: int

    observe: Callable[..., float]
    """(memory, at, y, y_at, threshold, work, work_at) → 1.0 if a change alarm is raised at this point, else 0.0.

    Until the next point is observed, `tell` has the change in words; then everything begins anew."""

    tick: Callable[..., None]
    """(memory, at): a point has passed that could not be used."""

    certainty: Callable[..., float]
    """(memory, at, threshold) → log((1 + M) / limit): an alarm comes at about 0."""

    suspicion: Callable[..., float]
    """(memory, at, threshold) → the same between 0 and 1: an alarm comes at about ½."""

    move: Callable[..., None]
    """(memory, at, i, by): from now on variable i is told about another origin."""

    run: Callable[..., None]
    """(memory, rows, threshold, work, flags, certainties): a compiled loop; certainties may be empty."""

    def latest(self, memory: Vector, n: int) -> Vector:
        """The latest n values of the first variable, as far as they are kept, oldest first."""
        return latest_in(memory[places_of(self.sizes).header :], n, self.sizes)

    def tell(self, memory: Vector) -> Change:
        """The change whose alarm has been raised at the last point."""
        if not memory[RAISED]:
            raise BadInputError("no change alarm was raised at the last point")
        return tell(memory, self.d, self.sizes)


def threshold_for(far: float) -> float:
    """The threshold for at most one false alarm in 1/far points: log(c/far)."""
    return math.log(CONSTANT / require("far", far, high=0.1))


@cache
def change_detector(
    d: int,
    memory: bool = True,
    lock: bool = True,
    sizes: Sizes = FULL,
    frame: Callable[..., tuple[float, float]] = no_frame,
) -> ChangeDetector:
    """The detector of d variables.

    memory: whether their lag-1 memory is taken out first. lock: whether the second lock is on.
    sizes: of a detector that is not whole, neither memory nor frame is its own: it asks for the centre and the spread
    of a variable, frame(state, i, work), when it has seen enough points.
    """
    places, channel, whole, short = places_of(sizes), channel_functions(sizes), sizes.whole, sizes.short
    whiten, channels, warm, n_bets = memory and whole, d + 1 if d > 1 else 1, sizes.warm, places.bets
    header, length, ring, ring_length = places.header, places.channel, places.ring, places.ring_length
    room_size, reference = max(warm, d), reference_functions(sizes, d, whiten, frame)
    begin, rest_of, make_anew, radii = reference.begin, reference.rest_of, reference.make_anew, reference.radii
    step, pass_time, forget, count = channel.step, channel.pass_time, channel.forget, channel.count

    @kernel
    def keep(own: Vector, x: float) -> None:
        place = int(own[PLACE])
        own[ring + place] = x
        own[PLACE] = place + 1.0 if place + 1 < ring_length else 0.0

    @kernel
    def limit_of(state: Vector, at: int, threshold: float) -> float:
        """What M is held against."""
        limit = exp(threshold)
        if whiten:
            factor = 1.0
            for i in range(d):
                base = at + header + i * length
                if state[base + PHI] != 0.0:
                    needed = WITH_MEMORY * (1.0 + POINTS_FOR_PHI / state[base + SEEN])
                    factor = needed if needed > factor else factor
            limit *= factor
        return limit

    @kernel
    def observe(state: Vector, at: int, y: Vector, y_at: int, threshold: float, work: Vector, work_at: int) -> float:
        pay, room = work[work_at : work_at + n_bets], work[work_at + n_bets : work_at + n_bets + room_size]
        if state[at + RAISED] > 0.0:
            state[at + RAISED] = 0.0
            for i in range(channels):
                forget(state[at + header + i * length : at + header + (i + 1) * length])
        squares, all_there, renewed, total = 0.0, True, False, 0.0
        for i in range(channels):
            base = at + header + i * length
            own = state[base : base + length]
            radius = i == d
            x = math.sqrt(squares) if radius else y[y_at + i]
            fresh = False
            if d > 1 and radius and renewed:
                own[SEEN], fresh = (float(warm), True) if radii(state, at, own, room) else (0.0, False)
            elif (radius and not all_there) or not abs(x) <= LARGEST:
                all_there = False
                pass_time(own)
            else:
                count(own)
                keep(own, x)
                if own[SEEN] <= warm:
                    fresh = own[SEEN] == warm
                    all_there = False
                else:
                    r, switched = rest_of(own, in_frame(own, x), i)
                    squares += r * r
                    step(own, r, uniform(state, at, short), radius, pay)
                    if switched:
                        make_anew(own, room)
                        renewed = True
            if fresh:
                renewed = begin(state, i, own, room) or renewed
            total += own[OWN_EVIDENCE]
        evidence = total / channels
        limit = limit_of(state, at, threshold)
        if whole:
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
                pass_time(state[at + header + i * length : at + header + (i + 1) * length])

    @kernel
    def logarithms(state: Vector, at: int, threshold: float) -> tuple[float, float]:
        """log(1 + M), and what it is held against."""
        if whole:
            threshold = log(state[at + LIMIT] if state[at + LIMIT] > 0.0 else FROM)
        evidence = 0.0
        for i in range(channels):
            evidence += state[at + header + i * length + OWN_EVIDENCE]
        return log(1.0 + evidence / channels), raised(state, at, threshold) if lock else threshold

    @kernel
    def certainty(state: Vector, at: int, threshold: float) -> float:
        found, needed = logarithms(state, at, threshold)
        return found - needed

    @kernel
    def suspicion(state: Vector, at: int, threshold: float) -> float:
        found, needed = logarithms(state, at, threshold)
        return found / (found + needed)

    @kernel
    def move(state: Vector, at: int, i: int, by: float) -> None:
        own = at + header + i * length
        state[own + CENTRE] -= by
        for j in range(ring_length):
            state[own + ring + j] -= by

    stamp = fingerprint([observe, certainty])

    def run(state, rows, threshold, work, flags, certainties):  # type: ignore[no-untyped-def]
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        recording = len(certainties) > 0
        for t in range(len(rows)):
            flags[t] = observe(state, 0, rows[t], 0, threshold, work, 0)
            if recording:
                certainties[t] = certainty(state, 0, threshold)

    size, work_size = places.memory_size(d), n_bets + room_size
    run_loop = compiled(run, releases_gil=True)
    return ChangeDetector(d, sizes, size, work_size, observe, tick, certainty, suspicion, move, run_loop)
