"""Page–Hinkley as river computes it."""

from __future__ import annotations

import math

import numpy as np

from holdfast.checks import FloatArray, require, require_whole
from holdfast.detectors.base import LARGEST, Detector
from holdfast.errors import BadInputError
from holdfast.scheme.compiling import compiled

COUNT, MEAN, UP, DOWN, LEAST_UP, MOST_DOWN = range(6)
FRESH = (0.0, 0.0, 0.0, 0.0, math.inf, -1.0)  # −1 is river's: at the start a fall counts up to 1 more than it was
MODES = {"both": 0, "up": 1, "down": 2}


def advance(
    rows: FloatArray,
    scores: FloatArray,
    state: FloatArray,
    fresh: FloatArray,
    min_instances: int,
    delta: float,
    threshold: float,
    forgetting: float,
    mode: int,
    largest: float,
) -> None:
    """The sums of the deviations from the running mean, and how far each is from its extreme; reset above a threshold.

    The operations are river's, in its order, so that the bits are the same too.
    """
    for i in range(rows.shape[1]):
        own = state[i]
        for t in range(len(rows)):
            y = rows[t, i]
            scores[t, i] = math.nan
            if not abs(y) <= largest:
                continue
            own[COUNT] += 1.0
            own[MEAN] += (1.0 / own[COUNT]) * (y - own[MEAN])
            deviation = y - own[MEAN]
            own[UP] = forgetting * own[UP] + deviation - delta
            own[DOWN] = forgetting * own[DOWN] + deviation + delta
            own[LEAST_UP] = min(own[UP], own[LEAST_UP])
            own[MOST_DOWN] = max(own[DOWN], own[MOST_DOWN])
            if own[COUNT] >= min_instances:
                rise, fall = own[UP] - own[LEAST_UP], own[MOST_DOWN] - own[DOWN]
                score = rise if mode == 1 else fall if mode == 2 else max(rise, fall)
                scores[t, i] = score
                if score > threshold:
                    for k in range(len(fresh)):
                        own[k] = fresh[k]


compiled_advance = compiled(advance, releases_gil=True)


class RiverPageHinkley(Detector):
    """The Page–Hinkley test [1]_ with river's statistic: the mean is subtracted, the past forgotten, falls count too.

    With ȳ_t the mean of the points so far, u_t = α·u_{t−1} + (y_t − ȳ_t) − δ and v_t = α·v_{t−1} + (y_t − ȳ_t) + δ. A
    rise shows in u_t − min u, a fall in max v − v_t; the score is what river compares with its threshold: the one, the
    other, or the larger of the two. Where it is above the threshold river detects a change, and all starts anew with
    the next point. The maximum of v starts at −1, as it does there. The bits are those of river's sums.

    min_instances: points before the first test, until when the score is NaN. delta: δ. threshold: λ, above which all
    starts anew; math.inf for never. alpha: α, the forgetting factor. mode: "both", "up" or "down". A point that is not
    finite is skipped: its score is NaN.

    >>> import numpy as np
    >>> detector = RiverPageHinkley(threshold=20.0)
    >>> scores = detector.process(np.repeat([0.0, 1.0], 100))
    >>> np.flatnonzero(scores > detector.threshold)
    array([122])

    .. [1] Page, E. S. (1954). Continuous inspection schemes. Biometrika 41(1/2), 100–115.
    .. [2] Montiel, J. et al. (2021). River: machine learning for streaming data in Python. Journal of Machine Learning
       Research 22(110).
    """

    def __init__(
        self,
        min_instances: int = 30,
        delta: float = 0.005,
        threshold: float = 50.0,
        alpha: float = 1 - 0.0001,
        mode: str = "both",
    ) -> None:
        self.min_instances = require_whole("min_instances", min_instances, 0)
        self.delta = require("delta", delta, zero=True)
        self.threshold = require("threshold", threshold, zero=True, infinite=True)
        self.alpha = require("alpha", alpha, zero=True, high=1.0)
        if mode not in MODES:
            raise BadInputError(f"mode must be one of {', '.join(map(repr, MODES))}, got {mode!r}")
        self.mode = mode
        super().__init__(
            min_instances=self.min_instances, delta=self.delta, threshold=self.threshold, alpha=self.alpha, mode=mode
        )

    def _start(self, width: int) -> None:
        self._fresh = np.array(FRESH)
        self._state = np.tile(self._fresh, (width, 1))

    def _advance(self, rows: FloatArray, scores: FloatArray) -> None:
        settings = (self.min_instances, self.delta, self.threshold, self.alpha, MODES[self.mode])
        compiled_advance(rows, scores, self._state, self._fresh, *settings, LARGEST)
