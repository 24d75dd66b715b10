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

from limpet._jit.compile import kernel
from limpet._jit.math import averaging_step, log, maximum
from limpet.core.memory_profile import FULL, MemoryProfile
from limpet.core.state import MISSING_SENTINEL, Layout, Vector

REJECTED_SHARE_AFTER_CHANGE = 0.7  # rejected share of points after a change
MIN_CONTAMINATION, MAX_CONTAMINATION = 0.02, 0.3  # between which the contamination is taken to lie
MIN_CONTAMINATION_STEP = 0.002  # the step with which it is followed
EVIDENCE_THRESHOLD_NATS = 16.0  # nats
MIN_REJECTED_POINTS, SUFFICIENT_REJECTED_POINTS = 10, 16  # rejected points
CONTAMINATION_FACTOR = 10.0  # times the contamination: by this share more of them
CHECK_INTERVAL_POINTS = 8  # points at which a mixture is looked at again
MAX_POINT_GAIN_NATS = 8.0  # nats that a single point can tell
TRIMMED_GAIN_SHARE = 0.1  # of the latest points: those that it gains most by are left out
GAIN_THRESHOLD_NATS = 8.0  # nats
MAX_SCHEDULED_CHECKS = 5  # at a mixture after a change within reach
MAX_CLUSTER_WIDTH_SD = 2.5  # standard deviations within which `SOME` points are in one place

# rescue = [ evidence | points since it was zero | rejected ones among them | contamination | points it was learnt from
#            | points until a look is taken at all of the ring | looks left | where the next point goes in the ring ]
(
    REJECTION_EVIDENCE,
    POINTS_SINCE_ZERO,
    N_REJECTED,
    CONTAMINATION,
    CONTAMINATION_COUNT,
    POINTS_UNTIL_CHECK,
    CHECKS_LEFT,
    NEXT_RING_INDEX,
) = range(8)


def reinit_fields(K: int, d: int, has_ring: bool = True, profile: MemoryProfile = FULL) -> dict[str, tuple[int, ...]]:
    """What the rescue keeps; own_ring: the latest points as well, because nobody else does."""
    if has_ring:
        return {"reinitialization": (NEXT_RING_INDEX + 1,), "recent_points": (profile.ring_points, d)}
    return {
        "reinitialization": (NEXT_RING_INDEX if K > 1 or profile.is_full else POINTS_UNTIL_CHECK,)
    }  # one component never waits


@dataclass(frozen=True, eq=False)
class Reinitializer:
    """The compiled functions of the rescue."""

    update_evidence: Callable[..., Any]
    """(theta, point, rejected, taken_over) → whether it is time to look at the ring: `latest` has the points to begin
    anew from. taken_over: the slow experts have taken over from a quick one, a sign of a change within reach."""


def make_reinit_kernels(layout: Layout, K: int, d: int, profile: MemoryProfile) -> Reinitializer:
    """For a stream whose fields lie in theta as `layout` says."""
    has_ring = "recent_points" in layout.fields
    offset, ring, ring_length = (
        layout.offset("reinitialization"),
        layout.offset("recent_points") if has_ring else -1,
        profile.ring_points,
    )
    missing_value = missing_sentinel(profile)

    @kernel
    def store_point(theta: Vector, point: Vector) -> None:
        index = ring + int(theta[offset + NEXT_RING_INDEX]) * d
        for i in range(d):
            theta[index + i] = point[i] if point[i] == point[i] else missing_value
        theta[offset + NEXT_RING_INDEX] = (
            theta[offset + NEXT_RING_INDEX] + 1.0 if theta[offset + NEXT_RING_INDEX] < ring_length - 1 else 0.0
        )

    @kernel
    def update_evidence(theta: Vector, point: Vector, rejected: bool, takeover: bool) -> bool:
        if has_ring:
            store_point(theta, point)
        contamination = theta[offset + CONTAMINATION]
        contamination = (
            MAX_CONTAMINATION if contamination > MAX_CONTAMINATION else maximum(contamination, MIN_CONTAMINATION)
        )
        theta[offset + CONTAMINATION_COUNT] += 1.0
        step = averaging_step(theta[offset + CONTAMINATION_COUNT], MIN_CONTAMINATION_STEP)
        is_due = False
        if K > 1:
            if takeover:
                theta[offset + POINTS_UNTIL_CHECK], theta[offset + CHECKS_LEFT] = ring_length, MAX_SCHEDULED_CHECKS
            elif theta[offset + POINTS_UNTIL_CHECK] > 0.0:
                theta[offset + POINTS_UNTIL_CHECK] -= 1.0
                is_due = theta[offset + POINTS_UNTIL_CHECK] == 0.0
                if is_due and theta[offset + CHECKS_LEFT] > 1.0:
                    theta[offset + POINTS_UNTIL_CHECK], theta[offset + CHECKS_LEFT] = (
                        ring_length,
                        theta[offset + CHECKS_LEFT] - 1.0,
                    )
        if rejected:
            theta[offset + CONTAMINATION] += step * (1.0 - theta[offset + CONTAMINATION])
            theta[offset + REJECTION_EVIDENCE] += log(REJECTED_SHARE_AFTER_CHANGE / contamination)
            theta[offset + POINTS_SINCE_ZERO] += 1.0
            theta[offset + N_REJECTED] += 1.0
            is_check_point = K == 1 or theta[offset + POINTS_SINCE_ZERO] % CHECK_INTERVAL_POINTS == 0.0
            return is_due or (
                theta[offset + REJECTION_EVIDENCE] > EVIDENCE_THRESHOLD_NATS
                and theta[offset + N_REJECTED] >= MIN_REJECTED_POINTS
                and is_check_point
            )
        theta[offset + CONTAMINATION] -= step * theta[offset + CONTAMINATION]
        if theta[offset + REJECTION_EVIDENCE] > 0.0:
            theta[offset + REJECTION_EVIDENCE] += log((1.0 - REJECTED_SHARE_AFTER_CHANGE) / (1.0 - contamination))
            theta[offset + POINTS_SINCE_ZERO] += 1.0
            if theta[offset + REJECTION_EVIDENCE] <= 0.0:
                theta[offset + REJECTION_EVIDENCE] = theta[offset + POINTS_SINCE_ZERO] = theta[offset + N_REJECTED] = (
                    0.0
                )
        return is_due

    return Reinitializer(update_evidence)


