"""Alarms: the list, and what people say of them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import Response

from holdfast.server.api import schemas
from holdfast.server.api.answers import answer
from holdfast.server.errors import Refused
from holdfast.server.live.board import in_short
from holdfast.server.live.watching import Watching, watching
from holdfast.server.store import alarms as store

router = APIRouter(tags=["alarms"])
Live = Annotated[Watching, Depends(watching)]
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": schemas.Error}}
Number = Annotated[int, Path(ge=0, le=2**53)]


@router.get("/alarms", response_model=schemas.Alarms, responses=NOT_FOUND)
def list_alarms(
    live: Live,
    open: Annotated[bool | None, Query(description="Only those not acknowledged, or only the others.")] = None,
    stream: Annotated[str | None, Query(max_length=200, description="The key of a stream.")] = None,
    limit: Annotated[int, Query(ge=0, le=10_000)] = 100,
    before: Annotated[int | None, Query(ge=0, le=2**53, description="Only those with smaller ids.")] = None,
) -> Response:
    """Alarms, the newest first."""
    number = None if stream is None else live.known(stream).entry.number
    with live.store.reading() as connection:
        total, found = store.find_alarms(connection, stream=number, is_open=open, before=before, limit=limit)
    return answer({"total": total, "alarms": found})


@router.patch("/alarms/{id}", response_model=schemas.Alarm, responses=NOT_FOUND)
async def change_alarm(live: Live, id: Number, change: schemas.Change) -> Response:
    """Acknowledges an alarm, or takes that back, and notes something about it."""
    if change.note is not None and not _can_be_kept(change.note):
        raise Refused("invalid", "note: a text without NUL and halves of characters")
    changed = await live.do(lambda: _change(live, id, change))
    live.hub.notify(live.known(changed["stream"]).entry.number, {"event": "alarm_changed", "data": changed})
    return answer(changed)


@router.post("/alarms/acknowledge", responses=NOT_FOUND)
async def acknowledge_all(live: Live, which: schemas.Which) -> Response:
    """Acknowledges all open alarms, of one stream or of all."""
    known = None if which.stream is None else live.known(which.stream)
    number = None if known is None else known.entry.number
    n = await live.do(lambda: _acknowledge_all(live, number))
    live.hub.notify(number, {"event": "alarms_changed", "data": {}})
    return answer({"acknowledged": n})


def _change(live: Watching, number: int, change: schemas.Change) -> dict[str, Any]:
    board = live.desk.board
    with live.store.writing() as connection:
        before = store.alarm_of(connection, number)
        if before is None:
            raise Refused("unknown_alarm", f"there is no alarm {number}")
        store.change_alarm(connection, number, change.acknowledged, change.note)
        after = store.alarm_of(connection, number)
        assert after is not None
        known = live.known(after["stream"])
        _, still_open = store.find_alarms(connection, stream=known.entry.number, is_open=True, before=None, limit=1)
    with board.lock:
        known.open_alarm = in_short(still_open[0]) if still_open else None
        known.open_alarms += (after["acknowledged_at"] is None) - (before["acknowledged_at"] is None)
        board.note([known])
        board.reorder()
    return after


def _acknowledge_all(live: Watching, number: int | None) -> int:
    board = live.desk.board
    with live.store.writing() as connection:
        numbers = store.acknowledge_all(connection, number)
    with board.lock:
        changed = [known for known in board.all() if known.open_alarms and number in (None, known.entry.number)]
        for known in changed:
            known.open_alarms = 0
        board.note(changed)
        board.reorder()
    return len(numbers)


def _can_be_kept(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
