"""Scores of the true parameters, as reference values.

Both know the two regimes and which points are outliers, and keep the old regime for T_b rows after the change, as if
it had not been detected yet.
"""

from __future__ import annotations

import numpy as np

from limpet.datasets import Stream
from limpet.metrics import benefit_auc
from limpet_lab.paper.context import TOLERANCE, change_of
from limpet_lab.paper.methods import FloatArray


def truth_auc(stream: Stream) -> float:
    """The AUC of −log f(y_t), point by point: what SRA's score would be if its estimate were perfect, and late.

    A score of single points is above it only by a level that differs before and after the change.
    """
    return _auc(stream, -_log_density(stream, _believed_means(stream)))


def truth_with_memory_auc(stream: Stream) -> float:
    """The AUC of Page's cumulative sum of log-likelihood ratios, which may collect evidence over many points.

    The alternative to the regime believed in is as far from it as the stream will be T_b rows after the change.
    """
    means, change = stream.means, change_of(stream)
    assert means is not None
    assert stream.outliers is not None
    believed = _believed_means(stream)
    step = means[change + TOLERANCE] - means[change - 1]
    noticed = change + TOLERANCE
    alternative = believed + np.where(np.arange(len(stream)) < noticed, 1.0, -1.0)[:, None, None] * step
    ratios = _log_density(stream, alternative) - _log_density(stream, believed)
    scores, total = np.zeros(len(stream)), 0.0
    for row, ratio in enumerate(np.where(stream.outliers, 0.0, ratios)):
        total = max(0.0, total + ratio) if row != noticed else 0.0
        scores[row] = total
    return _auc(stream, scores)


def _believed_means(stream: Stream) -> FloatArray:
    """The true means, but for T_b rows after the change, where they are the old ones."""
    assert stream.means is not None
    change = change_of(stream)
    means = stream.means.copy()
    means[change : change + TOLERANCE] = means[change - 1]
    return means


def _log_density(stream: Stream, means: FloatArray) -> FloatArray:
    """log f of each point but for a constant; both components have one weight and one covariance."""
    assert stream.covariances is not None
    away = stream.y[:, None, :] - means
    exponents = -0.5 * np.einsum("tki,ij,tkj->tk", away, np.linalg.inv(stream.covariances[0]), away)
    return np.asarray(np.logaddexp.reduce(exponents, axis=1))


def _auc(stream: Stream, scores: FloatArray) -> float:
    assert stream.outliers is not None
    return benefit_auc(np.where(stream.outliers, np.nan, scores), change_of(stream), TOLERANCE)