def missing_sentinel(profile: MemoryProfile) -> float:
    """What stands in the ring for a missing coordinate: no state ever holds a NaN."""
    return float(np.finfo(np.float32).min) if profile.is_float32 else float(MISSING_SENTINEL)


def n_recent(layout: Layout, theta: Vector, profile: MemoryProfile = FULL) -> int:
    """Of the latest points, those to look at: since the evidence was zero, or else all that are kept."""
    return (
        min(int(layout.view(theta, "reinitialization")[POINTS_SINCE_ZERO]), profile.ring_points) or profile.ring_points
    )


def recent_points(layout: Layout, theta: Vector, n: int, profile: MemoryProfile = FULL) -> Vector:
    """The latest points in the rescue's own ring, oldest first; NaN where one is missing."""
    points = np.roll(
        layout.view(theta, "recent_points"), -int(layout.view(theta, "reinitialization")[NEXT_RING_INDEX]), axis=0
    )[-n:]
    return np.where(points == missing_sentinel(profile), np.nan, points.astype(np.float64))


def impute_missing(points: Vector, mean: Vector, deviation: Vector) -> None:
    """A variable without a single value among the points is taken to be as it was: a deviation above or below."""
    unobserved = np.isnan(points).all(axis=0)
    points[::2, unobserved] = (mean + deviation)[unobserved]
    points[1::2, unobserved] = (mean - deviation)[unobserved]


def is_stable_regime(layout: Layout, theta: Vector, points: Vector, spread: Vector) -> bool:
    """Whether the latest points are many, or in one place as one component would have them (spread: its width).

    The more outliers the stream has, the more points it takes to see past them.
    """
    state = layout.view(theta, "reinitialization")
    threshold_factor = 1.0 + CONTAMINATION_FACTOR * min(state[CONTAMINATION], MAX_CONTAMINATION)
    if state[N_REJECTED] >= SUFFICIENT_REJECTED_POINTS * threshold_factor:
        return True
    if state[N_REJECTED] < MIN_REJECTED_POINTS * threshold_factor:
        return False
    center = np.nanmedian(points, axis=0)
    width = 1.4826 * np.nanmedian(np.abs(points - center), axis=0)
    return bool(np.all(width <= MAX_CLUSTER_WIDTH_SD * spread))


def improves_likelihood(old: Vector, new: Vector) -> bool:
    """Whether the new fit has the latest points clearly more likely, also without those that it gains most by."""
    gains = np.sort(np.clip(old - new, -MAX_POINT_GAIN_NATS, MAX_POINT_GAIN_NATS))
    return bool(gains[: int(len(gains) * (1.0 - TRIMMED_GAIN_SHARE))].sum() > GAIN_THRESHOLD_NATS)


def clear_evidence(layout: Layout, theta: Vector) -> None:
    """The evidence has been heard."""
    state = layout.view(theta, "reinitialization")
    state[[REJECTION_EVIDENCE, POINTS_SINCE_ZERO, N_REJECTED]] = 0.0
    state[POINTS_UNTIL_CHECK : CHECKS_LEFT + 1] = 0.0
