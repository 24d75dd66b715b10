"""An anomaly detector and a drift detector with river's conventions.

Requires limpet[river].
"""

from __future__ import annotations

import math
import struct
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from limpet._optional import optional_import
from limpet._validation import FALSE_ALARM_RATE, MAX_FAR, Options, check_int, check_param
from limpet.core.algorithm import MAX_ABS_VALUE, OUTCOME_CHANGE, OUTCOME_INVALID
from limpet.core.state import Vector
from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError, InvalidTypeError, LimpetWarning
from limpet.learners import Detector, Learner
from limpet.learners._engine import FastPath
from limpet.learners.input import LabeledArray

with optional_import("limpet.adapters.river", "river"):
    from river import base

__all__ = ["AnomalyDetector", "DriftDetector"]

Point = dict[Hashable, float]


def to_point(x: Mapping[Any, Any]) -> Point:
    """Return the features that have a value, as floats; None and NaN are missing.

    >>> to_point({"a": 1, "b": None, "c": True, "d": float("nan")})
    {'a': 1.0, 'c': 1.0}
    """
    if not isinstance(x, Mapping):
        raise InvalidTypeError(f"x: must be a dict of features, got {type(x).__name__} {x!r}.")
    values = ((name, to_float(value, "feature {!r}", name)) for name, value in x.items() if value is not None)
    return {name: value for name, value in values if value == value}


def to_float(value: Any, label: str, name: Hashable = None) -> float:
    """Convert a number to float; `label` formats the name for messages."""
    if isinstance(value, str | bytes):
        raise InvalidTypeError(f"{label.format(name)}: must be a number, got {value!r}.")
    try:
        return float(value)
    except OverflowError:  # an integer beyond the largest float
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        raise InvalidTypeError(f"{label.format(name)}: must be a number, got {type(value).__name__}.") from None


