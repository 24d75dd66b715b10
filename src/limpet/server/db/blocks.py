"""Points of a stream, some hundred in a row of the table: they are written, read and condensed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from limpet.core.state import Vector
from limpet.learners.results import Flags, Trace

REJECTED_BIT, ANOMALY_BIT, CHANGE_BIT, INVALID_BIT, TIME_GIVEN_BIT = (
    1,
    2,
    4,
    8,
    16,
)  # bits of a fate; TIMED: its time was given, not that of arrival
BLOCK_MAX_POINTS = 256  # points of a block
Integers = npt.NDArray[np.int64]


@dataclass(eq=False)
class PointBlock:
    """Neighbouring points with what they came to. first: the row of the first; times: texts, as they were given.

    values, means: (n, d); means are the estimate after a point, NaN where it was not kept.
    """

    first_row: int
    times: list[str]
    values: Vector
    means: Vector
    score: Vector
    change_score: Vector
    p_value: Vector
    outcomes: Integers

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, part: slice) -> PointBlock:
        start, end, _ = part.indices(len(self))
        return PointBlock(
            self.first_row + min(start, end),
            self.times[part],
            self.values[part],
            self.means[part],
            self.score[part],
            self.change_score[part],
            self.p_value[part],
            self.outcomes[part],
        )

    @property
    def rows(self) -> Integers:
        """Of its points."""
        return self.first_row + np.arange(len(self))

    @classmethod
    def from_trace(
        cls,
        first_row: int,
        times: list[str],
        time_given: Flags,
        values: Vector,
        trace: Trace,
        means: Vector | None = None,
    ) -> PointBlock:
        """Points as they were learnt."""
        outcomes = (
            REJECTED_BIT * trace.rejected
            + ANOMALY_BIT * trace.anomaly
            + CHANGE_BIT * trace.change
            + INVALID_BIT * trace.invalid
        )
        scores = (trace.score, trace.change_score, trace.p_value)
        stored_means = np.full(values.shape, np.nan) if means is None else means
        return cls(first_row, times, values, stored_means, *scores, outcomes + TIME_GIVEN_BIT * time_given)

    @classmethod
    def concatenate(cls, blocks: Sequence[PointBlock]) -> PointBlock:
        """One after another."""
        columns = {
            field.name: np.concatenate([getattr(block, field.name) for block in blocks])
            for field in fields(cls)
            if field.name not in ("first", "times")
        }
        return cls(blocks[0].first_row, [time for block in blocks for time in block.times], **columns)

    @classmethod
    def empty(cls, width: int) -> PointBlock:
        """No points."""
        none = np.zeros(0)
        return cls(0, [], np.zeros((0, width)), np.zeros((0, width)), none, none, none, np.zeros(0, np.int64))

    def split(self) -> Iterator[PointBlock]:
        """Blocks that are not too long; of nothing none."""
        if 0 < len(self) <= BLOCK_MAX_POINTS:
            yield self
            return
        for start in range(0, len(self), BLOCK_MAX_POINTS):
            yield self[start : start + BLOCK_MAX_POINTS]

    # In the store

    def to_json(self) -> str:
        """A column for each thing; numbers are the same to the bit when they are read again, null is NaN."""
        rows_with_means = np.flatnonzero(~np.isnan(self.means).any(axis=1))
        is_same_time = len(set(self.times)) == 1
        payload = {
            "time": self.times[0] if is_same_time else self.times,
            "x": [np.ascontiguousarray(column) for column in self.values.T],
            "score": np.ascontiguousarray(self.score),
            "change_score": np.ascontiguousarray(self.change_score),
            "p_value": np.ascontiguousarray(self.p_value),
            "fate": np.ascontiguousarray(self.outcomes),
            "means": {str(row): self.means[row].tolist() for row in rows_with_means.tolist()},
        }
        return orjson.dumps(payload, option=orjson.OPT_SERIALIZE_NUMPY).decode()

    @classmethod
    def from_json(cls, first_row: int, text: str) -> PointBlock:
        """What `to_json` wrote."""
        payload = orjson.loads(text)
        values = np.array(payload["x"], np.float64).T
        means = np.full(values.shape, np.nan)
        for row, mean in payload["means"].items():
            means[int(row)] = mean
        times = [payload["time"]] * len(values) if isinstance(payload["time"], str) else payload["time"]
        scores = {name: np.array(payload[name], np.float64) for name in ("score", "change_score", "p_value")}
        return cls(first_row, times, values, means, outcomes=np.array(payload["fate"], np.int64), **scores)

    # On the wire

    def to_api(self) -> dict[str, Any]:
        """As the API tells them: a list for each thing."""
        return {
            "rows": self.rows.tolist(),
            "times": [to_api_time(time) for time in self.times],
            "values": [nan_to_none(column) for column in self.values.T],
            "estimate": [nan_to_none(column) for column in self.means.T],
            "score": nan_to_none(self.score),
            "change_score": nan_to_none(self.change_score),
            "p_value": nan_to_none(self.p_value),
            "rejected": (self.outcomes & REJECTED_BIT).tolist(),
            "anomaly": ((self.outcomes & ANOMALY_BIT) // ANOMALY_BIT).tolist(),
            "change": ((self.outcomes & CHANGE_BIT) // CHANGE_BIT).tolist(),
        }


def nan_to_none(values: Vector) -> list[float | None]:
    """Numbers for those who have no NaN.

    >>> nullable(np.array([1.5, np.nan]))
    [1.5, None]
    """
    return [None if value != value else value for value in values.tolist()]


def to_api_time(text: str) -> str | float | int:
    """A time as it was given: a number, or a text in ISO 8601.

    >>> as_time("12.5"), as_time("2.5e-05"), as_time("2026-01-02T03:04:05Z")
    (12.5, 2.5e-05, '2026-01-02T03:04:05Z')
    """
    if text[4:5] == "-" and text[:4].isdecimal():
        return text
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2.0**53 else number
