"""Residuals: points in the units of their frame, freed of their lag-1 memory where they have one.

    z = (x − centre) / spread,    r = (z − φ·z₋) / √(1 − φ²),  re-standardised by median and MAD.

φ is the centred lag-1 coefficient of the pairs in which neither is far out. It is used only where it is clearly not 0,
looked at when 100, 200, 400, … points have been seen, and then follows its estimate at every point. A far-out point is
replaced by its prediction in what the next one is predicted from.
"""

from __future__ import annotations

import math

from holdfast.alarms.bets import FAR_OUT
from holdfast.alarms.frame import centre_and_spread
from holdfast.alarms.layout import (
    ABOVE,
    BELOW,
    CENTRE,
    DEGENERATE,
    FAR_ABOVE,
    FAR_BELOW,
    LAST,
    NEXT_CHECK,
    PAIRS,
    PHI,
    PLACE,
    PREDICTED_FROM,
    RESIDUAL_CENTRE,
    RESIDUAL_SPREAD,
    SEEN,
    SPREAD,
    WARM,
    places_of,
)
from holdfast.alarms.ranks import histogram
from holdfast.autopilot.sizes import FULL
from holdfast.scheme.compiling import kernel
from holdfast.scheme.sorting import median_of_sorted, sort
from holdfast.scheme.state import Vector

COUNTS, RING, COUNT = places_of(FULL).counts, places_of(FULL).ring, FULL.count
add, bin_of = histogram(FULL).add, histogram(FULL).bin_of

PAIR_LIMIT = 3.5  # spreads within which both of a pair must be
SWITCH_ON, SWITCH_OFF = 3.5, 2.0  # standard errors
LARGEST_PHI = 0.99
SUSPECT, UNSETTLED = 0.35, 0.15  # the coefficient from pairs; by how much it is above that from steps
WAIT, MOST_WAITS = 25, 8.0
LARGEST_RESIDUAL = 1e15


@kernel
def in_frame(own: Vector, x: float) -> float:
    """z, kept finite."""
    z = (x - own[CENTRE]) / own[SPREAD]
    z = z if z < LARGEST_RESIDUAL else LARGEST_RESIDUAL
    return z if z > -LARGEST_RESIDUAL else -LARGEST_RESIDUAL


@kernel
def in_ring(own: Vector, j: int) -> float:
    """The j-th oldest of the points in the ring, in units of the frame."""
    i = int(own[PLACE]) + j
    return in_frame(own, own[RING + (i if i < WARM else i - WARM)])


@kernel
def pair(own: Vector, z: float) -> None:
    """Takes the last point and this one as a pair, unless one is far out."""
    last = own[LAST]
    if abs(z) < PAIR_LIMIT and abs(last) < PAIR_LIMIT:
        own[PAIRS] += 1.0
        own[PAIRS + 1] += last
        own[PAIRS + 2] += z
        own[PAIRS + 3] += last * z
        own[PAIRS + 4] += last * last
    own[LAST] = z


@kernel
def lag_one(own: Vector) -> float:
    """The coefficient, as the pairs so far have it."""
    n = own[PAIRS]
    if n < 10.0:
        return 0.0
    variance = own[PAIRS + 4] - own[PAIRS + 1] * own[PAIRS + 1] / n
    covariance = own[PAIRS + 3] - own[PAIRS + 1] * own[PAIRS + 2] / n
    phi = covariance / variance if variance > 1e-12 else 0.0
    phi = phi if phi < LARGEST_PHI else LARGEST_PHI
    return phi if phi > -LARGEST_PHI else -LARGEST_PHI


@kernel
def residual(own: Vector, z: float, phi: float) -> float:
    """r of a point, and what the next one is predicted from."""
    predicted = phi * own[PREDICTED_FROM]
    r = z - predicted
    if phi != 0.0 or own[RESIDUAL_CENTRE] != 0.0 or own[RESIDUAL_SPREAD] != 1.0:  # or else all of it comes to r
        r = (r / math.sqrt(1.0 - phi * phi) - own[RESIDUAL_CENTRE]) / own[RESIDUAL_SPREAD]
    own[PREDICTED_FROM] = z if abs(r) < FAR_OUT else predicted
    return r


@kernel
def residuals_of_ring(own: Vector, out: Vector) -> None:
    """Residuals of the points in the ring, oldest first, with the coefficient as it is now."""
    own[PREDICTED_FROM] = 0.0
    for j in range(WARM):
        out[j] = residual(own, in_ring(own, j), own[PHI])


@kernel
def refill(own: Vector, room: Vector) -> None:
    """Makes the reference anew from the points in the ring."""
    own[RESIDUAL_CENTRE] = 0.0
    own[RESIDUAL_SPREAD] = 1.0
    residuals_of_ring(own, room)
    if own[PHI] != 0.0:
        centre, spread, none = centre_and_spread(room, WARM)
        own[RESIDUAL_CENTRE] = centre
        own[RESIDUAL_SPREAD] = 1.0 if none else spread
        residuals_of_ring(own, room)
    own[FAR_ABOVE] = 0.0  # they were in units of the old residuals
    own[FAR_BELOW] = 0.0
    counts = own[COUNTS:RING].view(COUNT)
    for j in range(len(counts)):
        counts[j] = 0
    for j in range(WARM):
        r = room[j]
        if r > FAR_OUT:
            counts[ABOVE] += 1
        elif r < -FAR_OUT:
            counts[BELOW] += 1
        else:
            add(counts, bin_of(r))


@kernel
def look_for_memory(own: Vector) -> bool:
    """Switches φ on or off; whether it was switched."""
    own[NEXT_CHECK] = 2.0 * own[SEEN]
    phi = lag_one(own)
    error = 1.0 / math.sqrt(own[SEEN])
    used = own[PHI] != 0.0
    if used == (abs(phi) > (SWITCH_OFF if used else SWITCH_ON) * error):
        return False
    own[PHI] = 0.0 if used else phi
    return True


@kernel
def typical_step(own: Vector, lag: int, room: Vector) -> float:
    """The median of |z_t − z_{t−lag}| in the ring."""
    n = WARM - lag
    for j in range(n):
        room[j] = abs(in_ring(own, j + lag) - in_ring(own, j))
    sort(room, n)
    return median_of_sorted(room, n)


@kernel
def unsettled(own: Vector, room: Vector) -> bool:
    """Whether the level changed within the ring, which pairs of points take for memory.

    Steps do not see it: over two points they are √(1 + φ) times those over one.
    """
    phi = lag_one(own)
    if phi < SUSPECT:
        return False
    one, two = typical_step(own, 1, room), typical_step(own, 2, room)
    return two * two < (1.0 + phi - UNSETTLED) * one * one


@kernel
def begin(own: Vector, room: Vector, whiten: bool) -> bool:
    """The end of the warm-up: the frame, the memory and the reference from the points in the ring.

    Where these have not settled it waits for some more points: whether it has begun.
    """
    for j in range(WARM):
        room[j] = own[RING + j]
    centre, spread, degenerate = centre_and_spread(room, WARM)
    own[CENTRE] = centre
    own[SPREAD] = spread
    own[DEGENERATE] = 1.0 if degenerate else 0.0
    if whiten:
        for j in range(5):
            own[PAIRS + j] = 0.0
        own[LAST] = in_ring(own, 0)
        for j in range(1, WARM):
            pair(own, in_ring(own, j))
        if own[NEXT_CHECK] < MOST_WAITS and unsettled(own, room):
            own[NEXT_CHECK] += 1.0
            own[SEEN] = WARM - WAIT
            return False
        look_for_memory(own)
    refill(own, room)
    return True
