"""KSWIN: a sliding window whose newest points are held against a sample of the older ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from holdfast.checks import FloatArray, require, require_whole
from holdfast.detectors.base import LARGEST, Detector
from holdfast.detectors.kolmogorov_smirnov import LARGEST_SAMPLE, exact_p_values
from holdfast.detectors.sampling import Wholes, by_pool, sample, seeded
from holdfast.detectors.sorted_window import HELD, distance, put, restart, room
from holdfast.errors import BadInputError
from holdfast.scheme.compiling import compiled, fingerprint

LEAST_DISTANCE = 0.1  # of the two distributions; a smaller one is no detection, be it as significant as it may


@cache
def bind() -> Callable[..., Any]:
    """The compiled loop over the rows."""
    stamp = fingerprint([sample, put, distance, restart])

    def advance(
        rows: FloatArray,
        scores: FloatArray,
        values: FloatArray,
        places: Wholes,
        generators: Wholes,
        fresh: Wholes,
        left: Wholes,
        drawn: Wholes,
        table: FloatArray,
        critical: int,
        pool: bool,
        largest: float,
    ) -> None:
        stamp  # noqa: B018  (part of what Numba's cache looks at)
        older, recent = len(left), len(drawn)
        window = older + recent
        for i in range(rows.shape[1]):
            own, at, generator = values[i], places[i], generators[i]
            for t in range(len(rows)):
                y = rows[t, i]
                scores[t, i] = math.nan
                if not abs(y) <= largest:
                    continue
                put(own, at, window, recent, y)
                if at[HELD] < window:
                    continue
                sample(generator, older, recent, pool, left, drawn)
                gap = distance(own, at, window, drawn)
                scores[t, i] = table[gap]
                if gap >= critical:
                    restart(at)
                    for k in range(len(fresh)):
                        generator[k] = fresh[k]

    return compiled(advance, releases_gil=True)


class KSWIN(Detector):
    """The Kolmogorov–Smirnov test on a sliding window [1]_: have the newest points the distribution of those before?

    Of the last `window` points the newest `stat` are held against as many drawn at random from the older ones. The
    score is 1 − p with p the exact two-sided p-value [2]_. Where p ≤ alpha, and the two distributions are more than 0.1
    apart, a change is detected: the window is emptied, and the random draws start anew. Until it is full there is no
    test and no p-value: the score is NaN. (River, whose results these are, reports p = 0 there.)

    alpha: the level of a detection. window: w. stat: r, at most half of w. seed: of the random draws, which are those
    of river's KSWIN with the same seed; every variable has the same. A point that is not finite is skipped: its score
    is NaN.

    The distance is a whole number of r-ths, so the score takes r + 1 values at most, and close to 1 only few.

    >>> import numpy as np
    >>> detector = KSWIN(alpha=0.001, window=40, stat=10)
    >>> scores = detector.process(np.random.default_rng(0).normal(np.repeat([0.0, 5.0], 100)))
    >>> np.flatnonzero(scores > 0.999)
    array([108])

    .. [1] Raab, C., Heusinger, M. and Schleif, F.-M. (2020). Reactive soft prototype computing for concept drift
       streams. Neurocomputing 416, 340–351.
    .. [2] Fukushima, S., Nitanda, A. and Yamanishi, K. (2020). Online robust and adaptive learning from data streams.
       arXiv:2007.12160.
    """

    def __init__(self, alpha: float = 0.005, window: int = 100, stat: int = 30, seed: int = 0) -> None:
        self.alpha = require("alpha", alpha, zero=True, high=1.0)
        self.window = require_whole("window", window, 2)
        self.stat = require_whole("stat", stat, 1)
        self.seed = require_whole("seed", seed, 0)
        if not self.can_run(window, stat):
            limit = f"stat must be at most half of window (and at most {LARGEST_SAMPLE})"
            raise BadInputError(f"{limit}: that many are drawn from the older points, got window={window}, stat={stat}")
        super().__init__(alpha=self.alpha, window=self.window, stat=self.stat, seed=self.seed)

    @staticmethod
    def can_run(window: int, stat: int) -> bool:
        """Whether a sample of `stat` can be drawn from the window − stat older points.

        >>> KSWIN.can_run(20, 10), KSWIN.can_run(20, 15)
        (True, False)
        """
        return 2 * stat <= window and stat <= LARGEST_SAMPLE

    def _start(self, width: int) -> None:
        p_values = exact_p_values(self.stat)
        detected = (p_values <= self.alpha) & (np.arange(self.stat + 1) / self.stat > LEAST_DISTANCE)
        self._critical = int(detected.argmax()) if detected.any() else self.stat + 1
        self._table = 1.0 - p_values
        self._fresh = seeded(self.seed).copy()
        self._generators = np.tile(self._fresh, (width, 1))
        self._values, self._places = room(width, self.window)
        self._left, self._drawn = np.empty(self.window - self.stat, np.int64), np.empty(self.stat, np.int64)
        self._pool = by_pool(self.window - self.stat, self.stat)

    def _advance(self, rows: FloatArray, scores: FloatArray) -> None:
        state = (self._values, self._places, self._generators)
        work = (self._fresh, self._left, self._drawn)
        bind()(rows, scores, *state, *work, self._table, self._critical, self._pool, LARGEST)
