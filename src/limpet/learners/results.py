"""Results of learners: a `Step` per point, a `Trace` per batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from limpet.core.algorithm import OUTCOME_ANOMALY, OUTCOME_CHANGE, OUTCOME_INVALID, OUTCOME_REJECTED
from limpet.core.state import Vector
from limpet.detection.alarm import Alarm

# The fields of a result per point, in the order in which all outputs have them.
RESULT_FIELDS = ("score", "rejected", "invalid")
AUTO_RESULT_FIELDS = ("score", "p_value", "change_score", "rejected", "anomaly", "change", "invalid")

Flags = npt.NDArray[np.bool_]

new_object = object.__new__


class Step:
    """The result for one point, which unpacks as a tuple in the order of `to_dict`.

    Attributes
    ----------
    score : float
        −log f(y; θ) before y was learned, of a `Detector` from several estimates; NaN before the start and for an
        invalid point.
    p_value, anomaly, change : float, bool, bool
        Decisions. A learner that makes none has NaN, False and False.
    change_score : float
        The score for change detection. A learner without one has the score, NaN where the point was rejected.
    rejected : bool
        Whether the threshold rejected the point.
    invalid : bool
        Whether the point is invalid: counted and not used.
    alarms : tuple of Alarm
        The alarms that the point raised.

    Examples
    --------
    >>> step = Step(1.5)
    >>> step
    Step(score=1.5, rejected=False, invalid=False)
    >>> score, rejected, invalid = step
    """

    __slots__ = ("score",)

    # Constant fields are class attributes: creating a Step takes 60 ns, a named tuple 240.
    score: float
    rejected: bool = False
    p_value: float = nan
    anomaly: bool = False
    change: bool = False
    invalid: bool = False
    alarms: tuple[Alarm, ...] = ()
    fields: ClassVar[tuple[str, ...]] = RESULT_FIELDS

    def __new__(cls, score: float) -> Step:
        """Create a step with this score."""
        step = new_object(cls)
        step.score = score
        return step

    @property
    def change_score(self) -> float:
        """The score, NaN where the point was rejected."""
        return nan if self.rejected else self.score

    def to_dict(self) -> dict[str, float | bool]:
        """Return the fields by name, those of `Trace.to_dict`."""
        return {name: getattr(self, name) for name in self.fields}

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
    """The result for a point that the threshold rejected."""

    __slots__ = ()
    rejected: bool = True


class InvalidStep(Step):
    """The result for an invalid point."""

    __slots__ = ()
    invalid: bool = True


class AutoStep(Step):
    """The result of a learner with decisions: p-value, change score, alarms."""

    __slots__ = ("alarms", "anomaly", "change", "change_score", "invalid", "p_value", "rejected")

    change_score: float
    alarms: tuple[Alarm, ...]
    fields = AUTO_RESULT_FIELDS

    def __new__(
        cls,
        score: float,
        p_value: float,
        change_score: float,
        rejected: bool = False,
        anomaly: bool = False,
        change: bool = False,
        invalid: bool = False,
        alarms: tuple[Alarm, ...] = (),
    ) -> AutoStep:
        """Create a step with these results."""
        step = new_object(cls)
        step.score, step.p_value, step.change_score = score, p_value, change_score
        step.rejected, step.anomaly, step.change, step.invalid, step.alarms = rejected, anomaly, change, invalid, alarms
        return step

    def __reduce__(self) -> tuple[type[Step], tuple[Any, ...]]:
        flags = (self.rejected, self.anomaly, self.change, self.invalid, self.alarms)
        return type(self), (self.score, self.p_value, self.change_score, *flags)


@dataclass(frozen=True, repr=False, eq=False)
class Trace:
    """The results for a batch: one entry per row, equal to the result of `update`.

    Attributes
    ----------
    score : array (T,)
        −log f(y; θ) before the row was learned, of a `Detector` from several estimates; NaN before the start and for
        an invalid row.
    outcomes : array (T,) of int8
        The outcome codes of `limpet.core.algorithm`.
    recorded : dict of str to array
        The estimate after each row, if it was requested, by its name.
    auto_scores : (array, array), optional
        Change scores and p-values, if the learner computes them.
    alarms : list of Alarm
        In the order of rows, which count from the first row of the stream.
    first_row : int
        The row of the stream that the first entry is.
    explicit_alarm_index : list of int, optional
        The entry that raised each alarm, where the entries belong to several streams.
    """

    score: Vector
    outcomes: npt.NDArray[np.int8]
    recorded: dict[str, Vector] = field(default_factory=dict)
    auto_scores: tuple[Vector, Vector] | None = None
    alarms: list[Alarm] = field(default_factory=list)
    first_row: int = 0
    explicit_alarm_index: list[int] | None = None

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows, {self.rejected.sum()} rejected, {self.invalid.sum()} invalid)"

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the results that the learner computes."""
        return RESULT_FIELDS if self.auto_scores is None else AUTO_RESULT_FIELDS

    def to_dict(self) -> dict[str, Vector | Flags]:
        """Return one array per field: `pandas.DataFrame(trace.to_dict())`."""
        return {name: getattr(self, name) for name in self.fields}

    def __len__(self) -> int:
        return len(self.score)

    @property
    def change_score(self) -> Vector:
        """Score for change detection; without one, the score, NaN where rejected."""
        return self.auto_scores[0] if self.auto_scores else np.where(self.rejected, np.nan, self.score)

    @property
    def rejected(self) -> Flags:
        """Whether the threshold rejected the row."""
        return np.asarray(self.outcomes & OUTCOME_REJECTED > 0)

    @property
    def invalid(self) -> Flags:
        """Whether the row was invalid: all missing, infinite, or outside the support."""
        return np.asarray(self.outcomes & OUTCOME_INVALID > 0)

    @property
    def p_value(self) -> Vector:
        """Probability of a score at least as large; NaN for a learner without decisions."""
        return self.auto_scores[1] if self.auto_scores else np.full(len(self), np.nan)

    @property
    def anomaly(self) -> Flags:
        """Whether the row is an anomaly; False for a learner that makes no decisions."""
        return np.asarray(self.outcomes & OUTCOME_ANOMALY > 0)

    @property
    def change(self) -> Flags:
        """Whether a change was detected at the row; False if the learner does not decide."""
        return np.asarray(self.outcomes & OUTCOME_CHANGE > 0)

    @property
    def alarm_index(self) -> list[int]:
        """The entry that raised each alarm."""
        if self.explicit_alarm_index is not None:
            return self.explicit_alarm_index
        return [alarm.row - self.first_row for alarm in self.alarms]

    def step(self, row: int) -> Step:
        """Return the `Step` that `update` returns for an entry."""
        score = float(self.score[row])
        if self.auto_scores is None:
            return (InvalidStep if self.invalid[row] else RejectedStep if self.rejected[row] else Step)(score)
        change_score, p_value = (float(scores[row]) for scores in self.auto_scores)
        flags = (bool(self.rejected[row]), bool(self.anomaly[row]), bool(self.change[row]), bool(self.invalid[row]))
        stream_row = self.first_row + range(len(self))[row]
        return AutoStep(score, p_value, change_score, *flags, tuple(a for a in self.alarms if a.row == stream_row))

    @property
    def means(self) -> Vector:
        """Means (T, K, d) after each row, NaN before the start, of `record="means"`."""
        return self._recorded_estimate("means")

    @property
    def coef(self) -> Vector:
        """Coefficients (T, p) after each row, NaN before the start, of `record="coef"`."""
        return self._recorded_estimate("coef")

    def _recorded_estimate(self, name: str) -> Vector:
        if name not in self.recorded:
            raise AttributeError(f"{name}: not recorded. Call process(X, record={name!r}).")
        return self.recorded[name]


def concatenate(traces: Sequence[Trace]) -> Trace:
    """Join the traces of consecutive batches; alarms keep the entry that raised them."""
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
