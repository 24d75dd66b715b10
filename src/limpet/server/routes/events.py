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

from limpet.server.db.alarms import read_alarms_between
from limpet.server.db.points import read_points_after
from limpet.server.ingest.notifier import Listener
from limpet.server.ingest.stream_registry import StreamInfo
from limpet.server.monitor import Monitor, get_monitor

router = APIRouter(tags=["events"])
MonitorDep = Annotated[Monitor, Depends(get_monitor)]
PROCESS_EPOCH = uuid4().hex[:8]  # what was counted by another process means nothing here
MIN_EVENT_INTERVAL_S = 0.2  # seconds between two events at least
HEARTBEAT_INTERVAL_S = 15.0  # seconds after which a comment shows that the line is there
EVENT_CHUNK_ROWS = 5000  # points of an event
MAX_EVENT_STREAMS = 500  # of an event
SSE_RETRY = "retry: 1000\n\n"  # milliseconds until a page that lost us comes again
SSE_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
EVENT_STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=100)]


class EventStream(StreamingResponse):
    """An answer that goes on."""

    media_type = "text/event-stream"


@router.get("/events", response_class=EventStream, responses=EVENT_STREAM_RESPONSES)
async def subscribe_all(monitor: MonitorDep, last_event_id: LastEventId = None) -> EventStream:
    """Which streams have changed: events "streams", with their summaries, at most a few a second."""
    monitor.notifier.check_capacity()
    epoch, _, seq = (last_event_id or "").partition("-")
    since = (
        int(seq)
        if epoch == PROCESS_EPOCH and seq.isdecimal()
        else 0
        if last_event_id
        else monitor.processor.registry.seq
    )
    return EventStream(_summary_events(monitor, since), headers=SSE_HEADERS)


@router.get("/streams/{key:path}/events", response_class=EventStream, responses=EVENT_STREAM_RESPONSES)
async def subscribe_stream(
    monitor: MonitorDep,
    key: str,
    after: Annotated[int | None, Query(ge=-1, le=2**53, description="The last row that is known already.")] = None,
    last_event_id: LastEventId = None,
) -> EventStream:
    """New points of a stream: events "points", whose id is their last row.

    With `Last-Event-ID` (which browsers send by themselves), or `after`, it goes on after that row: nothing is left
    out, nothing comes twice. "alarm_changed" tells that somebody acknowledged or noted an alarm.
    """
    stream = monitor.get_stream(key)
    monitor.notifier.check_capacity()
    if last_event_id is not None and last_event_id.isdecimal():
        after = int(last_event_id)
    return EventStream(
        _point_events(monitor, stream, stream.n_points - 1 if after is None else after), headers=SSE_HEADERS
    )


async def _summary_events(monitor: Monitor, since: int) -> AsyncIterator[bytes]:
    registry = monitor.processor.registry
    with monitor.notifier.subscribe() as listener:
        yield SSE_RETRY.encode()
        while not monitor.notifier.closed:
            started = time.monotonic()
            if registry.seq > since:
                payload = await run_in_threadpool(registry.changed_since, since, MAX_EVENT_STREAMS)
                since = payload["seq"]
                yield _format_event("streams", payload, f"{PROCESS_EPOCH}-{since}")
            if comment := await _wait_for_news(listener, started):
                yield comment


async def _point_events(monitor: Monitor, stream: StreamInfo | None, after: int) -> AsyncIterator[bytes]:
    assert stream is not None
    stream_id = stream.entry.id
    with monitor.notifier.subscribe(stream_id) as listener:
        yield SSE_RETRY.encode()
        if after >= stream.n_points:  # rows that this stream does not have: it is another one
            yield _format_event("reset", {})
            after = -1
        while not monitor.notifier.closed:
            started = time.monotonic()
            for notice in listener.take_notices():
                yield _format_event(notice["event"], notice["data"])
            stream = monitor.processor.registry.find_by_id(
                stream_id
            )  # another one, if all was read from the store again
            if stream is None:
                return
            if stream.n_points > after + 1:
                payload = await run_in_threadpool(_read_new_points, monitor, stream, after)
                if payload["rows"]:
                    after = payload["rows"][-1]
                    yield _format_event("points", payload, str(after))
                    if stream.n_points > after + 1:
                        continue  # there is more to catch up with
            if comment := await _wait_for_news(listener, started):
                yield comment


def _read_new_points(monitor: Monitor, stream: StreamInfo, after: int) -> dict[str, Any]:
    with monitor.store.read_connection() as connection:
        payload = read_points_after(connection, stream.entry.id, after, EVENT_CHUNK_ROWS, stream.entry.width).to_api()
        rows = payload["rows"]
        payload["alarms"] = read_alarms_between(connection, stream.entry.id, rows[0], rows[-1]) if rows else []
    return payload


async def _wait_for_news(listener: Listener, started: float) -> bytes:
    """Waits for news, and until it is time for the next event; a comment if nothing has come for long."""
    if not await listener.wait(HEARTBEAT_INTERVAL_S):
        return b": still here\n\n"
    await asyncio.sleep(max(0.0, MIN_EVENT_INTERVAL_S - (time.monotonic() - started)))
    return b""


def _format_event(name: str, data: Any, event_id: str | None = None) -> bytes:
    id_line = "" if event_id is None else f"id: {event_id}\n"
    return f"{id_line}event: {name}\ndata: ".encode() + orjson.dumps(data) + b"\n\n"
