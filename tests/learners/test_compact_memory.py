"""Compact memory: size, false-alarm rate, no lock-out, and delays close to those of full memory."""

import math

import numpy as np
import pytest

import limpet as lp
from limpet.core.memory_profile import COMPACT
from limpet.detection.change_detector import COUNTER_WRAP_POINTS, make_e_process
from limpet.detection.layout import CLUSTER_ABOVE, CLUSTER_BELOW, N_SEEN, channel_layout
from limpet.exceptions import InvalidInputError
from limpet.testing import assert_same_bits, assert_sound
from limpet_lab.bench.compact_memory import compute_state_bytes, measure_delay
from limpet_lab.bench.detection_delay import ChangeKind


def make_compact(**settings):
    return lp.Detector(memory="compact", **settings)


def make_normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def test_state_is_small():
    learner = make_compact()
    learner.process(make_normal(0, 100))
    assert 8 * (len(learner.state) - learner.n_init) == compute_state_bytes("compact", 1) <= 512
    assert compute_state_bytes("compact", 2) <= 600
    assert compute_state_bytes("full", 1) <= compute_state_bytes("full", 2) <= 3000


def test_memory_is_a_parameter():
    learner = make_compact(far=1e-3)
    assert learner.get_params()["memory"] == "compact"
    assert repr(learner) == "Detector(far=0.001, memory='compact')"
    assert learner.clone().memory == "compact"
    assert lp.from_bytes(learner.to_bytes()).memory == "compact"
    with pytest.raises(InvalidInputError, match=r"^memory:"):
        lp.Detector(memory="leaner")
    for params in ({"lags": 2}, {"season": 24}):
        with pytest.raises(InvalidInputError, match=r"^memory: must be 'full'"):
            make_compact(**params)


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
def test_alarms_describe_the_event(scale):
    y = make_normal(1, 1200) * scale
    y[500] += 15.0 * scale
    y[1000:] += 4.0 * scale
    learner = make_compact()
    trace = learner.process(y)
    anomaly = next(alarm for alarm in trace.alarms if alarm.row == 500)
    (change,) = (alarm for alarm in trace.alarms if alarm.kind == "change")
    assert (anomaly.kind, anomaly.direction) == ("anomaly", "up")
    assert anomaly.p_value <= 1e-4
    assert trace.rejected[500]
    assert 1000 <= change.row <= 1010
    assert abs(change.onset - 1000) <= 3
    assert change.direction == "up"
    assert 2.5 < change.size < 6.5  # in spreads of the first fifty points
    assert trace.change_score[change.row] >= 0.5 > np.nanmax(trace.change_score[:1000])
    assert "compact" in learner.summary()
    assert_sound(learner)


@pytest.mark.parametrize("jump", [5.0, -100.0, 1e6, 1e9, -1e13])
def test_compact_detector_is_not_locked_out_by_any_jump(jump):
    """Numbers of 32 bits resolve nothing a million spreads from their origin, so the origin moves along."""
    for seed in range(3):
        y = make_normal(seed, 1300)
        y[1000:] += jump
        learner = make_compact()
        learner.process(y[:1000])
        trace = learner.process(y[1000:])
        assert abs(learner.means.item() - jump) < 0.35
        assert 0.6 < learner.covariances.item() < 1.6
        assert trace.rejected[60:].mean() < 0.02
        assert sum(alarm.kind == "change" for alarm in trace.alarms) == 1


def test_origin_follows_a_drift():
    y = make_normal(3, 40_000) + 2.5 * np.arange(40_000)
    learner = make_compact()
    trace = learner.process(y, record="means")
    assert np.abs(trace.means[1000:, 0, 0] - 2.5 * np.arange(1000, 40_000)).max() < 100.0
    experts = learner._engine.layout.view(learner._engine.buffer.theta, "experts")
    assert np.abs(experts[:, 1]).max() < 3e4


