"""Synthetic streams: the mixtures of the paper, and web traffic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray, Interval, Options, check_param
from limpet.datasets.labeled_stream import Stream
from limpet.exceptions import InvalidInputError

# What the published notebooks pass to numpy as a covariance. It is not symmetric (0.7 against −0.3).
NOTEBOOK_MATRIX: FloatArray = np.array([[1.0, 0.7, -0.3], [-0.3, 1.0, 0.5], [-0.3, 0.5, 1.0]])
PRINTED_COVARIANCE: FloatArray = np.array([[1.0, -0.8, 0.2], [-0.8, 1.0, 0.3], [0.2, 0.3, 1.0]])
RAMP_ROWS = 300
TRAFFIC_ROWS_PER_DAY = 144  # rows of 10 minutes
TRAFFIC_NOISE_SD, TRAFFIC_SHIFT = 40.0, 160.0  # requests per minute
TRAFFIC_SPIKES, TRAFFIC_OUTAGE_ROWS = 8, 6


def effective_numpy_covariance(matrix: FloatArray) -> FloatArray:
    """Return the covariance of `numpy.random.multivariate_normal` for any matrix.

    For A = U S Vᵀ it multiplies standard normals by S^½ Vᵀ; the covariance is V S Vᵀ = (AᵀA)^½. For the notebooks'
    matrix this is neither A nor its symmetric part. (`numpy.random.Generator` has U in place of V, hence (AAᵀ)^½.)
    """
    _, singular_values, right_vectors = np.linalg.svd(matrix)
    return np.asarray((right_vectors.T * singular_values) @ right_vectors)


def _get_regimes(dim: int, variant: str, gradual: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the paper's means before and after the change, and the covariance.

    In one dimension the printed 0.1 is read as a standard deviation. The two printed 3-D streams already differ before
    the change, and only the means of the gradual one double.
    """
    if dim == 1:
        before, covariance = np.array([[0.5], [-0.5]]), np.array([[0.1**2]])
    elif variant == "notebook":
        before = np.array([[0.5, 0.5, 0.5], [-0.5, -0.5, -0.5]])
        covariance = effective_numpy_covariance(NOTEBOOK_MATRIX)
    elif gradual:
        before, covariance = np.array([[3.0, 4.0, 1.0], [-2.0, 3.0, -2.0]]), PRINTED_COVARIANCE
    else:
        before = np.array([[3.0, 2.0, 1.0], [-2.0, 3.0, 2.0]])
        return before, np.array([[6.0, 4.0, 2.0], [-4.0, 6.0, -4.0]]), PRINTED_COVARIANCE
    return before, 2 * before, covariance


def make_abrupt(
    n: int = 20000, dim: int = 1, alpha: float = 0.99, U: float = 20.0, seed: int = 0, variant: str = "printed"
) -> Stream:
    """Generate a stream whose component means jump at row n // 2.

    Each point comes with probability α from ½ N(μ₁, Σ) + ½ N(μ₂, Σ) and else from the uniform distribution on
    [-U, U)ᵈ. In one dimension σ = 0.1 and the means go from (0.5, -0.5) to (1, -1). The draws of a row depend on the
    seed and the row alone, not on n; another α or U changes outliers, not inliers.

    Parameters
    ----------
    n : int
        Number of points, at least 2.
    dim : 1 or 3
        Number of coordinates.
    alpha : float in (0, 1]
        Share of points that are no outliers.
    U : float
        Half the side of the cube the outliers fill.
    seed : int
        Same seed, same stream; the gradual stream of the same seed shares its noise.
    variant : "printed" or "notebook"
        For dim=3: the data as the paper prints them, or as the authors' notebooks drew them for its tables.

    Examples
    --------
    >>> make_abrupt()
    Stream('abrupt 1-D', 20000 rows x 1, 2 components, 211 outliers, change at row 10000)
    >>> make_abrupt(n=10).means[[4, 5], :, 0]
    array([[ 0.5, -0.5],
           [ 1. , -1. ]])
    """
    return _make_stream(n, dim, alpha, U, seed, variant, gradual=False)


def make_gradual(
    n: int = 20000, dim: int = 1, alpha: float = 0.99, U: float = 20.0, seed: int = 0, variant: str = "printed"
) -> Stream:
    """Generate a stream whose component means drift from row n // 2 on.

    The drift takes 300 rows: the mean at time t is base + (t - 10000)/300 · (end - base), so that the change row has
    1/300 of the way behind it and the 300th row all of it. The printed 3-D formula omits the base, which is kept here.
    With n < 599 the stream ends before the drift does. All else is as in `make_abrupt`.

    Parameters
    ----------
    n, dim, alpha, U, seed, variant
        As in `make_abrupt`.

    Examples
    --------
    >>> stream = make_gradual(dim=3)
    >>> stream.change_points
    [10000]
    >>> stream.means[[9999, 10149, 10299], 0]
    array([[3. , 4. , 1. ],
           [4.5, 6. , 1.5],
           [6. , 8. , 2. ]])
    """
    return _make_stream(n, dim, alpha, U, seed, variant, gradual=True)


