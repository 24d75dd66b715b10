"""ADWIN of river as a score."""

from __future__ import annotations

import math

import numpy as np

from limpet._optional import optional_import
from limpet._validation import FloatArray, check_positive
from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.drift.base import DriftDetector


class ADWIN(DriftDetector):
    """Adaptive windowing [1]_, computed by river.

    It keeps the longest window of which no two parts differ in mean. The score is w_{t−1} − w_t with w the width of the
    window: the number of points dropped because the mean has changed [2]_. The window grows by every point, so that
    most scores are −1. River tests every 32nd point. At the point after a detection it starts again, with a window of
    that point alone, so that a change gives two scores in a row: the points that were cut off, then the rest.

    A point that is not finite, or beyond 1e150 (its square would be infinite, and river would detect nothing any more),
    is not used: its score is NaN.

    Requires river: pip install 'limpet[drift]'.

    Parameters
    ----------
    delta : float
        The confidence δ, above 0 and at most 1; with smaller values, fewer changes are detected.

    References
    ----------
    .. [1] Bifet, A. and Gavaldà, R. (2007). Learning from time-changing data with adaptive windowing.
       SIAM International Conference on Data Mining, 443–448.
    .. [2] Fukushima, S. et al. (2020). Online robust and adaptive learning from data streams. arXiv:2007.12160.

    Examples
    --------
    >>> import numpy as np
    >>> scores = ADWIN(delta=0.002).process(np.repeat([0.0, 1.0], 200))
    >>> rows = np.flatnonzero(scores != -1.0)
    >>> rows, scores[rows]
    (array([223, 224]), array([167.,  55.]))
    """

    def __init__(self, delta: float = 0.002) -> None:
        with optional_import("ADWIN", "drift"):
            from river.drift import ADWIN as RiverADWIN
        self.delta = check_positive("delta", delta, maximum=1.0)
        super().__init__(delta=self.delta)
        self._window_class = RiverADWIN

    def _init_state(self, width: int) -> None:
        self._windows = [self._window_class(delta=self.delta) for _ in range(width)]

    def _write_scores(self, rows: FloatArray, scores: FloatArray) -> None:
        scores[:] = np.nan
        for i, window in enumerate(self._windows):
            usable = np.abs(rows[:, i]) <= MAX_ABS_VALUE
            widths = [window.width]
            for value in rows[usable, i].tolist():
                window.update(value)
                widths.append(window.width)
            scores[usable, i] = -np.diff(np.array(widths, np.float64))

    def _score_point(self, x: float) -> float:
        if not abs(x) <= MAX_ABS_VALUE:
            return math.nan
        window = self._windows[0]
        previous_width = window.width
        window.update(x)
        return float(previous_width - window.width)