def test_burst_does_not_move_the_estimate_and_a_constant_raises_no_alarm():
    for seed in range(5):
        learner = make_compact()
        learner.process(make_normal(seed, 1000))
        before = learner.means.item()
        trace = learner.process(np.random.default_rng(seed).uniform(15.0, 60.0, 8) * (-1.0) ** np.arange(8))
        assert trace.rejected.all()
        assert not trace.change.any()
        assert trace.anomaly[0]
        assert not learner.process(make_normal(50 + seed, 100)).change.any()
        assert abs(learner.means.item() - before) < 0.2
    for level in (0.0, 5.0, -1e140):
        learner = make_compact()
        trace = learner.process(np.full(600, level))
        assert trace.alarms == []
        assert not trace.rejected.any()
        np.testing.assert_allclose(learner.means, level, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("corrupted", [0.0, 0.05])
def test_false_alarm_rate(corrupted):
    far, n = 1e-3, 120_000
    rng = np.random.default_rng(8)
    streams = (
        rng.standard_normal(n),
        rng.standard_t(3, n),
        rng.lognormal(size=n),
        np.round(rng.standard_normal(n) * 2),
    )
    for y in streams:
        is_outlier = rng.random(n) < corrupted
        y[is_outlier] = rng.uniform(-40.0, 40.0, is_outlier.sum())
        trace = make_compact(far=far).process(y)
        assert 0.3 * far < trace.change.mean() < 1.3 * far
        assert trace.anomaly[~is_outlier].mean() < 1.5 * far
        assert np.isfinite(trace.score[50:]).all()


def test_delay_is_close_to_that_of_full_memory():
    for kind, max_ratio in (
        (ChangeKind("", 1.0, 1.0), 1.5),
        (ChangeKind("", 3.0, 1.0), 1.5),
        (ChangeKind("", 0.0, 2.0), 1.8),
    ):
        full, compact = (measure_delay(kind, 0.0, 20, memory=memory) for memory in ("full", "compact"))
        assert compact.detected_share >= 0.95
        assert compact.median_delay <= max_ratio * full.median_delay


def test_counts_in_32_bits_stay_exact():
    """Adding 1 to a float of 32 bits has no effect beyond 2^24."""
    channel = np.zeros(channel_layout(COMPACT).channel_size, np.float32)
    channel[N_SEEN], channel[CLUSTER_ABOVE + 2], channel[CLUSTER_BELOW + 2] = (
        2.0 * COUNTER_WRAP_POINTS - 1.0,
        2.0 * COUNTER_WRAP_POINTS - 5.0,
        7.0,
    )
    make_e_process(COMPACT).count_point(channel)
    assert channel[[N_SEEN, CLUSTER_ABOVE + 2, CLUSTER_BELOW + 2]].tolist() == [
        COUNTER_WRAP_POINTS,
        COUNTER_WRAP_POINTS - 5.0,
        7.0 - COUNTER_WRAP_POINTS,
    ]
    learner = make_compact()
    learner.process(make_normal(0, 100))
    counts = learner._engine.layout.view(learner._engine.buffer.theta, "counts")
    counts[:] = 2.0 * COUNTER_WRAP_POINTS - 1.0
    learner.process(make_normal(1, 1))
    assert (counts == COUNTER_WRAP_POINTS).all()


@pytest.mark.long
def test_two_components_of_two_variables_with_missing_values():
    rng = np.random.default_rng(4)
    y = rng.standard_normal((900, 2)) + 9.0 * rng.integers(2, size=(900, 1))
    y[600:] += 1e7
    y[rng.random(900) < 0.1, 1] = math.nan
    whole, pieces = make_compact(n_components=2), make_compact(n_components=2)
    trace = whole.process(y)
    for at in range(0, 900, 45):
        pieces = lp.from_bytes(pieces.to_bytes())
        pieces.process(y[at : at + 45])
    assert_same_bits(pieces.state, whole.state)
    assert_sound(whole)
    assert 600 <= next(alarm.row for alarm in trace.alarms if alarm.kind == "change") < 640
    np.testing.assert_allclose(np.sort(whole.means, axis=0) - 1e7, [[0.0, 0.0], [9.0, 9.0]], atol=1.0)
