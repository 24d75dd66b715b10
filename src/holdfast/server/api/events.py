"""Server-sent events: pages are told what is new, and go on where they were after a lost connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import uuid4

import orjson
from fastapi import APIRouter, Depends, Header, Query
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from holdfast.server.live.board import Known
from holdfast.server.live.hub import Listener
from holdfast.server.live.watching import Watching, watching
from holdfast.server.store.alarms import alarms_between
from holdfast.server.store.points import points_after

router = APIRouter(tags=["events"])
Live = Annotated[Watching, Depends(watching)]
EPOCH = uuid4().hex[:8]  # what was counted by another process means nothing here
APART = 0.2  # seconds between two events at least
SILENCE = 15.0  # seconds after which a comment shows that the line is there
AT_ONCE = 5000  # points of an event
STREAMS = 500  # of an event
AGAIN = "retry: 1000\n\n"  # milliseconds until a page that lost us comes again
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
DOCUMENTED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
LastId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=100)]


class EventStream(StreamingResponse):
    """An answer that goes on."""

    media_type = "text/event-stream"


@router.get("/events", response_class=EventStream, responses=DOCUMENTED)
async def events_of_all(live: Live, last_event_id: LastId = None) -> EventStream:
    """Which streams have changed: events "streams", with their summaries, at most a few a second."""
    live.hub.require_room()
    epoch, _, seq = (last_event_id or "").partition("-")
    since = int(seq) if epoch == EPOCH and seq.isdecimal() else 0 if last_event_id else live.desk.board.seq
    return EventStream(_list_events(live, since), headers=HEADERS)


@router.get("/streams/{key:path}/events", response_class=EventStream, responses=DOCUMENTED)
async def events_of_stream(
    live: Live,
    key: str,
    after: Annotated[int | None, Query(ge=-1, le=2**53, description="The last row that is known already.")] = None,
    last_event_id: LastId = None,
) -> EventStream:
    """New points of a stream: events "points", whose id is their last row.

    With `Last-Event-ID` (which browsers send by themselves), or `after`, it goes on after that row: nothing is left
    out, nothing comes twice. "alarm_changed" tells that somebody acknowledged or noted an alarm.
    """
    known = live.known(key)
    live.hub.require_room()
    if last_event_id is not None and last_event_id.isdecimal():
        after = int(last_event_id)
    return EventStream(_stream_events(live, known, known.n_points - 1 if after is None else after), headers=HEADERS)


async def _list_events(live: Watching, since: int) -> AsyncIterator[bytes]:
    board = live.desk.board
    with live.hub.listening() as listener:
        yield AGAIN.encode()
        while not live.hub.closed:
            began = time.monotonic()
            if board.seq > since:
                told = await run_in_threadpool(board.changed_since, since, STREAMS)
                since = told["seq"]
                yield _event("streams", told, f"{EPOCH}-{since}")
            if comment := await _pause(listener, began):
                yield comment


async def _stream_events(live: Watching, known: Known | None, after: int) -> AsyncIterator[bytes]:
    assert known is not None
    number = known.entry.number
    with live.hub.listening(number) as listener:
        yield AGAIN.encode()
        if after >= known.n_points:  # rows that this stream does not have: it is another one
            yield _event("reset", {})
            after = -1
        while not live.hub.closed:
            began = time.monotonic()
            for notice in listener.notices():
                yield _event(notice["event"], notice["data"])
            known = live.desk.board.find(number)  # another one, if all was read from the store again
            if known is None:
                return
            if known.n_points > after + 1:
                told = await run_in_threadpool(_points_after, live, known, after)
                if told["rows"]:
                    after = told["rows"][-1]
                    yield _event("points", told, str(after))
                    if known.n_points > after + 1:
                        continue  # there is more to catch up with
            if comment := await _pause(listener, began):
                yield comment


def _points_after(live: Watching, known: Known, after: int) -> dict[str, Any]:
    with live.store.reading() as connection:
        told = points_after(connection, known.entry.number, after, AT_ONCE, known.entry.width).told()
        rows = told["rows"]
        told["alarms"] = alarms_between(connection, known.entry.number, rows[0], rows[-1]) if rows else []
    return told


async def _pause(listener: Listener, began: float) -> bytes:
    """Waits for news, and until it is time for the next event; a comment if nothing has come for long."""
    if not await listener.wait(SILENCE):
        return b": still here\n\n"
    await asyncio.sleep(max(0.0, APART - (time.monotonic() - began)))
    return b""


def _event(name: str, data: Any, identity: str | None = None) -> bytes:
    first = "" if identity is None else f"id: {identity}\n"
    return f"{first}event: {name}\ndata: ".encode() + orjson.dumps(data) + b"\n\n"
