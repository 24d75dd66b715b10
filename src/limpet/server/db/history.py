"""The store does not grow for ever: of a stream the latest points are kept, older ones in ever larger buckets.

Sixteen points become a bucket of the first level, sixteen of those one of the second, and what would leave the last
level is forgotten. Each level keeps the same number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from sqlalchemy import Connection, Row, func, select

from limpet.core.state import Vector
from limpet.server.db.blocks import (
    ANOMALY_BIT,
    CHANGE_BIT,
    REJECTED_BIT,
    Integers,
    PointBlock,
    nan_to_none,
    to_api_time,
)
from limpet.server.db.engine import bulk_insert
from limpet.server.db.points import delete_blocks, read_blocks, read_points, write_blocks
from limpet.server.db.schema import ALARMS_TABLE, BUCKETS_TABLE

# Neighbouring rows of a stream as one: what is kept of the past, and what a picture of it needs.


@dataclass(eq=False)
class HistoryBuckets:
    """Buckets of rows in order. rows: the first of each; counts: points in it; low, high, estimate: (n, d)."""

    rows: Integers
    counts: Integers
    times: list[str]
    low: Vector
    high: Vector
    estimate: Vector
    score: Vector
    p_value: Vector
    n_rejected: Integers
    outcomes: Integers

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def from_points(cls, block: PointBlock) -> HistoryBuckets:
        """Each point a bucket of its own."""
        ones, values = np.ones(len(block), np.int64), block.values
        scores, n_rejected = (block.score, block.p_value), block.outcomes & REJECTED_BIT
        return cls(block.rows, ones, block.times, values, values, block.means, *scores, n_rejected, block.outcomes)

    @classmethod
    def from_rows(cls, rows: Sequence[Row[Any]], width: int) -> HistoryBuckets:
        """As the store has them."""
        return cls(
            np.array([row.row for row in rows], np.int64),
            np.array([row.n for row in rows], np.int64),
            [row.time for row in rows],
            _from_json_lists([row.low for row in rows], width),
            _from_json_lists([row.high for row in rows], width),
            _from_json_lists([row.estimate for row in rows], width),
            np.array([row.score for row in rows], np.float64),
            np.array([row.p_value for row in rows], np.float64),
            np.array([row.n_rejected for row in rows], np.int64),
            np.array([row.fate for row in rows], np.int64),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[HistoryBuckets]) -> HistoryBuckets:
        """One after another."""
        columns = ("rows", "counts", "low", "high", "estimate", "score", "p_value", "n_rejected", "outcomes")
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
        return cls(times=[time for part in parts for time in part.times], **arrays)

    def merge(self, starts: Integers) -> HistoryBuckets:
        """Those from each start up to the next one as one."""
        last_estimates = _last_estimates(self.estimate, starts)
        return HistoryBuckets(
            self.rows[starts],
            np.add.reduceat(self.counts, starts),
            [self.times[start] for start in starts.tolist()],
            np.fmin.reduceat(self.low, starts),
            np.fmax.reduceat(self.high, starts),
            last_estimates,
            np.fmax.reduceat(self.score, starts),
            np.fmin.reduceat(self.p_value, starts),
            np.add.reduceat(self.n_rejected, starts),
            np.bitwise_or.reduceat(self.outcomes, starts),
        )

    def reduce_to(self, n: int) -> HistoryBuckets:
        """So many of them at most."""
        if len(self) <= n:
            return self
        return self.merge(np.arange(0, len(self), -(-len(self) // n)))

    def to_rows(self, stream: int, level: int) -> list[tuple[Any, ...]]:
        """Rows of the table `condensed`."""
        is_missing: list[bool] = np.asarray(np.isnan(self.estimate).any(axis=1)).tolist()
        estimates = [
            None if missing else text for missing, text in zip(is_missing, _to_json_lists(self.estimate), strict=True)
        ]
        columns = (
            self.rows.tolist(),
            self.counts.tolist(),
            self.times,
            _to_json_lists(self.low),
            _to_json_lists(self.high),
        )
        other_columns = (
            estimates,
            nan_to_none(self.score),
            nan_to_none(self.p_value),
            self.n_rejected.tolist(),
            self.outcomes.tolist(),
        )
        return [(stream, level, *row) for row in zip(*columns, *other_columns, strict=True)]

    def to_api(self) -> dict[str, Any]:
        """As the API tells them: a list for each thing."""
        return {
            "rows": self.rows.tolist(),
            "counts": self.counts.tolist(),
            "times": [to_api_time(time) for time in self.times],
            "low": [nan_to_none(column) for column in self.low.T],
            "high": [nan_to_none(column) for column in self.high.T],
            "estimate": [nan_to_none(column) for column in self.estimate.T],
            "score": nan_to_none(self.score),
            "p_value": nan_to_none(self.p_value),
            "n_rejected": self.n_rejected.tolist(),
            "anomaly": ((self.outcomes & ANOMALY_BIT) // ANOMALY_BIT).tolist(),
            "change": ((self.outcomes & CHANGE_BIT) // CHANGE_BIT).tolist(),
        }


def _to_json_lists(values: Vector) -> list[str]:
    """Each row of numbers as a JSON list, null for NaN.

    >>> _texts(np.array([[0.1, np.nan], [3.0, -4.5]]))
    ['[0.1,null]', '[3.0,-4.5]']
    """
    text = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return [f"[{row}]" for row in text[2:-2].split("],[")] if len(values) else []


def _from_json_lists(strings: Sequence[str | None], width: int) -> Vector:
    """The rows that `_texts` wrote, (n, width); NaN for one that is not there."""
    null_row = f"[{','.join(['null'] * width)}]"
    decoded = orjson.loads(f"[{','.join(text or null_row for text in strings)}]")
    return np.array(decoded, np.float64).reshape(len(strings), width)


def _last_estimates(estimates: Vector, starts: Integers) -> Vector:
    """The last estimate between each start and the next; NaN where there is none."""
    present = ~np.asarray(np.isnan(estimates).any(axis=1))
    index = np.where(present, np.arange(len(estimates)), -1)
    last = np.maximum.reduceat(index, starts)
    result: Vector = np.where((last >= 0)[:, None], estimates[last], np.nan)
    return result


BUCKET_FACTOR = 16
N_BUCKET_LEVELS = 2  # above the points
SLACK_DIVISOR = 4  # a quarter more than is kept may be there, so that this is done seldom
COMPACT_CHUNK_ROWS = 512 * BUCKET_FACTOR  # rows at a time, so that nobody waits long
MAX_KEPT_ALARMS = 1000  # of a stream


def needs_compaction(n_rows: int, max_rows: int) -> bool:
    """Whether there are enough rows too many."""
    return n_rows > max_rows + max(max_rows // SLACK_DIVISOR, BUCKET_FACTOR)


def compact_stream(
    connection: Connection, stream_id: int, width: int, first_row: int, end_row: int, max_rows: int
) -> int:
    """Condenses the oldest points of a stream, whose rows are kept from `first` up to `end`; the new first row.

    end: the row before which all is in a checkpoint: what may still have to be learnt again stays.
    """
    n = min((end_row - first_row - max_rows) // BUCKET_FACTOR * BUCKET_FACTOR, COMPACT_CHUNK_ROWS)
    if n <= 0:
        return first_row
    points = read_blocks(connection, stream_id, first_row, first_row + n, width)
    _insert_buckets(connection, stream_id, 1, HistoryBuckets.from_points(points[:n]))
    delete_blocks(connection, stream_id, first_row, first_row + n)
    write_blocks(connection, [(stream_id, points[n:])])  # what the last block has beyond
    for level in range(1, N_BUCKET_LEVELS + 1):
        _compact_level(connection, stream_id, width, level, max_rows)
    _delete_old_alarms(connection, stream_id)
    return first_row + n


def read_history(connection: Connection, stream_id: int, width: int, first_row: int, last_row: int) -> HistoryBuckets:
    """All that is kept of these rows, both included, in order."""
    points = read_points(connection, stream_id, first_row, last_row + 1, width)
    end_row = (
        points.first_row if len(points) else last_row + 1
    )  # some of these points may have been condensed since they were read
    conditions = (
        BUCKETS_TABLE.c.stream == stream_id,
        BUCKETS_TABLE.c.row < end_row,
        BUCKETS_TABLE.c.row + BUCKETS_TABLE.c.n > first_row,
    )
    rows = connection.execute(select(BUCKETS_TABLE).where(*conditions).order_by(BUCKETS_TABLE.c.row)).all()
    return HistoryBuckets.concatenate([HistoryBuckets.from_rows(rows, width), HistoryBuckets.from_points(points)])


def _compact_level(connection: Connection, stream_id: int, width: int, level: int, max_rows: int) -> None:
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
    """Into buckets of a level, a few rows each."""
    merged = buckets.merge(np.arange(0, len(buckets), BUCKET_FACTOR))
    bulk_insert(connection, BUCKETS_TABLE, merged.to_rows(stream_id, level))


def _delete_old_alarms(connection: Connection, stream_id: int) -> None:
    """Of alarms that were acknowledged the latest stay; open ones always do."""
    newest_first = (
        select(ALARMS_TABLE.c.id).where(ALARMS_TABLE.c.stream == stream_id).order_by(ALARMS_TABLE.c.id.desc())
    )
    cutoff_id = connection.execute(newest_first.offset(MAX_KEPT_ALARMS).limit(1)).scalar()
    if cutoff_id is not None:
        conditions = (
            ALARMS_TABLE.c.stream == stream_id,
            ALARMS_TABLE.c.id <= cutoff_id,
            ALARMS_TABLE.c.acknowledged_at.is_not(None),
        )
        connection.execute(ALARMS_TABLE.delete().where(*conditions))
