"""Re-initialization after lock-out: detect a new regime and fit it.

The evidence is a cumulative sum of the log-likelihood ratio of "most points are rejected" to "the usual share of points
is rejected". While it is above zero, a new regime may have started. It is accepted after enough rejected points, if
they are many or all in one place; a burst of outliers is over before that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limpet._jit.compile import kernel
from limpet._jit.math import averaging_step, log, maximum
from limpet.core.memory_profile import FULL, MemoryProfile
from limpet.core.state import MISSING_SENTINEL, Layout, Vector
from limpet.models._standardization import MAD_TO_SD

REJECTED_SHARE_AFTER_CHANGE = 0.7  # rejected share of points after a change
MIN_CONTAMINATION, MAX_CONTAMINATION = 0.02, 0.3  # bounds of the contamination
MIN_CONTAMINATION_STEP = 0.002
EVIDENCE_THRESHOLD_NATS = 16.0
MIN_REJECTED_POINTS, SUFFICIENT_REJECTED_POINTS = 10, 16
CONTAMINATION_FACTOR = 10.0  # times the contamination: by this share more of them are required
CHECK_INTERVAL_POINTS = 8  # between checks of a mixture
MAX_POINT_GAIN_NATS = 8.0  # bound of the gain by one point
TRIMMED_GAIN_SHARE = 0.1  # of the latest points: those with the largest gain are left out
GAIN_THRESHOLD_NATS = 8.0
MAX_SCHEDULED_CHECKS = 5  # of a mixture after a change within its threshold
MAX_CLUSTER_WIDTH_SD = 2.5  # of the latest points, to be in one place

# state = [ evidence | points since it was zero | rejected ones among them | contamination | points of this estimate
#           | points until the next scheduled check | scheduled checks left | next index in the ring buffer ]
REJECTION_EVIDENCE, POINTS_SINCE_ZERO, N_REJECTED, CONTAMINATION, CONTAMINATION_COUNT = range(5)
POINTS_UNTIL_CHECK, CHECKS_LEFT, NEXT_RING_INDEX = range(5, 8)


def reinit_fields(K: int, d: int, has_ring: bool = True, profile: MemoryProfile = FULL) -> dict[str, tuple[int, ...]]:
    """Return the fields of theta, with `has_ring` also a buffer of the latest points."""
    if has_ring:
        return {"reinitialization": (NEXT_RING_INDEX + 1,), "recent_points": (profile.ring_points, d)}
    has_scheduled_checks = K > 1 or profile.is_full
    return {"reinitialization": (NEXT_RING_INDEX if has_scheduled_checks else POINTS_UNTIL_CHECK,)}


def make_reinit_kernel(layout: Layout, K: int, d: int, profile: MemoryProfile) -> Callable[..., Any]:
    """Return the kernel that updates the evidence, for a layout of theta.

    (theta, point, rejected, takeover) → whether a re-initialization from `recent_points` must be checked. takeover: the
    slow experts have copied a fast one, a sign of a change within the threshold.
    """
    has_ring, offset = "recent_points" in layout.fields, layout.offset("reinitialization")
    ring, ring_length = layout.offset("recent_points") if has_ring else -1, profile.ring_points
    missing_value = missing_sentinel(profile)

    @kernel
    def store_point(theta: Vector, point: Vector) -> None:
        index = theta[offset + NEXT_RING_INDEX]
        first = ring + int(index) * d
        for i in range(d):
            theta[first + i] = point[i] if point[i] == point[i] else missing_value
        theta[offset + NEXT_RING_INDEX] = index + 1.0 if index < ring_length - 1 else 0.0

    @kernel
    def update_evidence(theta: Vector, point: Vector, rejected: bool, takeover: bool) -> bool:
        if has_ring:
            store_point(theta, point)
        share = theta[offset + CONTAMINATION]
        contamination = MAX_CONTAMINATION if share > MAX_CONTAMINATION else maximum(share, MIN_CONTAMINATION)
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
                    theta[offset + POINTS_UNTIL_CHECK] = ring_length
                    theta[offset + CHECKS_LEFT] -= 1.0
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
                theta[offset + REJECTION_EVIDENCE] = 0.0
                theta[offset + POINTS_SINCE_ZERO] = theta[offset + N_REJECTED] = 0.0
        return is_due

    return update_evidence


def missing_sentinel(profile: MemoryProfile) -> float:
    """Return the value of a missing coordinate in the ring buffer."""
    return float(np.finfo(np.float32).min) if profile.is_float32 else float(MISSING_SENTINEL)


def n_recent(layout: Layout, theta: Vector, profile: MemoryProfile = FULL) -> int:
    """Return how many latest points a re-initialization uses."""
    n_since_zero = int(layout.view(theta, "reinitialization")[POINTS_SINCE_ZERO])
    return min(n_since_zero, profile.ring_points) or profile.ring_points


def recent_points(layout: Layout, theta: Vector, n: int, profile: MemoryProfile = FULL) -> Vector:
    """Return the latest points of the ring buffer, oldest first; NaN where missing."""
    oldest = int(layout.view(theta, "reinitialization")[NEXT_RING_INDEX])
    points = np.roll(layout.view(theta, "recent_points"), -oldest, axis=0)[-n:]
    return np.where(points == missing_sentinel(profile), np.nan, points.astype(np.float64))


def impute_missing(points: Vector, mean: Vector, deviation: Vector) -> None:
    """Impute a variable without any value by its old mean and deviation."""
    unobserved = np.isnan(points).all(axis=0)
    points[::2, unobserved] = (mean + deviation)[unobserved]
    points[1::2, unobserved] = (mean - deviation)[unobserved]


def is_stable_regime(layout: Layout, theta: Vector, points: Vector, spread: Vector) -> bool:
    """Return whether rejected points are many or close; contamination raises limits."""
    state = layout.view(theta, "reinitialization")
    threshold_factor = 1.0 + CONTAMINATION_FACTOR * min(state[CONTAMINATION], MAX_CONTAMINATION)
    if state[N_REJECTED] >= SUFFICIENT_REJECTED_POINTS * threshold_factor:
        return True
    if state[N_REJECTED] < MIN_REJECTED_POINTS * threshold_factor:
        return False
    center = np.nanmedian(points, axis=0)
    width = MAD_TO_SD * np.nanmedian(np.abs(points - center), axis=0)
    return bool(np.all(width <= MAX_CLUSTER_WIDTH_SD * spread))


def improves_likelihood(old: Vector, new: Vector) -> bool:
    """Return whether the new fit is clearly more likely, for most points."""
    gains = np.sort(np.clip(old - new, -MAX_POINT_GAIN_NATS, MAX_POINT_GAIN_NATS))
    return bool(gains[: int(len(gains) * (1.0 - TRIMMED_GAIN_SHARE))].sum() > GAIN_THRESHOLD_NATS)


def clear_evidence(layout: Layout, theta: Vector) -> None:
    """Reset the evidence."""
    state = layout.view(theta, "reinitialization")
    state[[REJECTION_EVIDENCE, POINTS_SINCE_ZERO, N_REJECTED]] = 0.0
    state[POINTS_UNTIL_CHECK : CHECKS_LEFT + 1] = 0.0
