"""What a batch of points tells, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from limpet.core.algorithm import OUTCOME_ANOMALY, OUTCOME_CHANGE, OUTCOME_INVALID, OUTCOME_MASK, OUTCOME_REJECTED
from limpet.core.state import Vector
from limpet.detection.alarm import Alarm

if TYPE_CHECKING:
    from limpet.detection.alarm import Alarm


# What one point tells.

STEP_FIELDS = ("score", "change_score", "rejected", "p_value", "anomaly", "change")


class Step:
    """The answer to one point.

    score: −log f(y; θ) before y was learnt; NaN while the model is not started and for a point that cannot be used.
    change_score: for change detection; the score, and NaN where the point was dropped.
    dropped: whether the threshold rejected the point.
    p_value, anomaly, change: decisions. The plain scheme makes none: NaN, False, False.
    bad: whether the point could not be used, and was skipped.
    alarms: what the point raised; see `limpet.detection.alarm.Alarm`.

    What is the same for all ordinary points stands in the class, so that one is made in 60 ns; a named tuple takes 240.

    >>> step = Step(1.5)
    >>> step.score, step.dropped
    (1.5, False)
    >>> score, change_score, *_ = step
    """

    __slots__ = ("score",)

    score: float
    rejected: bool = False
    p_value: float = nan
    anomaly: bool = False
    change: bool = False
    invalid: bool = False
    alarms: tuple[Alarm, ...] = ()

    def __new__(cls, score: float) -> Step:
        """A step with this score."""
        step = new_object(cls)
        step.score = score
        return step

    @property
    def change_score(self) -> float:
        """The score, NaN where the point was dropped."""
        return nan if self.rejected else self.score

    def to_dict(self) -> dict[str, float | bool]:
        """The fields by name."""
        return {name: getattr(self, name) for name in STEP_FIELDS}

    def __iter__(self) -> Iterator[float | bool]:
        return iter(self.to_dict().values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __reduce__(self) -> tuple[type[Step], tuple[Any, ...]]:
        return type(self), (self.score,)

    def __repr__(self) -> str:
        return f"Step({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"


class RejectedStep(Step):
    """The answer to a point that the threshold rejected."""

    __slots__ = ()

    rejected: bool = True


class InvalidStep(Step):
    """The answer to a point that could not be used."""

    __slots__ = ()

    invalid: bool = True


class AutoStep(Step):
    """The answer of the autopilot, which has more to say: scores, a p-value, and the alarms that the point raised."""

    __slots__ = ("alarms", "anomaly", "change", "change_score", "invalid", "p_value", "rejected")

    change_score: float
    alarms: tuple[Alarm, ...]

    def __new__(
        cls,
        score: float,
        change_score: float,
        p_value: float,
        rejected: bool = False,
        anomaly: bool = False,
        change: bool = False,
        invalid: bool = False,
        alarms: tuple[Alarm, ...] = (),
    ) -> AutoStep:
        """A step with these answers."""
        step = new_object(cls)
        step.score, step.change_score, step.p_value = score, change_score, p_value
        step.rejected, step.anomaly, step.change, step.invalid, step.alarms = rejected, anomaly, change, invalid, alarms
        return step

    def __reduce__(self) -> tuple[type[Step], tuple[Any, ...]]:
        flags = (self.rejected, self.anomaly, self.change, self.invalid, self.alarms)
        return type(self), (self.score, self.change_score, self.p_value, *flags)


new_object = object.__new__


Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, repr=False, eq=False)
class Trace:
    """One entry a row, as `update` would have given it.

    score: −log f(y; θ) before the row was learnt; NaN before the start and where the row could not be used.
    fates: what became of the row, one of the codes of `limpet.core.algorithm`.
    recorded: the estimate after each row, if it was asked for, by its name.
    watched: change scores and p-values, where the autopilot gave them.
    alarms: what was raised, in the order of rows, which count from the first point of the stream.
    first_row: the row of the stream that the first one here is.
    points_of_alarms: which entry raised each alarm, where rows are those of many streams.
    """

    score: Vector
    outcomes: npt.NDArray[np.int8]
    recorded: dict[str, Vector] = field(default_factory=dict)
    auto_scores: tuple[Vector, Vector] | None = None
    alarms: list[Alarm] = field(default_factory=list)
    first_row: int = 0
    explicit_alarm_index: list[int] | None = None

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows, {self.rejected.sum()} dropped, {self.invalid.sum()} bad)"

    def to_dict(self) -> dict[str, Vector | Flags]:
        """What `update` would have given, and `bad`, one array each: `pandas.DataFrame(trace.as_dict())`."""
        return {name: getattr(self, name) for name in (*STEP_FIELDS, "invalid")}

    def __len__(self) -> int:
        return len(self.score)

    @property
    def change_score(self) -> Vector:
        """For the plain scheme the score, NaN where the row was dropped; the autopilot has one of its own."""
        return self.auto_scores[0] if self.auto_scores else np.where(self.rejected, np.nan, self.score)

    @property
    def rejected(self) -> Flags:
        """Whether the threshold rejected the row."""
        return np.asarray(self.outcomes & OUTCOME_MASK == OUTCOME_REJECTED)

    @property
    def invalid(self) -> Flags:
        """Whether the row could not be used: all missing, infinite, or outside the model's support."""
        return np.asarray(self.outcomes & OUTCOME_MASK == OUTCOME_INVALID)

    @property
    def p_value(self) -> Vector:
        """How rare a score as large as this is in this stream; the plain scheme decides nothing: NaN."""
        return self.auto_scores[1] if self.auto_scores else np.full(len(self), np.nan)

    @property
    def anomaly(self) -> Flags:
        """Whether the row stands out; the plain scheme decides nothing: False."""
        return np.asarray(self.outcomes & OUTCOME_ANOMALY > 0)

    @property
    def change(self) -> Flags:
        """Whether a change was noticed at the row; the plain scheme decides nothing: False."""
        return np.asarray(self.outcomes & OUTCOME_CHANGE > 0)

    @property
    def alarm_index(self) -> list[int]:
        """Which entry raised each of the alarms."""
        if self.explicit_alarm_index is not None:
            return self.explicit_alarm_index
        return [alarm.row - self.first_row for alarm in self.alarms]

    def slice_rows(self, rows: slice) -> Trace:
        """Scores and fates of some of the rows, without the alarms."""
        auto_scores = None if self.auto_scores is None else (self.auto_scores[0][rows], self.auto_scores[1][rows])
        return Trace(self.score[rows], self.outcomes[rows], auto_scores=auto_scores)

    def step(self, row: int) -> Step:
        """What `update` would have answered to this row."""
        score = float(self.score[row])
        if self.auto_scores is None:
            return (InvalidStep if self.invalid[row] else RejectedStep if self.rejected[row] else Step)(score)
        return AutoStep(
            score,
            float(self.auto_scores[0][row]),
            float(self.auto_scores[1][row]),
            rejected=bool(self.rejected[row]),
            anomaly=bool(self.anomaly[row]),
            change=bool(self.change[row]),
            invalid=bool(self.invalid[row]),
            alarms=tuple(alarm for alarm in self.alarms if alarm.row == self.first_row + range(len(self))[row]),
        )

    @property
    def means(self) -> Vector:
        """(T, K, d): the means after each row, NaN before the start; asked for by `record="means"`."""
        return self._recorded_estimate("means")

    @property
    def coef(self) -> Vector:
        """(T, p): the coefficients after each row, NaN before the start; asked for by `record="coef"`."""
        return self._recorded_estimate("coef")

    def _recorded_estimate(self, name: str) -> Vector:
        if name not in self.recorded:
            raise AttributeError(f"{name} was not recorded: process(X, record={name!r}) keeps it")
        return self.recorded[name]


def concatenate(traces: Sequence[Trace]) -> Trace:
    """One trace after another; each alarm with the entry that raised it."""
    auto_scores = None
    if all(trace.auto_scores is not None for trace in traces):
        columns = zip(*(trace.auto_scores for trace in traces if trace.auto_scores is not None), strict=True)
        change_score, p_value = (np.concatenate(column) for column in columns)
        auto_scores = (change_score, p_value)
    alarm_index, first = [], 0
    for trace in traces:
        alarm_index += [first + index for index in trace.alarm_index]
        first += len(trace)
    return Trace(
        np.concatenate([trace.score for trace in traces]),
        np.concatenate([trace.outcomes for trace in traces]),
        auto_scores=auto_scores,
        alarms=[alarm for trace in traces for alarm in trace.alarms],
        first_row=traces[0].first_row,
        explicit_alarm_index=alarm_index,
    )
