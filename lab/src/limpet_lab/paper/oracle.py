"""Scores of the true parameters, as reference values.

Both know the two regimes and which points are outliers, and keep the old regime for T_b rows after the change, as if
it had not been detected yet.
"""

from __future__ import annotations

import numpy as np

from limpet.datasets import Stream
from limpet.metrics import benefit_auc
from limpet_lab.paper.context import TOLERANCE_ROWS, get_change_row
from limpet_lab.paper.methods import FloatArray


def compute_truth_auc(stream: Stream) -> float:
    """Compute the AUC of −log f(y_t), point by point: that of SRA's score with a perfect, late estimate.

    A score of single points is above it only by a level that differs before and after the change.
    """
    return _compute_auc(stream, -_compute_log_density(stream, _compute_believed_means(stream)))


def compute_truth_with_memory_auc(stream: Stream) -> float:
    """Compute the AUC of Page's cumulative sum of log-likelihood ratios, which collects evidence over many points.

    The alternative to the regime believed in is as far from it as the stream will be T_b rows after the change.
    """
    means, change = stream.means, get_change_row(stream)
    assert means is not None
    assert stream.outliers is not None
    believed = _compute_believed_means(stream)
    step = means[change + TOLERANCE_ROWS] - means[change - 1]
    noticed = change + TOLERANCE_ROWS
    alternative = believed + np.where(np.arange(len(stream)) < noticed, 1.0, -1.0)[:, None, None] * step
    ratios = _compute_log_density(stream, alternative) - _compute_log_density(stream, believed)
    scores, total = np.zeros(len(stream)), 0.0
    for row, ratio in enumerate(np.where(stream.outliers, 0.0, ratios)):
        total = max(0.0, total + ratio) if row != noticed else 0.0
        scores[row] = total
    return _compute_auc(stream, scores)


def _compute_believed_means(stream: Stream) -> FloatArray:
    """Return the true means, but for T_b rows after the change the old ones."""
    assert stream.means is not None
    change = get_change_row(stream)
    means = stream.means.copy()
    means[change : change + TOLERANCE_ROWS] = means[change - 1]
    return means


def _compute_log_density(stream: Stream, means: FloatArray) -> FloatArray:
    """Compute log f of each point up to a constant; both components have one weight and one covariance."""
    assert stream.covariances is not None
    away = stream.y[:, None, :] - means
    exponents = -0.5 * np.einsum("tki,ij,tkj->tk", away, np.linalg.inv(stream.covariances[0]), away)
    return np.asarray(np.logaddexp.reduce(exponents, axis=1))


def _compute_auc(stream: Stream, scores: FloatArray) -> float:
    assert stream.outliers is not None
    return benefit_auc(np.where(stream.outliers, np.nan, scores), get_change_row(stream), TOLERANCE_ROWS)
