"""A mixture fitted to some tens of points, of which a fifth may be outliers.

First a fit that leaves out whatever may be an outlier; it is too narrow, for it leaves out tails as well. Then a fit
to all points that are near the first one, made as wide as it should be.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from holdfast.autopilot.pilot import AutoKernels
from holdfast.models.component import Component
from holdfast.models.mixture_start import fit_mixtures
from holdfast.models.trusting import MAX_SPREADS, standardize_and_screen
from holdfast.scheme.state import Vector
from holdfast.scheme.threshold import gamma_for_rate

TRIMMED_SHARE = 0.2
TRIMMED_VARIANCE_RATIO = 2.0  # how much wider a Gaussian is than its inner four fifths: the ratio of the variances
SINGLE_INLIER_THRESHOLD_SD = 2.5  # spreads from the median; of a single component only
MAX_PERMUTED_COMPONENTS = 6  # components whose orders are few enough to look at all
UNOBSERVED_VARIANCE = 1e-6  # variance of a variable that has shown one value only: what it is not locks nobody out
REFIT_EXCLUDED_SHARE = 1e-3  # of the points that belong to the fit, when it is repeated


def fit_robust_mixture(kernels: AutoKernels, points: Vector, seed: int) -> Vector:
    """[ weights | components ] in the frame's coordinates, in which the points come; NaN where one is missing."""
    return fit_robust_mixtures(kernels, points[None], seed)[0]


def fit_robust_mixtures(kernels: AutoKernels, points: Vector, seed: int) -> Vector:
    """(m, …): the same for m streams at once; points (m, n, d)."""
    K, (_, n, d), component = kernels.K, points.shape, kernels.component
    sample = standardize_and_screen(points, SINGLE_INLIER_THRESHOLD_SD if K == 1 else MAX_SPREADS, K)
    trimmed = 0.0 if K == 1 else TRIMMED_SHARE
    fits = fit_mixtures(component, points, sample.reference, sample.trusted, K, trimmed, seed, UNOBSERVED_VARIANCE)
    if K == 1:
        return fits
    gamma = gamma_for_rate(REFIT_EXCLUDED_SHARE, d)
    is_near = kernels.score_under_fits(fits, points)[1] <= TRIMMED_VARIANCE_RATIO * gamma * gamma
    has_unobserved = np.any(np.all(np.isnan(points) | ~is_near[:, :, None], axis=1), axis=1)
    refit = (is_near.sum(axis=1) > 0.5 * n) & ~has_unobserved
    if refit.any():
        refit_data = (points[refit], sample.reference[refit], is_near[refit])
        fits[refit] = fit_mixtures(component, *refit_data, K, 0.0, seed, UNOBSERVED_VARIANCE)
    return fits


def match_component_order(component: Component, old: Vector, new: Vector, K: int, d: int) -> Vector:
    """The new fit with its components in the order of the old ones they most likely continue.

    What counts is where they lie about their middle, in units of a component's width: a shift of all of them does not
    change who is who.
    """
    if not 1 < K <= MAX_PERMUTED_COMPONENTS:
        return new
    variances = np.zeros(d)
    before, after = (fit[K:].reshape(K, -1) for fit in (old, new))
    for part in before:
        component.add_variances(part, 0, d, variances, 1.0 / K)
    positions = [(part[:, :d] - part[:, :d].mean(axis=0)) / np.sqrt(variances) for part in (before, after)]
    order = min(
        permutations(range(K)), key=lambda order: float(np.sum((positions[0] - positions[1][list(order)]) ** 2))
    )
    return np.concatenate([new[:K][list(order)], after[list(order)].reshape(-1)])
