"""A mixture fitted to some tens of points, of which a fifth may be outliers.

First a fit that leaves out whatever may be an outlier; it is too narrow, for it leaves out tails as well. Then a fit
to all points that are near the first one, made as wide as it should be.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from holdfast.autopilot.pilot import Pilot
from holdfast.models.component import Component
from holdfast.models.mixture_start import fit_mixtures
from holdfast.models.trusting import FAR, framed
from holdfast.scheme.state import Vector
from holdfast.scheme.threshold import gamma_for_rate

TRIMMED = 0.2
NARROWED = 2.0  # how much wider a Gaussian is than its inner four fifths: the ratio of the variances
NEAR = 2.5  # spreads from the median; of a single component only
LARGEST_ORDER = 6  # components whose orders are few enough to look at all
UNKNOWN = 1e-6  # variance of a variable that has shown one value only: what it is not locks nobody out
LEFT_OUT = 1e-3  # of the points that belong to the fit, when it is repeated


def robust_fit(pilot: Pilot, points: Vector, seed: int) -> Vector:
    """[ weights | components ] in the frame's coordinates, in which the points come; NaN where one is missing."""
    return robust_fits(pilot, points[None], seed)[0]


def robust_fits(pilot: Pilot, points: Vector, seed: int) -> Vector:
    """(m, …): the same for m streams at once; points (m, n, d)."""
    K, (_, n, d), component = pilot.K, points.shape, pilot.component
    own = framed(points, NEAR if K == 1 else FAR, K)
    trimmed = 0.0 if K == 1 else TRIMMED
    fits = fit_mixtures(component, points, own.reference, own.trusted, K, trimmed, seed, UNKNOWN)
    if K == 1:
        return fits
    gamma = gamma_for_rate(LEFT_OUT, d)
    near = pilot.judge_all(fits, points)[1] <= NARROWED * gamma * gamma
    silent = np.any(np.all(np.isnan(points) | ~near[:, :, None], axis=1), axis=1)
    again = (near.sum(axis=1) > 0.5 * n) & ~silent
    if again.any():
        chosen = (points[again], own.reference[again], near[again])
        fits[again] = fit_mixtures(component, *chosen, K, 0.0, seed, UNKNOWN)
    return fits


def in_order_of(component: Component, old: Vector, new: Vector, K: int, d: int) -> Vector:
    """The new fit with its components in the order of the old ones they most likely continue.

    What counts is where they lie about their middle, in units of a component's width: a shift of all of them does not
    change who is who.
    """
    if not 1 < K <= LARGEST_ORDER:
        return new
    variances = np.zeros(d)
    before, after = (fit[K:].reshape(K, -1) for fit in (old, new))
    for part in before:
        component.spread(part, 0, d, variances, 1.0 / K)
    places = [(part[:, :d] - part[:, :d].mean(axis=0)) / np.sqrt(variances) for part in (before, after)]
    order = min(permutations(range(K)), key=lambda order: float(np.sum((places[0] - places[1][list(order)]) ** 2)))
    return np.concatenate([new[:K][list(order)], after[list(order)].reshape(-1)])
