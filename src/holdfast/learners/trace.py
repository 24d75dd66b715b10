"""What a batch of points tells, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from holdfast.alarms.alarm import Alarm
from holdfast.learners.step import FIELDS, BadStep, DroppedStep, Step, WatchedStep
from holdfast.scheme.algorithm import ANOMALOUS, CHANGED, FATE, REJECTED, UNUSABLE
from holdfast.scheme.state import Vector

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, repr=False, eq=False)
class Trace:
    """One entry a row, as `update` would have given it.

    score: −log f(y; θ) before the row was learnt; NaN before the start and where the row could not be used.
    fates: what became of the row, one of the codes of `holdfast.scheme.algorithm`.
    recorded: the estimate after each row, if it was asked for, by its name.
    watched: change scores and p-values, where the autopilot gave them.
    alarms: what was raised, in the order of rows, which count from the first point of the stream.
    first_row: the row of the stream that the first one here is.
    points_of_alarms: which entry raised each alarm, where rows are those of many streams.
    """

    score: Vector
    fates: npt.NDArray[np.int8]
    recorded: dict[str, Vector] = field(default_factory=dict)
    watched: tuple[Vector, Vector] | None = None
    alarms: list[Alarm] = field(default_factory=list)
    first_row: int = 0
    points_of_alarms: list[int] | None = None

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows, {self.dropped.sum()} dropped, {self.bad.sum()} bad)"

    def as_dict(self) -> dict[str, Vector | Flags]:
        """What `update` would have given, and `bad`, one array each: `pandas.DataFrame(trace.as_dict())`."""
        return {name: getattr(self, name) for name in (*FIELDS, "bad")}

    def __len__(self) -> int:
        return len(self.score)

    @property
    def change_score(self) -> Vector:
        """For the plain scheme the score, NaN where the row was dropped; the autopilot has one of its own."""
        return self.watched[0] if self.watched else np.where(self.dropped, np.nan, self.score)

    @property
    def dropped(self) -> Flags:
        """Whether the threshold rejected the row."""
        return np.asarray(self.fates & FATE == REJECTED)

    @property
    def bad(self) -> Flags:
        """Whether the row could not be used: all missing, infinite, or outside the model's support."""
        return np.asarray(self.fates & FATE == UNUSABLE)

    @property
    def p_value(self) -> Vector:
        """How rare a score as large as this is in this stream; the plain scheme decides nothing: NaN."""
        return self.watched[1] if self.watched else np.full(len(self), np.nan)

    @property
    def anomaly(self) -> Flags:
        """Whether the row stands out; the plain scheme decides nothing: False."""
        return np.asarray(self.fates & ANOMALOUS > 0)

    @property
    def change(self) -> Flags:
        """Whether a change was noticed at the row; the plain scheme decides nothing: False."""
        return np.asarray(self.fates & CHANGED > 0)

    @property
    def raised_at(self) -> list[int]:
        """Which entry raised each of the alarms."""
        if self.points_of_alarms is not None:
            return self.points_of_alarms
        return [alarm.row - self.first_row for alarm in self.alarms]

    def part(self, rows: slice) -> Trace:
        """Scores and fates of some of the rows, without the alarms."""
        watched = None if self.watched is None else (self.watched[0][rows], self.watched[1][rows])
        return Trace(self.score[rows], self.fates[rows], watched=watched)

    def step(self, row: int) -> Step:
        """What `update` would have answered to this row."""
        score = float(self.score[row])
        if self.watched is None:
            return (BadStep if self.bad[row] else DroppedStep if self.dropped[row] else Step)(score)
        return WatchedStep(
            score,
            float(self.watched[0][row]),
            float(self.watched[1][row]),
            dropped=bool(self.dropped[row]),
            anomaly=bool(self.anomaly[row]),
            change=bool(self.change[row]),
            bad=bool(self.bad[row]),
            alarms=tuple(alarm for alarm in self.alarms if alarm.row == self.first_row + range(len(self))[row]),
        )

    @property
    def means(self) -> Vector:
        """(T, K, d): the means after each row, NaN before the start; asked for by `record="means"`."""
        return self._kept("means")

    @property
    def coef(self) -> Vector:
        """(T, p): the coefficients after each row, NaN before the start; asked for by `record="coef"`."""
        return self._kept("coef")

    def _kept(self, name: str) -> Vector:
        if name not in self.recorded:
            raise AttributeError(f"{name} was not recorded: process(X, record={name!r}) keeps it")
        return self.recorded[name]


def in_turn(traces: Sequence[Trace]) -> Trace:
    """One trace after another; each alarm with the entry that raised it."""
    watched = None
    if all(trace.watched is not None for trace in traces):
        columns = zip(*(trace.watched for trace in traces if trace.watched is not None), strict=True)
        change_score, p_value = (np.concatenate(column) for column in columns)
        watched = (change_score, p_value)
    raised_at, first = [], 0
    for trace in traces:
        raised_at += [first + place for place in trace.raised_at]
        first += len(trace)
    return Trace(
        np.concatenate([trace.score for trace in traces]),
        np.concatenate([trace.fates for trace in traces]),
        watched=watched,
        alarms=[alarm for trace in traces for alarm in trace.alarms],
        first_row=traces[0].first_row,
        points_of_alarms=raised_at,
    )
