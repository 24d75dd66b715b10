"""How a learner is started: on the stream's first points, or on points drawn in their range, as on the real data."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

FIRST_POINTS = 10
DRAWN_POINTS = 20
RANGE = slice(19, 40)  # the paper's y_20 … y_40


def drawn_start(y: FloatArray, restart: int) -> FloatArray:
    """Points drawn uniformly between the least and the largest value of y_20 … y_40, each variable by itself.

    >>> points = drawn_start(np.arange(100.0).reshape(-1, 1), restart=0)
    >>> points.shape, bool(points.min() >= 19.0), bool(points.max() <= 39.0)
    ((20, 1), True, True)
    """
    low, high = y[RANGE].min(axis=0), y[RANGE].max(axis=0)
    return np.random.default_rng(restart).uniform(low, high, (DRAWN_POINTS, y.shape[1]))
