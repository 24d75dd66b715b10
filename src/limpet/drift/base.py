"""Base class of the drift detectors: read points, score each variable separately."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from limpet._jit.compile import announce_compilation
from limpet._validation import FloatArray
from limpet.learners.input import Names, read_point, read_rows


class DriftDetector(ABC):
    """Base class of drift detectors, which score each variable separately.

    A subclass passes its settings to `__init__`, initializes the state in `_init_state`, and in `_write_scores` scores
    rows and advances the state. A number that is not finite or beyond MAX_ABS_VALUE is not used: its score is NaN.
    """

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._width: int | None = None
        self._names: Names | None = None

    def update(self, x: Any) -> float | FloatArray:
        """Update with one point and return its score.

        Parameters
        ----------
        x : float, sequence, 1-d array or dict

        Returns
        -------
        float or array
            A number for a number, d scores for d variables.
        """
        if x.__class__ is float and self._width == 1:  # the usual point, on a fast path
            return self._score_point(x)
        point, self._names = read_point(x, self._width, self._names)
        scores = self._score_rows(point.reshape(1, -1))
        return scores[0] if isinstance(x, Mapping) or np.ndim(x) else float(scores[0, 0])

    def process(self, X: Any) -> FloatArray:
        """Update with a batch and return its scores, to the bit those of `update`.

        Parameters
        ----------
        X : array-like of shape (T,) or (T, d), or dataframe

        Returns
        -------
        array
            Of shape (T,) for one variable as (T,), else (T, d).
        """
        rows, names = read_rows(X, self._width, self._names)
        if not len(rows):
            return np.empty(rows.shape if np.ndim(X) > 1 else 0)
        self._names = names
        scores = self._score_rows(rows)
        return scores[:, 0] if rows.shape[1] == 1 and np.ndim(X) == 1 else scores

    def clone(self) -> Self:
        """Return a detector with the same settings and no state."""
        return type(self)(**self._settings)

    def _score_rows(self, rows: FloatArray) -> FloatArray:
        if self._width is None:
            self._width = rows.shape[1]
            self._row, self._row_scores = np.empty((1, self._width)), np.empty((1, self._width))
            self._init_state(self._width)
            with announce_compilation(type(self).__name__):  # costs more than a point: only once
                self._write_scores(rows[:0], np.empty((0, self._width)))
        scores = np.empty(rows.shape)
        self._write_scores(rows, scores)
        return scores

    def _score_point(self, x: float) -> float:
        """Return the score of a point of one variable."""
        self._row[0, 0] = x
        self._write_scores(self._row, self._row_scores)
        return self._row_scores.item()

    @abstractmethod
    def _init_state(self, width: int) -> None:
        """Initialize the state of `width` variables."""

    @abstractmethod
    def _write_scores(self, rows: FloatArray, scores: FloatArray) -> None:
        """Write the scores of contiguous rows (T, d), and advance the state."""

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings.items())
        return f"{type(self).__name__}({settings})"
