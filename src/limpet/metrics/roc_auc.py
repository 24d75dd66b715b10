"""The area under the ROC curve of scores, and its confidence interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limpet._validation import check_int, check_positive
from limpet.exceptions import InvalidInputError
from limpet.metrics._validation import FloatArray, check_scores


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def roc_auc(scores: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Return the probability that an anomaly scores above a normal row.

    A NaN raises no alarm at any threshold: it ranks below every number.

    Parameters
    ----------
    scores : array (T,)
        Anomaly scores, higher is more suspicious.
    labels : 0/1 array (T,)
        1 marks an anomaly.

    Returns
    -------
    float
        NaN if no row, or every row, is an anomaly.

    Examples
    --------
    >>> roc_auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """
    positives, negatives = _split_by_label(scores, labels)
    if not len(positives) or not len(negatives):
        return float("nan")
    return float(count_ranked_above(positives, np.sort(negatives)).mean() / len(negatives))


def roc_auc_interval(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
    by_event: bool = False,
) -> Interval:
    """Return a percentile bootstrap interval of `roc_auc`.

    Anomalies and normal rows are resampled separately. With few anomalies the interval is wide, and methods whose
    intervals overlap cannot be ranked.

    Parameters
    ----------
    scores : array (T,) or (R, T)
        One score per row; several restarts are drawn alike, and the interval is that of their average.
    labels : 0/1 array (T,)
        1 marks an anomaly.
    level : float
        Share of the replicates inside.
    replicates, seed : int
        Number of replicates, and seed of the random numbers.
    by_event : bool
        Draw runs of adjacent anomalies as a whole: rows of one event are not independent.

    Examples
    --------
    >>> labels = np.arange(200) >= 190
    >>> scores = np.random.default_rng(0).normal(2.0 * labels)
    >>> interval = roc_auc_interval(scores, labels)
    >>> bool(interval.low < roc_auc(scores, labels) < interval.high < 1.0)
    True
    """
    check_positive("level", level, maximum=1.0)
    check_int("replicates", replicates, 1)
    samples = [_split_by_label(row, labels) for row in np.atleast_2d(np.asarray(scores, dtype=np.float64))]
    n_positive, n_negative = len(samples[0][0]), len(samples[0][1])
    if not n_positive or not n_negative:
        return Interval(float("nan"), float("nan"))
    # Normal rows that lose against the same anomalies form a group; draws per group are multinomial. Groups are few.
    wins, sizes = _group_wins(samples)
    events = number_runs(labels) if by_event else np.arange(n_positive)
    n_events = int(events[-1]) + 1
    rng = np.random.default_rng(seed)
    areas = np.empty(replicates)
    for b in range(replicates):
        drawn = rng.multinomial(n_negative, sizes / n_negative)
        chosen = rng.multinomial(n_events, np.full(n_events, 1.0 / n_events))[events]
        areas[b] = drawn @ wins @ chosen / (2 * len(samples) * n_negative * chosen.sum())
    tail = 50.0 * (1.0 - level)
    low, high = np.percentile(areas, [tail, 100.0 - tail])
    return Interval(float(low), float(high))


def number_runs(labels: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the number of the run of adjacent anomalies of each anomaly."""
    rows = np.flatnonzero(np.asarray(labels))
    return np.cumsum(np.diff(rows, prepend=rows[:1]) > 1)


def _group_wins(samples: list[tuple[FloatArray, FloatArray]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct rows of the wins, summed over restarts, and counts."""
    # 2 where an anomaly ranks above a normal row, 1 for a tie
    wins = [(pos > neg[:, None]).astype(np.uint8) + (pos >= neg[:, None]) for pos, neg in samples]
    # In one restart, the total of a normal row determines the anomalies that it loses against: it identifies the row.
    codes = np.zeros(len(wins[0]), dtype=np.int64)
    for restart in wins:
        totals = restart.sum(axis=1, dtype=np.int64)
        _, codes = np.unique(codes * (totals.max() + 1) + totals, return_inverse=True)
    _, first, sizes = np.unique(codes, return_index=True, return_counts=True)
    return np.sum([restart[first] for restart in wins], axis=0, dtype=np.int64), sizes


def _split_by_label(scores: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the scores of the anomalies and of the rest, with NaN as the lowest."""
    score, label = check_scores(scores), np.asarray(labels)
    if label.shape != score.shape or not np.isin(label, (0, 1)).all():
        raise InvalidInputError(f"labels: expected a 0 or 1 for each of the {len(score)} rows, got shape {label.shape}")
    ranked = np.where(np.isnan(score), -np.inf, score)
    return ranked[label == 1], ranked[label == 0]


def count_ranked_above(scores: FloatArray, sorted_others: FloatArray) -> FloatArray:
    """Return how many of the others each score ranks above, with ties counting half."""
    below = np.searchsorted(sorted_others, scores, "left")
    not_above = np.searchsorted(sorted_others, scores, "right")
    return np.asarray((below + not_above) / 2.0)


def last_of_equal(sorted_scores: FloatArray) -> npt.NDArray[np.int64]:
    """Return the last index of each run of equal scores."""
    return np.flatnonzero(np.append(sorted_scores[1:] != sorted_scores[:-1], True)[: len(sorted_scores)])
