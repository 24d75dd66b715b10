"""Store streams, and points in blocks: hundreds per table row as JSON columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
from sqlalchemy import ColumnElement, Connection, ScalarSelect, and_, func, select

from limpet.core.algorithm import OUTCOME_REJECTED, Outcome
from limpet.core.state import Vector
from limpet.learners.results import AUTO_RESULT_FIELDS, Flags, Trace
from limpet.server.db.engine import bulk_insert
from limpet.server.db.schema import ALARMS_TABLE, BLOCKS_TABLE, BUCKETS_TABLE, STREAMS_TABLE

BLOCK_MAX_POINTS = 256
TIME_GIVEN_BIT = 64  # of a stored outcome: the time was sent with the point, it is not the time of arrival
SCORES = AUTO_RESULT_FIELDS[:3]  # of numbers; the others are flags
Integers = npt.NDArray[np.int64]
VariableNames = tuple[str, ...] | None


class StreamRow(NamedTuple):
    """A row of the table of streams."""

    id: int
    key: str
    width: int
    names: VariableNames
    created: float


def add_streams(connection: Connection, entries: Sequence[StreamRow]) -> None:
    """Insert new streams."""
    rows = [(e.id, e.key, e.width, None if e.names is None else json.dumps(e.names), e.created) for e in entries]
    bulk_insert(connection, STREAMS_TABLE, rows)


def read_streams(connection: Connection) -> list[StreamRow]:
    """Return all streams by id."""
    rows = connection.execute(select(STREAMS_TABLE).order_by(STREAMS_TABLE.c.id))
    return [StreamRow(id, key, width, names and tuple(json.loads(names)), time) for id, key, width, names, time in rows]


def delete_stream(connection: Connection, stream_id: int) -> None:
    """Delete a stream with its points and alarms."""
    for table in (BLOCKS_TABLE, BUCKETS_TABLE, ALARMS_TABLE):
        connection.execute(table.delete().where(table.c.stream == stream_id))
    connection.execute(STREAMS_TABLE.delete().where(STREAMS_TABLE.c.id == stream_id))


@dataclass(eq=False)
class PointBlock:
    """Consecutive points of a stream with their results."""

    first_row: int
    times: list[str]  # as they were sent
    values: Vector  # (n, d), NaN where one is missing
    means: Vector  # (n, d), the estimate after each point; NaN where it was not recorded
    score: Vector
    p_value: Vector
    change_score: Vector
    outcomes: Integers  # `Outcome` of each point, combined with `TIME_GIVEN_BIT`

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, part: slice) -> PointBlock:
        start, end, _ = part.indices(len(self))
        return PointBlock(  # once per stream of a request: by `fields` it would take four times as long
            self.first_row + min(start, end),
            self.times[part],
            self.values[part],
            self.means[part],
            self.score[part],
            self.p_value[part],
            self.change_score[part],
            self.outcomes[part],
        )

    @property
    def rows(self) -> Integers:
        """The row of each point."""
        return self.first_row + np.arange(len(self))

    @property
    def rejected(self) -> Flags:
        """Whether each point was rejected."""
        return np.asarray(self.outcomes & OUTCOME_REJECTED > 0)

    @classmethod
    def from_trace(
        cls, first_row: int, times: list[str], time_given: Flags, values: Vector, trace: Trace, means: Vector
    ) -> PointBlock:
        """Return points with the results of a learner."""
        outcomes = trace.outcomes & ~Outcome.NEEDS_REINIT | TIME_GIVEN_BIT * time_given
        return cls(first_row, times, values, means, trace.score, trace.p_value, trace.change_score, outcomes)

    @classmethod
    def concatenate(cls, blocks: Sequence[PointBlock]) -> PointBlock:
        """Return the points of consecutive blocks as one block."""
        names = ("values", "means", *SCORES, "outcomes")
        columns = {name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}
        return cls(blocks[0].first_row, [time for block in blocks for time in block.times], **columns)

    @classmethod
    def empty(cls, width: int) -> PointBlock:
        """Return a block without points."""
        none = np.zeros(0)
        return cls(0, [], np.zeros((0, width)), np.zeros((0, width)), none, none, none, np.zeros(0, np.int64))

    def split(self) -> list[PointBlock]:
        """Return blocks of at most `BLOCK_MAX_POINTS`."""
        if 0 < len(self) <= BLOCK_MAX_POINTS:
            return [self]
        return [self[start : start + BLOCK_MAX_POINTS] for start in range(0, len(self), BLOCK_MAX_POINTS)]

    def to_json(self) -> str:
        """Return the columns as JSON; numbers keep their bits, null is NaN."""
        rows_with_means = np.flatnonzero(~np.isnan(self.means).any(axis=1))
        payload = {
            "time": self.times[0] if len(set(self.times)) == 1 else self.times,
            "values": [np.ascontiguousarray(column) for column in self.values.T],
            **{name: np.ascontiguousarray(getattr(self, name)) for name in SCORES},
            "outcome": np.ascontiguousarray(self.outcomes),
            "means": {str(row): self.means[row].tolist() for row in rows_with_means.tolist()},
        }
        return orjson.dumps(payload, option=orjson.OPT_SERIALIZE_NUMPY).decode()

    @classmethod
    def from_json(cls, first_row: int, text: str) -> PointBlock:
        """Return the block that `to_json` serialized."""
        payload = orjson.loads(text)
        values = np.array(payload["values"], np.float64).T
        means = np.full(values.shape, np.nan)
        for row, mean in payload["means"].items():
            means[int(row)] = mean
        times = [payload["time"]] * len(values) if isinstance(payload["time"], str) else payload["time"]
        scores = {name: np.array(payload[name], np.float64) for name in SCORES}
        return cls(first_row, times, values, means, outcomes=np.array(payload["outcome"], np.int64), **scores)

    def to_api(self) -> dict[str, Any]:
        """Return the points as lists by column, as the API has them."""
        return {
            "rows": self.rows.tolist(),
            "times": [to_api_time(time) for time in self.times],
            "values": [nan_to_none(column) for column in self.values.T],
            "estimate": [nan_to_none(column) for column in self.means.T],
            **{name: nan_to_none(getattr(self, name)) for name in SCORES},
            "rejected": self.rejected.astype(int).tolist(),
            **decisions_to_api(self.outcomes),
        }


def decisions_to_api(outcomes: Integers) -> dict[str, list[int]]:
    """Return anomalies and changes as lists of 0 and 1."""
    flags = {"anomaly": Outcome.ANOMALY, "change": Outcome.CHANGE}
    return {name: (outcomes & flag > 0).astype(int).tolist() for name, flag in flags.items()}


def nan_to_none(values: Vector) -> list[float | None]:
    """Return numbers as a list, None for NaN.

    >>> nan_to_none(np.array([1.5, np.nan]))
    [1.5, None]
    """
    return [None if value != value else value for value in values.tolist()]


def to_api_time(text: str) -> str | float | int:
    """Return a stored time as it was sent: a number, or an ISO 8601 string.

    >>> to_api_time("12.5"), to_api_time("2.5e-05"), to_api_time("2026-01-02T03:04:05Z")
    (12.5, 2.5e-05, '2026-01-02T03:04:05Z')
    """
    if text[4:5] == "-" and text[:4].isdecimal():
        return text
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2.0**53 else number


def format_unix_time(seconds: float) -> str:
    """Return a time in seconds since 1970 as an ISO 8601 string.

    >>> format_unix_time(1767323045.25)
    '2026-01-02T03:04:05.250Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write_blocks(connection: Connection, blocks: Iterable[tuple[int, PointBlock]]) -> None:
    """Insert points, given as pairs of stream id and block."""
    pieces = ((stream_id, piece) for stream_id, block in blocks for piece in block.split())
    rows = [(stream_id, piece.first_row, len(piece), piece.to_json()) for stream_id, piece in pieces]
    bulk_insert(connection, BLOCKS_TABLE, rows)


