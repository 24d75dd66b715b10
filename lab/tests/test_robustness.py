"""Test the robustness benchmark: its streams, its criteria, and that a locked-out learner fails it."""

import itertools
import math

import numpy as np
import pytest

import limpet as lp
from limpet_lab.bench import auto_latency, robustness
from limpet_lab.bench._scenarios import (
    OUTLIER_SOURCE,
    ROWS_AFTER_CHANGE,
    ROWS_BEFORE_CHANGE,
    Scenario,
    Setting,
    make_level_shift,
    make_ramp,
    make_settings,
    make_variance_jump,
)
from limpet_lab.bench.robustness import (
    compute_mean_error,
    compute_oracle,
    compute_variance_error,
    make_share_figures,
    run_bursts,
    run_scenarios,
    run_shifts,
)


def make_plain_sra(components=1):
    return lp.SRA(components, gamma=4.0, rho=0.02)


# --- streams ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "sign", "coordinates"), [(0, 1, 3), (1, 1, 1), (2, -1, 3), (3, -1, 1)])
def test_level_shift_has_the_sign_and_coordinates_of_its_seed(seed, sign, coordinates):
    scenario = make_level_shift(Setting(3, seed=seed), 1e6)
    moved = scenario.means[0] != 0
    assert moved.sum() == coordinates
    assert (scenario.means[0, moved] == sign * 1e6).all()
    assert scenario.change_row == scenario.settled_row == ROWS_BEFORE_CHANGE
    assert len(scenario.y) == ROWS_BEFORE_CHANGE + ROWS_AFTER_CHANGE
    assert np.abs(scenario.y[:ROWS_BEFORE_CHANGE]).max() < 10
    assert np.abs(scenario.y[ROWS_BEFORE_CHANGE:] - scenario.means[0]).max() < 10


def test_streams_are_equal_only_for_equal_settings():
    same = [make_level_shift(Setting(3, 0.05, "uniform", 7), 10.0).y for _ in range(2)]
    assert np.array_equal(*same)
    others = [Setting(3, 0.05, "uniform", 8), Setting(3, 0.06, "uniform", 7), Setting(3, 0.05, "one-sided", 7)]
    cells = itertools.product((Setting(3, 0.05, "uniform", 7), *others), (1.0, 3.0))
    first = {make_level_shift(setting, size).y[0, 0] for setting, size in cells}
    assert len(first) == 8


@pytest.mark.parametrize("kind", ["uniform", "one-sided", "clustered"])
def test_outliers_have_the_rate_and_distribution_of_the_setting(kind):
    rate, strange, all_rows = 0.05, [], 0
    for seed in range(20):
        scenario = make_level_shift(Setting(3, rate, kind, seed), 10.0)
        level = np.where(np.arange(len(scenario.y))[:, None] < ROWS_BEFORE_CHANGE, 0.0, scenario.means[0])
        outliers = scenario.source == OUTLIER_SOURCE
        assert np.abs((scenario.y - level)[~outliers]).max() < 6
        if kind == "clustered":
            center = np.median(scenario.y[outliers], axis=0)
            assert np.abs(scenario.y[outliers] - center).max() < 0.6  # it stays when the level moves
            assert np.linalg.norm(center) == pytest.approx(15, abs=0.2)
            assert np.linalg.norm(center - scenario.means[0]) > 4.8
        strange.append((scenario.y - level)[outliers])
        all_rows += len(level)
    points = np.concatenate(strange)
    assert len(points) / all_rows == pytest.approx(rate, abs=4 * math.sqrt(rate / all_rows))
    low = {"uniform": -20, "one-sided": 0}.get(kind)
    if low is not None:
        assert points.min() >= low
        assert points.max() <= 20
        assert points.mean() == pytest.approx((low + 20) / 2, abs=1)


@pytest.mark.parametrize("factor", [10.0, 0.1])
def test_variance_changes_by_the_given_factor(factor):
    scenario = make_variance_jump(Setting(8, 0.05), factor)
    clean = scenario.source != OUTLIER_SOURCE
    before, after = (
        scenario.y[rows][clean[rows]].var() for rows in (slice(ROWS_BEFORE_CHANGE), slice(ROWS_BEFORE_CHANGE, None))
    )
    assert scenario.variance == pytest.approx(factor)
    assert before == pytest.approx(1, rel=0.1)
    assert after == pytest.approx(factor, rel=0.15)
    assert (scenario.means == 0).all()


def test_ramp_rises_linearly_and_stays_constant_afterwards():
    streams = [make_ramp(Setting(8, seed=4 * s)) for s in range(20)]  # all of them up, in all coordinates
    mean = np.mean([s.y.mean(axis=1) for s in streams], axis=0)
    assert streams[0].settled_row == ROWS_BEFORE_CHANGE + 500
    assert len(mean) == ROWS_BEFORE_CHANGE + 500 + ROWS_AFTER_CHANGE
    expected = np.clip((np.arange(len(mean)) - ROWS_BEFORE_CHANGE + 1) / 50, 0, 10)
    assert np.abs(mean - expected).max() < 5 / math.sqrt(160)
    assert (streams[0].means == 10).all()


@pytest.mark.parametrize("seed", range(4))
def test_shift_of_two_components_moves_both_or_one_away_from_the_other(seed):
    setting = Setting(1, seed=seed)
    sign = 1 if seed < 2 else -1
    assert (make_level_shift(setting, 10.0, 2).means[:, 0] - [0, 6] == 10 * sign).all()
    alone = make_level_shift(setting, 10.0, 2, alone=True)
    assert alone.means[:, 0].tolist() == ([0, 16] if seed < 2 else [-10, 6])
    assert np.mean(alone.source) == pytest.approx(0.5, abs=0.06)


