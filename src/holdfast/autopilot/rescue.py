"""The rescue from lock-out: when to begin anew from the latest points.

Points that are rejected are counted against the contamination that the stream is known to have, by a cumulative sum of
the log-likelihood ratio of "most are rejected now" to "as many as ever". While it is above zero, something may have
begun. A new regime goes on: enough rejected points since then, and either many of them or all in one place. A burst of
outliers is over before that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.autopilot.sizes import FULL, Sizes
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import at_least, log, step_of
from holdfast.scheme.state import MISSING, Layout, Vector

MOSTLY = 0.7  # rejected share of points after a change
CLEANEST, DIRTIEST = 0.02, 0.3  # between which the contamination is taken to lie
SLOWLY = 0.002  # the step with which it is followed
EVIDENCE = 16.0  # nats
SOME, MANY = 10, 16  # rejected points
DOUBT = 10.0  # times the contamination: by this share more of them
EVERY = 8  # points at which a mixture is looked at again
LARGEST_GAIN = 8.0  # nats that a single point can tell
OUTLIERS = 0.1  # of the latest points: those that it gains most by are left out
CLEARLY = 8.0  # nats
MOST_LOOKS = 5  # at a mixture after a change within reach
ALIKE = 2.5  # standard deviations within which `SOME` points are in one place

# rescue = [ evidence | points since it was zero | rejected ones among them | contamination | points it was learnt from
#            | points until a look is taken at all of the ring | looks left | where the next point goes in the ring ]
RISEN, SINCE, REJECTED, CONTAMINATION, LEARNT, WAIT, LOOKS, NEXT = range(8)


def rescue_fields(K: int, d: int, own_ring: bool = True, sizes: Sizes = FULL) -> dict[str, tuple[int, ...]]:
    """What the rescue keeps; own_ring: the latest points as well, because nobody else does."""
    if own_ring:
        return {"rescue": (NEXT + 1,), "ring": (sizes.ring, d)}
    return {"rescue": (NEXT if K > 1 or sizes.whole else WAIT,)}  # one component never waits


@dataclass(frozen=True, eq=False)
class Rescue:
    """The compiled functions of the rescue."""

    count: Callable[..., Any]
    """(theta, point, rejected, taken_over) → whether it is time to look at the ring: `latest` has the points to begin
    anew from. taken_over: the slow experts have taken over from a quick one, a sign of a change within reach."""


def rescue_functions(layout: Layout, K: int, d: int, sizes: Sizes) -> Rescue:
    """For a stream whose fields lie in theta as `layout` says."""
    own_ring = "ring" in layout.fields
    at, ring, length = layout.at("rescue"), layout.at("ring") if own_ring else -1, sizes.ring
    missing = missing_in(sizes)

    @kernel
    def keep(theta: Vector, point: Vector) -> None:
        place = ring + int(theta[at + NEXT]) * d
        for i in range(d):
            theta[place + i] = point[i] if point[i] == point[i] else missing
        theta[at + NEXT] = theta[at + NEXT] + 1.0 if theta[at + NEXT] < length - 1 else 0.0

    @kernel
    def count(theta: Vector, point: Vector, rejected: bool, taken_over: bool) -> bool:
        if own_ring:
            keep(theta, point)
        usual = theta[at + CONTAMINATION]
        usual = DIRTIEST if usual > DIRTIEST else at_least(usual, CLEANEST)
        theta[at + LEARNT] += 1.0
        step = step_of(theta[at + LEARNT], SLOWLY)
        due = False
        if K > 1:
            if taken_over:
                theta[at + WAIT], theta[at + LOOKS] = length, MOST_LOOKS
            elif theta[at + WAIT] > 0.0:
                theta[at + WAIT] -= 1.0
                due = theta[at + WAIT] == 0.0
                if due and theta[at + LOOKS] > 1.0:
                    theta[at + WAIT], theta[at + LOOKS] = length, theta[at + LOOKS] - 1.0
        if rejected:
            theta[at + CONTAMINATION] += step * (1.0 - theta[at + CONTAMINATION])
            theta[at + RISEN] += log(MOSTLY / usual)
            theta[at + SINCE] += 1.0
            theta[at + REJECTED] += 1.0
            in_turn = K == 1 or theta[at + SINCE] % EVERY == 0.0
            return due or (theta[at + RISEN] > EVIDENCE and theta[at + REJECTED] >= SOME and in_turn)
        theta[at + CONTAMINATION] -= step * theta[at + CONTAMINATION]
        if theta[at + RISEN] > 0.0:
            theta[at + RISEN] += log((1.0 - MOSTLY) / (1.0 - usual))
            theta[at + SINCE] += 1.0
            if theta[at + RISEN] <= 0.0:
                theta[at + RISEN] = theta[at + SINCE] = theta[at + REJECTED] = 0.0
        return due

    return Rescue(count)


def missing_in(sizes: Sizes) -> float:
    """What stands in the ring for a missing coordinate: no state ever holds a NaN."""
    return float(np.finfo(np.float32).min) if sizes.short else float(MISSING)


def how_many(layout: Layout, theta: Vector, sizes: Sizes = FULL) -> int:
    """Of the latest points, those to look at: since the evidence was zero, or else all that are kept."""
    return min(int(layout.view(theta, "rescue")[SINCE]), sizes.ring) or sizes.ring


def latest(layout: Layout, theta: Vector, n: int, sizes: Sizes = FULL) -> Vector:
    """The latest points in the rescue's own ring, oldest first; NaN where one is missing."""
    points = np.roll(layout.view(theta, "ring"), -int(layout.view(theta, "rescue")[NEXT]), axis=0)[-n:]
    return np.where(points == missing_in(sizes), np.nan, points.astype(np.float64))


def fill_silent(points: Vector, mean: Vector, deviation: Vector) -> None:
    """A variable without a single value among the points is taken to be as it was: a deviation above or below."""
    silent = np.isnan(points).all(axis=0)
    points[::2, silent] = (mean + deviation)[silent]
    points[1::2, silent] = (mean - deviation)[silent]


def settled(layout: Layout, theta: Vector, points: Vector, spread: Vector) -> bool:
    """Whether the latest points are many, or in one place as one component would have them (spread: its width).

    The more outliers the stream has, the more points it takes to see past them.
    """
    rescue = layout.view(theta, "rescue")
    doubt = 1.0 + DOUBT * min(rescue[CONTAMINATION], DIRTIEST)
    if rescue[REJECTED] >= MANY * doubt:
        return True
    if rescue[REJECTED] < SOME * doubt:
        return False
    middle = np.nanmedian(points, axis=0)
    width = 1.4826 * np.nanmedian(np.abs(points - middle), axis=0)
    return bool(np.all(width <= ALIKE * spread))


def better(old: Vector, new: Vector) -> bool:
    """Whether the new fit has the latest points clearly more likely, also without those that it gains most by."""
    gains = np.sort(np.clip(old - new, -LARGEST_GAIN, LARGEST_GAIN))
    return bool(gains[: int(len(gains) * (1.0 - OUTLIERS))].sum() > CLEARLY)


def clear(layout: Layout, theta: Vector) -> None:
    """The evidence has been heard."""
    rescue = layout.view(theta, "rescue")
    rescue[[RISEN, SINCE, REJECTED]] = 0.0
    rescue[WAIT : LOOKS + 1] = 0.0
