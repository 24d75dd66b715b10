"""Server-sent events: send what is new, and resume after a lost connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import uuid4

import orjson
from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from limpet.server.db.alarms import read_alarms_between
from limpet.server.db.points import read_points_after
from limpet.server.ingest.stream_state import StreamInfo
from limpet.server.monitor import Listener, Monitor, MonitorDep

router = APIRouter(tags=["events"])
PROCESS_EPOCH = uuid4().hex[:8]  # sequence numbers of another process are not comparable
MIN_EVENT_INTERVAL_S = 0.2
HEARTBEAT_INTERVAL_S = 15.0  # without events, after which a comment is sent
EVENT_CHUNK_ROWS = 5000
MAX_EVENT_STREAMS = 500
SSE_RETRY = "retry: 1000\n\n"  # milliseconds until a client reconnects
SSE_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
EVENT_STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}}}
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=100)]


class EventStream(StreamingResponse):
    """A response of server-sent events."""

    media_type = "text/event-stream"


@router.get("/events", response_class=EventStream, responses=EVENT_STREAM_RESPONSES)
async def subscribe_all(monitor: MonitorDep, last_event_id: LastEventId = None) -> EventStream:
    """Send summaries of changed streams, as "streams" events, a few per second."""
    monitor.notifier.check_capacity()
    epoch, _, seq = (last_event_id or "").partition("-")
    since = monitor.processor.registry.seq
    if last_event_id:
        since = int(seq) if epoch == PROCESS_EPOCH and seq.isdecimal() else 0
    return EventStream(_summary_events(monitor, since), headers=SSE_HEADERS)


@router.get("/streams/{key:path}/events", response_class=EventStream, responses=EVENT_STREAM_RESPONSES)
async def subscribe_stream(
    monitor: MonitorDep,
    key: str,
    after: Annotated[int | None, Query(ge=-1, le=2**53, description="The last row that the client has.")] = None,
    last_event_id: LastEventId = None,
) -> EventStream:
    """Send new points of a stream, as events "points" whose id is their last row.

    With `Last-Event-ID`, which browsers send automatically, or `after`, the stream resumes after that row, without gaps
    or duplicates. An event "alarm_changed" has an alarm that was acknowledged or noted; "alarms_changed": several have
    changed; "reset": the stream was created again, rows start from 0; "deleted": the stream was deleted.
    """
    stream = monitor.get_stream(key)
    monitor.notifier.check_capacity()
    if last_event_id is not None and last_event_id.isdecimal():
        after = int(last_event_id)
    after = stream.n_points - 1 if after is None else after
    return EventStream(_point_events(monitor, stream, after), headers=SSE_HEADERS)


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
            if comment := await _wait_for_event(listener, started):
                yield comment


async def _point_events(monitor: Monitor, stream: StreamInfo | None, after: int) -> AsyncIterator[bytes]:
    assert stream is not None
    stream_id = stream.entry.id
    with monitor.notifier.subscribe(stream_id) as listener:
        yield SSE_RETRY.encode()
        if after >= stream.n_points:  # the stream was deleted and created again
            yield _format_event("reset", {})
            after = -1
        while not monitor.notifier.closed:
            started = time.monotonic()
            for notice in listener.take_notices():
                yield _format_event(notice["event"], notice["data"])
            stream = monitor.processor.registry.by_id.get(stream_id)  # another object after a recovery
            if stream is None:
                return
            if stream.n_points > after + 1:
                payload = await run_in_threadpool(_read_new_points, monitor, stream, after)
                if payload["rows"]:
                    after = payload["rows"][-1]
                    yield _format_event("points", payload, str(after))
                    if stream.n_points > after + 1:
                        continue
            if comment := await _wait_for_event(listener, started):
                yield comment


def _read_new_points(monitor: Monitor, stream: StreamInfo, after: int) -> dict[str, Any]:
    with monitor.store.read_connection() as connection:
        payload = read_points_after(connection, stream.entry.id, after, EVENT_CHUNK_ROWS, stream.entry.width).to_api()
        rows = payload["rows"]
        payload["alarms"] = read_alarms_between(connection, stream.entry.id, rows[0], rows[-1]) if rows else []
    return payload


async def _wait_for_event(listener: Listener, started: float) -> bytes:
    """Wait for an event, then until it is due; return a comment after a long silence."""
    if not await listener.wait(HEARTBEAT_INTERVAL_S):
        return b": heartbeat\n\n"
    await asyncio.sleep(max(0.0, MIN_EVENT_INTERVAL_S - (time.monotonic() - started)))
    return b""


def _format_event(name: str, data: Any, event_id: str | None = None) -> bytes:
    id_line = "" if event_id is None else f"id: {event_id}\n"
    return f"{id_line}event: {name}\ndata: ".encode() + orjson.dumps(data) + b"\n\n"
