"""An anomaly detector with river's conventions."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Mapping
from math import log10, nan
from typing import Any

import numpy as np
from river import base

from limpet._validation import check_int
from limpet.adapters.river._features import FeatureAdmission, Features, Point, to_point
from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.exceptions import InvalidInputError, LimpetWarning
from limpet.learners import Detector, Learner
from limpet.learners._fast_path import FastPath
from limpet.learners.input import LabelledArray

FAST_PATH_ERRORS = (KeyError, TypeError, OverflowError, struct.error)  # raised by a point for the general path
MIN_REPLACEMENT_POINTS = 500  # after so many points, a model that replaces another is calibrated
MAX_START_FACTOR = 4  # a new model that has not started after so many times n_init points is discarded
MAX_NEG_LOG10_P = 300.0  # −log10 p for p = 0


class AnomalyDetector(base.AnomalyDetector):  # type: ignore[misc]
    """Score how rare a point is in its stream, robust to anomalies.

    With `limpet.Detector()`, the default, the score is −log10 of the p-value: 0 is usual, 4 is one point in ten
    thousand, in any units of the features. The score of another learner is −log f. It is 0 until the learner has
    started.

    The learner rejects outliers and follows changes. In a `QuantileFilter` it should see every point:
    `protect_anomaly_detector=False`; otherwise the filter hides changes from it, and it is locked out after a shift.
    (With this setting, river's `ThresholdFilter` does not update its detector.)

    Features may be missing (no key, None or NaN): a point is scored by its features. New features of at least a fifth
    of the points are learned: a second model, with the present features, is trained in parallel and replaces the first
    one once it is calibrated. An infinite value is scored as the largest number, and is not learned.

    Parameters
    ----------
    learner
        The learner, such as `limpet.Detector(n_components=2)`; its parameters are used, not its state, and invalid
        points are always skipped. Default: `limpet.Detector()`.
    max_features
        Maximum number of features, the most frequent ones; with more, a warning is issued.

    Examples
    --------
    >>> import random
    >>> from limpet.adapters.river import AnomalyDetector
    >>> rng = random.Random(0)
    >>> detector = AnomalyDetector()
    >>> for _ in range(1000):
    ...     detector.learn_one({"load": rng.gauss(5.0, 1.0), "heat": rng.gauss(60.0, 2.0)})
    >>> usual = detector.score_one({"load": 5.5, "heat": 61.0})
    >>> odd = detector.score_one({"load": 5.5, "heat": 90.0})
    >>> usual < 1.0, odd > 4.0
    (True, True)

    """

    def __init__(self, learner: Learner | None = None, max_features: int = 100):
        if learner is not None and (not isinstance(learner, Learner) or learner.model.supervised):
            raise InvalidInputError(
                f"learner: must be a learner of points, such as limpet.Detector(), got {learner!r}."
            )
        self.learner = learner
        self.max_features = check_int("max_features", max_features, 1)
        self._features = self._next_features = Features(())
        self._model: Learner | None = None
        self._next_model: Learner | None = None  # with other features; replaces the first one once calibrated
        self._admission = FeatureAdmission(self._new_learner().n_init, self.max_features)
        self._bind_fast_path()

    def _new_learner(self) -> Learner:
        learner = Detector() if self.learner is None else self.learner.clone()
        learner.on_invalid = "skip"
        learner.suppress_warning("invalid")  # documented in the class: infinite values are not learned
        return learner

    def _bind_fast_path(self) -> None:
        self._fast_path = None if self._model is None else self._model.fast_path()
        self._read_values = self._features.make_reader()

    @property
    def model(self) -> Learner | None:
        """The learner in use, with its estimates; None before it has started."""
        return self._model

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learn from a point, or reject it."""
        if self._next_model is None and not self._admission.points and self._write_point(x):
            self._learn()
            return
        point = to_point(x)
        if self._fast_path is not None:
            self._fast_path.write_point(*self._features.to_vector(point))
            self._learn()
        if self._next_model is not None:
            self._learn_next([point])
        elif self._admission.points or not point.keys() <= self._features.known:
            self._admit_features(point)

    def _learn(self) -> None:
        """Learn the point in the buffer."""
        fast_path, model = self._fast_path, self._model
        if fast_path is not None and model is not None:
            fast_path.learn()
            if fast_path.outcome[0]:
                model.handle_outcome(fast_path.outcome[0])

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the score of a point.

        It is 0 before the start and for a point without known features.
        """
        fast_path = self._fast_path
        if fast_path is not None and self._write_point(x):
            fast_path.score_only()
            score = self._score(fast_path)
            if score == score:
                return score
        point = to_point(x)
        if fast_path is None:
            return 0.0
        fast_path.write_point(*np.clip(self._features.to_vector(point), -MAX_ABS_VALUE, MAX_ABS_VALUE))
        fast_path.score_only()
        score = self._score(fast_path)
        return score if score == score else 0.0

    @staticmethod
    def _score(fast_path: FastPath) -> float:
        """Return the score of the point in the buffer; NaN if it is invalid."""
        if len(fast_path.score) == 1:
            return fast_path.score[0]
        p = fast_path.score[1]
        return -log10(p) if p > 0.0 else MAX_NEG_LOG10_P if p == 0.0 else nan

    def _write_point(self, x: Mapping[Any, Any]) -> bool:
        """Write a point to the buffer if it has exactly the known features as numbers.

        Return whether it has.
        """
        try:
            values = self._read_values(x)
            if self._fast_path is None or len(x) != len(values):
                return False
            self._fast_path.write_point(*values)
        except FAST_PATH_ERRORS:
            return False
        return True

    def _admit_features(self, point: Point) -> None:
        """Collect points after a new feature, then train a model with it."""
        names = self._admission.add(point)
        if names is None:
            return
        accepted, points = self._admission.limit(names), self._admission.pop_points()
        if len(accepted) < len(names):
            message = f"max_features: only the {self.max_features} most frequent of {len(names)} features are learned"
            warnings.warn(LimpetWarning(message, "max_features", n_features=len(names)), stacklevel=3)
        if not self._features.known >= set(accepted):
            self._next_features, self._next_model = Features(accepted), self._new_learner()
            self._learn_next(points)

    def _learn_next(self, points: list[Point]) -> None:
        """Update the next model, which replaces the first one once it is calibrated."""
        next_model = self._next_model
        assert next_model is not None
        rows = np.array([self._next_features.to_vector(point) for point in points])
        next_model.process(LabelledArray(rows, self._next_features.labels))
        min_points = 0 if self._model is None else min(MIN_REPLACEMENT_POINTS, self._model.n_seen)
        if next_model.started and next_model.n_seen >= min_points:
            self._model, self._features, self._next_model = next_model, self._next_features, None
            self._bind_fast_path()
        elif not next_model.started and next_model.n_seen > MAX_START_FACTOR * next_model.n_init:
            self._next_model = None  # a feature has disappeared again

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_fast_path", "_read_values")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for model in (self._model, self._next_model):
            if model is not None:
                model.suppress_warning("invalid")
        self._bind_fast_path()

    @property
    def _raw_memory_usage(self) -> int:
        """The bytes of states and points, without compiled code."""
        n_bytes = sum(model.state.nbytes for model in (self._model, self._next_model) if model is not None)
        return n_bytes + 8 * sum(map(len, self._admission.points))
