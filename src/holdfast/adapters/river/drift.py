"""A drift detector by river's conventions."""

from __future__ import annotations

import math
import struct
from typing import Any

from river import base

from holdfast.alarms.alarm import Alarm
from holdfast.checks import require
from holdfast.errors import BadInputError
from holdfast.learners import SRA
from holdfast.scheme.algorithm import CHANGED

DIRECTIONS = ("both", "up", "down")
RECENT = 0.1  # step of the average that tells where the latest values are


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
        The rate at which warnings would be false if each were an alarm; from `far` to 0.1.
    direction
        Which drifts are told: "both"; "up", for instance of an error, which also falls when a model is retrained;
        or "down". The others are followed silently.

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

    def __init__(self, far: float = 1e-4, warning_far: float = 1e-2, direction: str = "both"):
        super().__init__()
        self.far, self.warning_far = require("far", far, high=0.1), require("warning_far", warning_far, high=0.1)
        if direction not in DIRECTIONS:
            raise BadInputError(f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
        if warning_far < far:
            raise BadInputError(f"warning_far must be at least far, got {warning_far!r} and {far!r}")
        self.direction = direction
        self.alarm: Alarm | None = None
        """The latest drift that was told: when it was noticed, when it began, how large it is."""
        self._nearly = math.log(far / warning_far)
        self._model = SRA(far=far)
        self._recent, self._level, self._n = 0.0, 0.0, 0
        self._quickly()

    def _quickly(self) -> None:
        self._place = self._model.in_place() if self._model.started else None

    @property
    def _tags(self) -> set[str]:
        """None; river's checks ask for them."""
        return set()

    def update(self, x: float) -> None:
        """Takes the next value, as a number."""
        place = self._place
        if place is None:
            self._begin(x)
            return
        try:
            place.put(x)
        except struct.error:
            self._model.update(x)  # which says what is wrong with it
            return
        place.learn()
        if x - x == 0.0:
            self._recent += RECENT * (x - self._recent)
            self._n += 1
            self._level += (x - self._level) / self._n
        self._drift_detected = False
        self._warning_detected = place.certainty() > self._nearly
        fate = place.fate[0]
        if fate:
            alarms = self._model.follow_up(fate)
            if fate & CHANGED:
                self._change(alarms)

    def _begin(self, x: Any) -> None:
        """The first values."""
        self._model.update(x)
        if self._model.started:
            self._recent = self._level = float(self._model.means[0, 0])
            self._n = self._model.n_seen
            self._quickly()

    def _change(self, alarms: tuple[Alarm, ...]) -> None:
        self._warning_detected = False  # it has come true; river's retraining looks at warnings first
        went_up = self._recent > self._level
        self._level, self._n = self._recent, int(1.0 / RECENT)
        if self.direction == "both" or went_up == (self.direction == "up"):
            self._drift_detected = True
            self.alarm = next(alarm for alarm in alarms if alarm.kind == "change")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_place"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._quickly()
