"""The Page–Hinkley statistic, as the paper and as river define it."""

from __future__ import annotations

import math

import numpy as np

from limpet._jit.compile import jit_entry_point
from limpet._validation import FloatArray, Interval, Options, check_int, check_param, check_positive
from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.drift.base import DriftDetector

CUMULATIVE_SUM, MIN_CUMULATIVE_SUM, STATE_SIZE = 0, 1, 2  # g, G, and the size of a state


def write_page_hinkley_scores(
    rows: FloatArray, scores: FloatArray, state: FloatArray, delta: float, max_abs_value: float
) -> None:
    """Update g ← g + y − δ and G ← min(g, G), and write g − G."""
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


class PageHinkley(DriftDetector):
    """The Page–Hinkley statistic [1]_ as [2]_ defines it.

    It is the height of a drifting sum above its minimum: g_t = g_{t−1} + y_t − δ and G_t = min(g_t, G_{t−1}), from
    g_0 = G_0 = 0; the score is g_t − G_t. It grows while the points are above δ on average and returns to 0 while they
    are below, so that it detects only rises. Only δ is subtracted: if the level is above δ from the start, the score
    grows without bound. `RiverPageHinkley` subtracts the mean and detects falls, too. Without a threshold, the
    statistic is never reset.

    A point that is not finite is not used: its score is NaN.

    Parameters
    ----------
    delta : float
        δ, any finite number.

    References
    ----------
    .. [1] Page, E. S. (1954). Continuous inspection schemes. Biometrika 41(1/2), 100–115.
    .. [2] Fukushima, S. et al. (2020). Online robust and adaptive learning from data streams. arXiv:2007.12160.

    Examples
    --------
    >>> detector = PageHinkley(delta=0.5)
    >>> detector.process([0.0, 1.0, 0.0, 2.0, 2.0])
    array([0. , 0.5, 0. , 1.5, 3. ])
    >>> detector.update(0.0)
    2.5
    """

    def __init__(self, delta: float = 0.005) -> None:
        check_param("delta", delta, Interval(float, None, None))
        self.delta = float(delta)
        super().__init__(delta=self.delta)

    def _init_state(self, width: int) -> None:
        self._state = np.zeros((width, STATE_SIZE))

    def _write_scores(self, rows: FloatArray, scores: FloatArray) -> None:
        compiled_page_hinkley(rows, scores, self._state, self.delta, MAX_ABS_VALUE)


# Page–Hinkley as river computes it

N_POINTS, RUNNING_MEAN, UPWARD_SUM, DOWNWARD_SUM, MIN_UPWARD_SUM, MAX_DOWNWARD_SUM = range(6)
INITIAL_STATE = (0.0, 0.0, 0.0, 0.0, math.inf, -1.0)  # −1 as in river: at first, a fall counts up to 1 more than it was
MODE_CODES = {"both": 0, "up": 1, "down": 2}


def write_river_page_hinkley_scores(
    rows: FloatArray,
    scores: FloatArray,
    state: FloatArray,
    initial_state: FloatArray,
    min_instances: int,
    delta: float,
    threshold: float,
    forgetting: float,
    mode: int,
    max_abs_value: float,
) -> None:
    """Write the statistics of river's test, by its operations in its order."""
    for i in range(rows.shape[1]):
        column_state = state[i]
        for t in range(len(rows)):
            y = rows[t, i]
            scores[t, i] = math.nan
            if not abs(y) <= max_abs_value:
                continue
            column_state[N_POINTS] += 1.0
            column_state[RUNNING_MEAN] += (1.0 / column_state[N_POINTS]) * (y - column_state[RUNNING_MEAN])
            deviation = y - column_state[RUNNING_MEAN]
            column_state[UPWARD_SUM] = forgetting * column_state[UPWARD_SUM] + deviation - delta
            column_state[DOWNWARD_SUM] = forgetting * column_state[DOWNWARD_SUM] + deviation + delta
            column_state[MIN_UPWARD_SUM] = min(column_state[UPWARD_SUM], column_state[MIN_UPWARD_SUM])
            column_state[MAX_DOWNWARD_SUM] = max(column_state[DOWNWARD_SUM], column_state[MAX_DOWNWARD_SUM])
            if column_state[N_POINTS] >= min_instances:
                rise = column_state[UPWARD_SUM] - column_state[MIN_UPWARD_SUM]
                fall = column_state[MAX_DOWNWARD_SUM] - column_state[DOWNWARD_SUM]
                score = rise if mode == 1 else fall if mode == 2 else max(rise, fall)
                scores[t, i] = score
                if score > threshold:
                    for k in range(len(initial_state)):
                        column_state[k] = initial_state[k]


compiled_river_page_hinkley = jit_entry_point(write_river_page_hinkley_scores, releases_gil=True)


class RiverPageHinkley(DriftDetector):
    """The Page–Hinkley test [1]_ as river [2]_ computes it, to the bit.

    With ȳ_t the mean of the points so far, u_t = α·u_{t−1} + (y_t − ȳ_t) − δ and v_t = α·v_{t−1} + (y_t − ȳ_t) + δ. The
    statistic of a rise is u_t − min u, that of a fall max v − v_t; the score is one of them or the larger one, by
    `mode`. If it exceeds the threshold, a change is detected and the state is reset. The maximum of v starts at −1, as
    in river. A point that is not finite is not used: its score is NaN.

    Parameters
    ----------
    min_instances : int
        Number of points before the first test; until then the score is NaN.
    delta : float
        δ, at least 0.
    threshold : float
        λ, above which the state is reset; math.inf for never.
    alpha : float
        The forgetting factor α.
    mode : {"both", "up", "down"}
        Direction of the changes.

    References
    ----------
    .. [1] Page, E. S. (1954). Continuous inspection schemes. Biometrika 41(1/2), 100–115.
    .. [2] Montiel, J. et al. (2021). River: machine learning for streaming data in Python. JMLR 22(110).

    Examples
    --------
    >>> import numpy as np
    >>> detector = RiverPageHinkley(threshold=20.0)
    >>> scores = detector.process(np.repeat([0.0, 1.0], 100))
    >>> np.flatnonzero(scores > detector.threshold)
    array([122])
    """

    def __init__(
        self,
        min_instances: int = 30,
        delta: float = 0.005,
        threshold: float = 50.0,
        alpha: float = 1 - 0.0001,
        mode: str = "both",
    ) -> None:
        self.min_instances = check_int("min_instances", min_instances, 0)
        self.delta = check_positive("delta", delta, allow_zero=True)
        self.threshold = check_positive("threshold", threshold, allow_zero=True, allow_infinite=True)
        self.alpha = check_positive("alpha", alpha, allow_zero=True, maximum=1.0)
        check_param("mode", mode, Options(*MODE_CODES))
        self.mode = mode
        super().__init__(
            min_instances=self.min_instances, delta=self.delta, threshold=self.threshold, alpha=self.alpha, mode=mode
        )

    def _init_state(self, width: int) -> None:
        self._initial_state = np.array(INITIAL_STATE)
        self._state = np.tile(self._initial_state, (width, 1))

    def _write_scores(self, rows: FloatArray, scores: FloatArray) -> None:
        settings = (self.min_instances, self.delta, self.threshold, self.alpha, MODE_CODES[self.mode])
        compiled_river_page_hinkley(rows, scores, self._state, self._initial_state, *settings, MAX_ABS_VALUE)