class Features:
    """Features sorted by name: results do not depend on the order in a dict."""

    def __init__(self, names: Iterable[Hashable]) -> None:
        self.names: tuple[Hashable, ...] = tuple(sorted(names, key=lambda name: (str(name), str(type(name)))))
        self.known = frozenset(self.names)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names as distinct strings."""
        counts = Counter(map(str, self.names))
        return tuple(str(name) if counts[str(name)] == 1 else repr(name) for name in self.names)

    def make_reader(self) -> Callable[[Mapping[Any, Any]], tuple[Any, ...]]:
        """Return a function from a dict with all features to their values."""
        if len(self.names) > 1:
            return itemgetter(*self.names)
        return lambda x: tuple(x[name] for name in self.names)

    def to_vector(self, point: Point) -> Vector:
        """Return the values of a point, NaN for missing features."""
        return np.array([point.get(name, np.nan) for name in self.names])


# Anomalies

FAST_PATH_ERRORS = (KeyError, TypeError, OverflowError, struct.error)  # raised by a point for the general path
MIN_PRESENCE_SHARE = 0.2  # of the points must have a feature for it to be learned …
MIN_PRESENCE_POINTS = 3  # … and at least so many points
MIN_REPLACEMENT_POINTS = 500  # after so many points, a learner that replaces another is calibrated
MAX_START_FACTOR = 4  # a new learner that has not started after so many times n_init points is discarded
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
    of the points are learned: a second learner, with these features, is trained in parallel and replaces the first one
    once it is calibrated. An infinite value is scored as the largest number, and is not learned.

    Parameters
    ----------
    learner
        The learner, such as `limpet.Detector(n_components=2)`; its parameters are used, not its state, and invalid
        points are never used. Default: `limpet.Detector()`.
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
        self._learner: Learner | None = None
        self._next_learner: Learner | None = None  # with other features; replaces the first one once calibrated
        self._n_init, self._collected_points = self._new_learner().n_init, list[Point]()  # points since a new feature
        self._bind_fast_path()

    def _new_learner(self) -> Learner:
        learner = Detector() if self.learner is None else self.learner.clone()
        learner.on_invalid = "skip"
        learner.suppress_warning("invalid")  # documented in the class: infinite values are not learned
        return learner

    def _bind_fast_path(self) -> None:
        self._fast_path = None if self._learner is None else self._learner.fast_path()
        self._read_values = self._features.make_reader()

    @property
    def current_learner(self) -> Learner | None:
        """The learner in use, with its estimates; None before it has started."""
        return self._learner

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learn from a point, or reject it."""
        if self._next_learner is None and not self._collected_points and self._write_point(x):
            self._learn()
            return
        point = to_point(x)
        if self._fast_path is not None:
            self._fast_path.write_point(*self._features.to_vector(point))
            self._learn()
        if self._next_learner is not None:
            self._learn_next([point])
        elif self._collected_points or not point.keys() <= self._features.known:
            self._admit_features(point)

    def _learn(self) -> None:
        """Learn the point in the buffer."""
        fast_path, learner = self._fast_path, self._learner
        if fast_path is not None and learner is not None:
            fast_path.learn()
            if fast_path.outcome[0]:
                learner.handle_outcome(fast_path.outcome[0])

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the score of a point; 0 before the start or without known features."""
        fast_path = self._fast_path
        if fast_path is not None and self._write_point(x):
            score = self._score(fast_path)
            if score == score:
                return score
        point = to_point(x)
        if fast_path is None:
            return 0.0
        fast_path.write_point(*np.clip(self._features.to_vector(point), -MAX_ABS_VALUE, MAX_ABS_VALUE))
        score = self._score(fast_path)
        return score if score == score else 0.0

    @staticmethod
    def _score(fast_path: FastPath) -> float:
        """Return the score of the point in the buffer; NaN if it is invalid."""
        fast_path.score_only()
        if len(fast_path.score) == 1:
            return fast_path.score[0]
        p = fast_path.score[1]
        return -math.log10(p) if p > 0.0 else MAX_NEG_LOG10_P if p == 0.0 else math.nan

    def _write_point(self, x: Mapping[Any, Any]) -> bool:
        """Write a point that has exactly the known features, and return whether."""
        try:
            values = self._read_values(x)
            if self._fast_path is None or len(x) != len(values):
                return False
            self._fast_path.write_point(*values)
        except FAST_PATH_ERRORS:
            return False
        return True

    def _admit_features(self, point: Point) -> None:
        """Collect points after a new feature, then train a learner with it."""
        if point and all(map(math.isfinite, point.values())):
            self._collected_points.append(point)
        if len(self._collected_points) < self._n_init:
            return
        points, self._collected_points = self._collected_points, []
        min_count = max(min(MIN_PRESENCE_POINTS, self._n_init), MIN_PRESENCE_SHARE * self._n_init)
        counts = Counter(name for each in points for name in each)
        names = [name for name in counts if counts[name] >= min_count]
        accepted = sorted(names, key=lambda name: (-counts[name], str(name)))[: self.max_features]
        if len(accepted) < len(names):
            message = f"max_features: only the {self.max_features} most frequent of {len(names)} features are learned."
            warnings.warn(LimpetWarning(message, "max_features", n_features=len(names)), stacklevel=3)
        if not self._features.known >= set(accepted):
            self._next_features, self._next_learner = Features(accepted), self._new_learner()
            self._learn_next(points)

    def _learn_next(self, points: list[Point]) -> None:
        """Update the next learner, which replaces the first one once it is calibrated."""
        next_learner = self._next_learner
        assert next_learner is not None
        rows = np.array([self._next_features.to_vector(point) for point in points])
        next_learner.process(LabeledArray(rows, self._next_features.labels))
        min_points = 0 if self._learner is None else min(MIN_REPLACEMENT_POINTS, self._learner.n_seen)
        if next_learner.started and next_learner.n_seen >= min_points:
            self._learner, self._features, self._next_learner = next_learner, self._next_features, None
            self._bind_fast_path()
        elif not next_learner.started and next_learner.n_seen > MAX_START_FACTOR * next_learner.n_init:
            self._next_learner = None  # a feature has disappeared again

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_fast_path", "_read_values")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for learner in (self._learner, self._next_learner):
            if learner is not None:
                learner.suppress_warning("invalid")
        self._bind_fast_path()

    @property
    def _raw_memory_usage(self) -> int:
        """The bytes of states and points, without compiled code."""
        n_bytes = sum(learner.state.nbytes for learner in (self._learner, self._next_learner) if learner is not None)
        return n_bytes + 8 * sum(map(len, self._collected_points))


# Drifts

DIRECTIONS = ("both", "up", "down")
RECENT_MEAN_STEP = 0.1  # step size of the average of the latest values
DIRECTION_THRESHOLD_SE = 1.5  # standard errors
MIN_CLIPPING_VALUES, MAX_DEVIATION_SD = 10, 5.0  # after so many values, deviations are clipped
N_PROBE_VALUES, MAX_DISTINCT_VALUES = 50, 5  # if the first values have so few distinct ones …
DISCRETE_BLOCK_VALUES = 7  # … blocks of this size are averaged


class DriftDetector(base.DriftAndWarningDetector):  # type: ignore[misc]
    """Detect changes at a promised false-alarm rate, robust to outliers.

    The input is a number, or the error of a model. While nothing changes, on average at most one value in 1/far
    is reported as drift. `limpet.Detector` detects changes of level or spread and continues after them, without a
    reset. The first hundred values or blocks raise no alarm. A value that is not finite is not used, nor is its block.

    Parameters
    ----------
    far
        The false-alarm rate of drifts.
    warning_far
        The false-alarm rate of warnings, from `far` to 0.1. A warning lasts as long as the evidence. Default: ten times
        `far`.
    direction
        The drifts to report: "both"; "up", for instance of an error, which also falls when a model is retrained; or
        "down". Other drifts, including changes of spread alone, are followed silently.
    block
        Number of values to average. Default: 1; 7 if the first fifty have at most five distinct values, as errors of 0
        and 1 have.

    Examples
    --------
    >>> import random
    >>> from limpet.adapters.river import DriftDetector
    >>> rng = random.Random(0)
    >>> detector = DriftDetector()
    >>> for i in range(2000):
    ...     detector.update(rng.gauss(0.0 if i < 1000 else 1.5, 1.0))
    ...     if detector.drift_detected:
    ...         print(i, detector.alarm)
    1007 row 1007: change since row 996, variable 0 up by 1.76 standard deviations

    """

    def __init__(
        self, far: float = 1e-4, warning_far: float | None = None, direction: str = "both", block: int | None = None
    ):
        super().__init__()
        check_param("far", far, FALSE_ALARM_RATE)
        self.far, self.warning_far = far, warning_far
        warning_rate = min(10.0 * far, MAX_FAR)
        if warning_far is not None:
            check_param("warning_far", warning_far, FALSE_ALARM_RATE)
            warning_rate = warning_far
        check_param("direction", direction, Options(*DIRECTIONS))
        if warning_rate < far:
            raise InvalidInputError(f"warning_far: must be at least far, got {warning_far!r} with far={far!r}.")
        self.direction = direction
        self.block = None if block is None else check_int("block", block, 1)
        self.alarm: Alarm | None = None
        """The latest reported drift, with its onset and size."""
        self._log_warning_threshold = math.log(far / warning_rate)
        self._probe_values: list[float] = []  # values that determine the block size
        self._learner: Detector | None = None
        self._fast_path: FastPath | None = None
        self._direction_tracker, self._block_sum, self._block_count, self._per_block = DirectionTracker(), 0.0, 0, 0
        if block is not None:
            self._start_learner(block)

    @property
    def _tags(self) -> set[str]:
        """No tags; required by river's checks."""
        return set()

    def update(self, x: float) -> None:
        """Update with the next value."""
        self._drift_detected = False  # the warning stays until the next value or block
        value = to_float(x, "x")
        if self._learner is not None:
            self._add_to_block(value)
            return
        self._probe_values.append(value)
        if len(self._probe_values) == N_PROBE_VALUES:
            is_discrete = len({each for each in self._probe_values if math.isfinite(each)}) <= MAX_DISTINCT_VALUES
            self._start_learner(DISCRETE_BLOCK_VALUES if is_discrete else 1)
            for each in self._probe_values:
                self._add_to_block(each)
            self._probe_values = []

    def _start_learner(self, block: int) -> None:
        self._per_block = block
        self._learner = Detector(far=min(block * self.far, MAX_FAR))  # `far` is per value, hence higher per block
        self._learner.suppress_warning("invalid")

    def _add_to_block(self, value: float) -> None:
        if self._per_block == 1:
            self._learn(value)
            return
        self._block_count += 1
        self._block_sum += value if math.isfinite(value) else math.nan
        if self._block_count == self._per_block:
            mean = self._block_sum / self._block_count
            self._block_sum, self._block_count = 0.0, 0
            self._learn(mean)

    def _learn(self, value: float) -> None:
        """Learn a value or the mean of a block."""
        learner, fast_path = self._learner, self._fast_path
        assert learner is not None
        if fast_path is None:
            learner.update(value)
            self._fast_path = learner.fast_path() if learner.started else None
            return
        fast_path.write_point(value)
        fast_path.learn()
        outcome = fast_path.outcome[0]
        if outcome != OUTCOME_INVALID:
            self._direction_tracker.add(value)
        alarms = learner.handle_outcome(outcome) if outcome else ()
        if outcome & OUTCOME_CHANGE:
            self._report_change(next(alarm for alarm in alarms if alarm.kind == "change"))
        else:
            self._warning_detected = fast_path.log_evidence_margin() > self._log_warning_threshold

    def _report_change(self, alarm: Alarm) -> None:
        """Report a change in the requested direction, and reset the warning."""
        self._warning_detected = False  # which river's retraining checks first
        direction = alarm.direction if alarm.direction in DIRECTIONS else self._direction_tracker.direction()
        self._direction_tracker = DirectionTracker()
        if self.direction in ("both", direction):
            row, onset = (alarm.row + 1) * self._per_block - 1, alarm.onset * self._per_block
            self._drift_detected, self.alarm = True, replace(alarm, row=row, onset=onset)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_fast_path"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._learner is not None:
            self._learner.suppress_warning("invalid")
        self._fast_path = self._learner.fast_path() if self._learner is not None and self._learner.started else None


