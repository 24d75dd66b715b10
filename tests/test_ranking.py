"""The area under the ROC curve and its interval."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import BadInputError
from holdfast.metrics import roc_auc, roc_auc_interval


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=40))
def test_it_counts_the_pairs_in_order(rows):
    scores, labels = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    pairs = [(p > n) + 0.5 * (p == n) for p in scores[labels] for n in scores[~labels]]
    expected = np.mean(pairs) if pairs else np.nan
    assert roc_auc(scores, labels) == pytest.approx(expected, nan_ok=True)


def test_it_agrees_with_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    labels = rng.random(1000) < 0.05
    scores = np.round(rng.normal(labels), 1)
    assert roc_auc(scores, labels) == pytest.approx(sklearn.roc_auc_score(labels, scores))


def test_nan_is_the_lowest_score():
    assert roc_auc([np.nan, 1.0, 2.0], [1, 0, 0]) == 0.0
    assert roc_auc([np.nan, 1.0, 2.0], [0, 0, 1]) == 1.0


def test_bad_labels():
    with pytest.raises(BadInputError, match="labels"):
        roc_auc([1.0, 2.0], [0, 2])
    with pytest.raises(BadInputError, match="labels"):
        roc_auc([1.0, 2.0], [0])


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """Normal scores one deviation apart have the AUC Φ(1/√2) = 0.7602."""
    rng = np.random.default_rng(2)
    labels = np.arange(260) >= 220
    inside = 0
    for seed in range(100):
        low, high = roc_auc_interval(rng.normal(labels.astype(float)), labels, replicates=200, seed=seed)
        inside += low <= 0.7602 <= high
    assert 86 <= inside <= 100


def test_the_interval_narrows_with_more_anomalies_and_is_the_same_again():
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


def test_restarts_are_averaged():
    rng = np.random.default_rng(4)
    labels = np.arange(300) < 20
    scores = rng.normal(labels.astype(float), size=(5, 300))
    low, high = roc_auc_interval(scores, labels, replicates=300)
    assert low < np.mean([roc_auc(row, labels) for row in scores]) < high
    assert np.isnan(roc_auc_interval(scores, np.zeros(300, int))).all()
