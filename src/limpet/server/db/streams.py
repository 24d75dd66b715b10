"""Store the streams: key, number of variables and their names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select

from limpet.server.db.engine import bulk_insert
from limpet.server.db.schema import ALARMS_TABLE, BLOCKS_TABLE, BUCKETS_TABLE, STREAMS_TABLE

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
