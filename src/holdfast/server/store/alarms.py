"""Alarms: raised once, acknowledged and noted by people."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, case, func, select

from holdfast.server.store.blocks import as_time
from holdfast.server.store.many import insert_many
from holdfast.server.store.tables import ALARMS, STREAMS


def write_alarms(connection: Connection, alarms: Sequence[dict[str, Any]], numbers: Sequence[int]) -> None:
    """New ones, as the API tells them, of the streams of these numbers."""
    names = [column.name for column in ALARMS.columns]
    rows = []
    for alarm, number in zip(alarms, numbers, strict=True):
        kept = {**alarm, "stream": number, "variables": json.dumps(alarm["variables"]), "time": str(alarm["time"])}
        rows.append(tuple(kept[name] for name in names))
    insert_many(connection, ALARMS, rows)


def find_alarms(
    connection: Connection, *, stream: int | None, is_open: bool | None, before: int | None, limit: int
) -> tuple[int, list[dict[str, Any]]]:
    """How many there are of these, and the newest of them."""
    wanted: list[ColumnElement[bool]] = []
    if stream is not None:
        wanted.append(ALARMS.c.stream == stream)
    if is_open is not None:
        wanted.append(ALARMS.c.acknowledged_at.is_(None) if is_open else ALARMS.c.acknowledged_at.is_not(None))
    total = connection.execute(select(func.count()).select_from(ALARMS).where(*wanted)).scalar_one()
    if before is not None:
        wanted.append(ALARMS.c.id < before)
    found = connection.execute(_with_keys().where(*wanted).order_by(ALARMS.c.id.desc()).limit(limit))
    return total, [as_told(row) for row in found]


def alarms_between(connection: Connection, stream: int, first: int, last: int) -> list[dict[str, Any]]:
    """Those that rows of a stream raised, both ends included."""
    chosen = _with_keys().where(ALARMS.c.stream == stream, ALARMS.c.row.between(first, last)).order_by(ALARMS.c.id)
    return [as_told(row) for row in connection.execute(chosen)]


def alarm_of(connection: Connection, number: int) -> dict[str, Any] | None:
    """One of them."""
    found = connection.execute(_with_keys().where(ALARMS.c.id == number)).first()
    return None if found is None else as_told(found)


def change_alarm(connection: Connection, number: int, acknowledged: bool | None, note: str | None) -> None:
    """Acknowledges it, or takes that back, and notes something; None leaves either as it is. The first time stands."""
    mine = ALARMS.update().where(ALARMS.c.id == number)
    if acknowledged:
        connection.execute(mine.where(ALARMS.c.acknowledged_at.is_(None)).values(acknowledged_at=clock.time()))
    elif acknowledged is not None:
        connection.execute(mine.values(acknowledged_at=None))
    if note is not None:
        connection.execute(mine.values(note=note))


def acknowledge_all(connection: Connection, stream: int | None) -> list[int]:
    """All that are open, of one stream or of all; their numbers."""
    wanted: list[ColumnElement[bool]] = [ALARMS.c.acknowledged_at.is_(None)]
    if stream is not None:
        wanted.append(ALARMS.c.stream == stream)
    numbers = list(connection.execute(select(ALARMS.c.id).where(*wanted)).scalars())
    connection.execute(ALARMS.update().where(*wanted).values(acknowledged_at=clock.time()))
    return numbers


def counts(connection: Connection) -> list[tuple[int, int, int, int, int | None]]:
    """Of each stream with alarms: its number, how many there are, how many are open, the newest and the newest open."""
    open_ones = func.count() - func.count(ALARMS.c.acknowledged_at)  # which does not count what is NULL
    newest_open = func.max(case((ALARMS.c.acknowledged_at.is_(None), ALARMS.c.id)))
    chosen = select(ALARMS.c.stream, func.count(), open_ones, func.max(ALARMS.c.id), newest_open)
    found = connection.execute(chosen.group_by(ALARMS.c.stream))
    return [(stream, n, n_open, newest, newest_open) for stream, n, n_open, newest, newest_open in found]


def newest_number(connection: Connection) -> int:
    """The largest number so far."""
    return connection.execute(select(func.max(ALARMS.c.id))).scalar() or 0


def as_told(row: Row[Any]) -> dict[str, Any]:
    """An alarm as the API tells it."""
    told = {str(name): value for name, value in row._mapping.items()}  # else names are not quite texts
    told["stream"] = told.pop("key")
    told["variables"] = orjson.loads(told["variables"])
    told["time"] = as_time(told["time"])
    return told


def _with_keys() -> Select[Any]:
    own = [column for column in ALARMS.columns if column.name != "stream"]
    return select(*own, STREAMS.c.key).join_from(ALARMS, STREAMS, ALARMS.c.stream == STREAMS.c.id)
