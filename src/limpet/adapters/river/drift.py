"""A drift detector with river's conventions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from river import base

from limpet._validation import Options, check_int, check_param, check_positive
from limpet.core.algorithm import OUTCOME_CHANGE, OUTCOME_INVALID
from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.learners import Detector
from limpet.learners._fast_path import FastPath

DIRECTIONS = ("both", "up", "down")
MAX_FAR = 0.1  # false alarms per point
RECENT_MEAN_STEP = 0.1  # step size of the average of the latest values
DIRECTION_THRESHOLD_SE = 1.5  # standard errors
MIN_CLIPPING_VALUES, MAX_DEVIATION_SD = 10, 5.0  # after so many values, deviations are clipped
N_PROBE_VALUES, MAX_DISTINCT_VALUES = 50, 5  # if the first values have so few distinct ones …
DISCRETE_BLOCK_VALUES = 7  # … blocks of this size are averaged


class DriftDetector(base.DriftAndWarningDetector):  # type: ignore[misc]
    """Detect changes at a promised false-alarm rate, robust to outliers.

    The input is a number, or the error of a model.

    While nothing changes, at most one value in 1/far is reported as drift. `limpet.Detector` detects changes of level
    or spread and continues after them, without a reset. The first hundred values or blocks raise no alarm. A value that
    is not finite is skipped, with its block.

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
        self,
        far: float = 1e-4,
        warning_far: float | None = None,
        direction: str = "both",
        block: int | None = None,
    ):
        super().__init__()
        self.far, self.warning_far = check_positive("far", far, maximum=MAX_FAR), warning_far
        warning_rate = (
            min(10.0 * far, MAX_FAR)
            if warning_far is None
            else check_positive("warning_far", warning_far, maximum=MAX_FAR)
        )
        check_param("direction", direction, Options(*DIRECTIONS))
        if warning_rate < far:
            raise InvalidInputError(f"warning_far: must be at least far, got {warning_far!r} with far={far!r}.")
        self.direction = direction
        self.block = None if block is None else check_int("block", block, 1)
        self.alarm: Alarm | None = None
        """The latest reported drift, with its onset and size."""
        self._log_warning_threshold = math.log(far / warning_rate)
        self._probe_values: list[float] = []  # values that determine the block size
        self._model: Detector | None = None
        self._fast_path: FastPath | None = None
        self._direction_tracker, self._block_sum, self._block_count, self._per_block = DirectionTracker(), 0.0, 0, 0
        if block is not None:
            self._start_model(block)

    @property
    def _tags(self) -> set[str]:
        """No tags; required by river's checks."""
        return set()

    def update(self, x: float) -> None:
        """Update with the next value."""
        self._drift_detected = False  # the warning stays until the next value or block
        value = to_float(x)
        if self._model is not None:
            self._add_to_block(value)
            return
        self._probe_values.append(value)
        if len(self._probe_values) == N_PROBE_VALUES:
            is_discrete = len({each for each in self._probe_values if math.isfinite(each)}) <= MAX_DISTINCT_VALUES
            self._start_model(DISCRETE_BLOCK_VALUES if is_discrete else 1)
            for each in self._probe_values:
                self._add_to_block(each)
            self._probe_values = []

    def _start_model(self, block: int) -> None:
        """Start the model on blocks of values.

        `far` is per value, hence higher per block.
        """
        self._per_block = block
        self._model = Detector(far=min(block * self.far, MAX_FAR))
        self._model.suppress_warning("invalid")

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
        model, fast_path = self._model, self._fast_path
        assert model is not None
        if fast_path is None:
            model.update(value)
            self._fast_path = model.fast_path() if model.started else None
            return
        fast_path.write_point(value)
        fast_path.learn()
        outcome = fast_path.outcome[0]
        if outcome != OUTCOME_INVALID:
            self._direction_tracker.add(value)
        alarms = model.handle_outcome(outcome) if outcome else ()
        if outcome & OUTCOME_CHANGE:
            self._report_change(next(alarm for alarm in alarms if alarm.kind == "change"))
        else:
            self._warning_detected = fast_path.log_evidence_margin() > self._log_warning_threshold

    def _report_change(self, alarm: Alarm) -> None:
        """Report a change in the requested direction, and reset the warning.

        River's retraining checks the warning first.
        """
        self._warning_detected = False
        direction = alarm.direction if alarm.direction in DIRECTIONS else self._direction_tracker.direction()
        self._direction_tracker = DirectionTracker()
        if self.direction in ("both", direction):
            row, onset = (alarm.row + 1) * self._per_block - 1, alarm.onset * self._per_block
            self._drift_detected, self.alarm = True, replace(alarm, row=row, onset=onset)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_fast_path"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._model is not None:
            self._model.suppress_warning("invalid")
        self._fast_path = self._model.fast_path() if self._model is not None and self._model.started else None


class DirectionTracker:
    """The direction of a change of spread, from the mean and the recent mean.

    Deviations are clipped, so that outliers have little influence.
    """

    def __init__(self) -> None:
        self.n, self.mean, self.sum_of_squares, self.recent_mean, self.recent_mean_square = 0, 0.0, 0.0, 0.0, 0.0

    def add(self, value: float) -> None:
        """Add a value."""
        if self.n >= MIN_CLIPPING_VALUES:
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
        error = math.sqrt(
            max(self.recent_mean_square - deviation * deviation, 0.0) * RECENT_MEAN_STEP / (2.0 - RECENT_MEAN_STEP)
        )
        if abs(deviation) <= DIRECTION_THRESHOLD_SE * error:
            return ""
        return "up" if deviation > 0.0 else "down"


def to_float(x: Any) -> float:
    """Convert a number to float; the learner skips NaN and infinities."""
    if isinstance(x, str | bytes):
        raise InvalidTypeError(f"x: must be a number, got {x!r}.")
    try:
        return float(x)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        raise InvalidTypeError(f"x: must be a number, got {type(x).__name__}.") from None
