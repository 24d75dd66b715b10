"""Process groups of requests: accept, learn, store points in one transaction."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError
from limpet.learners import SRA, Detector
from limpet.server.db import Store, points
from limpet.server.db.alarms import count_alarms, get_alarm, max_alarm_id, write_alarms
from limpet.server.db.checkpoints import CheckpointWriter, read_checkpoint
from limpet.server.db.engine import bulk_insert, set_meta
from limpet.server.db.points import TIME_GIVEN_BIT, PointBlock, StreamRow, VariableNames, to_api_time
from limpet.server.db.schema import IDEMPOTENCY_TABLE, SOURCE_POSITIONS_TABLE
from limpet.server.ingest.stream_state import (
    SPARKLINE_POINTS,
    AcceptedPoints,
    LearnerPool,
    StreamInfo,
    StreamRegistry,
    process_group_of_width,
    summarize_alarm,
)
from limpet.server.responses import ApiError
from limpet.server.schemas import MAX_KEY_CHARS
from limpet.streams.checkpoint_store import learner_config
from limpet.streams.event_time import LATE, EventTime, StreamClock
from limpet.streams.monitor_plan import warmup_points
from limpet.streams.timestamps import parse_iso_ns

log = logging.getLogger("limpet.server")
IDEMPOTENCY_TTL_S = 86_400.0
RESERVED_KEY_SUFFIXES = ("points", "history", "events")  # last parts of paths below /streams/{key}


@dataclass(eq=False)
class StreamPoints:
    """Points of one stream."""

    key: str
    values: Vector  # (n, d), NaN where one is missing
    names: VariableNames  # of the variables, if the points name them
    times: list[str | None]  # as they were sent, None for points without one
    event_times: list[EventTime | None]  # the same in comparable form

    def __len__(self) -> int:
        return len(self.values)


@dataclass(eq=False)
class IngestRequest:
    """Points to store and learn by stream, and the future of the response.

    The response is kept for retries under the idempotency key; the digest recognizes another body under the same key.
    """

    parts: list[StreamPoints]
    idempotency_key: str | None = None
    digest: str = ""
    source_position: tuple[str, Any] | None = None  # name and position of the source that the points come from
    future: Future[list[dict[str, Any]]] = field(default_factory=Future)
    failed_parts: list[tuple[StreamPoints, ApiError]] = field(default_factory=list)  # of a source

    @property
    def n_points(self) -> int:
        """The number of points of all parts."""
        return sum(map(len, self.parts))


def check_key(key: Any) -> str:
    """Return a stream's key; raise if it cannot be stored, shown and used in a path."""
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY_CHARS:
        raise ApiError("invalid_key", f"stream: must be a string of 1 to {MAX_KEY_CHARS} characters, got {key!r:.60}.")
    if any(ord(char) < 32 or 127 <= ord(char) < 160 or "\ud800" <= char <= "\udfff" for char in key):
        raise ApiError("invalid_key", f"stream: must have no control characters or lone surrogates, got {key!r:.60}.")
    if key != key.strip():
        raise ApiError("invalid_key", f"stream: must have no leading or trailing white space, got {key!r:.60}.")
    parts = key.split("/")
    if "." in parts or ".." in parts or "" in parts or (len(parts) > 1 and parts[-1] in RESERVED_KEY_SUFFIXES):
        constraint = "must have no empty parts, . or .. between slashes, and none of"
        reserved = f"{', '.join(RESERVED_KEY_SUFFIXES)} after the last slash"
        raise ApiError("invalid_key", f"stream: {constraint} {reserved}, got {key!r:.60}.")
    return key


