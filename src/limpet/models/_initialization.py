"""Initialize mixtures from few points, some of which may be outliers."""

from __future__ import annotations

import numpy as np

from limpet.core.state import Layout, Vector
from limpet.models._outlier_screening import MAX_SCREENED_POINTS, BoolArray, standardize_and_screen
from limpet.models._seeding import draw_random_numbers, equidistant_seeds, make_workspace
from limpet.models._trimmed_em import make_trimmed_em
from limpet.models.components.base import Component

TRIMMED_SHARE = 0.1  # share of the points that may be outliers
MIN_INIT_VARIANCE_SHARE = 1e-4  # of the spread of all points: too wide a start is safe, too narrow a start is not
INIT_CHUNK_VALUES = 4096  # numbers of a chunk that fits into the processor's cache


def init_mixtures(
    component: Component,
    layout: Layout,
    points: Vector,
    thetas: Vector,
    log_normalizer: float,
    is_standardized: bool,
    seed: int,
) -> None:
    """Fill each row of thetas (m, size) from its first points (m, n, d).

    Location and scale are estimated from the points (if `is_standardized`); isolated far points are screened out; the
    rest is fitted by trimmed EM.
    """
    m, n, d = points.shape
    K, _ = layout.fields["components"]
    chunk_size = 1 + INIT_CHUNK_VALUES // (n * d)
    for first in range(0, m, chunk_size):
        chunk, theta = points[first : first + chunk_size], thetas[first : first + chunk_size]
        standardized = standardize_and_screen(chunk, K=K)
        reference, scale, log_scale = (
            (standardized.reference, standardized.scale, standardized.log_scale) if is_standardized else (0.0, 1.0, 0.0)
        )
        theta[:, :d], theta[:, d : 2 * d], theta[:, 2 * d : 3 * d] = reference, scale, 1.0 / scale
        theta[:, 3 * d], theta[:, 3 * d + 1] = log_scale + d * log_normalizer, 0.0
        scaled, center = (standardized.points, np.zeros((1, d))) if is_standardized else (chunk, standardized.reference)
        theta[:, 3 * d + 2 :] = fit_mixtures(component, scaled, center, standardized.trusted, K, TRIMMED_SHARE, seed)


def fit_mixtures(
    component: Component,
    points: Vector,
    center: Vector,
    trusted: BoolArray,
    K: int,
    trimmed_share: float,
    seed: int,
    default_variance: float = 1.0,
) -> Vector:
    """Return [ weights | components ] of m trimmed fits to the trusted points.

    center: (m or 1, d), imputed for missing values. default_variance: of a variable with a single distinct value, in
    standardized units.
    """
    if K > 1 and points.shape[1] > MAX_SCREENED_POINTS:
        thinning = slice(None, None, 1 + points.shape[1] // MAX_SCREENED_POINTS)
        points, trusted = points[:, thinning], np.ascontiguousarray(trusted[:, thinning])
    m, n, d = points.shape
    points, missing = np.ascontiguousarray(points), np.isnan(points)
    size, has_missing = component.n_parameters(d), missing.any(axis=(1, 2))
    trimmed_em = make_trimmed_em(component, bool(has_missing.any()))
    simple = K == 1 and trimmed_share == 0.0
    if simple and 0 < has_missing.sum() < m:  # each stream is fitted as it would be alone
        fits = np.empty((m, K + K * size))
        center = np.broadcast_to(center, (m, d))
        for mask in (has_missing, ~has_missing):
            subset = (points[mask], center[mask], trusted[mask])
            fits[mask] = fit_mixtures(component, *subset, K, trimmed_share, seed, default_variance)
        return fits
    fits = np.empty((m, K + K * size))
    filled = np.where(missing, center[:, None], points) if has_missing.any() else points
    is_constant = filled.max(axis=1) == filled.min(axis=1)
    min_variances = np.where(is_constant, default_variance, MIN_INIT_VARIANCE_SHARE)
    if simple and not has_missing.any():
        trimmed_em.fit_moments(points, trusted, min_variances, fits, size, np.empty(d))
    else:
        observed = d - missing.sum(axis=2, dtype=float)
        axis_seeds = equidistant_seeds(filled, trusted, K)
        draws, workspace = draw_random_numbers(K, seed), make_workspace(component, n, K, d)
        trimmed_em.search(
            points, filled, observed, trusted, min_variances, fits, draws, axis_seeds, trimmed_share, size, workspace
        )
    return fits
