"""A drift detector by river's conventions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from river import base

from limpet._validation import check_int, check_positive
from limpet.core.algorithm import OUTCOME_CHANGE, OUTCOME_INVALID, OUTCOME_MASK
from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.learners import SRA
from limpet.learners._fast_path import FastPath

DIRECTIONS = ("both", "up", "down")
MAX_FAR = 0.1  # false alarms a point
RECENT_MEAN_STEP = 0.1  # step of the average that tells where the latest values are
DIRECTION_THRESHOLD_SE = 1.5  # standard errors
MIN_CLIPPING_VALUES, MAX_DEVIATION_SD = (
    10,
    5.0,
)  # values, after which a further one counts for so many standard deviations at the most
N_PROBE_VALUES, MAX_DISTINCT_VALUES, DISCRETE_BLOCK_VALUES = (
    50,
    5,
    7,
)  # with so few different values among the first, so many are averaged


class DriftDetector(base.DriftAndWarningDetector):  # type: ignore[misc]
    """Finds changes in a number, or in a model's error, at a promised rate of false alarms; outliers raise none.

    While nothing changes, at most one value in 1/far is called a drift. A change of level or of spread is found, by
    `limpet.SRA`, which goes on with what comes after it: nothing has to be reset. The first hundred values or
    blocks raise no alarm. A value that is not finite is skipped, with its block.

    Parameters
    ----------
    far
        The false-alarm rate of drifts.
    warning_far
        The same for warnings, which last as long as there is so much to be said for a drift; from `far` to 0.1, by
        default ten times `far`.
    direction
        Which drifts are told: "both"; "up", for instance of an error, which also falls when a model is retrained;
        or "down". The others are followed silently, changes of spread alone among them.
    block
        How many values are averaged before they are looked at: by default 1, but 7 if the first fifty have at most
        five different values, as errors of 0 and 1 have, of which one by one hardly anything can be told.

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
        if direction not in DIRECTIONS:
            raise InvalidInputError(f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
        if warning_rate < far:
            raise InvalidInputError(f"warning_far must be at least far, got {warning_far!r} and {far!r}")
        self.direction = direction
        self.block = None if block is None else check_int("block", block, 1)
        self.alarm: Alarm | None = None
        """The latest drift that was told: when it was noticed, when it began, how large it is."""
        self._log_warning_threshold = math.log(far / warning_rate)
        self._probe_values: list[float] = []  # values from which it is found out how many are averaged
        self._model: SRA | None = None
        self._fast_path: FastPath | None = None
        self._direction_tracker, self._block_sum, self._block_count, self._per_block = DirectionTracker(), 0.0, 0, 0
        if block is not None:
            self._start_model(block)

    @property
    def _tags(self) -> set[str]:
        """None; river's checks ask for them."""
        return set()

    def update(self, x: float) -> None:
        """Takes the next value, as a number."""
        self._drift_detected = False  # the warning stays, until the next value or block has been looked at
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
        """So many values are averaged; the promise is for values, so there may be more alarms a block."""
        self._per_block = block
        self._model = SRA(far=min(block * self.far, MAX_FAR))
        self._model._suppress_warning("invalid")

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
        """A value, or the mean of a block."""
        model, fast_path = self._model, self._fast_path
        assert model is not None
        if fast_path is None:
            model.update(value)
            self._fast_path = model.fast_path() if model.started else None
            return
        fast_path.write_point(value)
        fast_path.learn()
        outcome = fast_path.outcome[0]
        if outcome & OUTCOME_MASK != OUTCOME_INVALID:
            self._direction_tracker.add(value)
        alarms = model.handle_outcome(outcome) if outcome else ()
        if outcome & OUTCOME_CHANGE:
            self._report_change(next(alarm for alarm in alarms if alarm.kind == "change"))
        else:
            self._warning_detected = fast_path.log_evidence_margin() > self._log_warning_threshold

    def _report_change(self, alarm: Alarm) -> None:
        """Told unless it goes the other way; the warning has come true, and river's retraining looks at that first."""
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
            self._model._suppress_warning("invalid")
        self._fast_path = self._model.fast_path() if self._model is not None and self._model.started else None


class DirectionTracker:
    """Where the values have been since the last change, and where the latest are: for changes that are told as one of
    spread, as those of zeros and ones are, and have a way all the same. An outlier counts for no more than a few
    standard deviations."""

    def __init__(self) -> None:
        self.n, self.mean, self.sum_of_squares, self.recent_mean, self.recent_mean_square = 0, 0.0, 0.0, 0.0, 0.0

    def add(self, value: float) -> None:
        """The next value."""
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
        """ "up" or "down", if the latest are surely there; otherwise ""."""
        deviation = self.recent_mean - self.mean
        error = math.sqrt(
            max(self.recent_mean_square - deviation * deviation, 0.0) * RECENT_MEAN_STEP / (2.0 - RECENT_MEAN_STEP)
        )
        if abs(deviation) <= DIRECTION_THRESHOLD_SE * error:
            return ""
        return "up" if deviation > 0.0 else "down"


def to_float(x: Any) -> float:
    """As a float; what is none is told. NaN and what is beyond all floats are skipped by the learner."""
    if isinstance(x, str | bytes):
        raise InvalidTypeError(f"expected a number, got {x!r}")
    try:
        return float(x)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        raise InvalidTypeError(f"expected a number, got {type(x).__name__}") from None
