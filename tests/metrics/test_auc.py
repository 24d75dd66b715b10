"""The area under the ROC curve and its interval."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.exceptions import InvalidInputError
from limpet.metrics import roc_auc, roc_auc_interval
from limpet.metrics.auc import number_runs


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=40))
def test_auc_is_the_share_of_ordered_pairs(rows):
    scores, labels = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    pairs = [(p > n) + 0.5 * (p == n) for p in scores[labels] for n in scores[~labels]]
    expected = np.mean(pairs) if pairs else np.nan
    assert roc_auc(scores, labels) == pytest.approx(expected, nan_ok=True)


def test_auc_equals_that_of_sklearn():
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    labels = rng.random(1000) < 0.05
    scores = np.round(rng.normal(labels), 1)
    assert roc_auc(scores, labels) == pytest.approx(sklearn.roc_auc_score(labels, scores))


def test_nan_is_the_lowest_score():
    assert roc_auc([np.nan, 1.0, 2.0], [1, 0, 0]) == 0.0
    assert roc_auc([np.nan, 1.0, 2.0], [0, 0, 1]) == 1.0


def test_invalid_labels_raise():
    with pytest.raises(InvalidInputError, match="labels"):
        roc_auc([1.0, 2.0], [0, 2])
    with pytest.raises(InvalidInputError, match="labels"):
        roc_auc([1.0, 2.0], [0])


def test_interval_covers_the_true_auc_at_about_its_level():
    """Normal scores one deviation apart have the AUC Φ(1/√2) = 0.7602."""
    rng = np.random.default_rng(2)
    labels = np.arange(260) >= 220
    inside = 0
    for seed in range(100):
        low, high = roc_auc_interval(rng.normal(labels.astype(float)), labels, replicates=200, seed=seed)
        inside += low <= 0.7602 <= high
    assert 86 <= inside <= 100


def test_interval_narrows_with_more_anomalies_and_is_reproducible():
    rng = np.random.default_rng(3)
    widths = []
    for n_positive in (16, 400):
        labels = np.arange(3000) < n_positive
        scores = rng.normal(labels.astype(float))
        low, high = roc_auc_interval(scores, labels, replicates=300)
        assert (low, high) == roc_auc_interval(scores, labels, replicates=300)
        assert low < roc_auc(scores, labels) < high
        widths.append(high - low)
    assert widths[1] < 0.4 * widths[0]


def test_interval_averages_restarts():
    rng = np.random.default_rng(4)
    labels = np.arange(300) < 20
    scores = rng.normal(labels.astype(float), size=(5, 300))
    low, high = roc_auc_interval(scores, labels, replicates=300)
    assert low < np.mean([roc_auc(row, labels) for row in scores]) < high
    assert np.isnan(roc_auc_interval(scores, np.zeros(300, int))).all()


@pytest.mark.parametrize("by_event", [False, True])
def test_interval_equals_that_of_a_simple_bootstrap(by_event):
    """Three restarts with ties and a NaN; five events of one to nine rows, resampled by event or by row."""
    rng = np.random.default_rng(5)
    events = [[0], [5, 6], list(range(10, 19)), [25, 26, 27], [39]]
    labels, heights = np.zeros(40, int), np.zeros(40)
    for event, height in zip(events, (2.0, 0.0, 1.5, -1.0, 1.0), strict=True):
        labels[event], heights[event] = 1, height
    scores = np.round(rng.normal(heights, size=(3, 40)), 1)
    scores[0, 3] = scores[1, 10] = np.nan
    above = np.mean(
        [[[roc_auc([p, n], [1, 0]) for n in restart[labels == 0]] for p in restart[labels == 1]] for restart in scores],
        axis=0,
    )
    clusters = np.split(np.arange(16), [1, 3, 12, 15]) if by_event else np.split(np.arange(16), 16)
    areas = []
    for _ in range(4000):
        anomalies = np.concatenate([clusters[i] for i in rng.integers(len(clusters), size=len(clusters))])
        areas.append(above[anomalies][:, rng.integers(24, size=24)].mean())
    for level in (0.5, 0.95):
        interval = roc_auc_interval(scores, labels, level=level, replicates=4000, by_event=by_event)
        assert interval == pytest.approx(np.percentile(areas, [50 - 50 * level, 50 + 50 * level]), abs=0.01)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([], []),
        ([0, 0], []),
        ([1], [0]),
        ([1, 1, 1], [0, 0, 0]),
        ([1, 0, 1], [0, 1]),
        ([0, 0, 1, 1, 0, 1, 0, 0, 1, 1], [0, 0, 1, 2, 2]),
        ([True, True, False, True], [0, 0, 1]),
    ],
)
def test_adjacent_anomalies_get_one_number(labels, expected):
    assert number_runs(labels).tolist() == expected


def test_interval_for_one_event_and_for_events_of_one_row():
    """One event is resampled whole, so only the normal rows vary; events of one row equal rows."""
    scores = np.random.default_rng(6).normal(size=40)
    isolated = (np.arange(40) % 5 == 0).astype(int)
    assert roc_auc_interval(scores, isolated, by_event=True) == roc_auc_interval(scores, isolated)
    joined = (np.arange(40) < 8).astype(int)
    whole, single = (roc_auc_interval(scores, joined, by_event=by_event) for by_event in (True, False))
    assert whole.low < roc_auc(scores, joined) < whole.high
    assert whole.high - whole.low < single.high - single.low
