"""Areas under the ROC curve and under benefit against false alarms."""

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray, check_int, check_positive
from limpet.exceptions import InvalidInputError
from limpet.metrics._validation import Indices, check_change_points, check_scores

# The area under the ROC curve


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
        raise InvalidInputError(f"labels: must be 0 or 1 for each of the {len(score)} rows, got shape {label.shape}.")
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


# Benefit of the alarms of a change score against false alarms


class BenefitCurve(NamedTuple):
    """The curve of recalled benefit against false alarms, by threshold."""

    false_alarm_rate: FloatArray
    recall: FloatArray
    thresholds: FloatArray


def benefit_auc(
    scores: npt.ArrayLike, change_points: Indices, tolerance: float, start: int | None = None, stop: int | None = None
) -> float:
    """Return the area under benefit against false alarms (Eq. def_benefit).

    Trapezoids under the curve of `benefit_roc`. Only the order of the scores matters; a constant score gets 0.5. Half
    of every window lies before its change, where a score of the past has no information: on one change, it can reach
    about 0.75.

    Parameters
    ----------
    scores : array (T,)
        Change scores, higher is more suspicious. NaN raises no alarm at any threshold.
    change_points : int or sequence of int
        First rows of new regimes. Those outside [start, stop) give their benefit to rows inside.
    tolerance : float
        T_b, the distance in rows, either side of a change, at which an alarm has no benefit.
    start, stop : int, optional
        Score only rows start, ..., stop - 1.

    Returns
    -------
    float
        In [0, 1]; NaN if no row with a score has a benefit, or all have one.

    Examples
    --------
    >>> benefit_auc([0, 0, 0, 7, 5, 0, 0, 0], change_points=3, tolerance=2)
    0.875
    >>> benefit_auc([1, 1, 1, 1, 1, 1, 1, 1], change_points=3, tolerance=2)
    0.5
    """
    score, gain = _select_alarmable_rows(scores, change_points, tolerance, start, stop)
    useful = gain > 0.0
    useful_scores, benefits, other_scores = score[useful], gain[useful], np.sort(score[~useful])
    if not len(useful_scores) or not len(other_scores):
        return float("nan")
    share_below = count_ranked_above(useful_scores, other_scores) / len(other_scores)
    return float(np.sum(benefits * share_below) / np.sum(benefits))


def benefit_roc(
    scores: npt.ArrayLike, change_points: Indices, tolerance: float, start: int | None = None, stop: int | None = None
) -> BenefitCurve:
    """Return the curve of benefit against false alarms, by distinct score.

    An alarm is raised where the score exceeds the threshold. At a distance δ from the nearest change it earns
    1 - δ/T_b if δ < T_b; else it is a false alarm. Sums of both are divided by their supremum over thresholds, which
    rows with a NaN score do not enter.

    Parameters
    ----------
    scores, change_points, tolerance, start, stop
        As in `benefit_auc`.

    Returns
    -------
    BenefitCurve
        `thresholds` falls from the highest score (no alarm: the point (0, 0)) through every distinct one to -inf (all
        alarms: (1, 1); here even scores of -inf count as alarms). A rate whose supremum is zero is NaN throughout.

    Examples
    --------
    >>> curve = benefit_roc([0, 0, 0, 7, 5, 0, 0, 0], change_points=3, tolerance=2)
    >>> curve.thresholds
    array([  7.,   5.,   0., -inf])
    >>> curve.recall
    array([0.  , 0.5 , 0.75, 1.  ])
    >>> curve.false_alarm_rate
    array([0., 0., 0., 1.])
    """
    score, gain = _select_alarmable_rows(scores, change_points, tolerance, start, stop)
    order = np.argsort(-score, kind="stable")
    score, gain = score[order], gain[order]
    ends = last_of_equal(score)  # ties enter together
    recalled = np.append(0.0, np.cumsum(gain)[ends])
    false_alarms = np.append(0.0, np.cumsum(gain == 0.0)[ends])
    return BenefitCurve(_normalize_by_last(false_alarms), _normalize_by_last(recalled), np.append(score[ends], -np.inf))


def _select_alarmable_rows(
    scores: npt.ArrayLike, change_points: Indices, tolerance: float, start: int | None, stop: int | None
) -> tuple[FloatArray, FloatArray]:
    """Return score and benefit of the rows that can raise an alarm."""
    score = check_scores(scores)
    try:
        first = 0 if start is None else operator.index(start)
        last = len(score) if stop is None else operator.index(stop)
    except TypeError as error:
        raise InvalidInputError(f"start, stop: must be integers, got {start!r}, {stop!r}.") from error
    if not 0 <= first < last <= len(score):
        raise InvalidInputError(f"start, stop: must be 0 <= start < stop <= {len(score)}, got {start!r}, {stop!r}.")
    gain = _benefit_by_row(first, last, tuple(check_change_points(change_points).tolist()), _check_tolerance(tolerance))
    score = score[first:last]
    can_alarm = ~np.isnan(score)
    return score[can_alarm], gain[can_alarm]


def _check_tolerance(tolerance: float) -> float:
    try:
        number = float(tolerance)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"tolerance: must be a positive number of rows, got {tolerance!r}.") from error
    if not 0 < number < math.inf:
        raise InvalidInputError(f"tolerance: must be a positive finite number of rows, got {tolerance!r}.")
    return number


@lru_cache(maxsize=32)  # a grid is scored on the same rows again and again
def _benefit_by_row(first: int, last: int, change_points: tuple[int, ...], tolerance: float) -> FloatArray:
    """Return b(t; t*) of Eq. def_benefit for the nearest change."""
    rows, changes = np.arange(first, last), np.array(change_points, np.int64)
    after = np.searchsorted(changes, rows).clip(max=len(changes) - 1)
    before = (after - 1).clip(min=0)
    distance = np.minimum(np.abs(rows - changes[after]), np.abs(rows - changes[before]))
    return np.asarray(np.where(distance < tolerance, 1.0 - distance / tolerance, 0.0))


def _normalize_by_last(running: FloatArray) -> FloatArray:
    """Divide a running total by its supremum, the last value; 0/0 is NaN."""
    return running / running[-1] if running[-1] > 0 else np.full_like(running, np.nan)
