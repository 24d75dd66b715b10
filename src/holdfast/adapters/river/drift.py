"""A drift detector by river's conventions."""

from __future__ import annotations

import math
from typing import Any

from river import base

from holdfast.alarms.alarm import Alarm
from holdfast.checks import require
from holdfast.errors import BadInputError, WrongTypeError
from holdfast.learners import SRA
from holdfast.scheme.algorithm import CHANGED, FATE, LEARNT

DIRECTIONS = ("both", "up", "down")
MOST = 0.1  # false alarms a point
RECENT = 0.1  # step of the average that tells where the latest values are
SURELY = 1.5  # standard errors


class DriftDetector(base.DriftAndWarningDetector):  # type: ignore[misc]
    """Finds changes in a number, or in a model's error, at a promised rate of false alarms; outliers raise none.

    While nothing changes, at most one value in 1/far is called a drift. A change of level or of spread is found, by
    `holdfast.SRA`, which goes on with what comes after it: nothing has to be reset. The first hundred values raise
    no alarm. A value that is not finite is skipped.

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

    Examples
    --------
    >>> import random
    >>> from holdfast.adapters.river import DriftDetector
    >>> rng = random.Random(0)
    >>> detector = DriftDetector()
    >>> for i in range(2000):
    ...     detector.update(rng.gauss(0.0 if i < 1000 else 1.5, 1.0))
    ...     if detector.drift_detected:
    ...         print(i, detector.alarm)
    1007 row 1007: change since row 996, variable 0 up by 1.76 standard deviations

    """

    def __init__(self, far: float = 1e-4, warning_far: float | None = None, direction: str = "both"):
        super().__init__()
        self.far, self.warning_far = require("far", far, high=MOST), warning_far
        warned = min(10.0 * far, MOST) if warning_far is None else require("warning_far", warning_far, high=MOST)
        if direction not in DIRECTIONS:
            raise BadInputError(f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
        if warned < far:
            raise BadInputError(f"warning_far must be at least far, got {warning_far!r} and {far!r}")
        self.direction = direction
        self.alarm: Alarm | None = None
        """The latest drift that was told: when it was noticed, when it began, how large it is."""
        self._nearly = math.log(far / warned)
        self._model = SRA(far=far)
        self._levels = Levels()
        self._find_place()

    def _find_place(self) -> None:
        self._place = self._model.in_place() if self._model.started else None

    @property
    def _tags(self) -> set[str]:
        """None; river's checks ask for them."""
        return set()

    def update(self, x: float) -> None:
        """Takes the next value, as a number."""
        self._drift_detected = self._warning_detected = False
        value, place = as_number(x), self._place
        if place is None:
            self._model.update(value)
            self._find_place()
            return
        place.put(value)
        place.learn()
        fate = place.fate[0]
        if fate & FATE == LEARNT:
            self._levels.add(value)
        alarms = self._model.follow_up(fate) if fate else ()
        if fate & CHANGED:
            self._change(next(alarm for alarm in alarms if alarm.kind == "change"))
        else:
            self._warning_detected = place.certainty() > self._nearly

    def _change(self, alarm: Alarm) -> None:
        """Told unless it goes the other way; the warning has come true, and river's retraining looks at that first."""
        way = alarm.direction if alarm.direction in DIRECTIONS else self._levels.way()
        self._levels = Levels()
        if self.direction in ("both", way):
            self._drift_detected, self.alarm = True, alarm

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_place"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._find_place()


class Levels:
    """Where the values have been since the last change, and where the latest are: for changes that are told as one of
    spread, as those of zeros and ones are, and have a way all the same."""

    def __init__(self) -> None:
        self.n, self.all, self.latest, self.square = 0, 0.0, 0.0, 0.0

    def add(self, value: float) -> None:
        """A value that was not dropped."""
        self.n += 1
        step = max(RECENT, 1.0 / self.n)
        self.all += (value - self.all) / self.n
        self.latest += step * (value - self.latest)
        self.square += step * (value * value - self.square)

    def way(self) -> str:
        """ "up" or "down", if the latest are surely there; otherwise ""."""
        error = math.sqrt(max(self.square - self.latest**2, 0.0) * RECENT / (2.0 - RECENT))
        if abs(self.latest - self.all) <= SURELY * error:
            return ""
        return "up" if self.latest > self.all else "down"


def as_number(x: Any) -> float:
    """As a float; what is none is told. NaN and what is beyond all floats are skipped by the learner."""
    if isinstance(x, str | bytes):
        raise WrongTypeError(f"expected a number, got {x!r}")
    try:
        return float(x)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        raise WrongTypeError(f"expected a number, got {type(x).__name__}") from None
