"""The score of the Numenta Anomaly Benchmark, of labelled windows in many series.

A row is flagged if its level reaches the one threshold. Levels must be comparable between series; `running_rank` and
`rank_onset` compute such levels from scores.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limpet._validation import FloatArray, check_int, check_positive
from limpet.exceptions import InvalidInputError
from limpet.metrics._validation import check_scores
from limpet.metrics.auc import last_of_equal

HIT_WEIGHT, FALSE_ALARM_WEIGHT, MISS_WEIGHT = 1.0, 0.11, 1.0  # A_TP, −A_FP, −A_FN of the standard profile
MAX_PENALTY_DISTANCE_WINDOWS = 3.0  # at so many window lengths after a window, a false alarm costs the maximum
IntArray = npt.NDArray[np.int64]


class HitCurve(NamedTuple):
    """The results at every threshold, from the highest, which flags nothing, down."""

    false_alarms: FloatArray  # rows flagged outside windows per 1000 scored rows
    hits: FloatArray  # share of the windows with a flagged row
    utility: FloatArray  # NAB's sum: from −1 to 1 per window, minus the cost of false alarms


def running_rank(scores: npt.ArrayLike) -> FloatArray:
    """Return the share of the scores so far that each row exceeds.

    r_t = #{s < t : x_s < x_t} / (t + 1), with rows counted from 0. A NaN ranks 0 and counts as below all others.

    >>> running_rank([2.0, 1.0, 3.0, 3.0])
    array([0.        , 0.        , 0.66666667, 0.5       ])
    """
    values = check_scores(scores)
    past: list[float] = []
    below = np.empty(len(values))
    for t, score in enumerate(np.where(np.isnan(values), -np.inf, values).tolist()):
        below[t] = bisect_left(past, score)
        insort(past, score)
    return np.asarray(below / np.arange(1, len(values) + 1))


def rank_onset(scores: npt.ArrayLike, quiet: int = 100) -> FloatArray:
    """Return running ranks that exceed those of the last `quiet` rows, else NaN.

    Successive alarms are one alarm: rows that only continue it are not flagged.

    >>> rank_onset([2.0, 1.0, 3.0, 2.5, 4.0], quiet=1)
    array([0.        ,        nan, 0.66666667,        nan, 0.8       ])
    """
    check_int("quiet", quiet, 1)
    rank = running_rank(scores)
    before = np.concatenate([np.full(quiet, -1.0), rank[:-1]])
    highest = np.lib.stride_tricks.sliding_window_view(before, quiet).max(axis=1)
    return np.where(rank > highest, rank, np.nan)


def drop_probation(scores: npt.ArrayLike, n: int = 50) -> FloatArray:
    """Return the scores with the first n replaced by the next one.

    >>> drop_probation([9.0, 7.0, 1.0, 2.0], n=2)
    array([1., 1., 1., 2.])
    """
    check_int("n", n, 0)
    values = check_scores(scores).copy()
    if n >= len(values):
        raise InvalidInputError(f"n: must be less than {len(values)}, the number of scores, got {n}.")
    values[:n] = values[n]
    return values


def nab_score(
    levels: Sequence[npt.ArrayLike], labels: Sequence[npt.ArrayLike], first_scored_rows: Sequence[int]
) -> float:
    """Return NAB's score [1]_ with the standard profile.

    It is 0 for flagging nothing, and 100 for flagging the first row of each window.

    A window [a, b] earns σ(−(b − t + 1) / (b − a + 1)) / σ(−1) by its first flagged row t, where
    σ(x) = 2 / (1 + e^{5x}) − 1, and −1 if none of its rows is flagged. Every flagged row t outside all windows adds
    0.11 σ((t − b) / (b − a)), which is negative, where [a, b] is the last window before it; −0.11 before the first
    window, or from 3 lengths on. The sum over all series is taken at the one threshold that makes it largest, and
    mapped from [−n, n] to [0, 100] for n windows. It is never negative: the threshold may flag no row.

    Parameters
    ----------
    levels : list of arrays (T,)
        One for each series; NaN is never flagged. See `rank_onset`.
    labels : list of 0/1 arrays (T,)
        1 inside windows; a run of ones is a window.
    first_scored_rows : list of int
        The first row of each series that is scored. A window that ends before it does not count.

    Returns
    -------
    float
        NaN without windows.

    References
    ----------
    .. [1] A. Lavin and S. Ahmad, Evaluating real-time anomaly detection algorithms, ICMLA 2015, arXiv:1510.03336.

    Examples
    --------
    >>> labels = [0, 0, 0, 1, 1, 1, 1, 0, 0, 0]
    >>> early, late = [0, 0, 0, 9, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 9, 0, 0, 0]
    >>> [round(nab_score([levels], [labels], [1]), 1) for levels in (early, late)]
    [100.0, 78.1]
    """
    curve = hit_curve(levels, labels, first_scored_rows)
    n_windows = -curve.utility[0] / MISS_WEIGHT
    if not n_windows:
        return np.nan
    return float(100.0 * (curve.utility.max() + MISS_WEIGHT * n_windows) / ((HIT_WEIGHT + MISS_WEIGHT) * n_windows))


def detection_auc(
    levels: Sequence[npt.ArrayLike], labels: Sequence[npt.ArrayLike], first_scored_rows: Sequence[int], limit: float
) -> float:
    """Return the average share of windows hit at up to `limit` false alarms.

    False alarms are counted per 1000 rows. The threshold at x is the lowest one with at most x false alarms; the curve
    is a step function.

    >>> labels = [0, 0, 0, 1, 1, 0, 0, 1, 0, 0]
    >>> detection_auc([[0, 0, 0, 9, 0, 0, 8, 7, 0, 0]], [labels], [0], limit=200)
    0.75
    """
    check_positive("limit", limit)
    curve = hit_curve(levels, labels, first_scored_rows)
    edges = np.minimum(np.append(curve.false_alarms, np.inf), limit)
    return float(np.diff(edges) @ curve.hits / limit)


def hit_curve(
    levels: Sequence[npt.ArrayLike], labels: Sequence[npt.ArrayLike], first_scored_rows: Sequence[int]
) -> HitCurve:
    """Return false alarms, windows hit and NAB's sum for each threshold."""
    if not levels or not len(levels) == len(labels) == len(first_scored_rows):
        constraint = "levels, labels, first_scored_rows: must be equally many, at least one"
        received = f"{len(levels)}, {len(labels)} and {len(first_scored_rows)}"
        raise InvalidInputError(f"{constraint}, got {received}.")
    level, window, utility = _concatenate_series(levels, labels, first_scored_rows)
    n_rows, n_windows = len(level), int(window.max(initial=-1)) + 1
    flagged = np.argsort(-level, kind="stable")[: n_rows - int(np.isnan(level).sum())]  # NaN comes last
    level, window, utility = level[flagged], window[flagged], utility[flagged]
    gain = np.where(window < 0, utility, 0.0)
    hit = np.zeros(len(level))
    for number in range(n_windows):
        rows = np.flatnonzero(window == number)
        best = np.maximum.accumulate(utility[rows])
        gain[rows] = np.diff(best, prepend=-MISS_WEIGHT)
        hit[rows[:1]] = 1.0
    last = last_of_equal(level)  # rows of equal level share a threshold
    return HitCurve(
        np.append(0.0, 1000.0 / n_rows * np.cumsum(window < 0)[last]),
        np.append(0.0, np.cumsum(hit)[last] / max(n_windows, 1)),
        np.append(0.0, np.cumsum(gain)[last]) - MISS_WEIGHT * n_windows,
    )


