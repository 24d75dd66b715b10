"""An anomaly detector by river's conventions."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Mapping
from math import log10, nan
from typing import Any

import numpy as np
from river import base

from holdfast.adapters.river.features import Features, Point, as_point
from holdfast.adapters.river.newcomers import Newcomers
from holdfast.checks import require_whole
from holdfast.errors import BadInputError, HoldfastWarning
from holdfast.learners import SRA, StochasticApproximation
from holdfast.learners.in_place import InPlace
from holdfast.learners.reading import NamedRows
from holdfast.scheme.algorithm import LARGEST

NOT_PLAIN = (KeyError, TypeError, OverflowError, struct.error)  # what a point raises that needs a second look
SETTLED = 500  # points, after which a model that replaces another is calibrated well enough
GIVEN_UP = 4  # times the points of a start, after which a model that has not started does not any more
RAREST = 300.0  # what −log10 p is taken for where p is no longer told from 0


class AnomalyDetector(base.AnomalyDetector):  # type: ignore[misc]
    """How rare a point is in its stream, learnt in one pass; what is learnt is not led astray by the anomalies.

    With `holdfast.SRA()`, its default, the score is −log10 of the p-value, whatever the units of the features: 0 is
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
        What learns, for instance `holdfast.SRA(n_components=2)`: its settings, not what it has learnt; points that
        cannot be used are always skipped. `holdfast.SRA()` by default.
    max_features
        How many features are learnt: those that most points have, with a warning if there are more.

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
        self.max_features = require_whole("max_features", max_features, 1)
        self._features = self._coming = Features(())
        self._model: StochasticApproximation | None = None
        self._next: StochasticApproximation | None = None  # over other features: takes over in time
        self._newcomers = Newcomers(self._new_learner().n_init, self.max_features)
        self._find_place()

    def _new_learner(self) -> StochasticApproximation:
        learner = SRA() if self.learner is None else self.learner.clone()
        learner.on_bad = "skip"
        learner._is_told_elsewhere("bad")  # in the class: what is infinite is not learnt
        return learner

    def _find_place(self) -> None:
        self._place = None if self._model is None else self._model.in_place()
        self._values = self._features.reader()

    @property
    def model(self) -> StochasticApproximation | None:
        """The learner that is at work, with its estimates; None before it has started."""
        return self._model

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learns a point, or drops it."""
        if self._next is None and not self._newcomers.points and self._put(x):
            self._learn()
            return
        point = as_point(x)
        if self._place is not None:
            self._place.put(*self._features.vector(point))
            self._learn()
        if self._next is not None:
            self._learn_next([point])
        elif self._newcomers.points or not point.keys() <= self._features.known:
            self._meet(point)

    def _learn(self) -> None:
        """The point that lies in its place."""
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
        """A new feature, or the points after one: in time they call for a model over all that there are by then."""
        names = self._newcomers.add(point)
        if names is None:
            return
        taken, points = self._newcomers.taken(names), self._newcomers.leave()
        if len(taken) < len(names):
            told = f"{len(names)} features: the {self.max_features} that most points have are learnt (max_features)"
            warnings.warn(told, HoldfastWarning, stacklevel=3)
        if not self._features.known >= set(taken):
            self._coming, self._next = Features(taken), self._new_learner()
            self._learn_next(points)

    def _learn_next(self, points: list[Point]) -> None:
        """The next model learns as well, and takes over once it has seen enough to be as good as the one before."""
        following = self._next
        assert following is not None
        rows = np.array([self._coming.vector(point) for point in points])
        following.process(NamedRows(rows, self._coming.labels))
        enough = 0 if self._model is None else min(SETTLED, self._model.n_seen)
        if following.started and following.n_seen >= enough:
            self._model, self._features, self._next = following, self._coming, None
            self._find_place()
        elif not following.started and following.n_seen > GIVEN_UP * following.n_init:
            self._next = None  # a feature has gone again

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_place", "_values")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for model in (self._model, self._next):
            if model is not None:
                model._is_told_elsewhere("bad")
        self._find_place()

    @property
    def _raw_memory_usage(self) -> int:
        """Of what is kept of the stream; what the compiled code refers to is no part of it."""
        kept = sum(model.state.nbytes for model in (self._model, self._next) if model is not None)
        return kept + 8 * sum(map(len, self._newcomers.points))
