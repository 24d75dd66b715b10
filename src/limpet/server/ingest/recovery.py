"""Everything as the store has it: states from the last checkpoint, and what has come since learnt again.

A stream learns the same however it is cut into calls, to the last bit, so what is relearnt is what was lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from limpet.server.db import alarms
from limpet.server.db.blocks import TIME_GIVEN_BIT, PointBlock, to_api_time
from limpet.server.db.checkpoints import read_checkpoint
from limpet.server.db.points import read_first_rows, read_latest_points
from limpet.server.db.streams import read_streams
from limpet.server.ingest.event_time import EventTime, EventTimeFilter
from limpet.server.ingest.model_pool import ModelPool
from limpet.server.ingest.stream_registry import SPARKLINE_POINTS, StreamInfo, StreamRegistry, summarize_alarm
from limpet.streams.timestamps import parse_iso_ns


@dataclass(frozen=True)
class Recovered:
    """checkpoint: the number of the last one, −1 if there is none. learnt: rows of each stream that are in it."""

    checkpoint_id: int
    checkpointed_rows: dict[int, int]
    n_replayed: int


def recover(connection: Connection, models: ModelPool, registry: StreamRegistry) -> Recovered:
    """Fills fleets and board with what the store has. Only reads: a disk that is full does not keep it from that."""
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
        models.drop(stream_id)  # it was deleted after the checkpoint
    for stream_id, block in read_latest_points(connection, SPARKLINE_POINTS):
        _restore_latest(registry.get_by_id(stream_id), block)
    for stream_id, first in read_first_rows(connection).items():
        stream = registry.get_by_id(stream_id)
        stream.first_row = stream.packed_until = first
    n_replayed = 0
    for stream in registry.iter_streams():
        stream_id = stream.entry.id
        if stream.n_points > checkpointed_rows.get(stream_id, 0):
            n_replayed += models.replay(
                connection, stream_id, stream.entry.width, checkpointed_rows.get(stream_id, 0) - 1
            )
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
    """The last points of a stream, as they are shown, and its clock."""
    stream.add_block(block)
    stream.last_seen = _to_unix_seconds(block.times[-1])
    timed = np.flatnonzero(block.outcomes & TIME_GIVEN_BIT)
    if len(timed):
        stream.time_filter = EventTimeFilter(
            _parse_event_time(block.times[timed[-1]]), block.values[timed[-1]].tolist()
        )


def _parse_event_time(text: str) -> EventTime | None:
    time = to_api_time(text)
    return parse_iso_ns(time) if isinstance(time, str) else float(time)


def _to_unix_seconds(text: str) -> float | None:
    """Since 1970, of a date; of other times that cannot be told."""
    event_time = _parse_event_time(text)
    return event_time / 1e9 if isinstance(event_time, int) else None
