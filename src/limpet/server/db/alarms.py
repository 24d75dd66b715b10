"""Alarms: raised once, acknowledged and noted by people."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, case, func, select

from limpet.server.db.blocks import to_api_time
from limpet.server.db.engine import bulk_insert
from limpet.server.db.schema import ALARMS_TABLE, STREAMS_TABLE


def write_alarms(connection: Connection, alarms: Sequence[dict[str, Any]], stream_ids: Sequence[int]) -> None:
    """New ones, as the API tells them, of the streams of these numbers."""
    names = [column.name for column in ALARMS_TABLE.columns]
    rows = []
    for alarm, stream_id in zip(alarms, stream_ids, strict=True):
        record = {**alarm, "stream": stream_id, "variables": json.dumps(alarm["variables"]), "time": str(alarm["time"])}
        rows.append(tuple(record[name] for name in names))
    bulk_insert(connection, ALARMS_TABLE, rows)


def find_alarms(
    connection: Connection, *, stream_id: int | None, is_open: bool | None, before: int | None, limit: int
) -> tuple[int, list[dict[str, Any]]]:
    """How many there are of these, and the newest of them."""
    conditions: list[ColumnElement[bool]] = []
    if stream_id is not None:
        conditions.append(ALARMS_TABLE.c.stream == stream_id)
    if is_open is not None:
        conditions.append(
            ALARMS_TABLE.c.acknowledged_at.is_(None) if is_open else ALARMS_TABLE.c.acknowledged_at.is_not(None)
        )
    total = connection.execute(select(func.count()).select_from(ALARMS_TABLE).where(*conditions)).scalar_one()
    if before is not None:
        conditions.append(ALARMS_TABLE.c.id < before)
    result = connection.execute(_select_with_keys().where(*conditions).order_by(ALARMS_TABLE.c.id.desc()).limit(limit))
    return total, [row_to_api(row) for row in result]


def read_alarms_between(connection: Connection, stream_id: int, first: int, last: int) -> list[dict[str, Any]]:
    """Those that rows of a stream raised, both ends included."""
    query = (
        _select_with_keys()
        .where(ALARMS_TABLE.c.stream == stream_id, ALARMS_TABLE.c.row.between(first, last))
        .order_by(ALARMS_TABLE.c.id)
    )
    return [row_to_api(row) for row in connection.execute(query)]


def get_alarm(connection: Connection, alarm_id: int) -> dict[str, Any] | None:
    """One of them."""
    result = connection.execute(_select_with_keys().where(ALARMS_TABLE.c.id == alarm_id)).first()
    return None if result is None else row_to_api(result)


def update_alarm(connection: Connection, alarm_id: int, acknowledged: bool | None, note: str | None) -> None:
    """Acknowledges it, or takes that back, and notes something; None leaves either as it is. The first time stands."""
    statement = ALARMS_TABLE.update().where(ALARMS_TABLE.c.id == alarm_id)
    if acknowledged:
        connection.execute(
            statement.where(ALARMS_TABLE.c.acknowledged_at.is_(None)).values(acknowledged_at=clock.time())
        )
    elif acknowledged is not None:
        connection.execute(statement.values(acknowledged_at=None))
    if note is not None:
        connection.execute(statement.values(note=note))


def acknowledge_all(connection: Connection, stream_id: int | None) -> list[int]:
    """All that are open, of one stream or of all; their numbers."""
    conditions: list[ColumnElement[bool]] = [ALARMS_TABLE.c.acknowledged_at.is_(None)]
    if stream_id is not None:
        conditions.append(ALARMS_TABLE.c.stream == stream_id)
    alarm_ids = list(connection.execute(select(ALARMS_TABLE.c.id).where(*conditions)).scalars())
    connection.execute(ALARMS_TABLE.update().where(*conditions).values(acknowledged_at=clock.time()))
    return alarm_ids


def count_alarms(connection: Connection) -> list[tuple[int, int, int, int, int | None]]:
    """Of each stream with alarms: its number, how many there are, how many are open, the newest and the newest open."""
    open_count = func.count() - func.count(ALARMS_TABLE.c.acknowledged_at)  # which does not count what is NULL
    newest_open = func.max(case((ALARMS_TABLE.c.acknowledged_at.is_(None), ALARMS_TABLE.c.id)))
    query = select(ALARMS_TABLE.c.stream, func.count(), open_count, func.max(ALARMS_TABLE.c.id), newest_open)
    result = connection.execute(query.group_by(ALARMS_TABLE.c.stream))
    return [(stream_id, n, n_open, newest, newest_open) for stream_id, n, n_open, newest, newest_open in result]


def max_alarm_id(connection: Connection) -> int:
    """The largest number so far."""
    return connection.execute(select(func.max(ALARMS_TABLE.c.id))).scalar() or 0


def row_to_api(row: Row[Any]) -> dict[str, Any]:
    """An alarm as the API tells it."""
    record = {str(name): value for name, value in row._mapping.items()}  # else names are not quite texts
    record["stream"] = record.pop("key")
    record["variables"] = orjson.loads(record["variables"])
    record["time"] = to_api_time(record["time"])
    return record


def _select_with_keys() -> Select[Any]:
    columns = [column for column in ALARMS_TABLE.columns if column.name != "stream"]
    return select(*columns, STREAMS_TABLE.c.key).join_from(
        ALARMS_TABLE, STREAMS_TABLE, ALARMS_TABLE.c.stream == STREAMS_TABLE.c.id
    )
