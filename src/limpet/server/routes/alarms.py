"""Endpoints of alarms: list, acknowledge, note."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from limpet.server import schemas
from limpet.server.db import alarms as store
from limpet.server.ingest.stream_state import summarize_alarm
from limpet.server.monitor import Monitor, MonitorDep
from limpet.server.responses import ApiError, json_response

router = APIRouter(tags=["alarms"])
NOT_FOUND_RESPONSE = schemas.document_errors(404)
AlarmId = Annotated[int, Path(ge=0, le=2**53)]


@router.get("/alarms", response_model=schemas.AlarmPage, responses=NOT_FOUND_RESPONSE)
def list_alarms(
    monitor: MonitorDep,
    open: Annotated[
        bool | None, Query(description="Only alarms that are not acknowledged, or only those that are.")
    ] = None,
    stream: Annotated[str | None, Query(max_length=schemas.MAX_KEY_CHARS, description="The key of a stream.")] = None,
    limit: Annotated[int, Query(ge=0, le=10_000)] = 100,
    before: Annotated[int | None, Query(ge=0, le=2**53, description="Only alarms with smaller ids.")] = None,
) -> Response:
    """List alarms, the newest first."""
    stream_id = None if stream is None else monitor.get_stream(stream).entry.id
    with monitor.store.read_connection() as connection:
        total, alarms = store.find_alarms(connection, stream_id=stream_id, is_open=open, before=before, limit=limit)
    return json_response({"total": total, "alarms": alarms})


@router.patch("/alarms/{id}", response_model=schemas.Alarm, responses=NOT_FOUND_RESPONSE)
async def change_alarm(monitor: MonitorDep, id: AlarmId, patch: schemas.AlarmPatch) -> Response:
    """Acknowledge or reopen an alarm, and set its note."""
    if any(char == "\x00" or "\ud800" <= char <= "\udfff" for char in patch.note or ""):
        raise ApiError("invalid", "note: must be a string without NUL and lone surrogates.")
    alarm = await monitor.run_on_writer(lambda: _apply_patch(monitor, id, patch))
    monitor.notifier.notify(monitor.get_stream(alarm["key"]).entry.id, {"event": "alarm_changed", "data": alarm})
    return json_response(alarm)


@router.post("/alarms/acknowledge", responses=NOT_FOUND_RESPONSE)
async def acknowledge_all(monitor: MonitorDep, selector: schemas.AlarmSelector) -> Response:
    """Acknowledge all open alarms, of one stream or of all."""
    stream = None if selector.stream is None else monitor.get_stream(selector.stream)
    stream_id = None if stream is None else stream.entry.id
    n = await monitor.run_on_writer(lambda: _acknowledge_all(monitor, stream_id))
    monitor.notifier.notify(stream_id, {"event": "alarms_changed", "data": {}})
    return json_response({"acknowledged": n})


def _apply_patch(monitor: Monitor, alarm_id: int, patch: schemas.AlarmPatch) -> dict[str, Any]:
    registry = monitor.processor.registry
    with monitor.store.write_transaction() as connection:
        before = store.get_alarm(connection, alarm_id)
        if before is None:
            raise ApiError("unknown_alarm", f"id: alarm {alarm_id} does not exist.")
        store.update_alarm(connection, alarm_id, patch.acknowledged, patch.note)
        after = store.get_alarm(connection, alarm_id)
        assert after is not None
        stream = monitor.get_stream(after["key"])
        _, still_open = store.find_alarms(connection, stream_id=stream.entry.id, is_open=True, before=None, limit=1)
    with registry.lock:
        stream.open_alarm = summarize_alarm(still_open[0]) if still_open else None
        stream.open_alarms += (after["acknowledged_at"] is None) - (before["acknowledged_at"] is None)
        registry.touch([stream], has_new_order=True)
    return after


def _acknowledge_all(monitor: Monitor, stream_id: int | None) -> int:
    registry = monitor.processor.registry
    with monitor.store.write_transaction() as connection:
        n = store.acknowledge_all(connection, stream_id)
    with registry.lock:
        selected = (stream for stream in registry.streams() if stream_id in (None, stream.entry.id))
        changed = [stream for stream in selected if stream.open_alarms]
        for stream in changed:
            stream.open_alarms = 0
        registry.touch(changed, has_new_order=True)
    return n
