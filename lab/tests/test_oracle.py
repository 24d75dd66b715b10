"""What the true parameters would score, against plain loops."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from limpet.datasets import make_abrupt, make_gradual
from limpet.metrics import benefit_auc
from limpet_lab.paper.oracle import compute_truth_auc, compute_truth_with_memory_auc

STREAM_MAKERS = {"abrupt": make_abrupt, "gradual": make_gradual}


def compute_log_density(stream, means):
    """log f of each point under the mixture with these means, one (K, d) for each row."""
    of_components = [
        multivariate_normal.logpdf(stream.y - means[:, k], cov=covariance)
        for k, covariance in enumerate(stream.covariances)
    ]
    return np.logaddexp(*of_components) - math.log(2.0)


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("kind", STREAM_MAKERS)
def test_truth_auc_uses_the_old_means_for_100_rows_and_excludes_outliers(kind, dim):
    stream = STREAM_MAKERS[kind](n=2000, dim=dim, alpha=0.95)
    believed = np.array([stream.means[999 if 1000 <= row < 1100 else row] for row in range(2000)])
    scores = np.where(stream.outliers, np.nan, -compute_log_density(stream, believed))
    assert compute_truth_auc(stream) == pytest.approx(benefit_auc(scores, 1000, 100), abs=1e-9)


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("kind", STREAM_MAKERS)
def test_truth_with_memory_auc_is_that_of_a_cumulative_sum(kind, dim):
    stream = STREAM_MAKERS[kind](n=2000, dim=dim, alpha=0.95)
    old, new = stream.means[999], stream.means[1100]
    under_old, under_new = (compute_log_density(stream, np.broadcast_to(m, stream.means.shape)) for m in (old, new))
    under_true = compute_log_density(stream, stream.means)
    under_a_step_back = compute_log_density(stream, stream.means - (new - old))
    scores, total = [], 0.0
    for row in range(2000):
        if row == 1100:
            total = 0.0
        elif not stream.outliers[row]:
            ratio = under_new[row] - under_old[row] if row < 1100 else under_a_step_back[row] - under_true[row]
            total = max(0.0, total + ratio)
        scores.append(math.nan if stream.outliers[row] else total)
    assert compute_truth_with_memory_auc(stream) == pytest.approx(benefit_auc(scores, 1000, 100), abs=1e-9)


def test_memory_raises_the_truth_auc_only_for_overlapping_components():
    assert 0.7 < compute_truth_auc(make_abrupt()) < 0.78
    assert 0.7 < compute_truth_with_memory_auc(make_abrupt()) < 0.78
    overlapping = make_abrupt(dim=3, variant="notebook")
    assert compute_truth_auc(overlapping) < 0.55 < 0.7 < compute_truth_with_memory_auc(overlapping)
