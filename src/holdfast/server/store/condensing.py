"""The store does not grow for ever: of a stream the latest points are kept, older ones in ever larger buckets.

Sixteen points become a bucket of the first level, sixteen of those one of the second, and what would leave the last
level is forgotten. Each level keeps the same number of rows.
"""

from __future__ import annotations

import numpy as np
from sqlalchemy import Connection, func, select

from holdfast.server.store.buckets import Buckets
from holdfast.server.store.many import insert_many
from holdfast.server.store.points import blocks_from, points_between, remove_blocks, write_blocks
from holdfast.server.store.tables import ALARMS, CONDENSED

FACTOR = 16
LEVELS = 2  # above the points
SLACK = 4  # a quarter more than is kept may be there, so that this is done seldom
AT_ONCE = 512 * FACTOR  # rows at a time, so that nobody waits long
KEPT_ALARMS = 1000  # of a stream


def is_due(n_kept: int, keep: int) -> bool:
    """Whether there are enough rows too many."""
    return n_kept > keep + max(keep // SLACK, FACTOR)


def condense(connection: Connection, stream: int, width: int, first: int, end: int, keep: int) -> int:
    """Condenses the oldest points of a stream, whose rows are kept from `first` up to `end`; the new first row.

    end: the row before which all is in a checkpoint: what may still have to be learnt again stays.
    """
    n = min((end - first - keep) // FACTOR * FACTOR, AT_ONCE)
    if n <= 0:
        return first
    points = blocks_from(connection, stream, first, first + n, width)
    _put(connection, stream, 1, Buckets.of_points(points[:n]))
    remove_blocks(connection, stream, first, first + n)
    write_blocks(connection, [(stream, points[n:])])  # what the last block has beyond
    for level in range(1, LEVELS + 1):
        _condense_level(connection, stream, width, level, keep)
    _forget_alarms(connection, stream)
    return first + n


def read_history(connection: Connection, stream: int, width: int, first: int, last: int) -> Buckets:
    """All that is kept of these rows, both included, in order."""
    points = points_between(connection, stream, first, last + 1, width)
    end = points.first if len(points) else last + 1  # some of these points may have been condensed since they were read
    own = (CONDENSED.c.stream == stream, CONDENSED.c.row < end, CONDENSED.c.row + CONDENSED.c.n > first)
    found = connection.execute(select(CONDENSED).where(*own).order_by(CONDENSED.c.row)).all()
    return Buckets.chain([Buckets.of_condensed(found, width), Buckets.of_points(points)])


def _condense_level(connection: Connection, stream: int, width: int, level: int, keep: int) -> None:
    own = (CONDENSED.c.stream == stream, CONDENSED.c.level == level)
    n_rows = connection.execute(select(func.count()).select_from(CONDENSED).where(*own)).scalar_one()
    if not is_due(n_rows, keep):
        return
    n = (n_rows - keep) // FACTOR * FACTOR
    oldest = connection.execute(select(CONDENSED).where(*own).order_by(CONDENSED.c.row).limit(n)).all()
    if level < LEVELS:
        _put(connection, stream, level + 1, Buckets.of_condensed(oldest, width))
    connection.execute(CONDENSED.delete().where(*own, CONDENSED.c.row <= oldest[-1].row))


def _put(connection: Connection, stream: int, level: int, buckets: Buckets) -> None:
    """Into buckets of a level, a few rows each."""
    joined = buckets.joined(np.arange(0, len(buckets), FACTOR))
    insert_many(connection, CONDENSED, joined.as_rows(stream, level))


def _forget_alarms(connection: Connection, stream: int) -> None:
    """Of alarms that were acknowledged the latest stay; open ones always do."""
    own = select(ALARMS.c.id).where(ALARMS.c.stream == stream).order_by(ALARMS.c.id.desc())
    oldest = connection.execute(own.offset(KEPT_ALARMS).limit(1)).scalar()
    if oldest is not None:
        gone = (ALARMS.c.stream == stream, ALARMS.c.id <= oldest, ALARMS.c.acknowledged_at.is_not(None))
        connection.execute(ALARMS.delete().where(*gone))
