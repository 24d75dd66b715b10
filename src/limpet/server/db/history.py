"""Downsample histories: recent points in full, older ones in growing buckets.

Sixteen points become a bucket of the first level, sixteen of those a bucket of the second; the oldest buckets of the
last level are deleted. Each level has the same number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import orjson
from sqlalchemy import Connection, Row, func, select

from limpet.core.state import Vector
from limpet.server.db import points as store
from limpet.server.db.engine import bulk_insert
from limpet.server.db.points import Integers, PointBlock, decisions_to_api, nan_to_none, to_api_time
from limpet.server.db.schema import ALARMS_TABLE, BUCKETS_TABLE
from limpet.streams import downsample

BUCKET_FACTOR = 16
N_BUCKET_LEVELS = 2
SLACK_DIVISOR = 4  # a stream is compacted once it has a quarter more rows than it may keep
COMPACT_CHUNK_ROWS = 512 * BUCKET_FACTOR  # compacted in one transaction
MAX_KEPT_ALARMS = 1000  # per stream; open alarms are always kept
REDUCTIONS = {
    "rows": downsample.REDUCE_FIRST,
    "counts": downsample.REDUCE_SUM,
    "low": downsample.REDUCE_MIN,
    "high": downsample.REDUCE_MAX,
    "estimate": downsample.REDUCE_LAST,
    "score": downsample.REDUCE_MAX,
    "p_value": downsample.REDUCE_MIN,
    "n_rejected": downsample.REDUCE_SUM,
    "outcomes": downsample.REDUCE_OR,
}


@dataclass(eq=False)
class HistoryBuckets:
    """Consecutive buckets of rows."""

    rows: Integers  # the first one of each bucket
    counts: Integers  # of points
    times: list[str]  # of the first point
    low: Vector  # (n, d), the smallest values
    high: Vector
    estimate: Vector  # (n, d), the last one
    score: Vector  # the largest one
    p_value: Vector  # the smallest one
    n_rejected: Integers
    outcomes: Integers  # of all points, combined by bitwise or

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def from_points(cls, block: PointBlock) -> HistoryBuckets:
        """Return a bucket per point."""
        ones, values = np.ones(len(block), np.int64), block.values
        scores, n_rejected = (block.score, block.p_value), block.rejected.astype(np.int64)
        return cls(block.rows, ones, block.times, values, values, block.means, *scores, n_rejected, block.outcomes)

    @classmethod
    def from_rows(cls, rows: Sequence[Row[Any]], width: int) -> HistoryBuckets:
        """Return the buckets of rows of the table, of which there is at least one."""
        columns = dict(zip(BUCKETS_TABLE.c.keys(), zip(*rows, strict=True), strict=True))
        first_rows, counts = (np.array(columns[name], np.int64) for name in ("row", "n"))
        low, high, estimate = (_from_json_lists(columns[name], width) for name in ("low", "high", "estimate"))
        score, p_value = (np.array(columns[name], np.float64) for name in ("score", "p_value"))
        n_rejected, outcomes = (np.array(columns[name], np.int64) for name in ("n_rejected", "outcome"))
        times = list(columns["time"])
        return cls(first_rows, counts, times, low, high, estimate, score, p_value, n_rejected, outcomes)

    @classmethod
    def concatenate(cls, parts: Sequence[HistoryBuckets]) -> HistoryBuckets:
        """Return consecutive buckets as one object."""
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in REDUCTIONS}
        return cls(times=[time for part in parts for time in part.times], **arrays)

    def merge(self, starts: Integers) -> HistoryBuckets:
        """Return a bucket for the buckets from each start up to the next."""
        reduce = partial(downsample.reduce_buckets, starts=starts, axis=0)
        merged = {name: reduce(reduction, getattr(self, name)) for name, reduction in REDUCTIONS.items()}
        return HistoryBuckets(times=[self.times[start] for start in starts.tolist()], **merged)

    def reduce_to(self, n: int) -> HistoryBuckets:
        """Return at most n buckets of the same rows."""
        return self if len(self) <= n else self.merge(np.arange(0, len(self), -(-len(self) // n)))

    def to_rows(self, stream: int, level: int) -> list[tuple[Any, ...]]:
        """Return the rows of the table."""
        is_missing: list[bool] = np.asarray(np.isnan(self.estimate).any(axis=1)).tolist()
        estimates = zip(_to_json_lists(self.estimate), is_missing, strict=True)
        counts = (self.rows.tolist(), self.counts.tolist(), self.times)
        values = (
            _to_json_lists(self.low),
            _to_json_lists(self.high),
            [None if missing else text for text, missing in estimates],
        )
        scores = (nan_to_none(self.score), nan_to_none(self.p_value), self.n_rejected.tolist(), self.outcomes.tolist())
        return [(stream, level, *row) for row in zip(*counts, *values, *scores, strict=True)]

    def to_api(self) -> dict[str, Any]:
        """Return the buckets as lists by column, as the API has them."""
        return {
            "rows": self.rows.tolist(),
            "counts": self.counts.tolist(),
            "times": [to_api_time(time) for time in self.times],
            **{name: [*map(nan_to_none, getattr(self, name).T)] for name in ("low", "high", "estimate")},
            **{name: nan_to_none(getattr(self, name)) for name in ("score", "p_value")},
            "n_rejected": self.n_rejected.tolist(),
            **decisions_to_api(self.outcomes),
        }


def _to_json_lists(values: Vector) -> list[str]:
    """Return each row of numbers as a JSON list, null for NaN.

    >>> _to_json_lists(np.array([[0.1, np.nan], [3.0, -4.5]]))
    ['[0.1,null]', '[3.0,-4.5]']
    """
    text = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return [f"[{row}]" for row in text[2:-2].split("],[")] if len(values) else []


def _from_json_lists(strings: Sequence[str | None], width: int) -> Vector:
    """Return the rows that `_to_json_lists` wrote, (n, width); NaN for None."""
    null_row = f"[{','.join(['null'] * width)}]"
    decoded = orjson.loads(f"[{','.join(text or null_row for text in strings)}]")
    return np.array(decoded, np.float64).reshape(len(strings), width)


def needs_compaction(n_rows: int, max_rows: int) -> bool:
    """Return whether a stream has clearly more rows than it may keep."""
    return n_rows > max_rows + max(max_rows // SLACK_DIVISOR, BUCKET_FACTOR)


def compact_stream(
    connection: Connection, stream_id: int, width: int, first_row: int, end_row: int, max_rows: int
) -> int:
    """Replace the oldest points of a stream by buckets, in a write transaction.

    Points from `first_row` on are stored in full, those from `end_row` on are not in a checkpoint and stay. Keep
    `max_rows` rows at each level. Return the first row that is stored in full now.
    """
    n = min((end_row - first_row - max_rows) // BUCKET_FACTOR * BUCKET_FACTOR, COMPACT_CHUNK_ROWS)
    if n <= 0:
        return first_row
    points = store.read_blocks(connection, stream_id, first_row, first_row + n, width)
    _insert_buckets(connection, stream_id, 1, HistoryBuckets.from_points(points[:n]))
    store.delete_blocks(connection, stream_id, first_row, first_row + n)
    store.write_blocks(connection, [(stream_id, points[n:])])  # of the last block, beyond n
    for level in range(1, N_BUCKET_LEVELS + 1):
        _compact_level(connection, stream_id, width, level, max_rows)
    _delete_old_alarms(connection, stream_id)
    return first_row + n


def read_history(connection: Connection, stream_id: int, width: int, first_row: int, last_row: int) -> HistoryBuckets:
    """Return all that is stored of a range of rows, both ends included."""
    points = store.read_points(connection, stream_id, first_row, last_row + 1, width)
    end_row = points.first_row if len(points) else last_row + 1  # points may be compacted between the two queries
    row, n = BUCKETS_TABLE.c.row, BUCKETS_TABLE.c.n
    conditions = (BUCKETS_TABLE.c.stream == stream_id, row < end_row, row + n > first_row)
    rows = connection.execute(select(BUCKETS_TABLE).where(*conditions).order_by(row)).all()
    buckets = HistoryBuckets.from_points(points)
    return HistoryBuckets.concatenate([HistoryBuckets.from_rows(rows, width), buckets]) if rows else buckets


def _compact_level(connection: Connection, stream_id: int, width: int, level: int, max_rows: int) -> None:
    """Replace the oldest buckets of a level by coarser ones; delete the last level's."""
    conditions = (BUCKETS_TABLE.c.stream == stream_id, BUCKETS_TABLE.c.level == level)
    n_rows = connection.execute(select(func.count()).select_from(BUCKETS_TABLE).where(*conditions)).scalar_one()
    if not needs_compaction(n_rows, max_rows):
        return
    n = (n_rows - max_rows) // BUCKET_FACTOR * BUCKET_FACTOR
    oldest = connection.execute(select(BUCKETS_TABLE).where(*conditions).order_by(BUCKETS_TABLE.c.row).limit(n)).all()
    if level < N_BUCKET_LEVELS:
        _insert_buckets(connection, stream_id, level + 1, HistoryBuckets.from_rows(oldest, width))
    connection.execute(BUCKETS_TABLE.delete().where(*conditions, BUCKETS_TABLE.c.row <= oldest[-1].row))


def _insert_buckets(connection: Connection, stream_id: int, level: int, buckets: HistoryBuckets) -> None:
    merged = buckets.merge(np.arange(0, len(buckets), BUCKET_FACTOR))
    bulk_insert(connection, BUCKETS_TABLE, merged.to_rows(stream_id, level))


def _delete_old_alarms(connection: Connection, stream_id: int) -> None:
    is_of_stream, alarm_id = ALARMS_TABLE.c.stream == stream_id, ALARMS_TABLE.c.id
    newest_first = select(alarm_id).where(is_of_stream).order_by(alarm_id.desc())
    cutoff_id = connection.execute(newest_first.offset(MAX_KEPT_ALARMS).limit(1)).scalar()
    if cutoff_id is not None:
        is_acknowledged = ALARMS_TABLE.c.acknowledged_at.is_not(None)
        connection.execute(ALARMS_TABLE.delete().where(is_of_stream, alarm_id <= cutoff_id, is_acknowledged))
