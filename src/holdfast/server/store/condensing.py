"""The store does not grow for ever: of a stream the latest points are kept, older ones in ever larger buckets.

Sixteen points become a bucket of the first level, sixteen of those one of the second, and what would leave the last
level is forgotten. Each level keeps the same number of rows.
"""

from __future__ import annotations

import numpy as np
from sqlalchemy import Connection, func, select

from holdfast.server.store.buckets import HistoryBuckets
from holdfast.server.store.many import bulk_insert
from holdfast.server.store.points import delete_blocks, read_blocks, read_points, write_blocks
from holdfast.server.store.tables import ALARMS_TABLE, BUCKETS_TABLE

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
