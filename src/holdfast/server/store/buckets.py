"""Neighbouring rows of a stream as one: what is kept of the past, and what a picture of it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from sqlalchemy import Row

from holdfast.scheme.state import Vector
from holdfast.server.store.points import ANOMALY, CHANGE, DROPPED, Integers, as_time, known, numbers_of, texts_of


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
    def of_points(cls, points: Sequence[Row[Any]], width: int) -> Buckets:
        """Each point a bucket of its own."""
        values = numbers_of([point.x for point in points], width)
        fates = np.array([point.fate for point in points], np.int64)
        rows, ones = np.array([point.row for point in points], np.int64), np.ones(len(points), np.int64)
        numbers = (_numbers([point.score for point in points]), _numbers([point.p_value for point in points]))
        times = [point.time for point in points]
        return cls(rows, ones, times, values, values, _estimates(points, width), *numbers, fates & DROPPED, fates)

    @classmethod
    def of_condensed(cls, found: Sequence[Row[Any]], width: int) -> Buckets:
        """As the store has them."""
        return cls(
            np.array([one.row for one in found], np.int64),
            np.array([one.n for one in found], np.int64),
            [one.time for one in found],
            numbers_of([one.low for one in found], width),
            numbers_of([one.high for one in found], width),
            _estimates(found, width),
            _numbers([one.score for one in found]),
            _numbers([one.p_value for one in found]),
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
        estimates = [None if out else text for out, text in zip(gone, texts_of(self.estimate), strict=True)]
        columns = (self.rows.tolist(), self.counts.tolist(), self.times, texts_of(self.low), texts_of(self.high))
        rest = (estimates, known(self.score), known(self.p_value), self.n_dropped.tolist(), self.fates.tolist())
        return [(stream, level, *row) for row in zip(*columns, *rest, strict=True)]

    def told(self) -> dict[str, Any]:
        """As the API tells them: a list for each thing."""
        return {
            "rows": self.rows.tolist(),
            "counts": self.counts.tolist(),
            "times": [as_time(time) for time in self.times],
            "low": [known(column) for column in self.low.T],
            "high": [known(column) for column in self.high.T],
            "estimate": [known(column) for column in self.estimate.T],
            "score": known(self.score),
            "p_value": known(self.p_value),
            "n_dropped": self.n_dropped.tolist(),
            "anomaly": ((self.fates & ANOMALY) // ANOMALY).tolist(),
            "change": ((self.fates & CHANGE) // CHANGE).tolist(),
        }


def _numbers(values: Sequence[float | None]) -> Vector:
    return np.array(values, np.float64)


def _estimates(found: Sequence[Row[Any]], width: int) -> Vector:
    estimates = np.full((len(found), width), np.nan)
    for place, one in enumerate(found):
        if one.estimate is not None:
            estimates[place] = orjson.loads(one.estimate)
    return estimates


def _last_known(estimates: Vector, starts: Integers) -> Vector:
    """The last estimate between each start and the next; NaN where there is none."""
    there = ~np.asarray(np.isnan(estimates).any(axis=1))
    places = np.where(there, np.arange(len(estimates)), -1)
    last = np.maximum.reduceat(places, starts)
    found: Vector = np.where((last >= 0)[:, None], estimates[last], np.nan)
    return found
