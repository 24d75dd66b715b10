"""Streams: their keys, how many variables they have, and what these are called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from limpet.server.db.engine import bulk_insert
from limpet.server.db.schema import ALARMS_TABLE, BLOCKS_TABLE, BUCKETS_TABLE, STREAMS_TABLE

VariableNames = tuple[str, ...] | None


class StreamRow(NamedTuple):
    """A stream as it is kept."""

    id: int
    key: str
    width: int
    names: VariableNames
    created: float


def add_streams(connection: Connection, entries: Sequence[StreamRow]) -> None:
    """New ones."""
    bulk_insert(
        connection,
        STREAMS_TABLE,
        [(e.id, e.key, e.width, None if e.names is None else json.dumps(e.names), e.created) for e in entries],
    )


def read_streams(connection: Connection) -> list[StreamRow]:
    """All there are."""
    return [
        StreamRow(
            row.id, row.key, row.width, None if row.variables is None else tuple(json.loads(row.variables)), row.created
        )
        for row in connection.execute(select(STREAMS_TABLE).order_by(STREAMS_TABLE.c.id))
    ]


def delete_stream(connection: Connection, stream_id: int) -> None:
    """A stream with all that is kept of it."""
    tables: list[tuple[Any, Any]] = [
        (BLOCKS_TABLE, BLOCKS_TABLE.c.stream),
        (BUCKETS_TABLE, BUCKETS_TABLE.c.stream),
        (ALARMS_TABLE, ALARMS_TABLE.c.stream),
    ]
    for table, column in tables:
        connection.execute(table.delete().where(column == stream_id))
    connection.execute(STREAMS_TABLE.delete().where(STREAMS_TABLE.c.id == stream_id))