def read_points(connection: Connection, stream_id: int, first_row: int, end_row: int, width: int) -> PointBlock:
    """Return the stored points of a stream with first_row ≤ row < end_row."""
    covering = read_blocks(connection, stream_id, first_row - BLOCK_MAX_POINTS + 1, end_row, width)
    return covering[max(0, first_row - covering.first_row) : max(0, end_row - covering.first_row)]


def read_blocks(connection: Connection, stream_id: int, first_row: int, end_row: int, width: int) -> PointBlock:
    """Return all points of the blocks whose first row is in the range."""
    query = select(BLOCKS_TABLE.c.row, BLOCKS_TABLE.c.body).where(_starts_in(stream_id, first_row, end_row))
    blocks = [PointBlock.from_json(row, body) for row, body in connection.execute(query.order_by(BLOCKS_TABLE.c.row))]
    return PointBlock.concatenate(blocks) if blocks else PointBlock.empty(width)


def read_points_after(connection: Connection, stream_id: int, after_row: int, limit: int, width: int) -> PointBlock:
    """Return at most `limit` points after a row, from the first one that is stored."""
    first_stored = select(func.min(BLOCKS_TABLE.c.row)).where(BLOCKS_TABLE.c.stream == stream_id)
    start = max(after_row + 1, connection.execute(first_stored).scalar() or 0)
    return read_points(connection, stream_id, start, start + limit, width)


