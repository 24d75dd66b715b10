"""What all detectors share: how points are read, one detector a variable, a score for each point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from limpet._jit.compile import announce_compilation
from limpet._validation import FloatArray
from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.learners.input import Names, read_point, read_rows

DetectorT = TypeVar("DetectorT", bound="DriftDetector")

__all__ = ["MAX_ABS_VALUE", "DriftDetector"]


class DriftDetector(ABC):
    """Base of every detector: reads points, and scores each variable on its own.

    A subclass hands its settings to `__init__`, makes room for `width` variables in `_start`, and in `_advance` writes
    the scores of some rows, going on from the state that earlier rows have left. A number that is not finite, or so
    large that its square is not (beyond LARGEST), is skipped for its variable: its score is NaN and the state stays.
    """

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._width: int | None = None
        self._names: Names | None = None

    def update(self, x: Any) -> float | FloatArray:
        """Takes one point, returns its score: a number for a number, a vector of d for a vector (or dict) of d."""
        if x.__class__ is float and self._width == 1:  # the usual point, without the questions below
            return self._score_point(x)
        point, self._names = read_point(x, self._width, self._names)
        scores = self._score_rows(point.reshape(1, -1))
        return scores[0] if isinstance(x, Mapping) or np.ndim(x) else float(scores[0, 0])

    def process(self, X: Any) -> FloatArray:
        """The scores of a batch: (T,) → (T,), (T, d) or a dataframe → (T, d); the same bits as `update` one by one."""
        rows, names = read_rows(X, self._width, self._names)
        if not len(rows):
            return np.empty(rows.shape if np.ndim(X) > 1 else 0)
        self._names = names
        scores = self._score_rows(rows)
        return scores[:, 0] if rows.shape[1] == 1 and np.ndim(X) == 1 else scores

    def clone(self: DetectorT) -> DetectorT:
        """A detector with the same settings that has seen nothing."""
        return type(self)(**self._settings)

    def _score_rows(self, rows: FloatArray) -> FloatArray:
        if self._width is None:
            self._width = rows.shape[1]
            self._row, self._row_scores = np.empty((1, self._width)), np.empty((1, self._width))
            self._init_state(self._width)
            with announce_compilation(type(self).__name__):  # costs more than a point does: only this once
                self._write_scores(rows[:0], np.empty((0, self._width)))
        scores = np.empty(rows.shape)
        self._write_scores(rows, scores)
        return scores

    def _score_point(self, x: float) -> float:
        """The score of one point of one variable."""
        self._row[0, 0] = x
        self._write_scores(self._row, self._row_scores)
        return self._row_scores.item()

    @abstractmethod
    def _init_state(self, width: int) -> None:
        """Makes the state of `width` variables, none of which has been seen."""

    @abstractmethod
    def _write_scores(self, rows: FloatArray, scores: FloatArray) -> None:
        """Writes the scores of rows (T, d), contiguous, and moves the state on."""

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings.items())
        return f"{type(self).__name__}({settings})"
