"""Neighbouring rows of a stream as one: what is kept of the past, and what a picture of it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from sqlalchemy import Row

from holdfast.scheme.state import Vector
from holdfast.server.store.blocks import ANOMALY, CHANGE, DROPPED, Block, Integers, as_time, nullable


@dataclass(eq=False)
class Buckets:
    """Buckets of rows in order. rows: the first of each; counts: points in it; low, high, estimate: (n, d)."""

    rows: Integers
    counts: Integers
    times: list[str]
    low: Vector
    high: Vector
    estimate: Vector
    score: Vector
    p_value: Vector
    n_dropped: Integers
    fates: Integers

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of_points(cls, block: Block) -> Buckets:
        """Each point a bucket of its own."""
        ones, values = np.ones(len(block), np.int64), block.values
        scores, dropped = (block.score, block.p_value), block.fates & DROPPED
        return cls(block.rows, ones, block.times, values, values, block.means, *scores, dropped, block.fates)

    @classmethod
    def of_condensed(cls, found: Sequence[Row[Any]], width: int) -> Buckets:
        """As the store has them."""
        return cls(
            np.array([one.row for one in found], np.int64),
            np.array([one.n for one in found], np.int64),
            [one.time for one in found],
            _matrix([one.low for one in found], width),
            _matrix([one.high for one in found], width),
            _matrix([one.estimate for one in found], width),
            np.array([one.score for one in found], np.float64),
            np.array([one.p_value for one in found], np.float64),
            np.array([one.n_dropped for one in found], np.int64),
            np.array([one.fate for one in found], np.int64),
        )

    @classmethod
    def chain(cls, parts: Sequence[Buckets]) -> Buckets:
        """One after another."""
        columns = ("rows", "counts", "low", "high", "estimate", "score", "p_value", "n_dropped", "fates")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
        return cls(times=[time for part in parts for time in part.times], **joined)

    def joined(self, starts: Integers) -> Buckets:
        """Those from each start up to the next one as one."""
        last_known = _last_known(self.estimate, starts)
        return Buckets(
            self.rows[starts],
            np.add.reduceat(self.counts, starts),
            [self.times[start] for start in starts.tolist()],
            np.fmin.reduceat(self.low, starts),
            np.fmax.reduceat(self.high, starts),
            last_known,
            np.fmax.reduceat(self.score, starts),
            np.fmin.reduceat(self.p_value, starts),
            np.add.reduceat(self.n_dropped, starts),
            np.bitwise_or.reduceat(self.fates, starts),
        )

    def at_most(self, n: int) -> Buckets:
        """So many of them at most."""
        if len(self) <= n:
            return self
        return self.joined(np.arange(0, len(self), -(-len(self) // n)))

    def as_rows(self, stream: int, level: int) -> list[tuple[Any, ...]]:
        """Rows of the table `condensed`."""
        gone: list[bool] = np.asarray(np.isnan(self.estimate).any(axis=1)).tolist()
        estimates = [None if out else text for out, text in zip(gone, _texts(self.estimate), strict=True)]
        columns = (self.rows.tolist(), self.counts.tolist(), self.times, _texts(self.low), _texts(self.high))
        rest = (estimates, nullable(self.score), nullable(self.p_value), self.n_dropped.tolist(), self.fates.tolist())
        return [(stream, level, *row) for row in zip(*columns, *rest, strict=True)]

    def told(self) -> dict[str, Any]:
        """As the API tells them: a list for each thing."""
        return {
            "rows": self.rows.tolist(),
            "counts": self.counts.tolist(),
            "times": [as_time(time) for time in self.times],
            "low": [nullable(column) for column in self.low.T],
            "high": [nullable(column) for column in self.high.T],
            "estimate": [nullable(column) for column in self.estimate.T],
            "score": nullable(self.score),
            "p_value": nullable(self.p_value),
            "n_dropped": self.n_dropped.tolist(),
            "anomaly": ((self.fates & ANOMALY) // ANOMALY).tolist(),
            "change": ((self.fates & CHANGE) // CHANGE).tolist(),
        }


def _texts(values: Vector) -> list[str]:
    """Each row of numbers as a JSON list, null for NaN.

    >>> _texts(np.array([[0.1, np.nan], [3.0, -4.5]]))
    ['[0.1,null]', '[3.0,-4.5]']
    """
    text = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return [f"[{row}]" for row in text[2:-2].split("],[")] if len(values) else []


def _matrix(texts: Sequence[str | None], width: int) -> Vector:
    """The rows that `_texts` wrote, (n, width); NaN for one that is not there."""
    nothing = f"[{','.join(['null'] * width)}]"
    read = orjson.loads(f"[{','.join(text or nothing for text in texts)}]")
    return np.array(read, np.float64).reshape(len(texts), width)


def _last_known(estimates: Vector, starts: Integers) -> Vector:
    """The last estimate between each start and the next; NaN where there is none."""
    there = ~np.asarray(np.isnan(estimates).any(axis=1))
    places = np.where(there, np.arange(len(estimates)), -1)
    last = np.maximum.reduceat(places, starts)
    found: Vector = np.where((last >= 0)[:, None], estimates[last], np.nan)
    return found
