"""An anomaly detector by river's conventions."""

from __future__ import annotations

import struct
import warnings
from collections import deque
from collections.abc import Mapping
from math import log10, nan
from typing import Any

import numpy as np
from river import base

from holdfast.adapters.river.features import Features, Point, as_point
from holdfast.errors import BadInputError, HoldfastWarning
from holdfast.learners import SRA, StochasticApproximation
from holdfast.learners.in_place import InPlace
from holdfast.learners.reading import NamedRows
from holdfast.scheme.algorithm import LARGEST

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
        self._features = Features(())
        self._model: StochasticApproximation | None = None
        self._coming = Features(())
        self._next: StochasticApproximation | None = None  # over more features: takes over once it has started
        self._recent: deque[Point] = deque()
        self._find_place()

    def _find_place(self) -> None:
        self._place = None if self._model is None else self._model.in_place()
        self._values = self._features.reader()

    @property
    def model(self) -> StochasticApproximation | None:
        """The learner that is at work, with its estimates; None before it has started."""
        return self._model

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learns a point, or drops it."""
        if self._next is not None or not self._put(x):
            point = as_point(x)
            self._meet(point)
            if (self._next is not None and self._learn_next(point)) or self._place is None:
                return
            self._place.put(*self._features.vector(point))
        place, model = self._place, self._model
        if place is not None and model is not None:
            place.learn()
            if place.fate[0]:
                model.follow_up(place.fate[0])

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """How rare the point is; 0 while too little has been seen, and where there is nothing to judge by."""
        place = self._place
        if place is not None and self._put(x):
            place.assess()
            score = self._score(place)
            if score == score:
                return score
        point = as_point(x)
        if place is None:
            return 0.0
        place.put(*np.clip(self._features.vector(point), -LARGEST, LARGEST))
        place.assess()
        score = self._score(place)
        return score if score == score else 0.0

    @staticmethod
    def _score(place: InPlace) -> float:
        """Of the point that was assessed; NaN if it cannot be."""
        if len(place.score) == 1:
            return place.score[0]
        p = place.score[1]
        return -log10(p) if p > 0.0 else RAREST if p == 0.0 else nan

    def _put(self, x: Mapping[Any, Any]) -> bool:
        """Whether the point has all features as numbers, and no others; then it is put in its place."""
        try:
            values = self._values(x)
            if self._place is None or len(x) != len(values):
                return False
            self._place.put(*values)
        except NOT_PLAIN:
            return False
        return True

    def _meet(self, point: Point) -> None:
        """New features call for a model over all of them, which begins with the latest points."""
        known = self._coming.known
        unknown = sorted(point.keys() - known, key=str)
        new = unknown[: max(0, self.max_features - len(known))]
        if len(unknown) > len(new):
            told = f"more than {self.max_features} features: those that came last are passed over (max_features)"
            warnings.warn(told, HoldfastWarning, stacklevel=3)
        if not new:
            return
        self._coming = Features([*known, *new])
        self._next = SRA() if self.learner is None else self.learner.clone()
        self._next._is_told_elsewhere("bad")  # in the class: what is infinite is not learnt
        before, self._recent = self._recent, deque(maxlen=self._next.n_init)
        for each in before:
            self._learn_next(each)

    def _learn_next(self, point: Point) -> bool:
        """The model that is to take over learns as well; whether it has taken over."""
        if self._next is None:
            return True
        self._recent.append(point)
        self._next.process(NamedRows(self._coming.vector(point)[None], self._coming.labels))
        if not self._next.started:
            return False
        self._model, self._features, self._next = self._next, self._coming, None
        self._recent.clear()
        self._find_place()
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_place", "_values")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._find_place()

    @property
    def _raw_memory_usage(self) -> int:
        """Of what is kept of the stream; what the compiled code refers to is no part of it."""
        kept = sum(model.state.nbytes for model in (self._model, self._next) if model is not None)
        return kept + 8 * sum(map(len, self._recent))