class DirectionTracker:
    """The direction of a change of spread, from the mean and the recent mean."""

    def __init__(self) -> None:
        self.n, self.mean, self.sum_of_squares, self.recent_mean, self.recent_mean_square = 0, 0.0, 0.0, 0.0, 0.0

    def add(self, value: float) -> None:
        """Add a value."""
        if self.n >= MIN_CLIPPING_VALUES:  # so that outliers have little influence
            max_deviation = MAX_DEVIATION_SD * math.sqrt(self.sum_of_squares / self.n)
            value = min(max(value, self.mean - max_deviation), self.mean + max_deviation)
        self.n += 1
        step, deviation = max(RECENT_MEAN_STEP, 1.0 / self.n), value - self.mean
        self.mean += deviation / self.n
        self.sum_of_squares += deviation * (value - self.mean)
        self.recent_mean += step * (value - self.recent_mean)
        self.recent_mean_square += step * ((value - self.mean) ** 2 - self.recent_mean_square)

    def direction(self) -> str:
        """Return "up" or "down", or "" if the difference is not significant."""
        deviation = self.recent_mean - self.mean
        variance = max(self.recent_mean_square - deviation * deviation, 0.0)
        error = math.sqrt(variance * RECENT_MEAN_STEP / (2.0 - RECENT_MEAN_STEP))
        if abs(deviation) <= DIRECTION_THRESHOLD_SE * error:
            return ""
        return "up" if deviation > 0.0 else "down"