def test_grid_has_every_setting_and_one_kind_without_outliers():
    assert len(list(make_settings(seeds=range(20)))) == 13 * 3 * 20
    assert {s.kind for s in make_settings() if s.rate == 0} == {"uniform"}


# --- judges -----------------------------------------------------------------------------------------------


def make_truth(means, variance=1.0):
    means = np.array(means, dtype=float)
    return Scenario(np.zeros((1, means.shape[1])), np.zeros(1, int), 0, 0, means, variance, {"d": "1"}, 0)


def test_mean_error_is_the_largest_after_matching_components():
    scenario = make_truth([[0.0, 0.0], [6.0, 0.0]])
    assert compute_mean_error(np.array([[6.1, 0.0], [0.0, -0.25]]), np.ones((2, 2)), scenario) == pytest.approx(0.25)
    assert compute_mean_error(np.array([[6.1, 0.0], [np.nan, 0.0]]), np.ones((2, 2)), scenario) == math.inf


def test_variance_error_is_the_ratio_in_either_direction():
    scenario = make_truth([[0.0, 0.0]], variance=10.0)
    assert compute_variance_error(np.zeros((1, 2)), np.array([[10.0, 5.0]]), scenario) == pytest.approx(2)
    assert compute_variance_error(np.zeros((1, 2)), np.array([[15.0, 10.0]]), scenario) == pytest.approx(1.5)
    for bad in (0.0, np.nan):
        assert compute_variance_error(np.zeros((1, 2)), np.array([[10.0, bad]]), scenario) == math.inf


class MedianLearner:
    """A learner made by hand: median and spread of the last 250 rows, plus a fixed error."""

    def __init__(self, components=1, off=0.0):
        assert components == 1
        self.off = off

    def process(self, rows):
        recent = rows[-250:]
        self.means = np.median(recent, axis=0)[None] + self.off
        low, high = np.quantile(recent, [0.25, 0.75], axis=0)
        self.covariances = np.diag(((high - low) / 1.349) ** 2)[None]


def test_error_is_measured_300_rows_after_the_change():
    runs = run_shifts(MedianLearner, make_settings((0.0, 0.01, 0.05), seeds=range(4)))
    assert len(runs) == 5 * 7 * 3 * 4
    figures = {f.name: f for f in make_share_figures("shift", runs, 0.3)}
    assert figures["shift: of 420 runs"].value > 95
    assert figures["shift: oracle"].value == 100
    assert {"shift: shift 1e+06σ", "shift: outliers 5 %", "shift: kind clustered", "shift: d 8"} <= set(figures)
    off = run_shifts(lambda: MedianLearner(off=0.5), make_settings((0.0,), seeds=range(2)))
    assert make_share_figures("shift", off, 0.3)[0].value < 5
    assert not make_share_figures("shift", off, 0.3)[0].is_reached
    jumps = (make_variance_jump(s, f) for s in make_settings((0.0,), dims=(1, 3)) for f in (10.0, 0.1))
    variance = run_scenarios(jumps, MedianLearner, compute_variance_error)
    assert all(run.error < 1.5 for run in variance)


def test_oracle_estimates_from_clean_rows_after_the_change():
    for alone in (False, True):
        scenario = make_level_shift(Setting(3, 0.2, "one-sided", 1), 100.0, 2, alone)
        means, variances = compute_oracle(scenario)
        assert np.abs(means - scenario.means).max() < 0.4
        assert np.abs(variances - 1).max() < 0.5


# --- learners ---------------------------------------------------------------------------------------------


def test_bursts_move_sem_more_than_sra_and_sra_raises_no_alarm():
    results, reactions = run_bursts(make_plain_sra, 1, 3, 4)
    assert reactions == 0  # the plain scheme has no alarms
    assert list(results) == list(range(1, 9))
    assert all(r.immediate.shape == r.delayed.shape == (12,) for r in results.values())
    open_to_all, _ = run_bursts(lambda: lp.SEM(1, rho=0.02), 1, 3, 4)
    assert open_to_all[8].immediate.max() > 0.2
    assert open_to_all[8].immediate.max() > results[8].immediate.max()


def test_benchmark_reports_the_lock_out_of_plain_sra():
    figures = {f.name: f for f in robustness.measure(True, make_plain_sra)}
    assert all(np.isfinite(f.value) for f in figures.values())
    assert figures["shift, K=1: shift 1σ"].value > 60
    assert figures["shift, K=1: shift 1e+06σ"].value == 0
    assert not figures["a new level, 5σ off, d=1: noticed"].is_reached
    groups = ("shift, K=1", "variance, K=1", "ramp, K=1", "shift of both, K=2", "shift of one, K=2")
    for group in groups:
        assert any(name.startswith(f"{group}: of ") and f.at_least == 99 for name, f in figures.items())
    for kind, dim in itertools.product(("abrupt", "gradual"), ("1-D", "3-D")):
        assert any(name.startswith(f"{dim} {kind}") and f.at_most is not None for name, f in figures.items())


def test_latency_is_measured_for_every_case_and_for_adwin(monkeypatch):
    monkeypatch.setattr(auto_latency, "CASES", ((1, 1), (2, 1)))
    figures = {f.name: f for f in auto_latency.measure(True, make_plain_sra)}
    assert next(iter(figures)) == "ADWIN.update"
    assert figures["process, K=1, d=1"].at_most == 600
    assert figures["score, K=1, d=1"].at_most == 200
    assert figures["process, K=2, d=1"].at_most == 1000
    assert all(f.value > 0 for f in figures.values())
