"""Blocks of points in the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from holdfast.server.store.blocks import MOST, Block
from holdfast.server.store.many import insert_many
from holdfast.server.store.tables import POINTS, STREAMS


class Latest(NamedTuple):
    """The last points of a stream."""

    stream: int
    block: Block


def write_blocks(connection: Connection, blocks: Iterable[tuple[int, Block]]) -> None:
    """Points of streams, in blocks that are not too long."""
    short = ((stream, piece) for stream, block in blocks for piece in block.cut())
    insert_many(connection, POINTS, [(stream, one.first, len(one), one.to_json()) for stream, one in short])


def points_between(connection: Connection, stream: int, first: int, end: int, width: int) -> Block:
    """The points of a stream from one row up to another, as far as they are kept."""
    whole = blocks_from(connection, stream, first - MOST + 1, end, width)  # no block is longer
    return whole[max(0, first - whole.first) : max(0, end - whole.first)]


def blocks_from(connection: Connection, stream: int, first: int, end: int, width: int) -> Block:
    """All points of the blocks that begin in these rows."""
    own = (POINTS.c.stream == stream, POINTS.c.row >= first, POINTS.c.row < end)
    found = connection.execute(select(POINTS.c.row, POINTS.c.body).where(*own).order_by(POINTS.c.row)).all()
    return Block.chain([Block.of_json(row, body) for row, body in found]) if found else Block.empty(width)


def points_after(connection: Connection, stream: int, row: int, limit: int, width: int) -> Block:
    """The points of a stream after a row, so many at most; what is not kept any more is left out."""
    least = select(func.min(POINTS.c.row)).where(POINTS.c.stream == stream)
    begin = max(row + 1, connection.execute(least).scalar() or 0)
    return points_between(connection, stream, begin, begin + limit, width)


def remove_blocks(connection: Connection, stream: int, first: int, end: int) -> None:
    """Those that begin in these rows."""
    connection.execute(POINTS.delete().where(POINTS.c.stream == stream, POINTS.c.row >= first, POINTS.c.row < end))


def pack(connection: Connection, stream: int, first: int, end: int, width: int) -> None:
    """Short blocks that begin in these rows become long ones."""
    points = blocks_from(connection, stream, first, end, width)
    remove_blocks(connection, stream, first, end)
    write_blocks(connection, [(stream, points)])


def latest_points(connection: Connection, most: int) -> Iterator[Latest]:
    """The last points of every stream, so many at most."""
    others = POINTS.alias()
    last = select(func.max(others.c.row)).where(others.c.stream == STREAMS.c.id).correlate(STREAMS).scalar_subquery()
    chosen = select(POINTS.c.stream, POINTS.c.row, POINTS.c.body).where(
        POINTS.c.stream == STREAMS.c.id, POINTS.c.row > last - most - MOST, POINTS.c.row + POINTS.c.n > last - most
    )
    number, blocks = -1, list[Block]()
    found = connection.execution_options(yield_per=1000).execute(chosen.order_by(POINTS.c.stream, POINTS.c.row))
    for stream, row, body in found:
        if stream != number and blocks:
            yield Latest(number, Block.chain(blocks)[-most:])
            blocks = []
        number = stream
        blocks.append(Block.of_json(row, body))
    if blocks:
        yield Latest(number, Block.chain(blocks)[-most:])


def first_rows(connection: Connection) -> dict[int, int]:
    """Of every stream, the first row whose point is kept."""
    first = select(func.min(POINTS.c.row)).where(POINTS.c.stream == STREAMS.c.id).correlate(STREAMS).scalar_subquery()
    return {stream: row for stream, row in connection.execute(select(STREAMS.c.id, first)) if row is not None}
