"""A drift detector by river's conventions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from river import base

from holdfast.alarms.alarm import Alarm
from holdfast.checks import require, require_whole
from holdfast.errors import BadInputError, WrongTypeError
from holdfast.learners import SRA
from holdfast.learners.in_place import InPlace
from holdfast.scheme.algorithm import CHANGED, FATE, UNUSABLE

DIRECTIONS = ("both", "up", "down")
MOST = 0.1  # false alarms a point
RECENT = 0.1  # step of the average that tells where the latest values are
SURELY = 1.5  # standard errors
LEAST, FAR_OUT = 10, 5.0  # values, after which a further one counts for so many standard deviations at the most
FIRST, FEW, TOGETHER = 50, 5, 7  # with so few different values among the first, so many are averaged


class DriftDetector(base.DriftAndWarningDetector):  # type: ignore[misc]
    """Finds changes in a number, or in a model's error, at a promised rate of false alarms; outliers raise none.

    While nothing changes, at most one value in 1/far is called a drift. A change of level or of spread is found, by
    `holdfast.SRA`, which goes on with what comes after it: nothing has to be reset. The first hundred values or
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
    >>> from holdfast.adapters.river import DriftDetector
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
        self.far, self.warning_far = require("far", far, high=MOST), warning_far
        warned = min(10.0 * far, MOST) if warning_far is None else require("warning_far", warning_far, high=MOST)
        if direction not in DIRECTIONS:
            raise BadInputError(f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
        if warned < far:
            raise BadInputError(f"warning_far must be at least far, got {warning_far!r} and {far!r}")
        self.direction = direction
        self.block = None if block is None else require_whole("block", block, 1)
        self.alarm: Alarm | None = None
        """The latest drift that was told: when it was noticed, when it began, how large it is."""
        self._nearly = math.log(far / warned)
        self._first: list[float] = []  # values from which it is found out how many are averaged
        self._model: SRA | None = None
        self._place: InPlace | None = None
        self._levels, self._sum, self._n, self._per_block = Levels(), 0.0, 0, 0
        if block is not None:
            self._begin(block)

    @property
    def _tags(self) -> set[str]:
        """None; river's checks ask for them."""
        return set()

    def update(self, x: float) -> None:
        """Takes the next value, as a number."""
        self._drift_detected = False  # the warning stays, until the next value or block has been looked at
        value = as_number(x)
        if self._model is not None:
            self._take(value)
            return
        self._first.append(value)
        if len(self._first) == FIRST:
            few = len({each for each in self._first if math.isfinite(each)}) <= FEW
            self._begin(TOGETHER if few else 1)
            for each in self._first:
                self._take(each)
            self._first = []

    def _begin(self, block: int) -> None:
        """So many values are averaged; the promise is for values, so there may be more alarms a block."""
        self._per_block = block
        self._model = SRA(far=min(block * self.far, MOST))
        self._model._is_told_elsewhere("bad")

    def _take(self, value: float) -> None:
        if self._per_block == 1:
            self._learn(value)
            return
        self._n += 1
        self._sum += value if math.isfinite(value) else math.nan
        if self._n == self._per_block:
            mean = self._sum / self._n
            self._sum, self._n = 0.0, 0
            self._learn(mean)

    def _learn(self, value: float) -> None:
        """A value, or the mean of a block."""
        model, place = self._model, self._place
        assert model is not None
        if place is None:
            model.update(value)
            self._place = model.in_place() if model.started else None
            return
        place.put(value)
        place.learn()
        fate = place.fate[0]
        if fate & FATE != UNUSABLE:
            self._levels.add(value)
        alarms = model.follow_up(fate) if fate else ()
        if fate & CHANGED:
            self._change(next(alarm for alarm in alarms if alarm.kind == "change"))
        else:
            self._warning_detected = place.certainty() > self._nearly

    def _change(self, alarm: Alarm) -> None:
        """Told unless it goes the other way; the warning has come true, and river's retraining looks at that first."""
        self._warning_detected = False
        way = alarm.direction if alarm.direction in DIRECTIONS else self._levels.way()
        self._levels = Levels()
        if self.direction in ("both", way):
            row, onset = (alarm.row + 1) * self._per_block - 1, alarm.onset * self._per_block
            self._drift_detected, self.alarm = True, replace(alarm, row=row, onset=onset)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_place"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._model is not None:
            self._model._is_told_elsewhere("bad")
        self._place = self._model.in_place() if self._model is not None and self._model.started else None


class Levels:
    """Where the values have been since the last change, and where the latest are: for changes that are told as one of
    spread, as those of zeros and ones are, and have a way all the same. An outlier counts for no more than a few
    standard deviations."""

    def __init__(self) -> None:
        self.n, self.all, self.squares, self.latest, self.square = 0, 0.0, 0.0, 0.0, 0.0

    def add(self, value: float) -> None:
        """The next value."""
        if self.n >= LEAST:
            most = FAR_OUT * math.sqrt(self.squares / self.n)
            value = min(max(value, self.all - most), self.all + most)
        self.n += 1
        step, off = max(RECENT, 1.0 / self.n), value - self.all
        self.all += off / self.n
        self.squares += off * (value - self.all)
        self.latest += step * (value - self.latest)
        self.square += step * ((value - self.all) ** 2 - self.square)

    def way(self) -> str:
        """ "up" or "down", if the latest are surely there; otherwise ""."""
        off = self.latest - self.all
        error = math.sqrt(max(self.square - off * off, 0.0) * RECENT / (2.0 - RECENT))
        if abs(off) <= SURELY * error:
            return ""
        return "up" if off > 0.0 else "down"


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
