"""What one point tells."""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.alarms.alarm import Alarm

STEP_FIELDS = ("score", "change_score", "rejected", "p_value", "anomaly", "change")


class Step:
    """The answer to one point.

    score: −log f(y; θ) before y was learnt; NaN while the model is not started and for a point that cannot be used.
    change_score: for change detection; the score, and NaN where the point was dropped.
    dropped: whether the threshold rejected the point.
    p_value, anomaly, change: decisions. The plain scheme makes none: NaN, False, False.
    bad: whether the point could not be used, and was skipped.
    alarms: what the point raised; see `holdfast.alarms.alarm.Alarm`.

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
