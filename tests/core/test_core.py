"""Step sizes, thresholds and the layout of the state."""

import math

import numpy as np
import pytest
from numba import njit

import limpet as lp
from limpet.core import Constant, InverseTime, Layout, PolynomialDecay
from limpet.core.state import HEADER_SIZE, StreamBuffer
from limpet.core.step_sizes import polynomial_decay
from limpet.core.threshold import chi_square_tail, gamma_for_rate
from limpet.exceptions import InvalidInputError
from limpet.models import GaussianMixture


@njit
def apply_rule(t, parameters):
    return polynomial_decay(t, parameters)


def get_step(step_size, t):
    return apply_rule(float(t), np.array(step_size.parameters))


@pytest.mark.parametrize("t", [1, 2, 17, 10**6])
def test_step_sizes(t):
    assert get_step(Constant(0.25), t) == 0.25
    assert get_step(InverseTime(), t) == 1.0 / t
    np.testing.assert_allclose(
        get_step(PolynomialDecay(0.6, t0=4.0, scale=0.5), t), 0.5 * (t + 4.0) ** -0.6, rtol=1e-14
    )
    assert get_step(PolynomialDecay(0.6, scale=100.0), 1) == 1.0  # never beyond the point


def test_half_life():
    rho = Constant.from_half_life(20).rho
    np.testing.assert_allclose((1.0 - rho) ** 20, 0.5, rtol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Constant(0.0),
        lambda: Constant(1.5),
        lambda: Constant(math.nan),
        lambda: Constant.from_half_life(-1.0),
        lambda: PolynomialDecay(power=0.0),
        lambda: PolynomialDecay(t0=-1.0),
        lambda: gamma_for_rate(0.0, 1),
        lambda: gamma_for_rate(1.0, 1),
    ],
)
def test_invalid_step_sizes_and_rates_raise(make):
    with pytest.raises(InvalidInputError):
        make()


@pytest.mark.parametrize("d", [1, 2, 3, 8, 25])
def test_chi_square_tail_and_its_quantile(d):
    """Its derivative is the density, its value at 0 is 1."""
    assert chi_square_tail(0.0, d) == 1.0
    for x in (0.5, 3.0, 20.0, 60.0):
        density = math.exp((d / 2 - 1) * math.log(x) - x / 2 - (d / 2) * math.log(2.0) - math.lgamma(d / 2))
        h = 1e-4
        slope = (chi_square_tail(x - h, d) - chi_square_tail(x + h, d)) / (2 * h)
        np.testing.assert_allclose(slope, density, rtol=1e-5, atol=1e-12)
    for rate in (0.3, 1e-4, 1e-9):
        np.testing.assert_allclose(chi_square_tail(gamma_for_rate(rate, d) ** 2, d), rate, rtol=1e-9)


def test_default_threshold_rejects_the_requested_share():
    y = np.random.default_rng(0).normal(size=(200_000, 3))
    learner = lp.SRA(reject_rate=0.01, rho=0.001, n_init=200)
    learner.process(y)
    assert 0.005 < learner.n_rejected / learner.n_seen < 0.02


def test_layout_views_share_memory():
    layout = Layout({"a": (2,), "b": (2, 2)})
    theta = np.zeros(layout.size)
    layout.view(theta, "b")[1, 0] = 7.0
    np.testing.assert_array_equal(theta, [0, 0, 0, 0, 7, 0])
    with pytest.raises(KeyError):
        layout.view(theta, "c")


def test_parts_of_a_stream_buffer_share_one_vector():
    buffer = StreamBuffer(np.array([1.0, 2.0]), work_size=3, theta_size=4, start_shape=(2, 5))
    for part, value in ((buffer.work, 3.0), (buffer.header, 4.0), (buffer.theta, 5.0), (buffer.start, 6.0)):
        part[:] = value
    expected = [1, 2, *[3] * 3, *[4] * HEADER_SIZE, *[5] * 4, *[6] * 10]
    np.testing.assert_array_equal(buffer.vector, expected)
    np.testing.assert_array_equal(buffer.state, expected[5:])


def test_the_state_has_the_fields_of_its_layout():
    learner = lp.SRA(2, gamma=6.0)
    points = np.random.default_rng(0).normal(size=(300, 3)) * 5.0 + 100.0
    learner.process(points)
    kernels = GaussianMixture(2).kernels(3)
    theta = learner.state[HEADER_SIZE : HEADER_SIZE + kernels.layout.size]
    np.testing.assert_array_equal(
        kernels.layout.view(theta, "weights"), learner._engine.functions.layout.view(theta, "weights")
    )
    means = (
        kernels.layout.view(theta, "reference")
        + kernels.layout.view(theta, "scale") * kernels.layout.view(theta, "components")[:, :3]
    )
    np.testing.assert_array_equal(means, learner.means)
    assert learner.state[0] == 300


def test_state_of_the_paper_s_algorithm_is_at_most_128_bytes():
    learner = lp.SRA(2, gamma=3.0, beta=0.1, M=5.0, norm="mean")
    learner.process(np.arange(20.0))
    assert (len(learner.state) - learner.n_init) * 8 <= 128
