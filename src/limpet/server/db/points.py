"""Blocks of points in the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from limpet.server.db.blocks import BLOCK_MAX_POINTS, PointBlock
from limpet.server.db.engine import bulk_insert
from limpet.server.db.schema import BLOCKS_TABLE, STREAMS_TABLE


class LatestPoints(NamedTuple):
    """The last points of a stream."""

    stream_id: int
    block: PointBlock


def write_blocks(connection: Connection, blocks: Iterable[tuple[int, PointBlock]]) -> None:
    """Points of streams, in blocks that are not too long."""
    split_blocks = ((stream_id, piece) for stream_id, block in blocks for piece in block.split())
    bulk_insert(
        connection,
        BLOCKS_TABLE,
        [(stream_id, block.first_row, len(block), block.to_json()) for stream_id, block in split_blocks],
    )


def read_points(connection: Connection, stream_id: int, first_row: int, end_row: int, width: int) -> PointBlock:
    """The points of a stream from one row up to another, as far as they are kept."""
    covering = read_blocks(
        connection, stream_id, first_row - BLOCK_MAX_POINTS + 1, end_row, width
    )  # no block is longer
    return covering[max(0, first_row - covering.first_row) : max(0, end_row - covering.first_row)]


def read_blocks(connection: Connection, stream_id: int, first_row: int, end_row: int, width: int) -> PointBlock:
    """All points of the blocks that begin in these rows."""
    conditions = (BLOCKS_TABLE.c.stream == stream_id, BLOCKS_TABLE.c.row >= first_row, BLOCKS_TABLE.c.row < end_row)
    rows = connection.execute(
        select(BLOCKS_TABLE.c.row, BLOCKS_TABLE.c.body).where(*conditions).order_by(BLOCKS_TABLE.c.row)
    ).all()
    return (
        PointBlock.concatenate([PointBlock.from_json(row, body) for row, body in rows])
        if rows
        else PointBlock.empty(width)
    )


def read_points_after(connection: Connection, stream_id: int, after_row: int, limit: int, width: int) -> PointBlock:
    """The points of a stream after a row, so many at most; what is not kept any more is left out."""
    first_stored = select(func.min(BLOCKS_TABLE.c.row)).where(BLOCKS_TABLE.c.stream == stream_id)
    start = max(after_row + 1, connection.execute(first_stored).scalar() or 0)
    return read_points(connection, stream_id, start, start + limit, width)


def delete_blocks(connection: Connection, stream_id: int, first_row: int, end_row: int) -> None:
    """Those that begin in these rows."""
    connection.execute(
        BLOCKS_TABLE.delete().where(
            BLOCKS_TABLE.c.stream == stream_id, BLOCKS_TABLE.c.row >= first_row, BLOCKS_TABLE.c.row < end_row
        )
    )


def merge_blocks(connection: Connection, stream_id: int, first_row: int, end_row: int, width: int) -> None:
    """Short blocks that begin in these rows become long ones."""
    points = read_blocks(connection, stream_id, first_row, end_row, width)
    delete_blocks(connection, stream_id, first_row, end_row)
    write_blocks(connection, [(stream_id, points)])


def read_latest_points(connection: Connection, max_points: int) -> Iterator[LatestPoints]:
    """The last points of every stream, so many at most."""
    points = BLOCKS_TABLE.alias()
    last_row = (
        select(func.max(points.c.row))
        .where(points.c.stream == STREAMS_TABLE.c.id)
        .correlate(STREAMS_TABLE)
        .scalar_subquery()
    )
    query = select(BLOCKS_TABLE.c.stream, BLOCKS_TABLE.c.row, BLOCKS_TABLE.c.body).where(
        BLOCKS_TABLE.c.stream == STREAMS_TABLE.c.id,
        BLOCKS_TABLE.c.row > last_row - max_points - BLOCK_MAX_POINTS,
        BLOCKS_TABLE.c.row + BLOCKS_TABLE.c.n > last_row - max_points,
    )
    current_id, blocks = -1, list[PointBlock]()
    rows = connection.execution_options(yield_per=1000).execute(
        query.order_by(BLOCKS_TABLE.c.stream, BLOCKS_TABLE.c.row)
    )
    for stream_id, row, body in rows:
        if stream_id != current_id and blocks:
            yield LatestPoints(current_id, PointBlock.concatenate(blocks)[-max_points:])
            blocks = []
        current_id = stream_id
        blocks.append(PointBlock.from_json(row, body))
    if blocks:
        yield LatestPoints(current_id, PointBlock.concatenate(blocks)[-max_points:])


def read_first_rows(connection: Connection) -> dict[int, int]:
    """Of every stream, the first row whose point is kept."""
    first_row = (
        select(func.min(BLOCKS_TABLE.c.row))
        .where(BLOCKS_TABLE.c.stream == STREAMS_TABLE.c.id)
        .correlate(STREAMS_TABLE)
        .scalar_subquery()
    )
    return {
        stream_id: row
        for stream_id, row in connection.execute(select(STREAMS_TABLE.c.id, first_row))
        if row is not None
    }
