"""Streams of practice: rounded, mostly one value, with dead sensors, missing values, seasons, many components."""

import math

import numpy as np
import pytest

import limpet as lp
from limpet.exceptions import InvalidInputError, LimpetWarning

ROWS = 5000

DISCRETE = {
    "mostly 0, a tenth 1": lambda rng: (rng.random(ROWS) < 0.1).astype(float),
    "rarely 1": lambda rng: (rng.random(ROWS) < 0.01).astype(float),
    "rounded": lambda rng: np.round(rng.normal(20.0, 0.5, ROWS)),
    "few counts": lambda rng: rng.poisson(0.3, ROWS).astype(float),
    "counts": lambda rng: rng.poisson(3.0, ROWS).astype(float),
    "rain": lambda rng: np.where(rng.random(ROWS) < 0.15, rng.exponential(size=ROWS), 0.0),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_values_raise_few_anomalies(name):
    """Only the first occurrences of a new value are anomalies."""
    for seed in range(6):
        trace = lp.Detector().process(DISCRETE[name](np.random.default_rng(seed)))
        assert trace.anomaly.sum() <= 6, seed
        assert not trace.anomaly[ROWS // 2 :].sum() > 2, seed
        assert trace.change.sum() <= 3, seed


@pytest.mark.parametrize("level", [0.0, 3.0, 1000.0])
def test_single_deviation_of_a_constant_stream_is_an_anomaly(level):
    y = np.full(2000, level)
    y[1500] += 0.005 * (level or 1000.0)
    trace = lp.Detector().process(y)
    assert np.flatnonzero(trace.anomaly).tolist() == [1500]


def test_dead_sensor_does_not_affect_the_other():
    y = np.random.default_rng(0).normal(size=(3000, 3))
    y[1000:, 1] = np.nan
    y[1500:, 0] += 20.0
    learner = lp.Detector()
    trace = learner.process(y)
    assert abs(learner.means[0, 0] - 20.0) < 0.3
    assert abs(learner.means[0, 1]) < 0.5
    assert trace.rejected[1500:].sum() < 40


@pytest.mark.long
def test_mixture_of_six_components_is_reinitialized():
    rng = np.random.default_rng(1)
    y = rng.normal(size=3000) + 10.0 * rng.integers(6, size=3000)
    y[1500:] += 500.0
    learner = lp.Detector(6, n_init=200)
    trace = learner.process(y)
    assert learner.means.min() > 490.0
    assert not trace.rejected[2000:].mean() > 0.2  # one of six may be lost in seventy points


def make_seasonal_stream(n, period, amplitude, seed=0):
    return np.random.default_rng(seed).normal(size=n) + amplitude * np.sin(2.0 * np.pi / period * np.arange(n))


def test_season_stays_aligned_after_missing_rows_in_the_initialization():
    period, amplitude = 24, 8.0
    y = make_seasonal_stream(60 * period, period, amplitude)
    y[[3, 4, 9, 20, 21, 30, 31, 40]] = np.nan
    learner = lp.Detector(season=period)
    with pytest.warns(LimpetWarning, match="8 of 1440 rows"):
        trace = learner.process(y)
    assert trace.invalid.sum() == 8
    assert trace.change.sum() <= 1  # while the profile is learned, what is left becomes narrower
    assert not trace.rejected.mean() > 0.01
    assert abs(learner.means[0, 0]) < 0.3
    assert abs(math.sqrt(learner.covariances[0, 0, 0]) - 1.0) < 0.2


@pytest.mark.parametrize("shape", ["sine", "square"])
def test_anomalies_are_detected_after_removal_of_the_season(shape):
    period, days = 24, 120
    wave = np.sin(2.0 * np.pi / period * (np.arange(days * period) + 0.5))
    if shape == "square":
        wave = np.sign(wave)
    n_detected = 0
    for seed in range(5):
        y = np.random.default_rng(seed).normal(size=days * period) + 20.0 * wave
        spike = 60 * period + period // 4
        y[spike] -= 15.0  # still within the range of the season
        trace = lp.Detector(season=period).process(y)
        n_detected += trace.anomaly[spike] and trace.rejected[spike]
        assert not trace.rejected.mean() > 0.01
    assert n_detected == 5


def test_onset_counts_missing_rows():
    y = np.random.default_rng(2).normal(size=6000)
    y[4500:] += 2.0
    y[np.arange(6000) % 3 > 0] = np.nan
    with pytest.warns(LimpetWarning, match="4000 of 6000 rows"):
        trace = lp.Detector().process(y)
    alarm = next(alarm for alarm in trace.alarms if alarm.kind == "change")
    assert abs(alarm.onset - 4500) <= 9
    assert abs(alarm.size - 2.0) < 1.0


def test_sizes_are_never_negative():
    y = np.random.default_rng(3).normal(size=3000)
    y[700] = -12.0
    y[1500:] -= 3.0
    glitch, change = lp.Detector().process(y).alarms[:2]
    assert (glitch.direction, change.direction) == ("down", "down")
    assert 8.0 < glitch.size < 16.0
    assert 2.0 < change.size < 5.0


def test_a_step_of_a_trace_has_its_alarms():
    y = np.random.default_rng(4).normal(size=1000)
    y[700] = 20.0
    learner, loop = lp.Detector(), lp.Detector()
    learner.process(y[:500])
    trace = learner.process(y[500:])
    steps = [loop.update(x) for x in y][500:]
    for row in (199, 200, 201, -300):
        assert trace.step(row) == steps[row]
        assert trace.step(row).alarms == steps[row].alarms
    assert len(trace.step(200).alarms) == 1


def test_threshold_inflation_stays_bounded_at_a_high_rate():
    learner = lp.Detector(far=0.05)
    learner.process(np.random.default_rng(5).normal(size=20_000))
    assert np.abs(learner.state).max() < 1e6


@pytest.mark.parametrize("row", [40, 99, 100, 200])
def test_selected_number_of_components_is_restored_and_reported(row):
    rng = np.random.default_rng(6)
    y = rng.normal(size=300) + 8.0 * rng.integers(2, size=300)
    whole, loop, first = (lp.Detector(n_components="auto") for _ in range(3))
    whole.process(y)
    for x in y:
        loop.update(x)
    first.process(y[:row])
    again = lp.from_bytes(first.to_bytes())
    again.process(y[row:])
    assert "2 components" in whole.summary()
    for other in (loop, again):
        assert other.summary() == whole.summary()
        np.testing.assert_array_equal(other.state, whole.state)


def test_the_summary_reports_the_excess_alarms_of_an_unstable_stream():
    walk = np.cumsum(np.random.default_rng(7).normal(size=8000))
    learner = lp.Detector()
    assert learner.process(walk).change.sum() > 8
    assert "uncorrelated" not in learner.summary()
    assert "change alarms" in learner.summary()


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"beta": -1.0}, "beta"),
        ({"beta": 0.0}, "beta"),
        ({"beta": math.nan}, "beta"),
        ({"beta": "x"}, "beta"),
        ({"far": 1e-300}, "far"),
        ({"far": 0.5}, "far"),
        ({"season": 1}, "season"),
        ({"season": -3}, "season"),
        ({"lags": -1}, "lags"),
        ({"memory": "compact", "season": 7}, "memory"),
    ],
)
def test_invalid_parameters_raise(settings, name):
    with pytest.raises(InvalidInputError, match=f"^{name}:"):
        lp.Detector(**settings)
