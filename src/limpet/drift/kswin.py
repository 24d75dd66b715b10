"""KSWIN: compare the newest points of a window with a sample of older ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from limpet._jit.compile import jit_entry_point, source_fingerprint
from limpet._validation import FloatArray, check_int, check_positive
from limpet.drift._python_random import IntArray, make_generator, sample, uses_pool
from limpet.drift._sorted_window import COUNT_INDEX, clear_window, insert_point, make_windows, max_cdf_gap
from limpet.drift.base import MAX_ABS_VALUE, DriftDetector
from limpet.exceptions import InvalidInputError

# The exact test of Kolmogorov and Smirnov for two samples of equal size

MAX_SAMPLE_POINTS = 10_000  # beyond, the usual implementations do not compute the exact value


@lru_cache(maxsize=32)
def exact_p_values(size: int) -> FloatArray:
    """Return P(size·D ≥ h) for h = 0 … size.

    D is the distance of the distributions of two samples of this size.

    The distance of two samples of n points is a multiple of 1/n, so that n + 1 values suffice [1]_:
    p_h = 2 (C(2n, n−h) − C(2n, n−2h) + C(2n, n−3h) − …) / C(2n, n), in exact integers up to one correctly rounded
    division. Ties are ignored, as is usual (p is then too large).

    >>> exact_p_values(3)
    array([1. , 1. , 0.6, 0.1])

    .. [1] Gnedenko, B. V. and Korolyuk, V. S. (1951). On the maximum discrepancy between two empirical distributions.
       Doklady Akademii Nauk SSSR 80, 525–528.
    """
    paths = [1] * (size + 1)  # C(2n, n − j) at j
    for j in range(size - 1, -1, -1):
        paths[j] = paths[j + 1] * (size + j + 1) // (size - j)
    tail_counts = [paths[0]]
    for h in range(1, size + 1):
        tail_counts.append(2 * (sum(paths[h :: 2 * h]) - sum(paths[2 * h :: 2 * h])))
    table = np.array([count / paths[0] for count in tail_counts])
    table.flags.writeable = False
    return table


MIN_DETECTION_DISTANCE = 0.1  # of the two distributions; a smaller one is no detection, however significant


@cache
def make_kswin_kernel() -> Callable[..., Any]:
    """Compile the loop over the rows."""
    stamp = source_fingerprint([sample, insert_point, max_cdf_gap, clear_window])

    def write_kswin_scores(
        rows: FloatArray,
        scores: FloatArray,
        values: FloatArray,
        bookkeeping: IntArray,
        generators: IntArray,
        initial_generator: IntArray,
        workspace: IntArray,
        drawn: IntArray,
        score_table: FloatArray,
        critical_gap: int,
        use_pool: bool,
        max_abs_value: float,
    ) -> None:
        stamp  # noqa: B018  (Numba's cache depends on it)
        n_older, n_recent = len(workspace), len(drawn)
        window = n_older + n_recent
        for i in range(rows.shape[1]):
            column_values, column_bookkeeping, generator = values[i], bookkeeping[i], generators[i]
            for t in range(len(rows)):
                y = rows[t, i]
                scores[t, i] = math.nan
                if not abs(y) <= max_abs_value:
                    continue
                insert_point(column_values, column_bookkeeping, window, n_recent, y)
                if column_bookkeeping[COUNT_INDEX] < window:
                    continue
                sample(generator, n_older, n_recent, use_pool, workspace, drawn)
                gap = max_cdf_gap(column_values, column_bookkeeping, window, drawn)
                scores[t, i] = score_table[gap]
                if gap >= critical_gap:
                    clear_window(column_bookkeeping)
                    for k in range(len(initial_generator)):
                        generator[k] = initial_generator[k]

    return jit_entry_point(write_kswin_scores, releases_gil=True)


class KSWIN(DriftDetector):
    """The Kolmogorov–Smirnov test on a sliding window [1]_, equal to river's.

    Of the last `window` points, the newest `stat` are compared with as many drawn at random from the older ones. The
    score is 1 − p with p the exact two-sided p-value [2]_. If p ≤ alpha and the distributions differ by more than 0.1,
    a change is detected: the window is emptied, and the random generator is reset. Until the window is full, the score
    is NaN (river reports p = 0). A point that is not finite is skipped: its score is NaN.

    The distance is a multiple of 1/stat, so that the score takes at most stat + 1 values, few of them close to 1.

    Parameters
    ----------
    alpha : float
        Level of a detection.
    window : int
        Number of points in the window.
    stat : int
        Size of the samples, at most half of the window.
    seed : int
        Seed of the random draws, which are those of river's KSWIN; the same for every variable.

    References
    ----------
    .. [1] Raab, C., Heusinger, M. and Schleif, F.-M. (2020). Reactive soft prototype computing for concept drift
       streams. Neurocomputing 416, 340–351.
    .. [2] Fukushima, S., Nitanda, A. and Yamanishi, K. (2020). Online robust and adaptive learning from data streams.
       arXiv:2007.12160.

    Examples
    --------
    >>> import numpy as np
    >>> detector = KSWIN(alpha=0.001, window=40, stat=10)
    >>> scores = detector.process(np.random.default_rng(0).normal(np.repeat([0.0, 5.0], 100)))
    >>> np.flatnonzero(scores > 0.999)
    array([108])
    """

    def __init__(self, alpha: float = 0.005, window: int = 100, stat: int = 30, seed: int = 0) -> None:
        self.alpha = check_positive("alpha", alpha, allow_zero=True, maximum=1.0)
        self.window = check_int("window", window, 2)
        self.stat = check_int("stat", stat, 1)
        self.seed = check_int("seed", seed, 0)
        if not self.can_run(window, stat):
            raise InvalidInputError(
                f"stat: must be at most half of window and at most {MAX_SAMPLE_POINTS}, got {stat} for window={window}."
            )
        super().__init__(alpha=self.alpha, window=self.window, stat=self.stat, seed=self.seed)

    @staticmethod
    def can_run(window: int, stat: int) -> bool:
        """Return whether `stat` points can be drawn from the window − stat older ones.

        >>> KSWIN.can_run(20, 10), KSWIN.can_run(20, 15)
        (True, False)
        """
        return 2 * stat <= window and stat <= MAX_SAMPLE_POINTS

    def _init_state(self, width: int) -> None:
        p_values = exact_p_values(self.stat)
        detected = (p_values <= self.alpha) & (np.arange(self.stat + 1) / self.stat > MIN_DETECTION_DISTANCE)
        self._critical_gap = int(detected.argmax()) if detected.any() else self.stat + 1
        self._score_table = 1.0 - p_values
        self._initial_generator = make_generator(self.seed).copy()
        self._generators = np.tile(self._initial_generator, (width, 1))
        self._values, self._bookkeeping = make_windows(width, self.window)
        self._workspace, self._drawn = np.empty(self.window - self.stat, np.int64), np.empty(self.stat, np.int64)
        self._use_pool = uses_pool(self.window - self.stat, self.stat)

    @property
    def detection_threshold(self) -> float:
        """The smallest score at which KSWIN reports a drift.

        Infinite if no score is large enough.
        """
        scores = self._score_table[self._critical_gap :]
        return float(scores[0]) if len(scores) else np.inf

    def _write_scores(self, rows: FloatArray, scores: FloatArray) -> None:
        state = (self._values, self._bookkeeping, self._generators)
        work = (self._initial_generator, self._workspace, self._drawn)
        make_kswin_kernel()(
            rows, scores, *state, *work, self._score_table, self._critical_gap, self._use_pool, MAX_ABS_VALUE
        )