class GroupProcessor:
    """State of all streams in memory and database, for the writer thread only."""

    def __init__(self, store: Store, learner: Detector | SRA, max_streams: int) -> None:
        self.store, self.max_streams = store, max_streams
        self.learners = LearnerPool(learner)
        self.registry = StreamRegistry(warmup_points(learner))
        self.checkpointed_rows: dict[int, int] = {}  # of each stream in the last checkpoint
        config, stored = learner_config(learner), store.get_meta("learner")
        for name, value in config.items():
            if stored is not None and (before := stored.get(name)) != value:
                message = f"the database was made with {before}, got {value}. Use the same value or another database."
                raise InvalidInputError(f"{name}: {message}")
        with store.write_transaction() as connection:
            set_meta(connection, "learner", config)
        self.recover()

    def recover(self) -> None:
        """Restore the state in memory at the start and after a failed transaction.

        Load the last checkpoint and replay the points after it. The state of a stream does not depend on how its points
        were split into calls, to the last bit, so that the restored state equals the lost one.
        """
        with self.store.read_connection() as connection, self.registry.lock:
            n_replayed = self._read_state(connection)
            self._next_alarm_id = max_alarm_id(connection) + 1
        self._next_alarm_id = max(self._next_alarm_id, int(self.store.get_meta("next_alarm_id") or 1))
        self._next_stream_id = int(self.store.get_meta("next_stream_id") or 1)
        if n_replayed:
            log.info("replayed %d points after the last checkpoint", n_replayed)

    def _read_state(self, connection: Connection) -> int:
        """Read learners and registry; return the number of points replayed."""
        learners, registry = self.learners, self.registry
        checkpoint_id, bodies, row_counts = read_checkpoint(connection)
        learners.restore(bodies)
        registry.clear()
        for entry in points.read_streams(connection):
            registry.add(entry)
        checkpointed_rows = {n: rows for n, rows in row_counts.tolist() if n in registry.by_id}
        for stream_id in learners.counts():
            if stream_id not in registry.by_id:  # deleted after the checkpoint
                learners.drop(stream_id)
        for stream_id, block in points.read_latest_points(connection, SPARKLINE_POINTS):
            _restore_latest(registry.by_id[stream_id], block)
        for stream_id, first_row in points.read_first_rows(connection).items():
            stream = registry.by_id[stream_id]
            stream.first_row = stream.merged_until = first_row
        streams, n_replayed = registry.streams(), 0
        for stream in streams:
            first_row = checkpointed_rows.get(stream.entry.id, 0)
            if stream.n_points > first_row:
                n_replayed += learners.replay(connection, stream.entry.id, stream.entry.width, first_row)
        for stream_id, (_, n_rejected) in learners.counts().items():
            registry.by_id[stream_id].n_rejected = n_rejected
        for stream_id, n_alarms, n_open, *newest_ids in count_alarms(connection):
            stream = registry.by_id[stream_id]
            stream.n_alarms, stream.open_alarms = n_alarms, n_open
            newest = (None if alarm_id is None else get_alarm(connection, alarm_id) for alarm_id in newest_ids)
            stream.newest_alarm, stream.open_alarm = (alarm and summarize_alarm(alarm) for alarm in newest)
        registry.n_points = sum(stream.n_points for stream in streams)
        registry.touch(streams, has_new_order=True)
        self._checkpoint_id, self.checkpointed_rows = checkpoint_id, checkpointed_rows
        return n_replayed

    def process_group(self, requests: Sequence[IngestRequest]) -> tuple[list[Any], set[int]]:
        """Learn and store the points of some requests, in order.

        Return for each request its response or the ApiError with which it failed, and the ids of streams with new
        points. If this raises, nothing of the group is stored, and `recover` must be called.
        """
        now = time.time()
        results: list[Any] = [None] * len(requests)
        accepted: dict[int, list[AcceptedPoints]] = {}
        index_by_key: dict[str, int] = {}
        with self.store.write_transaction() as connection, self.registry.lock:
            first_new_id = self._next_stream_id
            for index, request in enumerate(requests):
                key = request.idempotency_key
                try:
                    if key in index_by_key:
                        _check_same_request(request.digest, requests[index_by_key[key]].digest)
                        continue  # a concurrent retry: it gets the response to the first
                    results[index] = None if key is None else _find_stored_response(connection, key, request.digest)
                    if results[index] is None:
                        accepted[index] = self._accept(request)
                        index_by_key |= {} if key is None else {key: index}
                except ApiError as error:
                    results[index] = error
            if self._next_stream_id > first_new_id:
                new_ids = range(first_new_id, self._next_stream_id)
                points.add_streams(connection, [self.registry.by_id[stream_id].entry for stream_id in new_ids])
                set_meta(connection, "next_stream_id", self._next_stream_id)
            changed = self._learn(connection, [piece for pieces in accepted.values() for piece in pieces], now)
            for index, pieces in accepted.items():
                results[index] = [piece.to_api() for piece in pieces]
                _store_response(connection, requests[index], results[index], now)
        for index, request in enumerate(requests):
            if results[index] is None and request.idempotency_key is not None:
                results[index] = results[index_by_key[request.idempotency_key]]
        return results, changed

    def _accept(self, request: IngestRequest) -> list[AcceptedPoints]:
        """Accept all parts of a request or none; of a source, those that can be used."""
        if request.source_position is None:
            return self._accept_parts(request.parts)
        accepted: list[AcceptedPoints] = []
        for part in request.parts:
            try:
                accepted += self._accept_parts([part])
            except ApiError as error:
                request.failed_parts.append((part, error))
        return accepted

    def _accept_parts(self, parts: list[StreamPoints]) -> list[AcceptedPoints]:
        """Align points with streams, register new streams, skip late ones, duplicates."""
        aligned = [_align_values(part, self.registry.by_key.get(part.key)) for part in parts]
        n_new, n_streams = sum(part.key not in self.registry.by_key for part in parts), len(self.registry.by_key)
        if n_new and n_streams + n_new > self.max_streams:
            message = f"stream: must be one of at most {self.max_streams} streams, {n_streams} exist. Delete some."
            raise ApiError("too_many_streams", message)
        accepted = []
        for part, values in zip(parts, aligned, strict=True):
            stream, times = self.registry.by_key.get(part.key), part.times
            if stream is None:
                entry = StreamRow(self._next_stream_id, part.key, values.shape[1], part.names, time.time())
                stream = self.registry.add(entry)
                self._next_stream_id += 1
            index, skipped = _skip_late(stream, part, values)
            if len(index) < len(part):
                values, times = values[index], [times[row] for row in index]
            accepted.append(AcceptedPoints(stream, values, times, skipped))
        return accepted

    def _learn(self, connection: Connection, accepted: list[AcceptedPoints], now: float) -> set[int]:
        """Learn accepted points and store their results; return the ids of their streams."""
        accepted = [piece for piece in accepted if len(piece.values)]
        changed = {piece.stream.entry.id: piece.stream for piece in accepted}
        alarms: list[tuple[int, dict[str, Any]]] = []
        for width in sorted({stream.entry.width for stream in changed.values()}):
            pieces = [piece for piece in accepted if piece.stream.entry.width == width]
            next_alarm_id = self._next_alarm_id + len(alarms)
            blocks, new_alarms = process_group_of_width(self.learners, width, pieces, now, next_alarm_id)
            points.write_blocks(connection, blocks)
            alarms += new_alarms
        if alarms:
            write_alarms(connection, alarms)
            self._next_alarm_id += len(alarms)
        if changed:
            self.registry.touch(changed.values(), has_new_order=bool(alarms))
            self.registry.n_points += sum(len(piece.values) for piece in accepted)
        return set(changed)

    def delete_stream(self, key: str) -> int:
        """Delete a stream, its points, its alarms and its learner; return its id."""
        with self.registry.lock:
            stream = self.registry.require(key)
            stream_id = stream.entry.id
            with self.store.write_transaction() as connection:
                points.delete_stream(connection, stream_id)
                set_meta(connection, "next_alarm_id", self._next_alarm_id)  # ids are never reused
            self.learners.drop(stream_id)
            self.registry.remove(stream)
            self.checkpointed_rows.pop(stream_id, None)
        return stream_id

    def start_checkpoint(self) -> CheckpointWriter:
        """Return the writer of a checkpoint of the present state."""
        self._checkpoint_id += 1
        counts = self.learners.counts()
        row_counts = np.array([(stream_id, seen) for stream_id, (seen, _) in counts.items()], np.int64).reshape(-1, 2)
        return CheckpointWriter(self._checkpoint_id, self.learners.to_bytes(), row_counts)

    def finish_checkpoint(self, checkpoint: CheckpointWriter) -> None:
        """Record that a checkpoint is complete."""
        self.checkpointed_rows = dict(checkpoint.row_counts.tolist())

    def expire_idempotency_keys(self) -> None:
        """Delete stored responses that are older than a day."""
        with self.store.write_transaction() as connection:
            is_expired = IDEMPOTENCY_TABLE.c.created < time.time() - IDEMPOTENCY_TTL_S
            connection.execute(IDEMPOTENCY_TABLE.delete().where(is_expired))


