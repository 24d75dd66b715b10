"""NAB's score, the rank onset and the areas on small cases and against loops; the series and their windows."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from limpet.datasets import Stream, load_nab
from limpet.datasets.loaders import ANOMALY_WINDOW_ROWS
from limpet.exceptions import InvalidInputError
from limpet.metrics import detection_auc, drop_probation, hit_curve, nab_score, rank_onset, running_rank
from limpet.metrics.nab import find_windows
from limpet_lab.baselines import scorers
from limpet_lab.bench import real_streams

DATA = Path(__file__).parents[3] / "shared" / "data"


def make_window(n=100, first=40, last=59):
    labels = np.zeros(n, dtype=int)
    labels[first : last + 1] = 1
    return labels


def make_flags(n, *rows):
    levels = np.zeros(n)
    levels[list(rows)] = 1.0
    return levels


# --- NAB's score -----------------------------------------------------------------------------------------------------


def test_perfect_detection_scores_100_and_no_detection_0():
    labels = [make_window(), make_window(80, 20, 29) + make_window(80, 60, 69)]
    perfect = [make_flags(100, 40), make_flags(80, 20, 60)]
    assert nab_score(perfect, labels, [10, 10]) == pytest.approx(100.0)
    assert nab_score([np.full(100, np.nan), np.full(80, np.nan)], labels, [10, 10]) == 0.0
    assert nab_score([np.zeros(100), np.zeros(80)], labels, [10, 10]) == 0.0  # nor pays flagging all
    assert math.isnan(nab_score([make_flags(100, 40)], [np.zeros(100)], [10]))  # no window, no score


def test_early_detection_scores_higher_than_late():
    scores = [nab_score([make_flags(100, row)], [make_window()], [10]) for row in range(40, 60)]
    assert (np.diff(scores) < 0).all()
    sigmoid = 2 / (1 + math.exp(5 * -0.05)) - 1  # the last row of 20 lies 1/20 before the end
    assert scores[-1] == pytest.approx(50 * (1 + sigmoid / (2 / (1 + math.exp(-5)) - 1)))
    assert nab_score([make_flags(100, 45, 50, 59)], [make_window()], [10]) == pytest.approx(scores[5])  # once


def test_cost_of_false_alarms_increases_with_the_distance_from_the_window():
    far_before, just_behind, behind, far_behind = (
        nab_score([make_flags(200, 40, row)], [make_window(200)], [10]) for row in (20, 60, 75, 150)
    )
    assert far_before == pytest.approx(100 - 50 * 0.11)
    assert far_behind == far_before
    assert far_before < behind < just_behind < 100
    assert just_behind == pytest.approx(100 + 50 * 0.11 * (2 / (1 + math.exp(5 / 19)) - 1))
    two = nab_score([make_flags(200, 40, 20, 25)], [make_window(200)], [10])
    assert two == pytest.approx(100 - 100 * 0.11)


def test_best_common_threshold_of_all_series_is_used():
    labels = [make_window(), make_window()]
    high, low = 2 * make_flags(100, 40), make_flags(100, 40, *range(5, 40))
    assert nab_score([high, low], labels, [0, 0]) == pytest.approx(50.0)  # 35 false alarms do not pay for a hit
    assert nab_score([high, 2 * make_flags(100, 40)], labels, [0, 0]) == pytest.approx(100.0)


def test_rows_before_the_first_are_not_scored():
    assert nab_score([make_flags(100, 5, 40)], [make_window()], [10]) == pytest.approx(100.0)
    early = make_window(100, 2, 6) + make_window()
    # A window that is over does not count.
    assert nab_score([make_flags(100, 40)], [early], [10]) == pytest.approx(100.0)
    half = nab_score([make_flags(100, 50)], [make_window()], [50])
    assert half == nab_score([make_flags(100, 50)], [make_window()], [10])  # but one that is not over keeps its length


def reference_curve(levels, labels, firsts):
    """Compute false alarms, windows hit and NAB's sum for each threshold separately."""
    thresholds = sorted({x for level, first in zip(levels, firsts, strict=True) for x in level[first:] if x == x})
    curve = []
    for threshold in [math.inf, *reversed(thresholds)]:
        score, false, hits, windows, rows = 0.0, 0, 0, 0, 0
        for level, label, first in zip(levels, labels, firsts, strict=True):
            spans = find_windows(label)
            flagged = [t for t in range(first, len(level)) if level[t] >= threshold]
            rows += len(level) - first
            for a, b in spans:
                if b < first:
                    continue
                windows += 1
                inside = [t for t in flagged if a <= t <= b]
                hits += bool(inside)
                score += nab_sigmoid(-(b - inside[0] + 1) / (b - a + 1)) / nab_sigmoid(-1) if inside else -1.0
            for t in flagged:
                if not label[t]:
                    before = [(a, b) for a, b in spans if b < t]
                    position = (t - before[-1][1]) / max(before[-1][1] - before[-1][0], 1) if before else 3.0
                    score += 0.11 * nab_sigmoid(position)
                    false += 1
        curve.append((1000 * false / rows, hits / windows, score))
    return np.array(curve).T


