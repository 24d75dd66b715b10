"""Points of streams: written a call at a time, read by rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
from sqlalchemy import Connection, Row, func, select

from holdfast.learners.trace import Flags, Trace
from holdfast.scheme.state import Vector
from holdfast.server.store.many import insert_many
from holdfast.server.store.tables import POINTS, STREAMS

DROPPED, ANOMALY, CHANGE, BAD, TIMED = 1, 2, 4, 8, 16  # bits of a fate; TIMED: its time was given, not that of arrival
Integers = npt.NDArray[np.int64]


def fates_of(trace: Trace, timed: Flags) -> list[int]:
    """What became of each point, as bits."""
    fates = DROPPED * trace.dropped + ANOMALY * trace.anomaly + CHANGE * trace.change + BAD * trace.bad + TIMED * timed
    listed: list[int] = fates.tolist()
    return listed


def texts_of(values: Vector) -> list[str]:
    """Each row of numbers as a JSON list, null for NaN; the same numbers to the bit when they are read again.

    >>> texts_of(np.array([[0.1, np.nan], [3.0, -4.5]]))
    ['[0.1,null]', '[3.0,-4.5]']
    """
    if not len(values):
        return []
    text = orjson.dumps(np.ascontiguousarray(values, np.float64), option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return [f"[{row}]" for row in text[2:-2].split("],[")]


def numbers_of(texts: Sequence[str], width: int) -> Vector:
    """The rows that `texts_of` wrote, (n, width)."""
    read = orjson.loads(f"[{','.join(texts)}]")
    return np.array(read, np.float64).reshape(len(texts), width)


def known(values: Vector) -> list[float | None]:
    """Numbers for a database, which has no NaN.

    >>> known(np.array([1.5, np.nan]))
    [1.5, None]
    """
    return [None if value != value else value for value in values.tolist()]


@dataclass(eq=False)
class Written:
    """Points of one call, as they are written: which row of which stream each is, and what it came to."""

    streams: Integers
    rows: Integers
    times: list[str]
    timed: Flags
    values: Vector
    trace: Trace
    estimates: dict[int, str]
    """By the place of a point in the call."""

    def write(self, connection: Connection) -> None:
        """All of them."""
        n, trace = len(self.rows), self.trace
        estimates: list[str | None] = [None] * n
        for place, text in self.estimates.items():
            estimates[place] = text
        columns = (self.streams.tolist(), self.rows.tolist(), self.times, texts_of(self.values), estimates)
        told = (known(trace.score), known(trace.change_score), known(trace.p_value), fates_of(trace, self.timed))
        insert_many(connection, POINTS, list(zip(*columns, *told, strict=True)))


def points_after(connection: Connection, stream: int, row: int, limit: int) -> Sequence[Row[Any]]:
    """The points of a stream after a row, in order."""
    chosen = select(POINTS).where(POINTS.c.stream == stream, POINTS.c.row > row).order_by(POINTS.c.row).limit(limit)
    return connection.execute(chosen).all()


def points_between(connection: Connection, stream: int, first: int, last: int) -> Sequence[Row[Any]]:
    """The points of a stream from one row to another, both included."""
    chosen = select(POINTS).where(POINTS.c.stream == stream, POINTS.c.row.between(first, last)).order_by(POINTS.c.row)
    return connection.execute(chosen).all()


def latest_points(connection: Connection, most: int) -> Iterator[Any]:
    """The last points of every stream, in order of streams and rows."""
    others = POINTS.alias()
    last = select(func.max(others.c.row)).where(others.c.stream == STREAMS.c.id).correlate(STREAMS).scalar_subquery()
    chosen = select(POINTS.c.stream, POINTS.c.row, POINTS.c.time, POINTS.c.x, POINTS.c.p_value, POINTS.c.fate).where(
        POINTS.c.stream == STREAMS.c.id, POINTS.c.row > last - most
    )
    yield from connection.execution_options(yield_per=5000).execute(chosen.order_by(POINTS.c.stream, POINTS.c.row))


def first_rows(connection: Connection) -> dict[int, int]:
    """Of every stream, the first row whose point is kept."""
    first = select(func.min(POINTS.c.row)).where(POINTS.c.stream == STREAMS.c.id).correlate(STREAMS).scalar_subquery()
    return {stream: row for stream, row in connection.execute(select(STREAMS.c.id, first)) if row is not None}


def as_time(text: str) -> str | float | int:
    """A time as it was given: a number, or a text in ISO 8601.

    >>> as_time("12.5"), as_time("2026-01-02T03:04:05Z")
    (12.5, '2026-01-02T03:04:05Z')
    """
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and abs(number) < 2.0**53 else number


def as_columns(points: Sequence[Row[Any]], width: int) -> dict[str, Any]:
    """Points as the API tells them: a list for each thing."""
    values = numbers_of([point.x for point in points], width)
    estimates: list[list[float | None]] = [[None] * len(points) for _ in range(width)]
    for place, point in enumerate(points):
        if point.estimate is not None:
            for variable, mean in enumerate(orjson.loads(point.estimate)):
                estimates[variable][place] = mean
    return {
        "rows": [point.row for point in points],
        "times": [as_time(point.time) for point in points],
        "values": [known(column) for column in values.T],
        "estimate": estimates,
        "score": [point.score for point in points],
        "change_score": [point.change_score for point in points],
        "p_value": [point.p_value for point in points],
        "dropped": [point.fate & DROPPED for point in points],
        "anomaly": [(point.fate & ANOMALY) // ANOMALY for point in points],
        "change": [(point.fate & CHANGE) // CHANGE for point in points],
    }