def make_traffic(weeks: int = 6, seed: int = 0) -> Stream:
    """Generate traffic with daily and weekly seasonality, spikes, an outage, a shift.

    Values are requests per minute in rows of 10 minutes, from a Monday at 0:00. They have a period of a week: a curve
    with its low at night and three quarters of the traffic on Saturdays and Sundays. The noise is normal with a
    standard deviation (sd) of 40 at every hour; that of real traffic grows with its level. From the third week on:

    - 8 spikes: single rows, 6 to 15 sd up or down, which are `outliers`;
    - an outage: for an hour on a Thursday 5 % of the traffic remains, which is the anomaly in `labels`;
    - a shift: on the following Wednesday at 10:00 the level rises by 4 sd and stays, which is the change point.

    Parameters
    ----------
    weeks : int
        Length of the stream, at least 4 weeks.
    seed : int
        Seed of the noise and the spikes.

    Returns
    -------
    Stream
        With the truth: `means` without noise, spikes and outage, `outliers`, `labels` and `change_points`.

    Examples
    --------
    >>> make_traffic()
    Stream('traffic', 6048 rows x 1, 1 components, 8 outliers, 6 anomalies, change at row 4380)
    """
    check_param("weeks", weeks, Interval(int, 4, None))
    check_param("seed", seed, Interval(int, 0, None))
    day, spike_rng, noise_rng = TRAFFIC_ROWS_PER_DAY, *np.random.default_rng(seed).spawn(2)
    rows = np.arange(weeks * 7 * day)
    hour, weekday = rows % day * 24.0 / day, rows // day % 7
    curve = 700.0 - 350.0 * np.cos(np.pi / 12.0 * (hour - 4.0)) - 100.0 * np.cos(np.pi / 6.0 * (hour - 9.0))
    level = curve * np.where(weekday >= 5, 0.75, 1.0)
    change = (7 * (weeks // 2 + 1) + 2) * day + 10 * day // 24
    level[change:] += TRAFFIC_SHIFT
    start = (7 * (weeks // 2) + 3) * day + 14 * day // 24
    outage = (rows >= start) & (rows < start + TRAFFIC_OUTAGE_ROWS)
    y = level + TRAFFIC_NOISE_SD * noise_rng.standard_normal(len(rows))
    y[outage] *= 0.05
    spikes = spike_rng.choice(np.flatnonzero((rows >= 14 * day) & ~outage), TRAFFIC_SPIKES, replace=False)
    signs, sizes = spike_rng.choice([-1.0, 1.0], TRAFFIC_SPIKES), spike_rng.uniform(6.0, 15.0, TRAFFIC_SPIKES)
    y[spikes] += signs * TRAFFIC_NOISE_SD * sizes
    y = np.maximum(y, 0.0).round()
    return Stream(y, level[:, None, None], np.isin(rows, spikes), outage.astype(np.int64), [change], "traffic")


def _make_stream(n: int, dim: int, alpha: float, U: float, seed: int, variant: str, gradual: bool) -> Stream:
    check_param("n", n, Interval(int, 2, None))
    check_param("dim", dim, Options(1, 3))
    check_param("alpha", alpha, Interval(float, 0, 1, closed="right"))
    check_param("U", U, Interval(float, 0, None, closed="neither"))
    check_param("seed", seed, Interval(int, 0, None))
    check_param("variant", variant, Options("printed", "notebook"))
    if variant == "notebook" and dim != 3:
        raise InvalidInputError(f"variant: must be 'printed' unless dim=3, got {variant!r}.")
    change = n // 2
    before, after, covariance = _get_regimes(dim, variant, gradual)
    steps = np.arange(n) - change + 1.0  # the paper's t - 10000: 1 at the change row
    progress = np.clip(steps / RAMP_ROWS, 0.0, 1.0) if gradual else (steps > 0).astype(np.float64)
    means = before + progress[:, None, None] * (after - before)
    y, outliers = _draw_points(means, covariance, alpha, U, seed)
    name = f"{'gradual' if gradual else 'abrupt'} {dim}-D{' notebook' if variant == 'notebook' else ''}"
    covariances = np.broadcast_to(covariance, (len(before), dim, dim))
    return Stream(y, means, outliers, None, [change], name, covariances=covariances)


def _draw_points(
    means: FloatArray, covariance: FloatArray, alpha: float, U: float, seed: int
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Draw a point per row, with separate generators per purpose."""
    n, n_components, dim = means.shape
    component_rng, outlier_rng, noise_rng, uniform_rng = np.random.default_rng(seed).spawn(4)
    component = component_rng.integers(n_components, size=n)
    outliers = np.asarray(outlier_rng.random(n) >= alpha)
    eigenvalues, eigenvectors = np.linalg.eigh(covariance)
    square_root = (eigenvectors * np.sqrt(eigenvalues)) @ eigenvectors.T
    # A sum of products and not `@`: BLAS may round a row differently in a matrix of another length.
    colored_noise = (noise_rng.standard_normal((n, dim))[:, :, None] * square_root).sum(axis=1)
    inlier_points = means[np.arange(n), component] + colored_noise
    outlier_points = U * (2.0 * uniform_rng.random((n, dim)) - 1.0)
    return np.where(outliers[:, None], outlier_points, inlier_points), outliers
