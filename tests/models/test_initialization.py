"""Initialization: a batch of streams equals single streams bit for bit, and the kernels equal numpy."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from limpet._jit.sort import insertion_sort, shell_sort
from limpet.auto import ar1, change_score
from limpet.auto.initialization import INLIER_THRESHOLD_SD, compiled_init_moments, init_auto_batch
from limpet.auto.step_kernel import make_auto_kernels
from limpet.models import GaussianMixture, LinearRegression, PoissonMixture
from limpet.models._initialization import equidistant_seeds
from limpet.models._standardization import (
    MAX_SCREENED_POINTS,
    MAX_SPREADS,
    MIN_NEIGHBOR_SHARE,
    NEIGHBOR_RADIUS,
    column_medians,
    fit_location_scale,
    standardize,
    standardize_and_screen,
)

N_STREAMS = 9


def make_first_points(rng, n, d, has_missing):
    """Make streams with outliers, some rounded or constant, and with missing values in every other stream."""
    points = rng.normal(size=(N_STREAMS, n, d)) + 4.0 * rng.integers(2, size=(N_STREAMS, n, 1))
    points[rng.random((N_STREAMS, n)) < 0.08] *= 30.0
    points[2] = np.round(points[2])
    points[3, :, 0] = 7.0
    points[4, : n - n // 4] = 1.0
    points *= 10.0 ** rng.integers(-3, 4, size=(N_STREAMS, 1, d))
    if has_missing:
        missing = rng.random(points.shape) < 0.2
        missing[::2] = missing[:, :3] = False
        missing[..., 0] &= ~missing.all(axis=2)
        points[missing] = np.nan
    return points


def assert_same_bits(ours, other):
    assert np.isfinite(ours).all()
    np.testing.assert_array_equal(ours.view(np.int64), other.view(np.int64))


@pytest.mark.parametrize(
    ("model", "d"),
    [
        (GaussianMixture(1), 1),
        (GaussianMixture(2), 1),
        (GaussianMixture(2), 3),
        (GaussianMixture(1, covariance="diagonal"), 2),
        (GaussianMixture(2, covariance="diagonal"), 2),
        (PoissonMixture(2), 1),
        (PoissonMixture(2), 2),
    ],
)
def test_batched_initialization_of_mixtures_equals_single_streams(model, d):
    kernels, hyper = model.kernels(d), model.hyperparameters(d)
    for n, has_missing in ((10, d > 1), (30, False)):
        points = make_first_points(np.random.default_rng(n), n, d, has_missing)
        if isinstance(model, PoissonMixture):
            points = np.round(np.abs(points) % 50.0)
        batched = np.empty((N_STREAMS, kernels.layout.size))
        kernels.init_batch(points, batched, hyper, 3)
        single = np.empty_like(batched)
        for sample, theta in zip(points, single, strict=True):
            kernels.init(sample, theta, hyper, 3)
        assert_same_bits(batched, single)
        in_threads = np.empty_like(batched)
        with ThreadPoolExecutor(2) as pool:
            half = N_STREAMS // 2
            parts = ((points[:half], in_threads[:half]), (points[half:], in_threads[half:]))
            list(pool.map(lambda part: kernels.init_batch(*part, hyper, 3), parts))
        assert_same_bits(in_threads, batched)


@pytest.mark.parametrize(("covariance", "K", "d"), [("full", 1, 1), ("full", 1, 2), ("full", 2, 1), ("diagonal", 1, 2)])
def test_batched_initialization_of_detectors_equals_single_streams(covariance, K, d):
    kernels = make_auto_kernels(covariance, K, d)
    points = make_first_points(np.random.default_rng(K + d), 50, d, d > 1)
    batched = np.empty((N_STREAMS, kernels.layout.size))
    init_auto_batch(kernels, points, batched, 3)
    single = np.empty_like(batched)
    for sample, theta in zip(points, single, strict=True):
        init_auto_batch(kernels, sample[None], theta[None], 3)
    assert_same_bits(batched, single)


def test_detectors_with_lags_are_initialized_sequentially():
    kernels = make_auto_kernels("full", 1, 1, 2)
    points = make_first_points(np.random.default_rng(0), 50, 1, False)
    batched, single = np.empty((2, N_STREAMS, kernels.layout.size))
    init_auto_batch(kernels, points, batched, 0)
    for sample, theta in zip(points, single, strict=True):
        init_auto_batch(kernels, sample[None], theta[None], 0)
    assert_same_bits(batched, single)


def test_model_without_a_compiled_initialization():
    assert LinearRegression().kernels(2).init_batch is None


@pytest.mark.parametrize("n", [1, 2, 9, 10, 50, 600])
def test_sort(n):
    values = np.round(np.random.default_rng(n).normal(size=n + 1), 1)
    for kernel in (insertion_sort, shell_sort):
        ours = values.copy()
        kernel(ours, n)
        np.testing.assert_array_equal(ours, [*np.sort(values[:n]), values[n]])


def is_trusted(points, K, far, majority):
    """Return the points within `far` spreads of the median, and those with neighbors, by numpy."""
    scaled = np.nan_to_num(standardize(points, *fit_location_scale(points)), nan=0.0)
    near = np.abs(scaled).max(axis=1) <= far
    if K > 1:
        others = scaled[:: 1 + len(scaled) // MAX_SCREENED_POINTS]
        distances = np.linalg.norm(scaled[:, None] - others[None], axis=2)
        close = distances <= NEIGHBOR_RADIUS * np.linalg.norm(scaled, axis=1)[:, None]
        near |= close.sum(axis=1) - 1 >= max(1.0, MIN_NEIGHBOR_SHARE * len(others))
    return near if 2 * near.sum() > len(points) or not majority else np.ones(len(points), bool)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (10, 1), (10, 2), (50, 2), (600, 1)])
@pytest.mark.parametrize(
    ("K", "far", "majority"), [(1, 2.5, True), (2, MAX_SPREADS, True), (1, INLIER_THRESHOLD_SD, False)]
)
def test_standardization_and_screening_equal_numpy(n, d, K, far, majority):
    points = make_first_points(np.random.default_rng(n + d), n, d, has_missing=d > 1)
    ours = standardize_and_screen(points, far, K, majority)
    for s, sample in enumerate(points):
        reference, scale = fit_location_scale(sample)
        np.testing.assert_allclose(ours.reference[s], reference, rtol=1e-14)
        np.testing.assert_allclose(ours.scale[s], scale, rtol=1e-14)
        np.testing.assert_allclose(ours.log_scale[s], np.log(scale).sum(), rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(ours.points[s], standardize(sample, reference, scale), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(ours.trusted[s], is_trusted(sample, K, far, majority))
        assert ours.n_trusted[s] == ours.trusted[s].sum()


def test_standardization_of_extreme_points():
    points = np.array([[[0.0], [0.0]], [[1e150], [-1e150]], [[3.0], [3.0]], [[1e-200], [3e-200]]])
    ours = standardize_and_screen(points)
    for s, sample in enumerate(points):
        reference, scale = fit_location_scale(sample)
        np.testing.assert_allclose([ours.reference[s], ours.scale[s]], [reference, scale], rtol=1e-14)
        np.testing.assert_allclose(ours.points[s], standardize(sample, reference, scale), rtol=1e-14)


def test_equidistant_seeds_are_quantiles():
    rng = np.random.default_rng(0)
    points, trusted = rng.normal(size=(2, 41, 3)), rng.random((2, 41)) < 0.8
    levels = equidistant_seeds(points, trusted, 3)
    for s in range(2):
        sample = points[s, trusted[s]]
        for axis in range(3):
            expected = np.tile(np.median(sample, axis=0), (3, 1))
            expected[:, axis] = np.quantile(sample[:, axis], (np.arange(3) + 0.5) / 3)
            np.testing.assert_allclose(levels[s, axis], expected, rtol=1e-13)
    assert equidistant_seeds(points[:, :30], trusted[:, :30], 3).shape == (2, 0, 3, 3)


def moments_in_numpy(points):
    """Count, mean and variance of each coordinate, of the points within `FAR` spreads of the median."""
    distances = np.abs(points - column_medians(points))
    spread = 1.4826 * column_medians(distances)
    spread = np.where(spread > 0.0, spread, np.nanquantile(distances, 0.8, axis=0) / 1.2816)
    spread = np.where(spread > 0.0, spread, np.nanmax(distances, axis=0))
    near = np.where(distances <= change_score.FAR_THRESHOLD_SD * np.where(spread > 0.0, spread, np.inf), points, np.nan)
    min_variance = np.maximum(change_score.MIN_RELATIVE_VARIANCE * spread**2, change_score.MIN_VARIANCE)
    return np.sum(~np.isnan(near), axis=0), np.nanmean(near, axis=0), np.maximum(np.nanvar(near, axis=0), min_variance)


def ar1_in_numpy(points, normal):
    """Mean, variance and covariance with the point before of each coordinate of the normal points; the residuals."""
    n, d = points.shape
    normal_points = np.where(normal[:, None], points, np.nan)
    mean = np.nanmean(normal_points, axis=0)
    centred = normal_points - mean
    variance = np.maximum(np.nanmean(centred**2, axis=0), ar1.MIN_VARIANCE)
    covariance = np.nan_to_num(centred[1:] * centred[:-1]).sum(axis=0) / max(n - 1, 1)
    before = np.vstack([np.zeros((1, d)), np.nan_to_num(points[:-1] - mean)])
    return mean, variance, covariance, points - mean - np.clip(covariance / variance, -1.0, 1.0) * before


@pytest.mark.parametrize(("n", "d"), [(12, 1), (50, 2)])
def test_initial_moments_equal_numpy(n, d):
    points = standardize_and_screen(make_first_points(np.random.default_rng(n), n, d, has_missing=d > 1)).points
    normal = standardize_and_screen(points, INLIER_THRESHOLD_SD, majority=False).trusted
    moments, ar1_state = (
        np.zeros((N_STREAMS, change_score.VALUES_PER_VARIABLE * d + 2)),
        np.zeros((N_STREAMS, 4 * d + 1)),
    )
    our_residuals = np.empty_like(points)
    compiled_init_moments(points, normal, moments, ar1_state, our_residuals, np.empty(n))
    tolerance = {"rtol": 1e-10, "atol": 1e-12}
    for s in range(N_STREAMS):
        sample = moments[s, :-2].reshape(d, change_score.VALUES_PER_VARIABLE)
        ours = sample[:, [change_score.COUNT, change_score.MEAN, change_score.VARIANCE]].T
        np.testing.assert_allclose(ours, moments_in_numpy(points[s]), **tolerance)
        mean, variance, covariance, residuals = ar1_in_numpy(points[s], normal[s])
        sample = ar1_state[s, :-1].reshape(d, ar1.VALUES_PER_VARIABLE).T
        np.testing.assert_allclose(sample, [mean, variance, covariance, mean], **tolerance)
        np.testing.assert_allclose(our_residuals[s], residuals, **tolerance)
        assert ar1_state[s, -1] == normal[s].sum()
