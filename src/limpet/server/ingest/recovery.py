"""Restore the state from the database: load the last checkpoint and replay the points after it.

The state of a stream does not depend on how its points were split into calls, to the last bit, so that the restored
state equals the lost one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from limpet.server.db import alarms
from limpet.server.db.checkpoints import read_checkpoint
from limpet.server.db.points import TIME_GIVEN_BIT, PointBlock, read_first_rows, read_latest_points, to_api_time
from limpet.server.db.streams import read_streams
from limpet.server.ingest.model_pool import ModelPool
from limpet.server.ingest.stream_registry import SPARKLINE_POINTS, StreamInfo, StreamRegistry, summarize_alarm
from limpet.streams.event_time import EventTime, StreamClock
from limpet.streams.timestamps import parse_iso_ns


@dataclass(frozen=True)
class Recovered:
    """The id of the last checkpoint (−1 without one), its rows by stream id, and the number of replayed points."""

    checkpoint_id: int
    checkpointed_rows: dict[int, int]
    n_replayed: int


def recover(connection: Connection, models: ModelPool, registry: StreamRegistry) -> Recovered:
    """Replace the contents of models and registry by the state in the database, which is only read."""
    stored = read_checkpoint(connection)
    checkpoint_id, bodies, pairs = (-1, {}, ()) if stored is None else stored
    checkpointed_rows = {int(stream_id): int(rows) for stream_id, rows in pairs}
    models.restore(bodies)
    registry.clear()
    widths = {}
    for entry in read_streams(connection):
        registry.add(entry)
        widths[entry.id] = entry.width
    for stream_id in [stream_id for stream_id in models.counts() if stream_id not in widths]:
        models.drop(stream_id)  # deleted after the checkpoint
    for stream_id, block in read_latest_points(connection, SPARKLINE_POINTS):
        _restore_latest(registry.get_by_id(stream_id), block)
    for stream_id, first in read_first_rows(connection).items():
        stream = registry.get_by_id(stream_id)
        stream.first_row = stream.merged_until = first
    n_replayed = 0
    for stream in registry.iter_streams():
        stream_id = stream.entry.id
        n_checkpointed = checkpointed_rows.get(stream_id, 0)
        if stream.n_points > n_checkpointed:
            n_replayed += models.replay(connection, stream_id, stream.entry.width, n_checkpointed - 1)
    for stream_id, (_, n_rejected) in models.counts().items():
        registry.get_by_id(stream_id).n_rejected = n_rejected
    for stream_id, n, n_open, *newest in alarms.count_alarms(connection):
        stream = registry.get_by_id(stream_id)
        stream.n_alarms, stream.open_alarms = n, n_open
        newest_alarms = [None if alarm_id is None else alarms.get_alarm(connection, alarm_id) for alarm_id in newest]
        stream.newest_alarm, stream.open_alarm = (
            None if alarm is None else summarize_alarm(alarm) for alarm in newest_alarms
        )
    registry.n_points = sum(stream.n_points for stream in registry.iter_streams())
    registry.touch(registry.iter_streams())
    return Recovered(checkpoint_id, {n: rows for n, rows in checkpointed_rows.items() if n in widths}, n_replayed)


def _restore_latest(stream: StreamInfo, block: PointBlock) -> None:
    """Restore the latest points of a stream and its clock."""
    stream.add_block(block)
    stream.last_seen = _to_unix_seconds(block.times[-1])
    timed = np.flatnonzero(block.outcomes & TIME_GIVEN_BIT)
    if len(timed):
        stream.clock = StreamClock(_parse_event_time(block.times[timed[-1]]), block.values[timed[-1]].tolist())


def _parse_event_time(text: str) -> EventTime | None:
    time = to_api_time(text)
    return parse_iso_ns(time) if isinstance(time, str) else float(time)


def _to_unix_seconds(text: str) -> float | None:
    """Return seconds since 1970 of a date, None for a number."""
    event_time = _parse_event_time(text)
    return event_time / 1e9 if isinstance(event_time, int) else None
