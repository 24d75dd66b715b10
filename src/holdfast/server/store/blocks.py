"""Points of a stream, some hundred in a row of the table: they are written, read and condensed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from holdfast.learners.trace import Flags, Trace
from holdfast.scheme.state import Vector

DROPPED, ANOMALY, CHANGE, BAD, TIMED = 1, 2, 4, 8, 16  # bits of a fate; TIMED: its time was given, not that of arrival
MOST = 256  # points of a block
Integers = npt.NDArray[np.int64]


@dataclass(eq=False)
class Block:
    """Neighbouring points with what they came to. first: the row of the first; times: texts, as they were given.

    values, means: (n, d); means are the estimate after a point, NaN where it was not kept.
    """

    first: int
    times: list[str]
    values: Vector
    means: Vector
    score: Vector
    change_score: Vector
    p_value: Vector
    fates: Integers

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, part: slice) -> Block:
        begin, end, _ = part.indices(len(self))
        return Block(
            self.first + min(begin, end),
            self.times[part],
            self.values[part],
            self.means[part],
            self.score[part],
            self.change_score[part],
            self.p_value[part],
            self.fates[part],
        )

    @property
    def rows(self) -> Integers:
        """Of its points."""
        return self.first + np.arange(len(self))

    @classmethod
    def of(
        cls, first: int, times: list[str], timed: Flags, values: Vector, trace: Trace, means: Vector | None = None
    ) -> Block:
        """Points as they were learnt."""
        fates = DROPPED * trace.dropped + ANOMALY * trace.anomaly + CHANGE * trace.change + BAD * trace.bad
        scores = (trace.score, trace.change_score, trace.p_value)
        known = np.full(values.shape, np.nan) if means is None else means
        return cls(first, times, values, known, *scores, fates + TIMED * timed)

    @classmethod
    def chain(cls, blocks: Sequence[Block]) -> Block:
        """One after another."""
        joined = {
            one.name: np.concatenate([getattr(block, one.name) for block in blocks])
            for one in fields(cls)
            if one.name not in ("first", "times")
        }
        return cls(blocks[0].first, [time for block in blocks for time in block.times], **joined)

    @classmethod
    def empty(cls, width: int) -> Block:
        """No points."""
        none = np.zeros(0)
        return cls(0, [], np.zeros((0, width)), np.zeros((0, width)), none, none, none, np.zeros(0, np.int64))

    def cut(self) -> Iterator[Block]:
        """Blocks that are not too long; of nothing none."""
        if 0 < len(self) <= MOST:
            yield self
            return
        for begin in range(0, len(self), MOST):
            yield self[begin : begin + MOST]

    # In the store

    def to_json(self) -> str:
        """A column for each thing; numbers are the same to the bit when they are read again, null is NaN."""
        kept = np.flatnonzero(~np.isnan(self.means).any(axis=1))
        alike = len(set(self.times)) == 1
        told = {
            "time": self.times[0] if alike else self.times,
            "x": [np.ascontiguousarray(column) for column in self.values.T],
            "score": np.ascontiguousarray(self.score),
            "change_score": np.ascontiguousarray(self.change_score),
            "p_value": np.ascontiguousarray(self.p_value),
            "fate": np.ascontiguousarray(self.fates),
            "means": {str(place): self.means[place].tolist() for place in kept.tolist()},
        }
        return orjson.dumps(told, option=orjson.OPT_SERIALIZE_NUMPY).decode()

    @classmethod
    def of_json(cls, first: int, text: str) -> Block:
        """What `to_json` wrote."""
        told = orjson.loads(text)
        values = np.array(told["x"], np.float64).T
        means = np.full(values.shape, np.nan)
        for place, mean in told["means"].items():
            means[int(place)] = mean
        times = [told["time"]] * len(values) if isinstance(told["time"], str) else told["time"]
        scores = {name: np.array(told[name], np.float64) for name in ("score", "change_score", "p_value")}
        return cls(first, times, values, means, fates=np.array(told["fate"], np.int64), **scores)

    # On the wire

    def told(self) -> dict[str, Any]:
        """As the API tells them: a list for each thing."""
        return {
            "rows": self.rows.tolist(),
            "times": [as_time(time) for time in self.times],
            "values": [nullable(column) for column in self.values.T],
            "estimate": [nullable(column) for column in self.means.T],
            "score": nullable(self.score),
            "change_score": nullable(self.change_score),
            "p_value": nullable(self.p_value),
            "dropped": (self.fates & DROPPED).tolist(),
            "anomaly": ((self.fates & ANOMALY) // ANOMALY).tolist(),
            "change": ((self.fates & CHANGE) // CHANGE).tolist(),
        }


def nullable(values: Vector) -> list[float | None]:
    """Numbers for those who have no NaN.

    >>> nullable(np.array([1.5, np.nan]))
    [1.5, None]
    """
    return [None if value != value else value for value in values.tolist()]


def as_time(text: str) -> str | float | int:
    """A time as it was given: a number, or a text in ISO 8601.

    >>> as_time("12.5"), as_time("2.5e-05"), as_time("2026-01-02T03:04:05Z")
    (12.5, 2.5e-05, '2026-01-02T03:04:05Z')
    """
    if text[4:5] == "-" and text[:4].isdecimal():
        return text
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2.0**53 else number
