"""Store alarms with their acknowledgements and notes."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, case, func, select

from limpet.detection.alarm import ALARM_FIELDS
from limpet.server.db.engine import bulk_insert
from limpet.server.db.schema import ALARMS_TABLE, STREAMS_TABLE

IS_OPEN = ALARMS_TABLE.c.acknowledged_at.is_(None)


def write_alarms(connection: Connection, alarms: Sequence[tuple[int, dict[str, Any]]]) -> None:
    """Insert new alarms, given as pairs of stream id and alarm as the API has it."""
    rows = []
    for stream_id, alarm in alarms:
        record = orjson.dumps({name: alarm[name] for name in ALARM_FIELDS}).decode()
        rows.append((alarm["id"], stream_id, alarm["row"], record, alarm["raised_at"], None, ""))
    bulk_insert(connection, ALARMS_TABLE, rows)


def find_alarms(
    connection: Connection, *, stream_id: int | None, is_open: bool | None, before: int | None, limit: int
) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of matching alarms, and the newest in the form of the API.

    None matches any alarm. Alarms from the id `before` on are counted, but not returned.
    """
    conditions = _match(stream_id, is_open)
    total = connection.execute(select(func.count()).select_from(ALARMS_TABLE).where(*conditions)).scalar_one()
    if before is not None:
        conditions.append(ALARMS_TABLE.c.id < before)
    result = connection.execute(_select_alarms(*conditions).order_by(ALARMS_TABLE.c.id.desc()).limit(limit))
    return total, [_row_to_api(row) for row in result]


def read_alarms_between(connection: Connection, stream_id: int, first: int, last: int) -> list[dict[str, Any]]:
    """Return the alarms that rows of a stream raised, both ends included."""
    query = _select_alarms(ALARMS_TABLE.c.stream == stream_id, ALARMS_TABLE.c.row.between(first, last))
    return [_row_to_api(row) for row in connection.execute(query.order_by(ALARMS_TABLE.c.id))]


def get_alarm(connection: Connection, alarm_id: int) -> dict[str, Any] | None:
    """Return an alarm as the API has it, None if it does not exist."""
    row = connection.execute(_select_alarms(ALARMS_TABLE.c.id == alarm_id)).first()
    return None if row is None else _row_to_api(row)


def update_alarm(connection: Connection, alarm_id: int, acknowledged: bool | None, note: str | None) -> None:
    """Acknowledge or reopen an alarm and set its note; None leaves either unchanged.

    An acknowledged alarm keeps the time of its first acknowledgement.
    """
    statement = ALARMS_TABLE.update().where(ALARMS_TABLE.c.id == alarm_id)
    if acknowledged:
        connection.execute(statement.where(IS_OPEN).values(acknowledged_at=clock.time()))
    elif acknowledged is not None:
        connection.execute(statement.values(acknowledged_at=None))
    if note is not None:
        connection.execute(statement.values(note=note))


def acknowledge_all(connection: Connection, stream_id: int | None) -> int:
    """Acknowledge all open alarms, of one stream or of all; return their number."""
    statement = ALARMS_TABLE.update().where(*_match(stream_id, is_open=True))
    return connection.execute(statement.values(acknowledged_at=clock.time())).rowcount


def count_alarms(connection: Connection) -> list[tuple[int, int, int, int, int | None]]:
    """Return (id, alarms, open, newest id, newest open id) of streams with alarms."""
    open_count = func.count() - func.count(ALARMS_TABLE.c.acknowledged_at)  # the latter does not count NULL
    newest, newest_open = func.max(ALARMS_TABLE.c.id), func.max(case((IS_OPEN, ALARMS_TABLE.c.id)))
    query = select(ALARMS_TABLE.c.stream, func.count(), open_count, newest, newest_open)
    return [(*row,) for row in connection.execute(query.group_by(ALARMS_TABLE.c.stream))]


def max_alarm_id(connection: Connection) -> int:
    """Return the largest id of an alarm, 0 without any."""
    return connection.execute(select(func.max(ALARMS_TABLE.c.id))).scalar() or 0


def _row_to_api(row: Row[Any]) -> dict[str, Any]:
    status = {"raised_at": row.raised_at, "acknowledged_at": row.acknowledged_at, "note": row.note}
    return {"id": row.id, **orjson.loads(row.record), **status}


def _match(stream_id: int | None, is_open: bool | None) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [] if stream_id is None else [ALARMS_TABLE.c.stream == stream_id]
    return conditions if is_open is None else [*conditions, IS_OPEN if is_open else ~IS_OPEN]


def _select_alarms(*conditions: ColumnElement[bool]) -> Select[Any]:
    """Select alarms of streams that exist."""
    is_of_stream = ALARMS_TABLE.c.stream == STREAMS_TABLE.c.id
    return select(ALARMS_TABLE).join_from(ALARMS_TABLE, STREAMS_TABLE, is_of_stream).where(*conditions)
