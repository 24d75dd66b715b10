"""Page–Hinkley with the formula of the paper."""

from __future__ import annotations

import math

import numpy as np

from holdfast.checks import FloatArray, as_floats
from holdfast.detectors.base import LARGEST, Detector
from holdfast.errors import BadInputError
from holdfast.scheme.compiling import compiled

SUM, LEAST, STATE = 0, 1, 2  # g, G, and how many numbers that is


def advance(rows: FloatArray, scores: FloatArray, state: FloatArray, delta: float, largest: float) -> None:
    """g ← g + y − δ, G ← min(g, G), the score g − G; one variable after the other."""
    for i in range(rows.shape[1]):
        total, least = state[i, SUM], state[i, LEAST]
        for t in range(len(rows)):
            y = rows[t, i]
            if abs(y) <= largest:
                total = total + y - delta
                least = min(total, least)
                scores[t, i] = total - least
            else:
                scores[t, i] = math.nan
        state[i, SUM], state[i, LEAST] = total, least


compiled_advance = compiled(advance, releases_gil=True)


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
        number = as_floats("delta", delta)
        if number.ndim or not np.isfinite(number):
            raise BadInputError(f"delta must be one finite number, got {delta!r}")
        self.delta = float(number)
        super().__init__(delta=self.delta)

    def _start(self, width: int) -> None:
        self._state = np.zeros((width, STATE))

    def _advance(self, rows: FloatArray, scores: FloatArray) -> None:
        compiled_advance(rows, scores, self._state, self.delta, LARGEST)