def _restore_latest(stream: StreamInfo, block: PointBlock) -> None:
    stream.add_block(block)
    arrival = _to_event_time(block.times[-1])
    stream.last_seen = arrival / 1e9 if isinstance(arrival, int) else None
    timed = np.flatnonzero(block.outcomes & TIME_GIVEN_BIT)
    if len(timed):
        stream.clock = StreamClock(_to_event_time(block.times[timed[-1]]), block.values[timed[-1]].tolist())


def _to_event_time(text: str) -> EventTime | None:
    """Return a stored time as nanoseconds since 1970 or, for a number, as a float."""
    time = to_api_time(text)
    return parse_iso_ns(time) if isinstance(time, str) else float(time)


def _find_stored_response(connection: Connection, key: str, digest: str) -> list[dict[str, Any]] | None:
    row = connection.execute(select(IDEMPOTENCY_TABLE).where(IDEMPOTENCY_TABLE.c.key == key)).first()
    if row is None:
        return None
    _check_same_request(digest, row.digest)
    return json.loads(row.response)  # type: ignore[no-any-return]


def _store_response(connection: Connection, request: IngestRequest, response: list[dict[str, Any]], now: float) -> None:
    """Store the response under the idempotency key, and the position of the source."""
    if request.idempotency_key is not None:
        row = (request.idempotency_key, now, request.digest, json.dumps(response))
        bulk_insert(connection, IDEMPOTENCY_TABLE, [row])
    if request.source_position is not None:
        name, position = request.source_position
        connection.execute(SOURCE_POSITIONS_TABLE.delete().where(SOURCE_POSITIONS_TABLE.c.name == name))
        bulk_insert(connection, SOURCE_POSITIONS_TABLE, [(name, json.dumps(position))])


