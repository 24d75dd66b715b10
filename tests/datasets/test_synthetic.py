"""The generated streams against the distributions of the paper, and the `Stream` class."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from limpet.datasets import Stream, make_abrupt, make_gradual, make_traffic
from limpet.datasets.synthetic import NOTEBOOK_MATRIX, effective_numpy_covariance
from limpet.exceptions import InvalidInputError

MAKERS = [make_abrupt, make_gradual]

PRINTED_COVARIANCE = [[1, -0.8, 0.2], [-0.8, 1, 0.3], [0.2, 0.3, 1]]
ASYMMETRIC_MATRIX = np.array([[1, 0.7, -0.3], [-0.3, 1, 0.5], [-0.3, 0.5, 1]])
EIGENVALUES, EIGENVECTORS = np.linalg.eigh(ASYMMETRIC_MATRIX.T @ ASYMMETRIC_MATRIX)
NOTEBOOK_COVARIANCE = EIGENVECTORS @ np.diag(np.sqrt(EIGENVALUES)) @ EIGENVECTORS.T

# maker, dim, variant, means before, means after, covariance: typed again from the paper and its notes
MIXTURES = [
    (make_abrupt, 1, "printed", [[0.5], [-0.5]], [[1], [-1]], [[0.01]]),
    (make_gradual, 1, "printed", [[0.5], [-0.5]], [[1], [-1]], [[0.01]]),
    (make_abrupt, 3, "printed", [[3, 2, 1], [-2, 3, 2]], [[6, 4, 2], [-4, 6, -4]], PRINTED_COVARIANCE),
    (make_gradual, 3, "printed", [[3, 4, 1], [-2, 3, -2]], [[6, 8, 2], [-4, 6, -4]], PRINTED_COVARIANCE),
    (make_abrupt, 3, "notebook", [[0.5] * 3, [-0.5] * 3], [[1] * 3, [-1] * 3], NOTEBOOK_COVARIANCE),
    (make_gradual, 3, "notebook", [[0.5] * 3, [-0.5] * 3], [[1] * 3, [-1] * 3], NOTEBOOK_COVARIANCE),
]


@pytest.mark.parametrize(("make", "dim", "variant", "before", "after", "covariance"), MIXTURES)
def test_inliers_follow_the_stated_mixture(make, dim, variant, before, after, covariance):
    n = 40_000
    stream = make(n=n, dim=dim, variant=variant, seed=3)
    for rows, means in ((slice(0, n // 2), before), (slice(n // 2 + 300, n), after)):
        means = np.array(means, float)
        points = stream.y[rows][~stream.outliers[rows]]
        gap = means[0] - means[1]
        mixed = np.array(covariance) + np.outer(gap, gap) / 4  # law of total covariance, weights one half
        spread = np.sqrt(np.diag(mixed))
        np.testing.assert_array_less(abs(points.mean(0) - means.mean(0)), 5 * spread / np.sqrt(len(points)), "means")
        # products of coordinates have a deviation below sqrt(3) times the product of spreads
        np.testing.assert_array_less(
            abs(np.cov(points.T).reshape(dim, dim) - mixed),
            5 * np.sqrt(3 / len(points)) * np.outer(spread, spread),
            "covariance",
        )
        np.testing.assert_array_equal(stream.means[rows], np.broadcast_to(means, (len(stream.y[rows]), 2, dim)))
    np.testing.assert_allclose(stream.covariances, [covariance, covariance], atol=1e-12)


def test_one_dimensional_noise_is_gaussian_of_deviation_one_tenth():
    stream = make_abrupt(n=40_000, alpha=1.0, seed=1)
    first = stream.y[:, 0] > 0  # the components lie ten deviations apart
    assert abs(first.mean() - 0.5) < 5 * 0.5 / 200
    z = (stream.y[:, 0] - np.where(first, stream.means[:, 0, 0], stream.means[:, 1, 0])) / 0.1
    for level, share in ((1, 0.682689), (2, 0.954500), (3, 0.997300)):
        assert abs((abs(z) < level).mean() - share) < 5 * np.sqrt(share * (1 - share) / len(z))


@pytest.mark.parametrize("variant", ["printed", "notebook"])
def test_three_dimensional_noise_is_gaussian_across_the_line_of_means(variant):
    n = 40_000
    stream = make_gradual(n=n, dim=3, alpha=1.0, variant=variant, seed=2)
    gap = stream.means[0, 0] - stream.means[0, 1]
    across = np.cross(gap, [0.3, -1.0, 0.8])  # orthogonal to the gap: both components look alike from there
    z = (stream.y[: n // 2] - stream.means[0, 0]) @ across
    z /= np.sqrt(across @ stream.covariances[0] @ across)
    assert abs(z.mean()) < 5 / np.sqrt(len(z))
    assert abs(z.var() - 1) < 5 * np.sqrt(2 / len(z))
    assert abs((z**4).mean() - 3) < 5 * np.sqrt(96 / len(z))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("dim", "alpha", "U"), [(1, 0.99, 20.0), (1, 0.3, 7.0), (3, 0.5, 3.0)])
def test_outliers_are_uniform_with_the_given_share(make, dim, alpha, U):
    stream = make(dim=dim, alpha=alpha, U=U, seed=5)
    n = len(stream)
    assert abs(stream.outliers.mean() - (1 - alpha)) < 5 * np.sqrt(alpha * (1 - alpha) / n)
    far = stream.y[stream.outliers] / U
    assert -1 <= far.min() < -0.95
    assert 0.95 < far.max() < 1
    error = 5 / np.sqrt(len(far))
    quarters = np.stack([np.histogram(column, 4, (-1, 1))[0] for column in far.T]) / len(far)
    np.testing.assert_allclose(quarters, 0.25, atol=error * np.sqrt(3) / 4)
    moments = far.T @ far / len(far)
    np.testing.assert_allclose(moments, np.eye(dim) / 3, atol=error / 3)  # coordinates are independent


def test_ramp_at_exact_rows():
    means = make_gradual().means[:, :, 0]
    np.testing.assert_array_equal(means[9_999], [0.5, -0.5])
    np.testing.assert_allclose(means[10_000], [0.5 + 0.5 / 300, -0.5 - 0.5 / 300], rtol=1e-15)
    np.testing.assert_allclose(means[10_298], [0.5 + 0.5 * 299 / 300, -0.5 - 0.5 * 299 / 300], rtol=1e-15)
    np.testing.assert_array_equal(means[[10_299, 10_300, 19_999]], [[1, -1]] * 3)
    spatial = make_gradual(dim=3).means
    np.testing.assert_array_equal(spatial[10_149], [[4.5, 6, 1.5], [-3, 4.5, -3]])
    assert (np.diff(spatial[9_999:10_300, 0, 0]) > 0).all()


def test_abrupt_jump_is_at_the_change_row():
    means = make_abrupt(dim=3).means
    np.testing.assert_array_equal(means[9_999], [[3, 2, 1], [-2, 3, 2]])
    np.testing.assert_array_equal(means[10_000], [[6, 4, 2], [-4, 6, -4]])


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("n", [2, 3, 7, 601, 20_000])
def test_change_point_is_the_middle_row(make, n):
    stream = make(n=n)
    assert stream.change_points == [n // 2]
    moved = (stream.means != stream.means[0]).any(axis=(1, 2))
    assert np.flatnonzero(moved)[0] == n // 2


def test_notebook_covariance_is_the_effective_covariance_of_numpy():
    np.testing.assert_array_equal(NOTEBOOK_MATRIX, ASYMMETRIC_MATRIX)
    normals = np.random.RandomState(0).standard_normal((50, 3))
    drawn = np.random.RandomState(0).multivariate_normal(np.zeros(3), ASYMMETRIC_MATRIX, size=50, check_valid="ignore")
    factor = np.linalg.lstsq(normals, drawn, rcond=None)[0]  # drawn = normals @ factor, exactly
    np.testing.assert_allclose(normals @ factor, drawn, atol=1e-12)
    np.testing.assert_allclose(effective_numpy_covariance(ASYMMETRIC_MATRIX), factor.T @ factor, atol=1e-12)
    np.testing.assert_allclose(effective_numpy_covariance(np.array(PRINTED_COVARIANCE)), PRINTED_COVARIANCE, atol=1e-12)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("dim", [1, 3])
def test_result_depends_on_the_seed_only_and_global_state_is_unchanged(make, dim):
    np.random.seed(0)  # noqa: NPY002 - the global state is what is watched
    expected = np.random.RandomState(0).random_sample()
    once, again, other = (make(n=700, dim=dim, seed=seed) for seed in (11, 11, 12))
    np.testing.assert_array_equal(once.y, again.y)
    np.testing.assert_array_equal(once.outliers, again.outliers)
    assert not (once.y == other.y).all(axis=1).any()
    assert np.random.random_sample() == expected  # noqa: NPY002


@pytest.mark.parametrize("dim", [1, 3])
def test_inliers_do_not_depend_on_alpha_U_or_length(dim):
    few = make_abrupt(n=5000, dim=dim, alpha=0.99, seed=4)
    many = make_abrupt(n=5000, dim=dim, alpha=0.6, seed=4)
    wide = make_abrupt(n=5000, dim=dim, alpha=0.6, seed=4, U=40.0)
    long = make_abrupt(n=9001, dim=dim, alpha=0.6, seed=4)
    clean = ~many.outliers
    assert not few.outliers[clean].any()  # the rarer outliers are among the more frequent
    np.testing.assert_array_equal(few.y[clean], many.y[clean])
    np.testing.assert_array_equal(few.y[few.outliers], many.y[few.outliers])
    np.testing.assert_array_equal(wide.y[clean], many.y[clean])
    np.testing.assert_array_equal(wide.y[~clean], 2 * many.y[~clean])
    np.testing.assert_array_equal(long.y[:2500], many.y[:2500])


def test_abrupt_and_gradual_streams_share_their_noise():
    abrupt, gradual = make_abrupt(alpha=1.0, seed=9), make_gradual(alpha=1.0, seed=9)
    outside = np.r_[0:10_000, 10_299:20_000]
    np.testing.assert_array_equal(abrupt.y[outside], gradual.y[outside])
    assert not (abrupt.y[10_000:10_299] == gradual.y[10_000:10_299]).any()


def test_alpha_one_has_no_outliers():
    assert not make_abrupt(alpha=1.0).outliers.any()
    assert make_abrupt(alpha=0.01).outliers.mean() > 0.98


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1}, "n: must be .* at least 2, got 1"),
        ({"n": 10.5}, "n: must be"),
        ({"dim": 2}, "dim: must be 1 or 3, got 2"),
        ({"alpha": 0.0}, "alpha: must be .* got 0.0"),
        ({"alpha": 1.01}, "alpha: must be"),
        ({"alpha": float("nan")}, "alpha: must be"),
        ({"alpha": "most"}, "alpha: must be .* got 'most'"),
        ({"U": 0.0}, "U: must be .* got 0.0"),
        ({"U": float("inf")}, "U: must be"),
        ({"seed": -1}, "seed: must be .* got -1"),
        ({"seed": None}, "seed: must be"),
        ({"dim": 3, "variant": "paper"}, "variant: must be 'printed' or 'notebook', got 'paper'"),
        ({"dim": 1, "variant": "notebook"}, "variant: must be 'printed'"),
    ],
)
def test_invalid_arguments_raise(make, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        make(**arguments)


@pytest.mark.parametrize("attribute", ["y", "means", "outliers", "covariances"])
def test_generated_arrays_are_read_only(attribute):
    array = getattr(make_gradual(n=50, dim=3), attribute)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0


def test_stream_copies_its_input_and_is_frozen():
    y, labels, changes = np.zeros((4, 2)), np.array([0, 0, 1, 0]), [1, 2]
    stream = Stream(y, labels=labels, change_points=changes)
    y[:], labels[:] = 7, 0
    changes.append(3)
    assert (stream.y == 0).all()
    assert stream.labels.tolist() == [0, 0, 1, 0]
    assert stream.change_points == [1, 2]
    assert y.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        stream.y = y


def test_types_and_length_of_a_stream():
    stream = Stream([[1], [2], [3]], outliers=[0, 1, 0], labels=[True, False, False], split=np.int64(2))
    assert (stream.y.dtype, stream.outliers.dtype, stream.labels.dtype) == (np.float64, bool, np.int64)
    assert len(stream) == 3
    assert stream.means is None
    assert stream.change_points == []
    assert type(stream.split) is int


@pytest.mark.parametrize("vector", [[1, 2, 3], np.arange(1.0, 4.0), pd.Series([1.0, 2.0, 3.0])])
def test_vector_is_converted_to_one_column(vector):
    y = Stream(vector).y
    assert y.tolist() == [[1.0], [2.0], [3.0]]
    assert not y.flags.writeable
    assert not np.shares_memory(y, np.asarray(vector))


@pytest.mark.parametrize("row", [2, np.int64(2), [2], (2,)])
def test_single_change_point_needs_no_list(row):
    assert Stream(np.zeros(5), change_points=row).change_points == [2]
    assert Stream(np.zeros(5), change_points={"a": row}).change_points == {"a": [2]}


def test_stream_repr():
    full = Stream(np.zeros((6, 2)), np.zeros((6, 3, 2)), [0, 1, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0], [2, 4], "full", 3)
    assert repr(full) == (
        "Stream('full', 6 rows x 2, 3 components, 2 outliers, 1 anomalies, 2 changes, test from row 3)"
    )
    annotated = Stream(np.zeros((6, 1)), change_points={"a": [2], "b": (np.int64(1), 3)})
    assert annotated.change_points == {"a": [2], "b": [1, 3]}
    assert repr(annotated) == "Stream('stream', 6 rows x 1, changes by 2 annotators)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.zeros((5, 1, 1))}, r"y: must have .* shape \(T,\) or \(T, d\), got shape \(5, 1, 1\)"),
        ({"y": 5.0}, r"y: must have .* got shape \(\)"),
        ({"y": []}, "y: must have at least one row"),
        ({"y": np.zeros((0, 1))}, "y: must have at least one row"),
        ({"y": [["a"]]}, "y: must be an array of numbers, got list"),
        ({"means": np.zeros((4, 2, 1))}, r"means: must have shape \(5, any, 1\), got \(4, 2, 1\)"),
        ({"means": np.zeros((5, 2))}, r"means: must have shape"),
        ({"covariances": np.zeros((2, 1))}, r"covariances: must have shape \(any, 1, 1\)"),
        ({"means": np.zeros((5, 2, 1)), "covariances": np.ones((3, 1, 1))}, r"must have shape \(2, 1, 1\)"),
        ({"outliers": np.zeros(4)}, r"outliers: must have shape \(5,\), got \(4,\)"),
        ({"outliers": [0, 0, np.nan, 0, 0]}, "outliers: must be 0 or 1, got .*nan"),
        ({"labels": [0, 1, 2, 0, 0]}, "labels: must be 0 or 1, got .*2"),
        ({"change_points": [5]}, r"change_points: must be increasing rows in 0..4, got \[5\]"),
        ({"change_points": [-1]}, "change_points: must be increasing"),
        ({"change_points": [3, 3]}, "change_points: must be increasing"),
        ({"change_points": [1.5]}, "change_points: must be integers"),
        ({"change_points": {"a": [9]}}, "change_points: must be increasing"),
        ({"change_points": 5}, r"change_points: must be increasing rows in 0..4, got \[5\]"),
        ({"change_points": 1.5}, "change_points: must be integers"),
        ({"change_points": True}, "change_points: must be integers"),
        ({"split": 5}, "split: must be increasing rows in 0..4"),
        ({"split": "half"}, "split: must be integers"),
    ],
)
def test_inconsistent_arguments_of_a_stream_raise(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        Stream(**({"y": np.zeros((5, 1))} | arguments))


# --- traffic ---------------------------------------------------------------------------------------------------


def test_traffic_has_a_period_of_a_week_and_its_events():
    stream = make_traffic(weeks=5, seed=1)
    week, (shift,) = 7 * 144, stream.change_points
    level = stream.means[:, 0, 0]
    before = level[:shift]
    np.testing.assert_allclose(before[week:], before[:-week])
    assert level[shift] - level[shift - week] == pytest.approx(160.0)
    noise = stream.y[:, 0] - level
    ordinary = ~stream.outliers & (stream.labels == 0)
    assert noise[ordinary].std() == pytest.approx(40.0, rel=0.05)
    assert np.abs(noise[stream.outliers]).min() > 100.0
    assert stream.outliers.sum() == 8
    assert not (stream.outliers | (stream.labels == 1))[: 2 * week].any()
    outage = np.flatnonzero(stream.labels)
    assert len(outage) == 6
    assert stream.y[outage].max() < 100.0


def test_traffic_is_reproducible():
    assert np.array_equal(make_traffic(seed=3).y, make_traffic(seed=3).y)
    assert not np.array_equal(make_traffic(seed=3).y, make_traffic(seed=4).y)
    for params in ({"weeks": 3}, {"seed": -1}):
        with pytest.raises(InvalidInputError, match=next(iter(params))):
            make_traffic(**params)
