"""The guarantees of `lp.Detector()`: no parameters to set, no lock-out, alarms that describe the event."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

import limpet as lp
from limpet.exceptions import InvalidInputError, LimpetWarning, NotFittedError
from limpet.testing import assert_same_bits, assert_sound

# (K, d, covariance): each costs a compilation, so that there are few.
KINDS = [(1, 1, "full"), (2, 1, "full"), (1, 3, "full"), pytest.param(1, 3, "diagonal", marks=pytest.mark.long)]
GROUP_DISTANCE = 8.0  # between the two groups of a stream for K = 2
every_kind = pytest.mark.parametrize(("K", "d", "covariance"), KINDS)


def make_calm_stream(n, d=1, K=1, seed=0):
    """Groups of unit variance at 0 and, for K = 2, at `GROUP_DISTANCE`."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + GROUP_DISTANCE * rng.integers(K, size=(n, 1))


def make_eventful_stream(n, d=1, K=1, seed=0):
    """Make a calm stream with outliers and a jump."""
    y = make_calm_stream(n, d, K, seed)
    y[3 * n // 4 :] += 6.0 * K
    y[100::97] += 50.0
    return y


def get_true_means(K, d, level=0.0):
    return level + GROUP_DISTANCE * np.arange(K)[:, None] + np.zeros(d)


def get_error(learner, K, d, level=0.0):
    """Return the largest error of a mean."""
    return np.abs(np.sort(learner.means, axis=0) - get_true_means(K, d, level)).max()


def select_changes(alarms):
    return [alarm for alarm in alarms if alarm.kind == "change"]


def select_anomalies(alarms):
    return [alarm for alarm in alarms if alarm.kind == "anomaly"]


@every_kind
def test_defaults_estimate_the_mixture(K, d, covariance):
    y = 20.0 + 0.5 * make_calm_stream(2000, d, K)
    y[700] = 90.0
    learner = lp.Detector(K, covariance=covariance)
    trace = learner.process(y)
    assert trace.rejected[700]
    assert trace.rejected.sum() <= 2
    np.testing.assert_allclose(np.sort(learner.means, axis=0), 20.0 + 0.5 * get_true_means(K, d), atol=0.15)
    np.testing.assert_allclose(learner.weights, 1.0 / K, atol=0.1)
    expected = np.zeros((K, d, d)) + 0.25 * np.eye(d)
    np.testing.assert_allclose(learner.covariances, expected, atol=0.1)


@every_kind
@pytest.mark.parametrize(
    ("offset", "scale"), [(0.0, 2.0**-300), (0.0, 2.0**300), (2.0**20, 1.0), (-(2.0**-80), 2.0**-100)]
)
def test_units_do_not_matter(K, d, covariance, offset, scale):
    """Bit for bit if the change of units is a power of two without rounding."""
    y = np.round(make_eventful_stream(600, d, K) * 2.0**16) / 2.0**16
    plain, other = lp.Detector(K, covariance=covariance), lp.Detector(K, covariance=covariance)
    trace, same = plain.process(y), other.process(offset + scale * y)
    assert {alarm.kind for alarm in trace.alarms} == {"anomaly", "change"}
    for name in ("rejected", "p_value", "change_score", "anomaly", "change"):
        assert_same_bits(getattr(same, name), getattr(trace, name))
    assert same.alarms == trace.alarms
    np.testing.assert_allclose((same.score - trace.score)[50:], 1.25 * d * math.log(scale), rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose((other.means - offset) / scale, plain.means, rtol=1e-6)


def test_the_order_of_the_variables_does_not_matter():
    y = make_eventful_stream(600, 3)
    y[::7, 1] = np.nan
    a, b = lp.Detector(), lp.Detector()
    y = y[:440]  # before the jump: the detector breaks ties at random
    trace, same = a.process(y), b.process(y[:, [2, 0, 1]])
    np.testing.assert_allclose(same.score, trace.score, rtol=1e-9)
    np.testing.assert_array_equal(same.rejected, trace.rejected)
    np.testing.assert_allclose(b.means, a.means[:, [2, 0, 1]], rtol=1e-9)


@every_kind
def test_initialization_tolerates_a_fifth_of_outliers(K, d, covariance):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        y = make_calm_stream(400, d, K, seed)
        corrupted = rng.choice(50, 10, replace=False)
        y[corrupted] = rng.uniform(20.0, 80.0, (10, d)) * (1.0 if seed % 2 else rng.choice([-1.0, 1.0], (10, 1)))
        learner = lp.Detector(K, covariance=covariance)
        learner.process(y[:50])
        assert get_error(learner, K, d) < (0.8 if K == 1 else 1.2), seed
        trace = learner.process(y[50:])
        assert get_error(learner, K, d) < 0.5, seed
        assert trace.rejected.mean() < 0.03, seed
        assert np.diagonal(learner.covariances, axis1=1, axis2=2).max() < 2.0, seed


@every_kind
@pytest.mark.parametrize("jump", [5.0, 100.0, 1e6])
def test_detector_is_not_locked_out(K, d, covariance, jump):
    for seed in range(3):
        y = make_calm_stream(1300, d, K, seed)
        y[1000:] += jump * GROUP_DISTANCE ** (K - 1)
        learner = lp.Detector(K, covariance=covariance)
        learner.process(y[:1000])
        trace = learner.process(y[1000:])
        assert get_error(learner, K, d, jump * GROUP_DISTANCE ** (K - 1)) < 0.3 * math.sqrt(K) + 0.1, seed
        assert trace.rejected[50:].mean() < 0.02, seed
        assert len(select_changes(trace.alarms)) == 1, seed


@every_kind
def test_burst_of_outliers_does_not_move_the_estimate(K, d, covariance):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        learner = lp.Detector(K, covariance=covariance)
        learner.process(make_calm_stream(1000, d, K, seed))
        before, weights = learner.means, learner.weights
        burst = rng.uniform(15.0, 60.0, (8, d)) * rng.choice([-1.0, 1.0], (8, 1)) + 4.0 * (K - 1)
        trace = learner.process(burst)
        assert trace.rejected.all()
        assert not trace.change.any()
        assert trace.anomaly[0]
        after = learner.process(make_calm_stream(100, d, K, 50 + seed))
        assert not after.change.any(), seed
        assert after.rejected.sum() <= 1, seed
        assert np.abs(learner.means - before).max() < 0.2 * (1 + 2 * (K - 1)), seed
        np.testing.assert_allclose(learner.weights, weights, atol=0.15)


@every_kind
def test_p_values_are_calibrated(K, d, covariance):
    p = lp.Detector(K, covariance=covariance).process(make_calm_stream(10_000, d, K)).p_value[1000:]
    distances = np.abs(np.sort(p) - np.arange(1, len(p) + 1) / len(p))  # Kolmogorov and Smirnov's
    assert distances[: int(0.6 * len(p))].max() < 0.025
    assert distances.max() < 0.12  # unsurprising values share one or two bins
    assert 0.5e-2 < (p <= 1e-2).mean() < 2e-2
    assert (p <= 1e-4).mean() < 1e-3


def test_false_alarms_stay_within_the_rate():
    streams, n, far = 40, 2000, 1e-3
    counts = {"change": 0, "anomaly": 0}
    for seed in range(streams):
        for alarm in lp.Detector(far=far).process(make_calm_stream(n, seed=100 + seed)).alarms:
            counts[alarm.kind] += 1
    expected = streams * n * far
    assert counts["change"] < 1.5 * expected
    assert counts["anomaly"] < 1.5 * expected
    assert min(counts.values()) > 0  # it raises alarms


@pytest.mark.parametrize(("sign", "direction"), [(1.0, "up"), (-1.0, "down")])
@pytest.mark.parametrize("variable", [0, 1, 2])
def test_an_anomaly_names_its_row_and_variable(variable, sign, direction):
    y = make_calm_stream(1000, 3, seed=1)
    y[800, variable] += sign * 15.0
    trace = lp.Detector().process(y)
    (alarm,) = (alarm for alarm in trace.alarms if alarm.row == 800)
    assert (alarm.kind, alarm.row, alarm.onset) == ("anomaly", 800, 800)
    assert (alarm.direction, alarm.variables) == (direction, (variable,))
    assert 12.0 < alarm.size < 18.0
    assert alarm.p_value == trace.p_value[800] <= 1e-4
    assert trace.rejected[800]
    assert str(alarm).startswith(f"row 800: anomaly, variable {variable} {direction} by 1")


def test_anomaly_with_missing_values_is_detected():
    y = make_calm_stream(1000, 3, seed=1)
    y[800] = (math.nan, -15.0, math.nan)
    (alarm,) = (alarm for alarm in lp.Detector().process(y).alarms if alarm.row == 800)
    assert (alarm.row, alarm.direction, alarm.variables) == (800, "down", (1,))


@every_kind
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_shift_of_the_level_is_one_alarm(K, d, covariance, sign):
    n_correct, n_extra = 0, 0
    for seed in range(10):
        y = make_calm_stream(1200, d, K, seed + 20)
        y[1000:, d - 1] += sign * (4.0 if K == 1 else 3.0 * GROUP_DISTANCE)
        alarms = select_changes(lp.Detector(K, covariance=covariance).process(y).alarms)
        late = [alarm for alarm in alarms if alarm.row >= 1000]
        assert late[0].row <= 1020, seed
        n_extra += len(late) - 1
        n_correct += (
            abs(late[0].onset - 1000) <= 3
            and late[0].direction == ("up" if sign > 0.0 else "down")
            and late[0].variables[0] == d - 1
        )
    assert n_correct >= 8
    assert n_extra <= 1  # a false one


def test_change_of_spread_is_reported():
    y = make_calm_stream(2000, seed=3)
    y[1000:] *= 5.0
    wider = select_changes(lp.Detector().process(y).alarms)
    assert [alarm.direction for alarm in wider] == ["wider"]
    assert 2.5 < wider[0].size < 10.0
    y[1000:] /= 25.0
    narrower = select_changes(lp.Detector().process(y).alarms)
    assert [alarm.direction for alarm in narrower] == ["narrower"]
    assert 0.1 < narrower[0].size < 0.4


@every_kind
def test_the_change_score_rises_after_a_change_and_not_for_an_outlier(K, d, covariance):
    y = make_calm_stream(2000, d, K, seed=5)
    y[700] += 40.0
    y[1000:] += 2.0 * GROUP_DISTANCE
    score = lp.Detector(K, covariance=covariance).process(y).change_score
    normal_level = np.quantile(score[300:700], 0.95)
    assert score[700:720].max() < normal_level + 0.05
    assert score[1010:1100].min() > normal_level + 0.03
    assert score[1020:1050].min() > normal_level + 0.1


@every_kind
def test_alarms_are_the_same_by_update_and_by_process(K, d, covariance):
    y = make_eventful_stream(500, d, K)
    batch, loop = lp.Detector(K, covariance=covariance), lp.Detector(K, covariance=covariance)
    trace = batch.process(y)
    steps = [loop.update(row if d > 1 else float(row[0])) for row in y]
    reported = [alarm for step in steps for alarm in step.alarms]
    assert reported == trace.alarms
    before = False
    for step in steps:
        assert step.change == any(alarm.kind == "change" for alarm in step.alarms)
        assert (step.anomaly and not before) == any(alarm.kind == "anomaly" for alarm in step.alarms)
        before = step.anomaly


def test_alarms_have_the_names_of_the_columns():
    y = make_calm_stream(1500, 3, seed=2)
    y[500, 1] -= 20.0
    y[1000:, 2] += 6.0
    frame = pd.DataFrame(y, columns=["oil", "water", "air"])
    learner = lp.Detector()
    learner.process(frame[:600])
    again = lp.from_bytes(learner.to_bytes())
    uninterrupted, restored = learner.process(frame[600:]), again.process(frame[600:])
    assert uninterrupted.alarms == restored.alarms
    assert select_changes(uninterrupted.alarms)[0].variables[0] == "air"
    whole = lp.Detector().process(frame)
    assert select_anomalies(whole.alarms)[0].variables == ("water",)
    loop = lp.Detector()
    steps = [loop.update(dict(zip(frame.columns, row, strict=True))) for row in y]
    assert steps[500].alarms[0].variables == ("water",)
    assert "water down by" in str(steps[500].alarms[0])


@every_kind
def test_score_does_not_learn_and_equals_the_score_of_update(K, d, covariance):
    learner = lp.Detector(K, covariance=covariance)
    learner.process(make_calm_stream(300, d, K))
    before = learner.to_bytes()
    point = np.full(d, 30.0)
    score = learner.score(point if d > 1 else 30.0)
    assert learner.score(np.stack([point, point]))[1] == score
    assert learner.to_bytes() == before
    assert learner.update(point if d > 1 else 30.0).score == score
    assert score > learner.score(np.zeros(d) if d > 1 else 0.0) + 3.0


@every_kind
def test_estimates_exist_before_initialization_and_scores_do_not(K, d, covariance):
    learner = lp.Detector(K, covariance=covariance)
    with pytest.raises(NotFittedError):
        _ = learner.means
    y = make_calm_stream(60, d, K)
    for n in (1, 2, 3, 10, 49):
        learner = lp.Detector(K, covariance=covariance)
        trace = learner.process(y[:n])
        assert np.isnan(trace.score).all()
        assert np.isnan(trace.p_value).all()
        assert not (trace.rejected | trace.anomaly | trace.change).any()
        assert trace.alarms == []
        assert not learner.started
        assert_sound(learner)
        if n == 1:
            np.testing.assert_allclose(learner.means[0], y[0], rtol=1e-12)
        before = learner.to_bytes()
        assert math.isfinite(learner.score(y[n] if d > 1 else float(y[n, 0])))
        assert learner.to_bytes() == before
    trace = learner.process(y[49:])
    assert np.isfinite(trace.score[1:]).all()


@every_kind
@pytest.mark.parametrize("n_init", [1, 2, 3, 10])
def test_initialization_on_few_points(K, d, covariance, n_init):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        learner = lp.Detector(K, covariance=covariance, n_init=n_init)
        trace = learner.process(make_calm_stream(800, d))
    assert np.isfinite(trace.score[n_init:]).all()
    assert_sound(learner)
    assert np.abs(learner.weights @ learner.means).max() < 0.5


@every_kind
@pytest.mark.parametrize("level", [0.0, 5.0, -1e140])
def test_constant_stream_raises_no_alarm(K, d, covariance, level):
    learner = lp.Detector(K, covariance=covariance)
    trace = learner.process(np.full((600, d), level))
    assert trace.alarms == []
    assert not trace.rejected.any()
    assert np.isfinite(trace.score[50:]).all()
    np.testing.assert_allclose(learner.means, level, rtol=1e-6, atol=1e-6)


def test_changes_of_a_constant_stream_are_detected():
    y = np.full(1000, 5.0)
    y[500] = 6.0
    y[700:] = 7.0
    learner = lp.Detector()
    trace = learner.process(y)
    first, second = select_changes(trace.alarms), select_anomalies(trace.alarms)
    assert second[0].row == 500
    assert [alarm.onset for alarm in first] == [700]
    assert first[0].size == math.inf
    assert "up, after constant values" in str(first[0])
    assert learner.means.item() == 7.0
    assert not trace.rejected[730:].any()


def test_a_nearly_constant_stream_is_followed():
    rng = np.random.default_rng(0)
    y = np.full(3000, 5.0)
    y[rng.random(3000) < 0.05] = 5.1
    learner = lp.Detector()
    trace = learner.process(y)
    assert_sound(learner)
    assert np.isfinite(trace.score[50:]).all()
    np.testing.assert_allclose(learner.means, 5.0, atol=0.11)
    assert not trace.change.any()
    assert not trace.anomaly[1000:].any()  # values that recur become normal


@every_kind
@pytest.mark.parametrize("scale", [1e140, 1e-140])
def test_huge_and_tiny_values(K, d, covariance, scale):
    y = make_eventful_stream(600, d, K) * scale
    learner = lp.Detector(K, covariance=covariance)
    trace = learner.process(y)
    assert np.isfinite(trace.score[50:]).all()
    assert_sound(learner)
    assert get_relative_error(learner, K, d, scale) < 1.0


def get_relative_error(learner, K, d, scale):
    return np.abs(np.sort(learner.means / scale, axis=0) - get_true_means(K, d, 6.0 * K)).max()


@every_kind
def test_invalid_rows_do_not_change_results(K, d, covariance):
    y = make_eventful_stream(400, d, K)
    with_invalid = np.insert(y, [10, 120, 310], [[math.nan], [math.inf], [1e200]], axis=0)
    valid, learner = lp.Detector(K, covariance=covariance), lp.Detector(K, covariance=covariance)
    expected = valid.process(y)
    with pytest.warns(LimpetWarning, match="3 of 403 rows are invalid"):
        trace = learner.process(with_invalid)
    assert np.flatnonzero(trace.invalid).tolist() == [10, 121, 312]
    assert not (trace.rejected | trace.anomaly | trace.change)[trace.invalid].any()
    for name in ("score", "p_value", "change_score"):
        assert np.isnan(getattr(trace, name)[trace.invalid]).all()
        assert_same_bits(getattr(trace, name)[~trace.invalid], getattr(expected, name))
    valid_rows = np.flatnonzero(~trace.invalid)
    assert [alarm.row for alarm in trace.alarms] == [valid_rows[alarm.row] for alarm in expected.alarms]
    step = learner.update(np.full(d, math.nan) if d > 1 else math.nan)
    assert step.invalid
    assert step.alarms == ()
    strict = lp.Detector(K, covariance=covariance, on_invalid="raise")
    strict.process(y)
    before = strict.to_bytes()
    with pytest.raises(InvalidInputError, match="row 10"):
        strict.process(with_invalid)
    with pytest.raises(InvalidInputError):
        strict.update(np.full(d, math.inf) if d > 1 else math.inf)
    assert strict.to_bytes() == before


def test_state_is_at_most_3000_bytes():
    for K in (1, 2):
        learner = lp.Detector(K)
        learner.process(make_calm_stream(60, 1, K))
        assert 8 * (len(learner.state) - 50) <= 3000  # but for the 50 first points, of no use after the start


def test_sra_raises_no_alarms():
    y = make_calm_stream(300)
    for settings in ({"rho": 0.01}, {"gamma": 4.0}, {"half_life": 50}, {"gamma": 4.0, "beta": 0.1, "M": 5.0}):
        trace = lp.SRA(**settings).process(y)
        assert np.isnan(trace.p_value).all()
        assert trace.alarms == []
    with pytest.raises(InvalidInputError, match=r"^far:"):
        lp.Detector(far=0.2)
    assert lp.SRA(rho=0.01, reject_rate=0.2)


@pytest.mark.long
@pytest.mark.parametrize("d", [12, 30])
def test_p_values_of_many_variables_are_calibrated(d):
    y = np.random.default_rng(0).normal(size=(6000, d))
    y[5900] += 6.0
    trace = lp.Detector().process(y)
    for share in (0.01, 0.1, 0.5):
        assert (trace.p_value[3000:] <= share).mean() == pytest.approx(share, rel=0.5)
    assert np.flatnonzero(trace.anomaly).tolist() == [5900]
