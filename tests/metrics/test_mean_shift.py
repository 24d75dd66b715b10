"""The largest shift of means: against a slow reference, for a known jump, and with invalid input."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from limpet.datasets import make_abrupt
from limpet.exceptions import InvalidInputError
from limpet.learners import SRA
from limpet.metrics import MeanShift, largest_mean_shift


def compute_sizes(means, window):
    """Return the size of the shift in each row that has both windows."""
    return {
        row: float(np.linalg.norm(means[row : row + window].mean(axis=0) - means[row - window : row].mean(axis=0)))
        for row in range(window, len(means) - window + 1)
    }


@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(8, 30), st.integers(1, 3), st.integers(1, 2)),
        elements=st.floats(-9, 9),
    ),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_largest_mean_shift_is_the_maximum_over_all_rows(means, window, n_before):
    sizes = compute_sizes(means, window)
    padded = np.concatenate([np.full((n_before, *means.shape[1:]), math.nan), means])
    row, size = largest_mean_shift(padded, window)
    assert size == pytest.approx(max(sizes.values()), abs=1e-9)
    assert sizes[row - n_before] == pytest.approx(size, abs=1e-9)


def test_jump_is_at_its_first_row():
    means = np.zeros((100, 2, 1))
    means[40:, 0] = 3.0
    means[40:, 1] = -4.0
    assert largest_mean_shift(means, window=20) == MeanShift(40, 5.0)


@pytest.mark.parametrize("rho", [0.05, 0.01])
@pytest.mark.parametrize("memories", [1.0, 3.0, 6.0])
def test_lag_of_a_constant_step_equals_the_documented_formula(rho, memories):
    change, window = 2000, round(memories / rho)
    steps = np.arange(4000) - change + 1
    means = np.where(steps > 0, 1.0 - np.exp(-rho * steps), 0.0).reshape(-1, 1, 1)
    lag = largest_mean_shift(means, window).row - change
    assert lag == pytest.approx(math.log(2.0 - math.exp(-rho * window)) / rho, abs=1.5)
    assert lag < math.log(2.0) / rho


@pytest.mark.parametrize("seed", range(5))
def test_change_of_the_stream_of_the_paper_is_located(seed):
    stream = make_abrupt(seed=seed)
    learner = SRA(2, gamma=3.0, beta=0.1, M=5.0, norm="mean")
    row, size = largest_mean_shift(learner.process(stream.y, record="means").means)
    assert 10_000 <= row <= 10_100
    assert 0.5 < size < math.sqrt(0.5)  # both means go 0.5, and the averages see most of it


def test_large_offset_loses_no_precision():
    means = np.zeros((1000, 1, 1))
    means[600:] = 2.0**-10
    assert largest_mean_shift(means + 2.0**40, window=100) == MeanShift(600, 2.0**-10)


def test_constant_means_have_no_shift():
    assert largest_mean_shift(np.ones((10, 1, 1)), window=2) == MeanShift(2, 0.0)


@pytest.mark.parametrize("window", [0, -3, 1.5, "a"])
def test_invalid_window_raises(window):
    with pytest.raises(InvalidInputError, match="window"):
        largest_mean_shift(np.zeros((10, 1, 1)), window)


@pytest.mark.parametrize(
    ("means", "message"),
    [
        (np.zeros((10, 2)), r"shape \(T, K, d\)"),
        (np.full((10, 1, 1), math.nan), "got 0"),
        (np.zeros((7, 1, 1)), "at least 8 rows"),
        ([[[0.0]]] * 5 + [[[math.nan]]] + [[[0.0]]] * 5, "must be finite .* row 5"),
    ],
)
def test_invalid_means_raise(means, message):
    with pytest.raises(InvalidInputError, match=message):
        largest_mean_shift(means, window=4)