def _check_same_request(digest: str, stored_digest: str) -> None:
    if digest != stored_digest:
        raise ApiError("idempotency_conflict", "Idempotency-Key: already used by another request. Use a new key.")


def _align_values(part: StreamPoints, stream: StreamInfo | None) -> Vector:
    """Return the values in the order of the stream's variables."""
    if stream is None:
        return part.values
    _check_time_kind(part, stream)
    key, width, names = f"{part.key!r:.80}", stream.entry.width, stream.entry.names
    if part.names is not None:
        if names is None:
            message = f"values: the variables of {key} have no names. Send {width} values as a list."
            raise ApiError("unknown_variable", message)
        if unknown := [name for name in part.names if name not in names]:
            message = f"values: {key} has no variable {unknown[0]!r:.80}; it has {', '.join(names):.300}."
            raise ApiError("unknown_variable", message)
        values = np.full((len(part), width), np.nan)
        values[:, [names.index(name) for name in part.names]] = part.values
        return values
    if part.values.shape[1] != width:
        raise ApiError("dimension_mismatch", f"values: must be {width} per point of {key}, got {part.values.shape[1]}.")
    return part.values


def _check_time_kind(part: StreamPoints, stream: StreamInfo) -> None:
    """Raise if the times of a stream would be numbers and dates."""
    latest = stream.clock.latest
    event_time = next((time for time in part.event_times if time is not None), None)
    if latest is not None and event_time is not None and type(latest) is not type(event_time):
        kind, other = ("numbers", "dates") if isinstance(latest, float) else ("dates", "numbers")
        raise ApiError("invalid_time", f"time: must be {kind} as in earlier points of {part.key!r:.80}, got {other}.")


def _skip_late(stream: StreamInfo, part: StreamPoints, values: Vector) -> tuple[list[int], dict[str, int]]:
    """Return the indices of points to learn, and the number skipped by reason."""
    if part.event_times.count(None) == len(part):
        return list(range(len(part))), {"late": 0, "duplicate": 0}
    timed_points = zip(part.event_times, values.tolist(), strict=True)
    arrivals = [stream.clock.check(event_time, point) for event_time, point in timed_points]
    n_late = sum(arrival == LATE for arrival in arrivals)
    index = [row for row, arrival in enumerate(arrivals) if not arrival.is_skipped]
    return index, {"late": n_late, "duplicate": len(part) - len(index) - n_late}
