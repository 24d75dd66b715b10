"""An anomaly detector by river's conventions."""

from __future__ import annotations

import struct
import warnings
from collections import deque
from collections.abc import Mapping
from math import isnan, log10
from typing import Any

import numpy as np
from river import base

from holdfast.adapters.river.features import Features, Point, as_point
from holdfast.errors import BadInputError, HoldfastWarning
from holdfast.learners import SRA, StochasticApproximation
from holdfast.learners.reading import NamedRows
from holdfast.scheme.algorithm import LARGEST
from holdfast.scheme.state import Vector

NOT_PLAIN = (KeyError, TypeError, OverflowError, struct.error)  # what a point raises that needs a second look
RAREST = 300.0  # what −log10 p is taken for where p is no longer told from 0


class AnomalyDetector(base.AnomalyDetector):  # type: ignore[misc]
    """How rare a point is in its stream, learnt in one pass; what is learnt is not led astray by the anomalies.

    With `holdfast.SRA()`, its default, the score is −log10 of the p-value, whatever the units of the features: 0 is
    nothing special, 4 is one point in ten thousand. So `ThresholdFilter(detector, threshold=4.0)` calls about one
    normal point in ten thousand an anomaly. Any other learner scores by its surprise, −log f.

    Outliers are dropped by the learner itself and changes are followed: in a `QuantileFilter`, give
    `protect_anomaly_detector=False`, so that it sees everything. Protected by a filter it would be deaf after a shift.

    Features may be missing (absent, None or NaN): a point is judged by those that it has. New ones are learnt: once
    enough points have shown them, a model with them takes over from the one without. What is infinite counts as the
    largest number there is, and is not learnt.

    Parameters
    ----------
    learner
        What learns, for instance `holdfast.SRA(n_components=2)`; a copy of it is made. `holdfast.SRA()` by default.
    max_features
        How many features are learnt; more than these are passed over, with a warning.

    Examples
    --------
    >>> import random
    >>> from holdfast.adapters.river import AnomalyDetector
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
            raise BadInputError(f"learner must be a learner of points, such as holdfast.SRA(), got {learner!r}")
        self.learner = learner
        self.max_features = max_features
        self._fresh()

    def _fresh(self) -> None:
        """Nothing has been seen."""
        self._features = Features(())
        self._model: StochasticApproximation | None = None
        self._coming = Features(())
        self._next: StochasticApproximation | None = None  # over more features: takes over once it has started
        self._recent: deque[Point] = deque()
        self._short_way()

    def _short_way(self) -> None:
        """Points that have all features and no others take it, unless there are new features to wait for."""
        settled = self._model is not None and self._next is None
        self._place = self._model.in_place() if settled and self._model is not None else None
        self._values = self._features.reader() if settled else None

    def _put(self, x: Mapping[Any, Any]) -> bool:
        """Whether the point can take the short way; then it lies where that begins."""
        if self._place is None or self._values is None:
            return False
        try:
            self._place.put(*self._values(x))
            return len(x) == len(self._features.names)
        except NOT_PLAIN:
            return False

    @property
    def model(self) -> StochasticApproximation | None:
        """The learner that is at work, with its estimates; None before it has started."""
        return self._model

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learns a point, or drops it."""
        place = self._place
        if not self._put(x) or place is None:
            self._learn_any(as_point(x))
            return
        place.learn()
        if place.fate[0] and self._model is not None:
            self._model.follow_up(place.fate[0])

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """How rare the point is; 0 while too little has been seen, and where there is nothing to judge by."""
        place = self._place
        if not self._put(x) or place is None:
            return self._score_any(as_point(x))
        place.assess()
        score = place.score
        if len(score) > 1:
            return -log10(score[1]) if score[1] > 0.0 else self._score_any(as_point(x))
        return score[0] if score[0] == score[0] else self._score_any(as_point(x))

    def _score_any(self, point: Point) -> float:
        if self._model is None:
            return 0.0
        row = np.clip(self._features.vector(point), -LARGEST, LARGEST)
        if np.isnan(row).all():
            return 0.0
        step = self._model.assess(NamedRows(row[None], self._features.labels)).step(0)
        if isnan(step.p_value):
            return step.score if step.score == step.score else 0.0
        return -log10(step.p_value) if step.p_value > 0.0 else RAREST

    def _learn_any(self, point: Point) -> None:
        self._meet(point)
        if self._model is not None:
            self._tell(self._model, self._features, point)
        if self._next is not None:
            self._recent.append(point)
            self._tell(self._next, self._coming, point)
            if self._next.started:
                self._take_over()

    @staticmethod
    def _tell(model: StochasticApproximation, features: Features, point: Point) -> None:
        model.process(NamedRows(features.vector(point)[None], features.labels))

    def _meet(self, point: Point) -> None:
        """New features call for a model over all of them, which begins with the latest points."""
        known = self._coming.known if self._next is not None else self._features.known
        new = sorted(point.keys() - known, key=str)[: max(0, self.max_features - len(known))]
        if len(point.keys() - known) > len(new):
            warnings.warn(
                f"more than {self.max_features} features: those that came last are passed over (max_features)",
                HoldfastWarning,
                stacklevel=4,
            )
        if not new:
            return
        self._coming = Features([*known, *new])
        self._next = SRA() if self.learner is None else self.learner.clone()
        self._next._is_told_elsewhere("bad")  # in the class: what is infinite is not learnt
        self._recent = deque(self._recent, maxlen=self._next.n_init)
        self._short_way()
        if self._recent:
            rows: Vector = np.array([self._coming.vector(before) for before in self._recent])
            self._next.process(NamedRows(rows, self._coming.labels))

    def _take_over(self) -> None:
        self._model, self._features, self._next = self._next, self._coming, None
        self._recent.clear()
        self._short_way()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_place", "_values")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._short_way()

    @property
    def _raw_memory_usage(self) -> int:
        """Of what is kept of the stream; what the compiled code refers to is no part of it."""
        kept = sum(model.state.nbytes for model in (self._model, self._next) if model is not None)
        return kept + 8 * sum(map(len, self._recent))
