"""What a batch of points tells, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from holdfast.learners.step import FIELDS
from holdfast.scheme.algorithm import REJECTED, UNUSABLE
from holdfast.scheme.state import Vector

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, repr=False, eq=False)
class Trace:
    """One entry a row, as `update` would have given it.

    score: −log f(y; θ) before the row was learnt; NaN before the start and where the row could not be used.
    fates: what became of the row, one of the codes of `holdfast.scheme.algorithm`.
    recorded: the estimate after each row, if it was asked for, by its name.
    """

    score: Vector
    fates: npt.NDArray[np.int8]
    recorded: dict[str, Vector] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows, {self.dropped.sum()} dropped, {self.bad.sum()} bad)"

    def as_dict(self) -> dict[str, Vector | Flags]:
        """What `update` would have given, and `bad`, one array each: `pandas.DataFrame(trace.as_dict())`."""
        return {name: getattr(self, name) for name in (*FIELDS, "bad")}

    def __len__(self) -> int:
        return len(self.score)

    @property
    def change_score(self) -> Vector:
        """The score, NaN where the row was dropped."""
        return np.where(self.dropped, np.nan, self.score)

    @property
    def dropped(self) -> Flags:
        """Whether the threshold rejected the row."""
        return np.asarray(self.fates == REJECTED)

    @property
    def bad(self) -> Flags:
        """Whether the row could not be used: all missing, infinite, or outside the model's support."""
        return np.asarray(self.fates == UNUSABLE)

    @property
    def p_value(self) -> Vector:
        """Decisions are for alarms; the plain scheme makes none: NaN."""
        return np.full(len(self), np.nan)

    @property
    def anomaly(self) -> Flags:
        """As `p_value`: False."""
        return np.zeros(len(self), bool)

    @property
    def change(self) -> Flags:
        """As `p_value`: False."""
        return np.zeros(len(self), bool)

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
