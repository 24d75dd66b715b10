"""The benchmarks of fleets and of the runtime, in sizes that take no time; what they compare with does learn."""

import numpy as np
import pytest

import limpet as lp
from limpet_lab.baselines.online_em import OnlineEM
from limpet_lab.baselines.timing import make_baselines, make_numpy_job
from limpet_lab.bench import BENCHMARKS, fleet, runtime
from limpet_lab.bench._workloads import (
    N_WARMUP_POINTS,
    draw_points,
    make_cycling_job,
    make_detector_kinds,
    make_sra_kind,
)
from limpet_lab.plots.scaling import draw_growth, spread_heights


def map_by_name(figures):
    assert all(np.isfinite(figure.value) and figure.value >= 0.0 for figure in figures)
    assert len({figure.name for figure in figures}) == len(figures)
    return {figure.name: figure for figure in figures}


# Fleets


def test_warm_fleet_equals_separate_learners():
    keys = [f"sensor {i}" for i in range(100)]
    warm_fleet, rows = make_sra_kind().make_fleet(keys), make_sra_kind().draw_points(100)
    assert warm_fleet.keys() == keys
    assert (warm_fleet.counts()["n_seen"] == N_WARMUP_POINTS).all()
    alone = [lp.from_bytes(warm_fleet[key].to_bytes()) for key in keys]
    scores = [learner.update(x).score for learner, x in zip(alone, rows[:, 0], strict=True)]
    assert warm_fleet.update(keys, rows).score.tolist() == scores
    # Copies that have learned other points.
    assert not np.array_equal(warm_fleet["sensor 0"].state, warm_fleet["sensor 64"].state)


def test_state_bytes_equal_those_of_the_state_matrix():
    warm_fleet = make_sra_kind().make_fleet(range(10))
    assert make_sra_kind().state_bytes == warm_fleet._membership.state_matrix.states.nbytes / 10 == 128


def test_drawn_points_have_the_expected_range_and_outlier_share():
    stable, corrupted = draw_points(20_000, 2, 1), draw_points(20_000, 2, 1, outliers=0.1)
    assert stable.min() > -6.0
    assert stable.max() < 12.0
    assert np.mean((corrupted < -6.0) | (corrupted > 12.0)) == pytest.approx(0.1 * 28.0 / 46.0, rel=0.1)


def test_cycling_job_uses_new_points_in_each_call_and_returns_their_number():
    seen = []
    job, n = make_cycling_job(lambda rows: seen.append(rows[0, 0]), np.arange(1000.0)[:, None], 10, min_points=50)
    job()
    assert n == 50
    assert len(seen) == len(set(seen)) == 10


def test_detector_kinds_are_full_and_compact():
    assert set(make_detector_kinds()) == {"Detector, K=1, d=1", "Detector, K=2, d=1", "compact Detector, K=1, d=1"}
    assert make_detector_kinds()["compact Detector, K=1, d=1"].make_learner().memory == "compact"


# Baselines


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_online_em_learns_a_mixture(offset):
    rng = np.random.default_rng(0)
    y = offset + rng.normal(rng.choice([-3.0, 3.0], 6000, p=[0.3, 0.7]), 1.0)
    model = OnlineEM(y[:20])
    scores = np.array([model.update(x) for x in y[20:]])
    np.testing.assert_allclose(model.means - offset, [-3.0, 3.0], atol=0.5)
    z = y - offset
    density = (0.3 * np.exp(-0.5 * (z + 3.0) ** 2) + 0.7 * np.exp(-0.5 * (z - 3.0) ** 2)) / np.sqrt(2.0 * np.pi)
    assert scores[2000:].mean() == pytest.approx(-np.log(density)[2020:].mean(), abs=0.05)


def test_online_em_of_many_streams_equals_that_of_each():
    rng = np.random.default_rng(1)
    first, y = rng.normal(size=(10, 5)), rng.normal(size=(50, 5))
    together = OnlineEM(first)
    scores = np.array([together.update(x) for x in y])
    for i in range(5):
        alone = OnlineEM(first[:, i])
        np.testing.assert_allclose(scores[:, i], [alone.update(x) for x in y[:, i]], rtol=1e-9)


def test_online_em_stays_finite_if_a_component_has_no_points():
    model = OnlineEM(np.concatenate([np.zeros(10), np.ones(10)]), step=0.5)
    scores = [model.update(1.0) for _ in range(3000)]
    assert np.isfinite(scores).all()


