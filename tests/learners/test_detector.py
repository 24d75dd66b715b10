"""What a user of `lp.Detector()` relies on: nothing to set, never locked out, alarms that describe what happened."""

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
GAP = 8.0  # between the two groups of a stream for K = 2
every_kind = pytest.mark.parametrize(("K", "d", "covariance"), KINDS)


def calm(n, d=1, K=1, seed=0):
    """Groups of unit variance at 0 and, for K = 2, at `GAP`."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + GAP * rng.integers(K, size=(n, 1))


def eventful(n, d=1, K=1, seed=0):
    """With outliers and a jump."""
    y = calm(n, d, K, seed)
    y[3 * n // 4 :] += 6.0 * K
    y[100::97] += 50.0
    return y


def truth(K, d, level=0.0):
    return level + GAP * np.arange(K)[:, None] + np.zeros(d)


def off(learner, K, d, level=0.0):
    """The largest error of a mean."""
    return np.abs(np.sort(learner.means, axis=0) - truth(K, d, level)).max()


def changes_in(alarms):
    return [alarm for alarm in alarms if alarm.kind == "change"]


def anomalies_in(alarms):
    return [alarm for alarm in alarms if alarm.kind == "anomaly"]


@every_kind
def test_nothing_has_to_be_set(K, d, covariance):
    y = 20.0 + 0.5 * calm(2000, d, K)
    y[700] = 90.0
    learner = lp.Detector(K, covariance=covariance)
    trace = learner.process(y)
    assert trace.rejected[700]
    assert trace.rejected.sum() <= 2
    np.testing.assert_allclose(np.sort(learner.means, axis=0), 20.0 + 0.5 * truth(K, d), atol=0.15)
    np.testing.assert_allclose(learner.weights, 1.0 / K, atol=0.1)
    expected = np.zeros((K, d, d)) + 0.25 * np.eye(d)
    np.testing.assert_allclose(learner.covariances, expected, atol=0.1)


@every_kind
@pytest.mark.parametrize(
    ("offset", "scale"), [(0.0, 2.0**-300), (0.0, 2.0**300), (2.0**20, 1.0), (-(2.0**-80), 2.0**-100)]
)
def test_units_do_not_matter(K, d, covariance, offset, scale):
    """To the bit, where the change of units is by a power of two and rounds nothing away."""
    y = np.round(eventful(600, d, K) * 2.0**16) / 2.0**16
    plain, other = lp.Detector(K, covariance=covariance), lp.Detector(K, covariance=covariance)
    trace, same = plain.process(y), other.process(offset + scale * y)
    assert {alarm.kind for alarm in trace.alarms} == {"anomaly", "change"}
    for name in ("rejected", "p_value", "change_score", "anomaly", "change"):
        assert_same_bits(getattr(same, name), getattr(trace, name))
    assert same.alarms == trace.alarms
    np.testing.assert_allclose((same.score - trace.score)[50:], 1.25 * d * math.log(scale), rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose((other.means - offset) / scale, plain.means, rtol=1e-6)


def test_the_order_of_the_variables_does_not_matter():
    y = eventful(600, 3)
    y[::7, 1] = np.nan
    a, b = lp.Detector(), lp.Detector()
    y = y[:440]  # before the jump: the detector breaks ties at random
    trace, same = a.process(y), b.process(y[:, [2, 0, 1]])
    np.testing.assert_allclose(same.score, trace.score, rtol=1e-9)
    np.testing.assert_array_equal(same.rejected, trace.rejected)
    np.testing.assert_allclose(b.means, a.means[:, [2, 0, 1]], rtol=1e-9)


@every_kind
def test_a_fifth_of_the_first_points_may_be_outliers(K, d, covariance):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        y = calm(400, d, K, seed)
        corrupted = rng.choice(50, 10, replace=False)
        y[corrupted] = rng.uniform(20.0, 80.0, (10, d)) * (1.0 if seed % 2 else rng.choice([-1.0, 1.0], (10, 1)))
        learner = lp.Detector(K, covariance=covariance)
        learner.process(y[:50])
        assert off(learner, K, d) < (0.8 if K == 1 else 1.2), seed
        trace = learner.process(y[50:])
        assert off(learner, K, d) < 0.5, seed
        assert trace.rejected.mean() < 0.03, seed
        assert np.diagonal(learner.covariances, axis1=1, axis2=2).max() < 2.0, seed


@every_kind
@pytest.mark.parametrize("jump", [5.0, 100.0, 1e6])
def test_it_is_never_locked_out(K, d, covariance, jump):
    for seed in range(3):
        y = calm(1300, d, K, seed)
        y[1000:] += jump * GAP ** (K - 1)
        learner = lp.Detector(K, covariance=covariance)
        learner.process(y[:1000])
        trace = learner.process(y[1000:])
        assert off(learner, K, d, jump * GAP ** (K - 1)) < 0.3 * math.sqrt(K) + 0.1, seed
        assert trace.rejected[50:].mean() < 0.02, seed
        assert len(changes_in(trace.alarms)) == 1, seed


@every_kind
def test_a_burst_of_outliers_moves_nothing(K, d, covariance):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        learner = lp.Detector(K, covariance=covariance)
        learner.process(calm(1000, d, K, seed))
        before, weights = learner.means, learner.weights
        burst = rng.uniform(15.0, 60.0, (8, d)) * rng.choice([-1.0, 1.0], (8, 1)) + 4.0 * (K - 1)
        trace = learner.process(burst)
        assert trace.rejected.all()
        assert not trace.change.any()
        assert trace.anomaly[0]
        after = learner.process(calm(100, d, K, 50 + seed))
        assert not after.change.any(), seed
        assert after.rejected.sum() <= 1, seed
        assert np.abs(learner.means - before).max() < 0.2 * (1 + 2 * (K - 1)), seed
        np.testing.assert_allclose(learner.weights, weights, atol=0.15)


@every_kind
def test_p_values_are_calibrated(K, d, covariance):
    p = lp.Detector(K, covariance=covariance).process(calm(10_000, d, K)).p_value[1000:]
    distances = np.abs(np.sort(p) - np.arange(1, len(p) + 1) / len(p))  # Kolmogorov and Smirnov's
    assert distances[: int(0.6 * len(p))].max() < 0.025
    assert distances.max() < 0.12  # what is hardly surprising at all lies in one bin or two
    assert 0.5e-2 < (p <= 1e-2).mean() < 2e-2
    assert (p <= 1e-4).mean() < 1e-3


def test_a_calm_stream_raises_no_more_than_was_promised():
    streams, n, far = 40, 2000, 1e-3
    counts = {"change": 0, "anomaly": 0}
    for seed in range(streams):
        for alarm in lp.Detector(far=far).process(calm(n, seed=100 + seed)).alarms:
            counts[alarm.kind] += 1
    expected = streams * n * far
    assert counts["change"] < 1.5 * expected
    assert counts["anomaly"] < 1.5 * expected
    assert min(counts.values()) > 0  # it is not asleep


@pytest.mark.parametrize(("sign", "direction"), [(1.0, "up"), (-1.0, "down")])
@pytest.mark.parametrize("variable", [0, 1, 2])
def test_an_anomaly_names_its_row_and_variable(variable, sign, direction):
    y = calm(1000, 3, seed=1)
    y[800, variable] += sign * 15.0
    trace = lp.Detector().process(y)
    (alarm,) = (alarm for alarm in trace.alarms if alarm.row == 800)
    assert (alarm.kind, alarm.row, alarm.onset) == ("anomaly", 800, 800)
    assert (alarm.direction, alarm.variables) == (direction, (variable,))
    assert 12.0 < alarm.size < 18.0
    assert alarm.p_value == trace.p_value[800] <= 1e-4
    assert trace.rejected[800]
    assert str(alarm).startswith(f"row 800: anomaly, variable {variable} {direction} by 1")


def test_an_anomaly_is_judged_by_what_is_known_of_it():
    y = calm(1000, 3, seed=1)
    y[800] = (math.nan, -15.0, math.nan)
    (alarm,) = (alarm for alarm in lp.Detector().process(y).alarms if alarm.row == 800)
    assert (alarm.row, alarm.direction, alarm.variables) == (800, "down", (1,))


@every_kind
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_shift_of_the_level_is_one_alarm(K, d, covariance, sign):
    right, further = 0, 0
    for seed in range(10):
        y = calm(1200, d, K, seed + 20)
        y[1000:, d - 1] += sign * (4.0 if K == 1 else 3.0 * GAP)
        alarms = changes_in(lp.Detector(K, covariance=covariance).process(y).alarms)
        late = [alarm for alarm in alarms if alarm.row >= 1000]
        assert late[0].row <= 1020, seed
        further += len(late) - 1
        right += (
            abs(late[0].onset - 1000) <= 3
            and late[0].direction == ("up" if sign > 0.0 else "down")
            and late[0].variables[0] == d - 1
        )
    assert right >= 8
    assert further <= 1  # a false one


def test_a_change_of_spread_is_reported_as_one():
    y = calm(2000, seed=3)
    y[1000:] *= 5.0
    wider = changes_in(lp.Detector().process(y).alarms)
    assert [alarm.direction for alarm in wider] == ["wider"]
    assert 2.5 < wider[0].size < 10.0
    y[1000:] /= 25.0
    narrower = changes_in(lp.Detector().process(y).alarms)
    assert [alarm.direction for alarm in narrower] == ["narrower"]
    assert 0.1 < narrower[0].size < 0.4


@every_kind
def test_the_change_score_rises_after_a_change_and_not_for_an_outlier(K, d, covariance):
    y = calm(2000, d, K, seed=5)
    y[700] += 40.0
    y[1000:] += 2.0 * GAP
    score = lp.Detector(K, covariance=covariance).process(y).change_score
    usual = np.quantile(score[300:700], 0.95)
    assert score[700:720].max() < usual + 0.05
    assert score[1010:1100].min() > usual + 0.03
    assert score[1020:1050].min() > usual + 0.1


@every_kind
def test_alarms_are_the_same_by_update_and_by_process(K, d, covariance):
    y = eventful(500, d, K)
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


def test_alarms_have_the_names_of_the_data():
    y = calm(1500, 3, seed=2)
    y[500, 1] -= 20.0
    y[1000:, 2] += 6.0
    frame = pd.DataFrame(y, columns=["oil", "water", "air"])
    learner = lp.Detector()
    learner.process(frame[:600])
    again = lp.from_bytes(learner.to_bytes())
    uninterrupted, restored = learner.process(frame[600:]), again.process(frame[600:])
    assert uninterrupted.alarms == restored.alarms
    assert changes_in(uninterrupted.alarms)[0].variables[0] == "air"
    whole = lp.Detector().process(frame)
    assert anomalies_in(whole.alarms)[0].variables == ("water",)
    loop = lp.Detector()
    steps = [loop.update(dict(zip(frame.columns, row, strict=True))) for row in y]
    assert steps[500].alarms[0].variables == ("water",)
    assert "water down by" in str(steps[500].alarms[0])


@every_kind
def test_score_learns_nothing_and_is_the_next_one(K, d, covariance):
    learner = lp.Detector(K, covariance=covariance)
    learner.process(calm(300, d, K))
    before = learner.to_bytes()
    point = np.full(d, 30.0)
    score = learner.score(point if d > 1 else 30.0)
    assert learner.score(np.stack([point, point]))[1] == score
    assert learner.to_bytes() == before
    assert learner.update(point if d > 1 else 30.0).score == score
    assert score > learner.score(np.zeros(d) if d > 1 else 0.0) + 3.0


@every_kind
def test_before_the_start_there_are_estimates_and_no_scores(K, d, covariance):
    learner = lp.Detector(K, covariance=covariance)
    with pytest.raises(NotFittedError):
        _ = learner.means
    y = calm(60, d, K)
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
def test_a_short_start_is_a_start(K, d, covariance, n_init):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        learner = lp.Detector(K, covariance=covariance, n_init=n_init)
        trace = learner.process(calm(800, d))
    assert np.isfinite(trace.score[n_init:]).all()
    assert_sound(learner)
    assert np.abs(learner.weights @ learner.means).max() < 0.5


@every_kind
@pytest.mark.parametrize("level", [0.0, 5.0, -1e140])
def test_a_constant_stream_raises_nothing(K, d, covariance, level):
    learner = lp.Detector(K, covariance=covariance)
    trace = learner.process(np.full((600, d), level))
    assert trace.alarms == []
    assert not trace.rejected.any()
    assert np.isfinite(trace.score[50:]).all()
    np.testing.assert_allclose(learner.means, level, rtol=1e-6, atol=1e-6)


def test_a_constant_stream_that_moves_is_seen():
    y = np.full(1000, 5.0)
    y[500] = 6.0
    y[700:] = 7.0
    learner = lp.Detector()
    trace = learner.process(y)
    first, second = changes_in(trace.alarms), anomalies_in(trace.alarms)
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
    assert not trace.anomaly[1000:].any()  # what keeps coming back is forgiven


@every_kind
@pytest.mark.parametrize("scale", [1e140, 1e-140])
def test_huge_and_tiny_numbers(K, d, covariance, scale):
    y = eventful(600, d, K) * scale
    learner = lp.Detector(K, covariance=covariance)
    trace = learner.process(y)
    assert np.isfinite(trace.score[50:]).all()
    assert_sound(learner)
    assert off_in(learner, K, d, scale) < 1.0


def off_in(learner, K, d, scale):
    return np.abs(np.sort(learner.means / scale, axis=0) - truth(K, d, 6.0 * K)).max()


@every_kind
def test_rows_that_cannot_be_used_are_passed_over(K, d, covariance):
    y = eventful(400, d, K)
    broken = np.insert(y, [10, 120, 310], [[math.nan], [math.inf], [1e200]], axis=0)
    clean, dirty = lp.Detector(K, covariance=covariance), lp.Detector(K, covariance=covariance)
    expected = clean.process(y)
    with pytest.warns(LimpetWarning, match="3 of 403 rows could not be used"):
        trace = dirty.process(broken)
    assert np.flatnonzero(trace.invalid).tolist() == [10, 121, 312]
    assert not (trace.rejected | trace.anomaly | trace.change)[trace.invalid].any()
    for name in ("score", "p_value", "change_score"):
        assert np.isnan(getattr(trace, name)[trace.invalid]).all()
        assert_same_bits(getattr(trace, name)[~trace.invalid], getattr(expected, name))
    usable = np.flatnonzero(~trace.invalid)
    assert [alarm.row for alarm in trace.alarms] == [usable[alarm.row] for alarm in expected.alarms]
    step = dirty.update(np.full(d, math.nan) if d > 1 else math.nan)
    assert step.invalid
    assert step.alarms == ()
    strict = lp.Detector(K, covariance=covariance, on_invalid="raise")
    strict.process(y)
    before = strict.to_bytes()
    with pytest.raises(InvalidInputError, match="row 10"):
        strict.process(broken)
    with pytest.raises(InvalidInputError):
        strict.update(np.full(d, math.inf) if d > 1 else math.inf)
    assert strict.to_bytes() == before


def test_a_million_streams_fit_in_three_gigabytes():
    for K in (1, 2):
        learner = lp.Detector(K)
        learner.process(calm(60, 1, K))
        assert 8 * (len(learner.state) - 50) <= 3000  # but for the 50 first points, of no use after the start


def test_the_paper_s_algorithm_raises_no_alarms():
    y = calm(300)
    for settings in ({"rho": 0.01}, {"gamma": 4.0}, {"half_life": 50}, {"gamma": 4.0, "beta": 0.1, "M": 5.0}):
        trace = lp.SRA(**settings).process(y)
        assert np.isnan(trace.p_value).all()
        assert trace.alarms == []
    with pytest.raises(InvalidInputError, match=r"^far:"):
        lp.Detector(far=0.2)
    assert lp.SRA(rho=0.01, reject_rate=0.2)


@pytest.mark.long
@pytest.mark.parametrize("d", [12, 30])
def test_p_values_of_many_variables_are_shares(d):
    y = np.random.default_rng(0).normal(size=(6000, d))
    y[5900] += 6.0
    trace = lp.Detector().process(y)
    for share in (0.01, 0.1, 0.5):
        assert (trace.p_value[3000:] <= share).mean() == pytest.approx(share, rel=0.5)
    assert np.flatnonzero(trace.anomaly).tolist() == [5900]
