"""Initialize the automatic learner from points with up to a fifth outliers.

One definition for one stream and for many: the computations are compiled loops over streams, and numpy copies their
results to the fields of theta.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from limpet._jit.compile import jit_entry_point
from limpet.auto import ar1, density_scorer, reinitialization
from limpet.auto.ar1 import init_ar1
from limpet.auto.change_score import init_change_score
from limpet.auto.expert_ensemble import GAUSSIAN_TAIL_SCALE_SQUARED
from limpet.auto.seasonal_ar import init_regression, init_seasonal
from limpet.auto.step_kernel import AutoKernels
from limpet.core.state import Vector
from limpet.core.threshold import gamma_for_rate
from limpet.models._initialization import INIT_CHUNK_VALUES, fit_mixtures
from limpet.models._standardization import MAX_SPREADS, StandardizedStart, standardize_and_screen
from limpet.models.components.base import Component

# A mixture is fitted to tens of points, of which a fifth may be outliers: first a trimmed fit, which is too narrow
# because it leaves out tails as well; then a fit to all points near the first one, inflated to the right width.

TRIMMED_SHARE = 0.2
TRIMMED_VARIANCE_RATIO = 2.0  # variance of a Gaussian over that of its inner four fifths
SINGLE_INLIER_THRESHOLD_SD = 2.5  # from the median; for a single component
MAX_PERMUTED_COMPONENTS = 6  # up to which all orders are compared
UNOBSERVED_VARIANCE = 1e-6  # of a variable with a single distinct value
REFIT_EXCLUDED_SHARE = 1e-3  # of the points of the distribution, in the second fit


def fit_robust_mixture(kernels: AutoKernels, points: Vector, seed: int) -> Vector:
    """Return [ weights | components ] for standardized points, NaN where missing."""
    return fit_robust_mixtures(kernels, points[None], seed)[0]


def fit_robust_mixtures(kernels: AutoKernels, points: Vector, seed: int) -> Vector:
    """Return (m, …): the same for m streams at once; points (m, n, d)."""
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
    """Return the new fit with its components in the order of the closest old ones.

    Positions are relative to the mean of the components, in units of a component's width: a common shift does not
    change the order.
    """
    if not 1 < K <= MAX_PERMUTED_COMPONENTS:
        return new
    variances = np.zeros(d)
    before, after = (fit[K:].reshape(K, -1) for fit in (old, new))
    for part in before:
        component.add_variances(part, 0, d, variances, 1.0 / K)
    positions = [(part[:, :d] - part[:, :d].mean(axis=0)) / np.sqrt(variances) for part in (before, after)]
    orders = map(list, permutations(range(K)))
    order = min(orders, key=lambda order: float(np.sum((positions[0] - positions[1][order]) ** 2)))
    return np.concatenate([new[:K][order], after[order].reshape(-1)])


INLIER_THRESHOLD_SD = 8.0  # from the median, within which a point is an inlier: tails included
PRIOR_VARIANCE_FACTOR = 100.0  # initial variance of the outlier component in units of the core's
PRIOR_REJECTED_SHARE, PRIOR_POINTS = 0.01, 100.0  # prior of the rejected share and its weight


def init_auto_batch(kernels: AutoKernels, points: Vector, thetas: Vector, seed: int) -> None:
    """Fill each row of thetas (m, size) from its first points (m, n, d).

    NaN is a missing coordinate; a row of NaN only advances the season.
    """
    m, n, d = points.shape
    chunk_streams = 1 if kernels.lags else 1 + INIT_CHUNK_VALUES // (n * d)
    for first in range(0, m, chunk_streams):
        theta, residuals = thetas[first : first + chunk_streams], None
        scaled = write_standardization(kernels, points[first : first + chunk_streams], theta)
        if kernels.lags:
            scaled, residuals = init_dependence(kernels, scaled[0], theta[0])
        init_from_standardized(kernels, theta, scaled, seed, residuals)


def view_field(kernels: AutoKernels, theta: Vector, name: str) -> Vector:
    """Return (m, …): the field `name` of each of m rows of theta, flat."""
    offset = kernels.layout.offset(name)
    return theta[:, offset : offset + int(np.prod(kernels.layout.fields[name]))]


def write_standardization(kernels: AutoKernels, points: Vector, theta: Vector) -> Vector:
    """Write location and scale, clear other fields; return standardized points."""
    sample = standardize_and_screen(points)
    theta[:] = 0.0
    view_field(kernels, theta, "reference").view(np.float64)[:] = sample.reference
    view_field(kernels, theta, "scale").view(np.float64)[:] = sample.scale
    if kernels.profile.is_full:
        view_field(kernels, theta, "inverse_scale")[:] = 1.0 / sample.scale
    theta[:, kernels.layout.offset("log_scale")] = sample.log_scale
    return sample.points


def init_dependence(kernels: AutoKernels, rows: Vector, theta: Vector) -> tuple[Vector, Vector]:
    """Initialize season and regression; return points without season, and residuals."""
    if kernels.season:
        rows = init_seasonal(kernels.layout, theta, rows, kernels.season)
    present = ~np.isnan(rows).all(axis=1)
    residuals = init_regression(kernels.layout, theta, rows, kernels.lags)
    return rows[present][None], residuals[present][None]


def init_from_standardized(
    kernels: AutoKernels, theta: Vector, points: Vector, seed: int, residuals: Vector | None
) -> None:
    """Initialize everything but location and scale from standardized points.

    `residuals` are those of the seasonal regression; None also initializes a lag-1 autoregression.
    """

    def view(name: str) -> Vector:
        return view_field(kernels, theta, name)

    def fit_gaussian(points: Vector, inliers: StandardizedStart) -> Vector:
        sample = (points, inliers.reference, inliers.trusted)
        return fit_mixtures(kernels.component, *sample, 1, 0.0, seed, UNOBSERVED_VARIANCE)

    K, (m, n, d) = kernels.K, points.shape
    n_trusted = standardize_and_screen(points, K=K).n_trusted
    fits = fit_robust_mixtures(kernels, points, seed)
    n_experts, _ = kernels.layout.fields["experts"]
    view("experts")[:], view("trust")[:] = np.tile(fits, n_experts), 1.0 / n_experts
    view("counts")[:], view("tail_scale_squared")[:] = n_trusted[:, None], GAUSSIAN_TAIL_SCALE_SQUARED
    view("reinitialization")[:, reinitialization.CONTAMINATION] = 1.0 - n_trusted / n
    view("reinitialization")[:, reinitialization.CONTAMINATION_COUNT] = n
    inliers = standardize_and_screen(points, INLIER_THRESHOLD_SD, majority=False)
    core = fit_gaussian(points, inliers)
    init_scorer(kernels.value_scorer, view("value_scorer"), core if K == 1 else fits, core, inliers.n_trusted, d)
    if not kernels.profile.is_full:
        return
    change_states, ar1_states = np.zeros_like(view("change_score")), np.zeros((m, ar1.VALUES_PER_VARIABLE * d + 1))
    ar1_residuals = np.empty((m, n, d))
    compiled_init_moments(points, inliers.trusted, change_states, ar1_states, ar1_residuals, np.empty(n))
    view("change_score")[:] = change_states
    if residuals is None:
        residuals = ar1_residuals
        view("ar1")[:] = ar1_states
    core = fit_gaussian(residuals, standardize_and_screen(residuals, INLIER_THRESHOLD_SD, majority=False))
    init_scorer(kernels.residual_scorer, view("residual_scorer"), core, core, inliers.n_trusted, d)


def init_scorer(
    scorer: density_scorer.DensityScorer, state: Vector, core: Vector, single_fit: Vector, count: Vector, d: int
) -> None:
    """Initialize core and outlier component of a scorer."""
    outliers, tally = scorer.layout.offset("outliers"), scorer.layout.offset("tally")
    state[:, :outliers], state[:, outliers:tally] = core, single_fit
    state[:, outliers + 1 + d : tally] *= PRIOR_VARIANCE_FACTOR
    state[:, tally + density_scorer.CORE_COUNT], state[:, tally + density_scorer.OUTLIER_COUNT] = count, 1.0
    state[:, tally + density_scorer.REJECTED_SHARE] = PRIOR_REJECTED_SHARE
    state[:, tally + density_scorer.SHARE_COUNT] = PRIOR_POINTS


def _init_moments(points, inliers, change_states, ar1_states, residuals, values):  # type: ignore[no-untyped-def]
    # points (m, n, d), inliers (m, n), change_states and ar1_states (m, …), residuals (m, n, d), values (n,)
    m, n, d = points.shape
    for s in range(m):
        for i in range(d):
            init_change_score(change_states[s], points[s], i, values)
            init_ar1(ar1_states[s], points[s], inliers[s], i, residuals[s])
        for t in range(n):
            ar1_states[s, ar1.VALUES_PER_VARIABLE * d] += inliers[s, t]


compiled_init_moments = jit_entry_point(_init_moments, releases_gil=True)
