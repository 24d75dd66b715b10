"""Page–Hinkley with the formula of the paper."""

from __future__ import annotations

import math

import numpy as np

from holdfast.checks import FloatArray, check_floats
from holdfast.detectors.base import MAX_ABS_VALUE, Detector
from holdfast.errors import InvalidInputError
from holdfast.scheme.compiling import jit_entry_point

CUMULATIVE_SUM, MIN_CUMULATIVE_SUM, STATE_SIZE = 0, 1, 2  # g, G, and how many numbers that is


def write_page_hinkley_scores(
    rows: FloatArray, scores: FloatArray, state: FloatArray, delta: float, max_abs_value: float
) -> None:
    """g ← g + y − δ, G ← min(g, G), the score g − G; one variable after the other."""
    for i in range(rows.shape[1]):
        total, min_total = state[i, CUMULATIVE_SUM], state[i, MIN_CUMULATIVE_SUM]
        for t in range(len(rows)):
            y = rows[t, i]
            if abs(y) <= max_abs_value:
                total = total + y - delta
                min_total = min(total, min_total)
                scores[t, i] = total - min_total
            else:
                scores[t, i] = math.nan
        state[i, CUMULATIVE_SUM], state[i, MIN_CUMULATIVE_SUM] = total, min_total


compiled_page_hinkley = jit_entry_point(write_page_hinkley_scores, releases_gil=True)


class PageHinkley(Detector):
    """The Page–Hinkley statistic [1]_ as [2]_ writes it: how far a drifting sum stands above its lowest point.

    g_t = g_{t−1} + y_t − δ and G_t = min(g_t, G_{t−1}), from g_0 = G_0 = 0; the score is g_t − G_t. It grows while the
    points lie above δ on average and falls back to 0 while they lie below, so it finds rises only; and nothing is
    subtracted but δ, so data whose level is above δ from the start give a score that grows for ever. To have the mean
    subtracted, and falls found too, see `RiverPageHinkley`. There is no threshold and hence no reset.

    delta: δ, any finite number. A point that is not finite is skipped: its score is NaN.

    >>> detector = PageHinkley(delta=0.5)
    >>> detector.process([0.0, 1.0, 0.0, 2.0, 2.0])
    array([0. , 0.5, 0. , 1.5, 3. ])
    >>> detector.update(0.0)
    2.5

    .. [1] Page, E. S. (1954). Continuous inspection schemes. Biometrika 41(1/2), 100–115.
    .. [2] Fukushima, S., Nitanda, A. and Yamanishi, K. (2020). Online robust and adaptive learning from data streams.
       arXiv:2007.12160.
    """

    def __init__(self, delta: float = 0.005) -> None:
        number = check_floats("delta", delta)
        if number.ndim or not np.isfinite(number):
            raise InvalidInputError(f"delta must be one finite number, got {delta!r}")
        self.delta = float(number)
        super().__init__(delta=self.delta)

    def _init_state(self, width: int) -> None:
        self._state = np.zeros((width, STATE_SIZE))

    def _write_scores(self, rows: FloatArray, scores: FloatArray) -> None:
        compiled_page_hinkley(rows, scores, self._state, self.delta, MAX_ABS_VALUE)