def nab_sigmoid(x):
    return -1.0 if x >= 3.0 else 2 / (1 + math.exp(5 * x)) - 1


@pytest.mark.parametrize("seed", range(5))
def test_hit_curve_equals_the_reference(seed):
    rng = np.random.default_rng(seed)
    labels = [make_window(120, 30, 41) + make_window(120, 80, 80), make_window(70, 3, 12), np.zeros(50, dtype=int)]
    levels = [rng.integers(0, 12, len(label)) / 4 for label in labels]
    for level in levels:
        level[rng.random(len(level)) < 0.2] = np.nan
    firsts = [10, 5, 0]
    curve, expected = hit_curve(levels, labels, firsts), reference_curve(levels, labels, firsts)
    np.testing.assert_allclose(curve, expected, rtol=0, atol=1e-12)
    assert nab_score(levels, labels, firsts) == pytest.approx(100 * (expected[2].max() + 3) / 6)
    for limit in (20.0, 150.0, 5000.0):
        x = (np.arange(100_000) + 0.5) / 100_000 * limit
        mean = expected[1][np.searchsorted(expected[0], x, side="right") - 1].mean()
        assert detection_auc(levels, labels, firsts, limit) == pytest.approx(mean, abs=1e-4)


# --- levels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quiet_rows", [1, 7, 100, 1000])
def test_rank_onset_equals_a_loop(quiet_rows):
    rng = np.random.default_rng(quiet_rows)
    scores = rng.normal(size=400).round(1)  # with ties
    scores[rng.random(400) < 0.05] = np.nan
    filled = np.where(np.isnan(scores), -np.inf, scores)
    ranks = [sum(filled[s] < filled[t] for s in range(t)) / (t + 1) for t in range(400)]
    onset = [r if all(r > past for past in ranks[max(0, t - quiet_rows) : t]) else np.nan for t, r in enumerate(ranks)]
    np.testing.assert_array_equal(running_rank(scores), ranks)
    np.testing.assert_array_equal(rank_onset(scores, quiet_rows), onset)