def delete_blocks(connection: Connection, stream_id: int, first_row: int, end_row: int) -> None:
    """Delete the blocks whose first row is in the range."""
    connection.execute(BLOCKS_TABLE.delete().where(_starts_in(stream_id, first_row, end_row)))


def merge_blocks(connection: Connection, stream_id: int, first_row: int, end_row: int, width: int) -> None:
    """Replace short blocks whose first row is in the range by long ones."""
    points = read_blocks(connection, stream_id, first_row, end_row, width)
    delete_blocks(connection, stream_id, first_row, end_row)
    write_blocks(connection, [(stream_id, points)])


def read_latest_points(connection: Connection, max_points: int) -> Iterator[tuple[int, PointBlock]]:
    """Yield the id of every stream with its latest points, at most `max_points`."""
    last_row = _extreme_row(func.max)
    query = select(BLOCKS_TABLE.c.stream, BLOCKS_TABLE.c.row, BLOCKS_TABLE.c.body).where(
        BLOCKS_TABLE.c.stream == STREAMS_TABLE.c.id,
        BLOCKS_TABLE.c.row > last_row - max_points - BLOCK_MAX_POINTS,
        BLOCKS_TABLE.c.row + BLOCKS_TABLE.c.n > last_row - max_points,
    )
    in_order = query.order_by(BLOCKS_TABLE.c.stream, BLOCKS_TABLE.c.row)
    rows = connection.execution_options(yield_per=1000).execute(in_order)
    for stream_id, group in groupby(rows, key=lambda row: row.stream):
        blocks = [PointBlock.from_json(row, body) for _, row, body in group]
        yield stream_id, PointBlock.concatenate(blocks)[-max_points:]


def read_first_rows(connection: Connection) -> dict[int, int]:
    """Return the first stored row of every stream that has points, by stream id."""
    rows = connection.execute(select(STREAMS_TABLE.c.id, _extreme_row(func.min)))
    return {stream_id: row for stream_id, row in rows if row is not None}


def _starts_in(stream_id: int, first_row: int, end_row: int) -> ColumnElement[bool]:
    return and_(BLOCKS_TABLE.c.stream == stream_id, BLOCKS_TABLE.c.row >= first_row, BLOCKS_TABLE.c.row < end_row)


def _extreme_row(extreme: Callable[..., Any]) -> ScalarSelect[Any]:
    """Select the smallest or largest first row of each stream's blocks, by the index."""
    points = BLOCKS_TABLE.alias()
    of_stream = select(extreme(points.c.row)).where(points.c.stream == STREAMS_TABLE.c.id)
    return of_stream.correlate(STREAMS_TABLE).scalar_subquery()