def find_windows(labels: npt.ArrayLike) -> list[tuple[int, int]]:
    """Return the first and the last row of each run of ones."""
    edges = np.diff(np.asarray(labels) != 0, prepend=False, append=False)
    return [(int(a), int(b) - 1) for a, b in np.flatnonzero(edges).reshape(-1, 2)]


def _concatenate_series(
    levels: Sequence[npt.ArrayLike], labels: Sequence[npt.ArrayLike], first_scored_rows: Sequence[int]
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return level, window (−1 outside) and utility of a flag of all scored rows."""
    parts: list[tuple[FloatArray, IntArray, FloatArray]] = []
    n_windows = 0
    for index, (series_levels, marks, first) in enumerate(zip(levels, labels, first_scored_rows, strict=True)):
        level, marked = check_scores(series_levels), np.asarray(marks)
        if marked.shape != level.shape:
            raise InvalidInputError(f"labels[{index}]: must have shape {level.shape}, got {marked.shape}.")
        if not 0 <= first < len(level):
            raise InvalidInputError(f"first_scored_rows[{index}]: must be a row in 0..{len(level) - 1}, got {first}.")
        window, utility = np.full(len(level), -1), np.full(len(level), -FALSE_ALARM_WEIGHT)
        for a, b in find_windows(marked):
            inside, behind = np.arange(a, b + 1), np.arange(b + 1, len(level))
            utility[inside] = HIT_WEIGHT * _sigmoid((inside - b - 1) / (b - a + 1)) / _sigmoid(np.array(-1.0))
            position = (behind - b) / max(b - a, 1)
            cost = np.where(position < MAX_PENALTY_DISTANCE_WINDOWS, _sigmoid(position), -1.0)
            utility[behind] = FALSE_ALARM_WEIGHT * cost
            if b >= first:
                window[inside] = n_windows
                n_windows += 1
        parts.append((level[first:], window[first:], utility[first:]))
    level, window, utility = (np.concatenate(part) for part in zip(*parts, strict=True))
    return level, window, utility


def _sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(2.0 / (1.0 + np.exp(5.0 * x)) - 1.0)