def test_ranks_do_not_depend_on_the_scale():
    scores = np.random.default_rng(0).normal(size=300)
    np.testing.assert_array_equal(rank_onset(scores), rank_onset(np.exp(600 + 10 * scores)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nab_score([], [], []), "must be equally many, at least one, got 0, 0 and 0"),
        (lambda: nab_score([[1, 2]], [[0, 1]], []), "got 1, 1 and 0"),
        (lambda: nab_score([[1, 2]], [[0, 1, 1]], [0]), r"labels\[0\]: must have shape \(2,\), got \(3,\)"),
        (lambda: nab_score([[1, 2]], [[0, 1]], [2]), r"first_scored_rows\[0\]: must be a row in 0..1, got 2"),
        (lambda: detection_auc([[1, 2]], [[0, 1]], [0], 0.0), "limit: must be"),
        (lambda: rank_onset([1, 2], quiet=0), "quiet: must be"),
        (lambda: drop_probation([1, 2], n=2), "n: must be less than 2, the number of scores, got 2"),
    ],
)
def test_invalid_arguments_raise(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


# --- baselines -------------------------------------------------------------------------------------------------------


def test_baselines_are_gaussian():
    y = np.random.default_rng(0).normal(size=(60, 2)) @ [[2.0, 1.0], [0.0, 0.5]] + 7.0
    plain, weighted = scorers.score_exponential_gaussian(y, 1e-9), scorers.score_exponential_gaussian(y, 0.2)
    assert plain[50] == pytest.approx(minus_log_density(y[50], y[:50], np.full(50, 1 / 50)))
    start = 1 / np.minimum(np.arange(1, 51), 5)  # steps 1, 1/2, … 1/5, 1/5
    weights = start * np.append(np.cumprod((1 - start)[:0:-1])[::-1], 1.0)
    assert weighted[50] == pytest.approx(minus_log_density(y[50], y[:50], weights))
    window = scorers.score_window_gaussian(y[:, :1], 20)
    assert window[50] == pytest.approx(minus_log_density(y[50, :1], y[30:50, :1], np.full(20, 1 / 20)))
    constant = np.full((9, 2), 5.0)
    assert np.isfinite(scorers.score_exponential_gaussian(constant, 0.1)).all()
    assert np.isfinite(scorers.score_window_gaussian(constant[:, :1], 3)).all()


def minus_log_density(x, points, weights):
    mean = weights @ points
    covariance = (weights[:, None] * (points - mean)).T @ (points - mean)
    difference = x - mean
    _, log_det = np.linalg.slogdet(2 * np.pi * covariance)
    return 0.5 * (difference @ np.linalg.solve(covariance, difference) + log_det)


def test_benchmark_compares_ours_with_the_best_other_method():
    y = np.random.default_rng(0).normal(size=1000)
    y[700] = 40.0
    labels = np.zeros(1000, dtype=int)
    labels[690:720] = 1
    stream = Stream(y, labels=labels, name="toy", split=150)
    other = np.random.default_rng(1).normal(size=1000)
    figures = real_streams.make_window_figures("toy", [stream], {"Detector()": {"toy": y}, "noise": {"toy": other}})
    table = {figure.name: figure for figure in figures}
    ours, noise = table["toy, NAB score: Detector()"], table["toy, NAB score: noise"]
    assert ours.value > 95
    assert ours.at_least == noise.value < ours.value
    assert ours.is_reached
    assert noise.at_least is None
    assert table["toy, windows hit, rows ≤ 20: Detector()"].value == 1.0


# --- the series ------------------------------------------------------------------------------------------------------


@pytest.fixture
def real_data(monkeypatch):
    if not (DATA / "nab_part" / "windows.json").exists():
        pytest.skip(f"the series are not in {DATA}")
    monkeypatch.setenv("LIMPET_DATA", str(DATA))


@pytest.mark.usefixtures("real_data")
def test_series_and_windows_equal_those_published():
    published = json.loads((DATA / "nab_part" / "windows.json").read_text())
    streams = load_nab()
    assert [f"{name}.csv" for name in ANOMALY_WINDOW_ROWS] == list(published)
    assert [stream.name for stream in streams] == [f"NAB {name}" for name in ANOMALY_WINDOW_ROWS]
    for stream, (name, windows) in zip(streams, published.items(), strict=True):
        with (DATA / "nab_part" / name).open() as file:
            times, values = zip(*list(csv.reader(file))[1:], strict=True)
        assert stream.y[:, 0].tolist() == [float(value) for value in values]
        score = [[f"{times[a]}.000000", f"{times[b]}.000000"] for a, b in find_windows(stream.labels)]
        assert score == windows
        assert stream.split == min(15 * len(stream) // 100, 750)
        assert not stream.labels[: stream.split].any()
    assert sum(len(stream) for stream in streams) == 123_523
    assert sum(len(windows) for windows in ANOMALY_WINDOW_ROWS.values()) == 39
    assert (
        repr(streams[21]) == "Stream('NAB realKnownCause/nyc_taxi', 10320 rows x 1, 1035 anomalies, test from row 750)"
    )


@pytest.mark.usefixtures("real_data")
def test_score_of_an_exponentially_weighted_gaussian_is_unchanged():
    streams = load_nab()
    scores = {stream.name: scorers.score_exponential_gaussian(stream.y, 0.01) for stream in streams}
    score = real_streams.score_windows(streams, scores, 50)
    assert [round(value, 2) for value in score.values()] == pytest.approx([37.0, 0.48, 0.64, 0.74], abs=0.011)
    real = real_streams.score_windows(streams[11:], scores, 50)
    assert real["NAB score"] == pytest.approx(43.8, abs=0.05)
