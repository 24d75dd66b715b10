"""Initialize mixtures from few points, with outliers, by trimmed EM or moments.

A fit is laid out as [ weights (K) | components (K·size) ].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from limpet._jit.compile import jit_entry_point, kernel
from limpet._jit.math import exp, log, maximum
from limpet._jit.sort import quantile_of_sorted, shell_sort
from limpet.core.state import Vector
from limpet.models._standardization import MAX_SCREENED_POINTS, BoolArray, median, standardize_and_screen
from limpet.models.components.base import Component

TRIMMED_SHARE = 0.1  # share of the points that may be outliers
MIN_INIT_VARIANCE_SHARE = 1e-4  # of the spread of all points: too wide a start is safe, too narrow a start is not
INIT_CHUNK_VALUES = 4096  # numbers of a chunk that fits into the processor's cache
MAX_EM_ROUNDS = 15
SEED_VARIANCE = 0.1  # narrow, so that the first round assigns each point to the nearest seed
VARIANCE_INFLATION = 1.3  # few points, with the least likely trimmed, underestimate the variance
MIN_SEPARATION_SD = 0.05  # standard deviations
N_RANDOM_SEEDINGS = 20  # of a mixture
MIN_POINTS_PER_COMPONENT = 10  # for seeds along one coordinate: with fewer points some coordinate always seems bimodal


def init_mixtures(
    component: Component,
    K: int,
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
    chunk_size = 1 + INIT_CHUNK_VALUES // (n * d)
    for first in range(0, m, chunk_size):
        chunk, theta = points[first : first + chunk_size], thetas[first : first + chunk_size]
        standardized = standardize_and_screen(chunk, K=K)
        reference, scale, log_scale = standardized[:3] if is_standardized else (0.0, 1.0, 0.0)
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

    `center`, (m or 1, d), is imputed for missing values. `default_variance` is that of a variable with a single
    distinct value, in standardized units.
    """
    if K > 1 and points.shape[1] > MAX_SCREENED_POINTS:
        thinning = slice(None, None, 1 + points.shape[1] // MAX_SCREENED_POINTS)
        points, trusted = points[:, thinning], np.ascontiguousarray(trusted[:, thinning])
    m, n, d = points.shape
    points, missing = np.ascontiguousarray(points), np.isnan(points)
    size, has_missing = component.n_parameters(d), missing.any(axis=(1, 2))
    trimmed_em = make_trimmed_em(component, bool(has_missing.any()))
    fits = np.empty((m, K + K * size))
    simple = K == 1 and trimmed_share == 0.0
    if simple and 0 < has_missing.sum() < m:  # each stream is fitted as it would be alone
        center = np.broadcast_to(center, (m, d))
        for mask in (has_missing, ~has_missing):
            subset = (points[mask], center[mask], trusted[mask])
            fits[mask] = fit_mixtures(component, *subset, K, trimmed_share, seed, default_variance)
        return fits
    filled = np.where(missing, center[:, None], points) if has_missing.any() else points
    is_constant = filled.max(axis=1) == filled.min(axis=1)
    min_variances = np.where(is_constant, default_variance, MIN_INIT_VARIANCE_SHARE)
    if simple and not has_missing.any():
        trimmed_em.fit_moments(points, trusted, min_variances, fits, size, np.empty(d))
    else:
        observed = d - missing.sum(axis=2, dtype=float)
        seeds = draw_random_numbers(K, seed), equidistant_seeds(filled, trusted, K)
        workspace = make_workspace(component, n, K, d)
        trimmed_em.search(
            points, filled, observed, trusted, min_variances, fits, *seeds, trimmed_share, size, workspace
        )
    return fits


class TrimmedFit(NamedTuple):
    """Compiled fits of a component family, for any numbers and dimensions.

    points (m, n, d): standardized. trusted (m, n): the points to fit to. min_variances (m, d): lower bounds of the
    variances that regularize components. best (m, K + K·size): receives the fits.
    """

    # (points, filled (m, n, d), observed (m, n), trusted, min_variances, best, draws (S, K, 2), axis_seeds (m, L, K,
    # d), trimmed_share, size, workspace): the fit with the largest likelihood of the retained points, among one fit per
    # row of random numbers and one per axis seed. A NaN in `points` is missing and integrated out; `filled` has an
    # imputed value there, for the seeds; `observed` counts the other coordinates. trimmed_share: the share of trusted
    # points that is left out.
    search: Callable[..., Any]
    # (points, trusted, min_variances, best, size, variances (d,)): the same for one component and complete points
    # without trimming, where no search is needed and much less is compiled
    fit_moments: Callable[..., Any]


@kernel
def trim(trusted: BoolArray, observed: Vector, n_trimmed: int, workspace: EMWorkspace) -> float:
    """Retain the trusted points but the least likely; return their likelihood."""
    retained, log_likelihood, values = workspace.retained, workspace.log_likelihood, workspace.values
    n = len(trusted)
    for t in range(n):
        retained[t] = trusted[t]
        values[t] = log_likelihood[t] / observed[t]
    for _ in range(n_trimmed):
        worst, worst_value = -1, math.inf
        for t in range(n):
            if retained[t] and (worst < 0 or values[t] < worst_value):
                worst, worst_value = t, values[t]
        retained[worst] = False
    total = 0.0
    for t in range(n):
        total += log_likelihood[t] if retained[t] else 0.0
    return total


@cache
def make_trimmed_em(component: Component, handles_missing: bool) -> TrimmedFit:
    evaluate, impute, advance = component.evaluate, component.impute, component.advance
    init_at_point, add_variances, regularize = component.init_at_point, component.add_variances, component.regularize
    elliptical = component.elliptical

    @kernel
    def evaluate_component(
        fit: Vector, offset: int, y: Vector, d: int, observed: float, imputed_offset: int, workspace: EMWorkspace
    ) -> tuple[float, float, float]:
        if handles_missing and observed < d:
            return impute(fit, offset, y, 0, d, workspace.work, 0, workspace.imputed, imputed_offset)
        return evaluate(fit, offset, y, 0, d, workspace.work, 0)

    @kernel
    def e_step(fit: Vector, points: Vector, observed: Vector, K: int, size: int, workspace: EMWorkspace) -> None:
        """Compute responsibilities, imputed points, and the log-likelihood of each point."""
        n, d = points.shape
        responsibilities, peak_densities = workspace.responsibilities, workspace.peak_densities
        for t in range(n):
            max_exponent, total = -math.inf, 0.0
            for k in range(K):
                offset, imputed_offset = K + k * size, (t * K + k) * size
                exponent, precision, q = evaluate_component(
                    fit, offset, points[t], d, observed[t], imputed_offset, workspace
                )
                exponent = exponent - 0.5 * q if elliptical else exponent
                responsibilities[t, k], peak_densities[k] = exponent, fit[k] * math.sqrt(precision)
                max_exponent = exponent if exponent > max_exponent else max_exponent
            for k in range(K):
                responsibilities[t, k] = peak_densities[k] * exp(responsibilities[t, k] - max_exponent)
                total += responsibilities[t, k]
            inverse = 1.0 / total
            for k in range(K):
                responsibilities[t, k] *= inverse
            workspace.log_likelihood[t] = max_exponent + log(total)

    @kernel
    def pool_variances(
        fit: Vector, d: int, K: int, size: int, mass: float, n_retained: float, min_variances: Vector, variances: Vector
    ) -> None:
        """Shrink components to pooled variances; turn masses (sum: `mass`) into weights."""
        correction = n_retained - K if n_retained - K > 1.0 else 1.0
        correction = VARIANCE_INFLATION * n_retained / correction  # K means have been fitted
        for i in range(d):
            variances[i] = maximum(correction * variances[i], min_variances[i])
        for k in range(K):
            regularize(fit, K + k * size, d, variances, (d + 1.0) / (fit[k] + d + 1.0))
            fit[k] = (fit[k] + 0.5) / (mass + 0.5 * K)

    @kernel
    def m_step(
        fit: Vector,
        points: Vector,
        observed: Vector,
        n_retained: float,
        K: int,
        size: int,
        min_variances: Vector,
        workspace: EMWorkspace,
    ) -> None:
        """Compute weighted moments with the same step that updates the stream's model."""
        n, d = points.shape
        variances = workspace.variances
        for i in range(d):
            variances[i] = 0.0
        total = 0.0
        for k in range(K):
            mass, offset = 0.0, K + k * size
            for t in range(n):
                r = workspace.responsibilities[t, k]
                if workspace.retained[t] and r > 1e-9:
                    mass += r
                    if handles_missing and observed[t] < d:
                        advance(fit, offset, workspace.imputed, (t * K + k) * size, d, r / mass, True)
                    else:
                        advance(fit, offset, points[t], 0, d, r / mass, False)
            fit[k] = mass
            total += mass
            add_variances(fit, offset, d, variances, mass / n_retained)
        pool_variances(fit, d, K, size, total, n_retained, min_variances, variances)

    @kernel
    def separate_duplicates(fit: Vector, d: int, K: int, size: int, draws: Vector, variances: Vector) -> None:
        """Move coinciding components apart, which could otherwise never separate."""
        for k in range(1, K):
            for other in range(k):
                for i in range(d):
                    variances[i] = 0.0
                add_variances(fit, K + k * size, d, variances, 1.0)
                squared_distance = 0.0
                for i in range(d):
                    difference = fit[K + k * size + i] - fit[K + other * size + i]
                    squared_distance += difference * difference / variances[i]
                if squared_distance < MIN_SEPARATION_SD * MIN_SEPARATION_SD:
                    for i in range(d):
                        fit[K + k * size + i] += MIN_SEPARATION_SD * (1.0 + draws[0, k, 1]) * math.sqrt(variances[i])

    def search(  # type: ignore[no-untyped-def]
        points, filled, observed, trusted, min_variances, best, draws, axis_seeds, trimmed_share, size, workspace
    ):
        m, n, d = points.shape
        S, K, _ = draws.shape
        fit, variances, seed_points = workspace.fit, workspace.variances, workspace.seed_points
        for stream in range(m):
            stream_points, n_observed, is_trusted = points[stream], observed[stream], trusted[stream]
            n_trusted, best_log_likelihood = 0, -math.inf
            for t in range(n):
                n_trusted += is_trusted[t]
            n_trimmed = int(trimmed_share * n_trusted)
            for s in range(S + axis_seeds.shape[1]):
                for i in range(d):
                    variances[i] = SEED_VARIANCE if s < S or i == s - S else 1.0
                for k in range(K):
                    drawn = 0
                    if s < S:
                        drawn = draw_seed(fit, k, draws[s, k, 0], filled[stream], is_trusted, K, size, workspace)
                    for i in range(d):
                        seed_points[s, k, i] = filled[stream, drawn, i] if s < S else axis_seeds[stream, s - S, k, i]
                    fit[k] = 1.0 / K
                    init_at_point(fit, K + k * size, seed_points[s, k], 0, d, variances)
                if not is_distinct_seed(s, seed_points.reshape(-1), K * d):
                    continue  # the same fit again
                log_likelihood = 0.0
                for iteration in range(MAX_EM_ROUNDS + 1):
                    e_step(fit, stream_points, n_observed, K, size, workspace)
                    log_likelihood = trim(is_trusted, n_observed, n_trimmed, workspace)
                    if iteration == MAX_EM_ROUNDS:
                        break
                    for i in range(len(fit)):
                        workspace.previous_fit[i] = fit[i]
                    n_retained = float(n_trusted - n_trimmed)
                    m_step(fit, stream_points, n_observed, n_retained, K, size, min_variances[stream], workspace)
                    n_equal = 0
                    while n_equal < len(fit) and fit[n_equal] == workspace.previous_fit[n_equal]:
                        n_equal += 1
                    if n_equal == len(fit):
                        break  # converged
                if s == 0 or log_likelihood > best_log_likelihood:
                    best_log_likelihood = log_likelihood
                    for i in range(len(fit)):
                        best[stream, i] = fit[i]
            separate_duplicates(best[stream], d, K, size, draws, variances)

    def fit_moments(points, trusted, min_variances, best, size, variances):  # type: ignore[no-untyped-def]
        m, n, d = points.shape
        for stream in range(m):
            fit, flat_points = best[stream], points[stream].reshape(-1)
            for i in range(1 + size):
                fit[i] = 0.0
            for t in range(n):
                if trusted[stream, t]:
                    fit[0] += 1.0
                    advance(fit, 1, flat_points, t * d, d, 1.0 / fit[0], False)
            for i in range(d):
                variances[i] = 0.0
            add_variances(fit, 1, d, variances, 1.0)
            pool_variances(fit, d, 1, size, fit[0], fit[0], min_variances[stream], variances)

    return TrimmedFit(jit_entry_point(search, releases_gil=True), jit_entry_point(fit_moments, releases_gil=True))


# Seeds of the components, and the workspace


class EMWorkspace(NamedTuple):
    """Workspace for n points in d dimensions and K components, shared by all streams."""

    retained: BoolArray  # (n,): the points that are not trimmed in a round
    seed_points: Vector  # (seedings, K, d): the initial means
    fit: Vector  # [ weights | components ] …
    previous_fit: Vector  # … and the same one round before
    values: Vector  # (n,): values to be sorted
    log_likelihood: Vector  # (n,): of each point
    responsibilities: Vector  # (n, K)
    peak_densities: Vector  # (K,): densities at the means, times the weights
    imputed: Vector  # (n·K·size): each point with missing values imputed by each component
    variances: Vector  # (d,): pooled over components
    work: Vector  # of a component


def make_workspace(component: Component, n: int, K: int, d: int) -> EMWorkspace:
    size = component.n_parameters(d)
    return EMWorkspace(
        retained=np.empty(n, np.bool_),
        seed_points=np.empty((N_RANDOM_SEEDINGS + d, K, d)),
        fit=np.empty(K + K * size),
        previous_fit=np.empty(K + K * size),
        values=np.empty(n),
        log_likelihood=np.empty(n),
        responsibilities=np.empty((n, K)),
        peak_densities=np.empty(K),
        imputed=np.empty(n * K * size),
        variances=np.empty(d),
        work=np.empty(component.work_size(d) + 1),
    )


@lru_cache(maxsize=64)
def draw_random_numbers(K: int, seed: int) -> Vector:
    """Return (seedings, K, 2) random numbers from 0 to 1, the same for all streams."""
    return np.random.default_rng(seed).random((N_RANDOM_SEEDINGS if K > 1 else 1, K, 2))


@kernel
def draw_seed(
    fit: Vector, k: int, uniform: float, points: Vector, trusted: BoolArray, K: int, size: int, workspace: EMWorkspace
) -> int:
    """Return the index of a point for component k, drawn by distance.

    The probability grows with the squared distance up to the median: the farthest point, most likely an outlier, is no
    more likely than others. `uniform` is a random number from 0 to 1.
    """
    n, d = points.shape
    draw_weights, values = workspace.log_likelihood, workspace.values
    max_weight, total_weight, drawn_index = 1.0, 0.0, 0
    for t in range(n):
        draw_weights[t] = 1.0 if k == 0 else math.inf
        for other in range(k):
            squared_distance = 0.0
            for i in range(d):
                difference = points[t, i] - fit[K + other * size + i]
                squared_distance += difference * difference
            draw_weights[t] = squared_distance if squared_distance < draw_weights[t] else draw_weights[t]
        values[t] = draw_weights[t]
    if k > 0:
        shell_sort(values, n)
        max_weight = values[(n - 1) // 2]
    for t in range(n):
        draw_weights[t] = max_weight if max_weight < draw_weights[t] else draw_weights[t]
        draw_weights[t] = draw_weights[t] if trusted[t] else 0.0
        total_weight += draw_weights[t]
    uniform *= total_weight
    for t in range(n):
        if trusted[t] and (uniform >= 0.0 or total_weight == 0.0):
            drawn_index = t
        uniform -= draw_weights[t]
    return drawn_index


@kernel
def is_distinct_seed(s: int, seeds: Vector, width: int) -> bool:
    for earlier in range(s):
        n_equal = 0
        while n_equal < width and seeds[earlier * width + n_equal] == seeds[s * width + n_equal]:
            n_equal += 1
        if n_equal == width:
            return False
    return True


def _fill_axis_seeds(points, trusted, K, axis_seeds, values):  # type: ignore[no-untyped-def]
    # points (m, n, d), trusted (m, n), axis_seeds (m, d, K, d), values (n,)
    m, n, d = points.shape
    for s in range(m):
        for i in range(d):
            count = 0
            for t in range(n):
                if trusted[s, t]:
                    values[count] = points[s, t, i]
                    count += 1
            middle = median(values, count)
            for k in range(K):
                for axis in range(d):
                    axis_seeds[s, axis, k, i] = middle
                axis_seeds[s, i, k, i] = quantile_of_sorted(values, count, (k + 0.5) / K)


compiled_fill_axis_seeds = jit_entry_point(_fill_axis_seeds, releases_gil=True)


def equidistant_seeds(points: Vector, trusted: BoolArray, K: int) -> Vector:
    """Return (m, d, K, d) seeds: K quantiles of each coordinate, others at medians.

    Groups that differ in a single coordinate are lost among distances in many. With few points no seeds are returned,
    because some coordinate always seems to separate groups.

    >>> points = np.array([[i, 0.0] for i in range(41)])
    >>> equidistant_seeds(points[None], np.full((1, 41), True), 2)[0, 0]
    array([[10.,  0.],
           [30.,  0.]])
    """
    m, n, d = points.shape
    if K == 1 or d == 1 or n <= MIN_POINTS_PER_COMPONENT * K:
        return np.empty((m, 0, K, d))
    axis_seeds = np.empty((m, d, K, d))
    compiled_fill_axis_seeds(points, trusted, K, axis_seeds, np.empty(n))
    return axis_seeds
