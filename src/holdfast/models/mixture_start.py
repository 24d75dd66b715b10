"""The start of a mixture from a handful of points, some of which may be outliers.

One definition, compiled, for a single stream and for many of them.
"""

from __future__ import annotations

import numpy as np

from holdfast.models.component import Component
from holdfast.models.room import room_for
from holdfast.models.seeding import random_draws, side_by_side
from holdfast.models.trimmed_em import fits_of
from holdfast.models.trusting import MOST_POINTS, Flags, framed
from holdfast.scheme.state import Layout, Vector

TRIMMED = 0.1  # share of the points that may be outliers
SMALLEST_VARIANCE = 1e-4  # of the spread of all points: to begin too wide is safe, to begin too narrow is not
AT_ONCE = 4096  # numbers: as much is held in the processor's cache on the way


def start_mixtures(
    component: Component, layout: Layout, points: Vector, thetas: Vector, log_unit: float, in_frame: bool, seed: int
) -> None:
    """Fills each row of thetas (m, size) from its first points (m, n, d), NaN where a coordinate is missing.

    The frame is taken from them (if `in_frame`); points that lie far out and alone are put aside; the rest is fitted by
    trimmed EM.
    """
    m, n, d = points.shape
    K, _ = layout.fields["components"]
    some = 1 + AT_ONCE // (n * d)
    for first in range(0, m, some):
        here, theta = points[first : first + some], thetas[first : first + some]
        own = framed(here, K=K)
        reference, scale, log_scale = (own.reference, own.scale, own.log_scale) if in_frame else (0.0, 1.0, 0.0)
        theta[:, :d], theta[:, d : 2 * d], theta[:, 2 * d : 3 * d] = reference, scale, 1.0 / scale
        theta[:, 3 * d], theta[:, 3 * d + 1] = log_scale + d * log_unit, 0.0
        scaled, middle = (own.points, np.zeros((1, d))) if in_frame else (here, own.reference)
        theta[:, 3 * d + 2 :] = fit_mixtures(component, scaled, middle, own.trusted, K, TRIMMED, seed)


def fit_mixtures(
    component: Component,
    points: Vector,
    middle: Vector,
    trusted: Flags,
    K: int,
    trimmed: float,
    seed: int,
    unknown: float = 1.0,
) -> Vector:
    """[ weights | components ] of m trimmed fits to the trusted points (m, n, d), in the coordinates of a frame.

    middle: (m or 1, d): a guess for what is missing. unknown: the variance of a variable that has shown one value only,
    in units of that value.
    """
    if K > 1 and points.shape[1] > MOST_POINTS:
        some = slice(None, None, 1 + points.shape[1] // MOST_POINTS)
        points, trusted = points[:, some], np.ascontiguousarray(trusted[:, some])
    m, n, d = points.shape
    points, missing = np.ascontiguousarray(points), np.isnan(points)
    size, gaps = component.size(d), missing.any(axis=(1, 2))
    fitting = fits_of(component, bool(gaps.any()))
    simple = K == 1 and trimmed == 0.0
    if simple and 0 < gaps.sum() < m:  # every stream goes the way it would go alone
        fits = np.empty((m, K + K * size))
        middle = np.broadcast_to(middle, (m, d))
        for part in (gaps, ~gaps):
            own = (points[part], middle[part], trusted[part])
            fits[part] = fit_mixtures(component, *own, K, trimmed, seed, unknown)
        return fits
    fits = np.empty((m, K + K * size))
    filled = np.where(missing, middle[:, None], points) if gaps.any() else points
    flat = filled.max(axis=1) == filled.min(axis=1)
    floors = np.where(flat, unknown, SMALLEST_VARIANCE)
    if simple and not gaps.any():
        fitting.moments(points, trusted, floors, fits, size, np.empty(d))
    else:
        observed = d - missing.sum(axis=2, dtype=float)
        levels = side_by_side(filled, trusted, K)
        seeds, room = random_draws(K, seed), room_for(component, n, K, d)
        fitting.search(points, filled, observed, trusted, floors, fits, seeds, levels, trimmed, size, room)
    return fits
