"""An anomaly detector by river's conventions."""

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
from limpet.learners import SRA, StochasticApproximation
from limpet.learners._fast_path import FastPath
from limpet.learners.input import LabelledArray

FAST_PATH_ERRORS = (KeyError, TypeError, OverflowError, struct.error)  # what a point raises that needs a second look
MIN_REPLACEMENT_POINTS = 500  # points, after which a model that replaces another is calibrated well enough
MAX_START_FACTOR = 4  # times the points of a start, after which a model that has not started does not any more
MAX_NEG_LOG10_P = 300.0  # what −log10 p is taken for where p is no longer told from 0


class AnomalyDetector(base.AnomalyDetector):  # type: ignore[misc]
    """How rare a point is in its stream, learnt in one pass; what is learnt is not led astray by the anomalies.

    With `limpet.SRA()`, its default, the score is −log10 of the p-value, whatever the units of the features: 0 is
    nothing special, 4 is one point in ten thousand. Any other learner scores by its surprise, −log f. It is 0 until
    enough points have come.

    Outliers are dropped by the learner itself and changes are followed. In a `QuantileFilter` it should see everything:
    `protect_anomaly_detector=False`. (With that, river's `ThresholdFilter` lets its detector learn nothing; without it,
    a filter hides from it what may be a change, and it is deaf after a shift.)

    Features may be missing (absent, None or NaN): a point is judged by those that it has. New ones that a fifth of the
    points have are learnt: a second model, over what there is now, learns beside the first and takes over when it has
    seen enough. What is infinite counts as the largest number there is, and is not learnt.

    Parameters
    ----------
    learner
        What learns, for instance `limpet.SRA(n_components=2)`: its settings, not what it has learnt; points that
        cannot be used are always skipped. `limpet.SRA()` by default.
    max_features
        How many features are learnt: those that most points have, with a warning if there are more.

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

    def __init__(self, learner: StochasticApproximation | None = None, max_features: int = 100):
        if learner is not None and (not isinstance(learner, StochasticApproximation) or learner.model.supervised):
            raise InvalidInputError(f"learner must be a learner of points, such as limpet.SRA(), got {learner!r}")
        self.learner = learner
        self.max_features = check_int("max_features", max_features, 1)
        self._features = self._next_features = Features(())
        self._model: StochasticApproximation | None = None
        self._next_model: StochasticApproximation | None = None  # over other features: takes over in time
        self._admission = FeatureAdmission(self._new_learner().n_init, self.max_features)
        self._bind_fast_path()

    def _new_learner(self) -> StochasticApproximation:
        learner = SRA() if self.learner is None else self.learner.clone()
        learner.on_invalid = "skip"
        learner._suppress_warning("invalid")  # in the class: what is infinite is not learnt
        return learner

    def _bind_fast_path(self) -> None:
        self._fast_path = None if self._model is None else self._model.fast_path()
        self._read_values = self._features.make_reader()

    @property
    def model(self) -> StochasticApproximation | None:
        """The learner that is at work, with its estimates; None before it has started."""
        return self._model

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learns a point, or drops it."""
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
        """The point that lies in its place."""
        fast_path, model = self._fast_path, self._model
        if fast_path is not None and model is not None:
            fast_path.learn()
            if fast_path.outcome[0]:
                model.handle_outcome(fast_path.outcome[0])

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """How rare the point is; 0 while too little has been seen, and where there is nothing to judge by."""
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
        """Of the point that was assessed; NaN if it cannot be."""
        if len(fast_path.score) == 1:
            return fast_path.score[0]
        p = fast_path.score[1]
        return -log10(p) if p > 0.0 else MAX_NEG_LOG10_P if p == 0.0 else nan

    def _write_point(self, x: Mapping[Any, Any]) -> bool:
        """Whether the point has all features as numbers, and no others; then it is put in its place."""
        try:
            values = self._read_values(x)
            if self._fast_path is None or len(x) != len(values):
                return False
            self._fast_path.write_point(*values)
        except FAST_PATH_ERRORS:
            return False
        return True

    def _admit_features(self, point: Point) -> None:
        """A new feature, or the points after one: in time they call for a model over all that there are by then."""
        names = self._admission.add(point)
        if names is None:
            return
        accepted, points = self._admission.limit(names), self._admission.pop_points()
        if len(accepted) < len(names):
            message = f"{len(names)} features: the {self.max_features} that most points have are learnt (max_features)"
            warnings.warn(message, LimpetWarning, stacklevel=3)
        if not self._features.known >= set(accepted):
            self._next_features, self._next_model = Features(accepted), self._new_learner()
            self._learn_next(points)

    def _learn_next(self, points: list[Point]) -> None:
        """The next model learns as well, and takes over once it has seen enough to be as good as the one before."""
        next_model = self._next_model
        assert next_model is not None
        rows = np.array([self._next_features.to_vector(point) for point in points])
        next_model.process(LabelledArray(rows, self._next_features.labels))
        min_points = 0 if self._model is None else min(MIN_REPLACEMENT_POINTS, self._model.n_seen)
        if next_model.started and next_model.n_seen >= min_points:
            self._model, self._features, self._next_model = next_model, self._next_features, None
            self._bind_fast_path()
        elif not next_model.started and next_model.n_seen > MAX_START_FACTOR * next_model.n_init:
            self._next_model = None  # a feature has gone again

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_fast_path", "_read_values")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for model in (self._model, self._next_model):
            if model is not None:
                model._suppress_warning("invalid")
        self._bind_fast_path()

    @property
    def _raw_memory_usage(self) -> int:
        """Of what is kept of the stream; what the compiled code refers to is no part of it."""
        n_bytes = sum(model.state.nbytes for model in (self._model, self._next_model) if model is not None)
        return n_bytes + 8 * sum(map(len, self._admission.points))