def test_baselines_run_on_one_stream_and_in_a_dict():
    pytest.importorskip("pysad")
    baselines = {baseline.name: baseline for baseline in make_baselines()}
    assert {"river ADWIN", "river PageHinkley", "river KSWIN", "river HalfSpaceTrees", "PySAD LODA"} <= set(baselines)
    assert "river MultivariateGaussian" in baselines
    for baseline in baselines.values():
        for job, n in (baseline.make_single_job(divisor=1000), baseline.make_dict_job(divisor=500)):
            job()
            assert n >= 2
    job, n = make_numpy_job(100)
    job()
    assert n >= 100


# The benchmarks


def test_fleet_and_runtime_are_listed():
    assert {"fleet", "runtime"} <= set(BENCHMARKS)


def test_ticks_are_compared_with_the_scalar_kernel():
    figures = map_by_name(fleet.measure_ticks(500, 1))
    assert figures["500 streams × 1 point: update(keys, X)"].at_least == 50.0
    assert figures["update(keys, X) over the scalar kernel alone, one core"].at_least == 3.0
    assert figures["state after the start"].is_reached


def test_frames_of_every_library_are_processed():
    figures = map_by_name(fleet.measure_frames(2000, 50, 1))
    assert sum("integers" in name for name in figures) == 3
    assert sum("strings" in name for name in figures) == 6


def test_initialization_is_timed():
    assert set(map_by_name(fleet.measure_starts(50))) == {"a new stream: its start, 50 of them in a call"}


def test_fleets_are_saved_and_loaded():
    assert set(map_by_name(fleet.measure_files(100, 1))) == {"10^2 states saved", "10^2 states loaded"}


def test_detectors_are_measured_by_bytes_and_speed(monkeypatch):
    monkeypatch.setitem(fleet.GOALS_BYTES, "plain", 128)
    figures = map_by_name(fleet.measure_detector_ticks("plain", make_sra_kind(), 300, 1))
    assert figures["plain: state after the start"].is_reached
    assert "plain: 300 streams × 1 point" in figures


def test_runtime_of_learners_and_baselines_is_measured(monkeypatch):
    pytest.importorskip("pysad")
    monkeypatch.setattr(runtime, "MAX_STREAMS_TIMED_TOGETHER", 100)
    kinds, few = {"K=2, d=1": make_sra_kind()}, make_baselines()[:1]
    figures = map_by_name(
        runtime.measure_one_stream(kinds, few, 100, 1) + runtime.measure_fleets(kinds, few, [100, 1000], 100, 1)
    )
    assert {"K=2, d=1: update(x)", "K=2, d=1: process", "river ADWIN: one stream"} <= set(figures)
    assert {"K=2, d=1: fleet of 10^2", "K=2, d=1: fleet of 10^3", "river ADWIN: a dict of 10^1"} <= set(figures)
    assert f"{runtime.NUMPY_LABEL}: fleet of 10^3" in figures


def test_fleets_beyond_the_memory_limit_are_skipped(monkeypatch):
    monkeypatch.setattr(runtime, "MAX_FLEET_BYTES", 128 * 100)
    figures = map_by_name(runtime.measure_fleets({"K=2, d=1": make_sra_kind()}, [], [100, 1000], 100, 1))
    assert "K=2, d=1: fleet of 10^2" in figures
    assert "K=2, d=1: fleet of 10^3" not in figures


def test_growth_is_measured_over_streams_points_and_learners(monkeypatch):
    pytest.importorskip("pysad")
    monkeypatch.setattr(runtime, "make_detector_kind", make_sra_kind)
    assert len(runtime.make_stream_jobs(1)) == 8
    assert len(runtime.make_point_jobs(1)) == 6
    assert set(runtime.make_kind_jobs(make_sra_kind(), 50)) == {"fleet", "process", "update(x)"}


# The picture


def test_growth_is_drawn():
    line = {1.0: 1e-6, 10.0: 2e-7, 1000.0: 1e-8}
    picture = draw_growth({"streams": {"fleet": line, "dict": {1.0: 1e-6}}, "points": {"fleet": line}})
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(lp.exceptions.InvalidInputError, match="above 0"):
        draw_growth({"streams": {"fleet": {0.0: 1.0}}})


def test_overlapping_labels_are_moved_apart():
    moved = spread_heights(np.array([0.2, 0.21, 0.22, 0.9]), 0.1)
    assert (np.diff(moved) >= 0.1 - 1e-6).all()
    assert moved[3] == 0.9
