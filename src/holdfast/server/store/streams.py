"""Streams: their keys, how many variables they have, and what these are called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from holdfast.server.store.many import insert_many
from holdfast.server.store.tables import ALARMS, CONDENSED, POINTS, STREAMS

Names = tuple[str, ...] | None


class Entry(NamedTuple):
    """A stream as it is kept."""

    number: int
    key: str
    width: int
    names: Names
    created: float


def add_streams(connection: Connection, entries: Sequence[Entry]) -> None:
    """New ones."""
    insert_many(
        connection,
        STREAMS,
        [(e.number, e.key, e.width, None if e.names is None else json.dumps(e.names), e.created) for e in entries],
    )


def all_streams(connection: Connection) -> list[Entry]:
    """All there are."""
    return [
        Entry(
            row.id, row.key, row.width, None if row.variables is None else tuple(json.loads(row.variables)), row.created
        )
        for row in connection.execute(select(STREAMS).order_by(STREAMS.c.id))
    ]


def remove_stream(connection: Connection, number: int) -> None:
    """A stream with all that is kept of it."""
    tables: list[tuple[Any, Any]] = [
        (POINTS, POINTS.c.stream),
        (CONDENSED, CONDENSED.c.stream),
        (ALARMS, ALARMS.c.stream),
    ]
    for table, column in tables:
        connection.execute(table.delete().where(column == number))
    connection.execute(STREAMS.delete().where(STREAMS.c.id == number))
