"""Process groups of requests: accept the points, learn them, store the results in one transaction."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from limpet.core.state import Vector
from limpet.learners import SRA, Detector
from limpet.server.db import Store
from limpet.server.db.alarms import max_alarm_id, write_alarms
from limpet.server.db.checkpoints import CheckpointWriter
from limpet.server.db.engine import bulk_insert, set_meta
from limpet.server.db.points import write_blocks
from limpet.server.db.schema import IDEMPOTENCY_TABLE, SOURCE_POSITIONS_TABLE
from limpet.server.db.streams import StreamRow, add_streams, delete_stream
from limpet.server.errors import ApiError
from limpet.server.ingest.model_pool import AcceptedPoints, ModelPool, check_same_config, process_group_of_width
from limpet.server.ingest.parse import IngestRequest, StreamPoints
from limpet.server.ingest.recovery import recover
from limpet.server.ingest.stream_registry import StreamInfo, StreamRegistry
from limpet.streams.event_time import LATE
from limpet.streams.monitor_plan import warmup_points

log = logging.getLogger("limpet.server")
IDEMPOTENCY_TTL_S = 86_400.0


@dataclass(eq=False)
class GroupOutcome:
    """What a group changed: ids of streams with new points, and new alarms as the API has them."""

    streams: set[int] = field(default_factory=set)
    alarms: list[dict[str, Any]] = field(default_factory=list)


class GroupProcessor:
    """The state of all streams, in memory and in the database. Only the writer thread calls its methods.

    Parameters
    ----------
    store : Store
        The database.
    learner : Detector or SRA
        The learner whose configuration all streams have.
    max_streams : int
        The largest number of streams.
    """

    def __init__(self, store: Store, learner: Detector | SRA, max_streams: int) -> None:
        self.store, self.max_streams = store, max_streams
        self.models = ModelPool(learner)
        self.registry = StreamRegistry(warmup_points(learner))
        self.checkpointed_rows: dict[int, int] = {}
        """The number of rows of each stream in the last checkpoint."""
        config = check_same_config(learner, store.get_meta("learner"))
        with store.write_transaction() as connection:
            set_meta(connection, "learner", config)
        self.recover()

    def recover(self) -> None:
        """Restore the state in memory from the database: at the start, and after a failed transaction."""
        with self.store.read_connection() as connection, self.registry.lock:
            recovered = recover(connection, self.models, self.registry)
            self._checkpoint_id, self.checkpointed_rows = recovered.checkpoint_id, recovered.checkpointed_rows
            self._next_alarm_id = max_alarm_id(connection) + 1
        self._next_alarm_id = max(self._next_alarm_id, int(self.store.get_meta("next_alarm_id") or 1))
        self._next_stream_id = int(self.store.get_meta("next_stream_id") or 1)
        if recovered.n_replayed:
            log.info("replayed %d points after the last checkpoint", recovered.n_replayed)

    def process_group(self, requests: Sequence[IngestRequest]) -> tuple[list[Any], GroupOutcome]:
        """Learn and store the points of some requests, in order.

        If this raises, nothing of the group is stored, and `recover` must be called.

        Parameters
        ----------
        requests : sequence of IngestRequest
            The requests.

        Returns
        -------
        results : list
            For each request its response, or the ApiError with which it failed.
        outcome : GroupOutcome
            What changed.
        """
        now, outcome = time.time(), GroupOutcome()
        results: list[Any] = [None] * len(requests)
        accepted: dict[int, list[AcceptedPoints]] = {}
        index_by_key: dict[str, int] = {}
        with self.store.write_transaction() as connection, self.registry.lock:
            first_new_id = self._next_stream_id
            for index, request in enumerate(requests):
                try:
                    if request.idempotency_key in index_by_key:
                        check_same_request(request.digest, requests[index_by_key[request.idempotency_key]].digest)
                        continue  # a concurrent retry: it gets the response to the first
                    results[index] = self._find_stored_response(connection, request)
                    if results[index] is None:
                        accepted[index] = self._accept(request)
                        index_by_key |= {request.idempotency_key: index} if request.idempotency_key is not None else {}
                except ApiError as error:
                    results[index] = error
            if self._next_stream_id > first_new_id:
                new_ids = range(first_new_id, self._next_stream_id)
                add_streams(connection, [self.registry.get_by_id(stream_id).entry for stream_id in new_ids])
                set_meta(connection, "next_stream_id", self._next_stream_id)
            self._process_accepted(
                connection, [piece for pieces in accepted.values() for piece in pieces], now, outcome
            )
            for index, pieces in accepted.items():
                results[index] = [piece.to_api() for piece in pieces]
                self._store_response(connection, requests[index], results[index], now)
        for index, request in enumerate(requests):
            if results[index] is None and request.idempotency_key is not None:
                results[index] = results[index_by_key[request.idempotency_key]]
        return results, outcome

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
        """Align points with their streams, register new streams, skip late and duplicate points."""
        aligned = [_align_values(part, self.registry.get(part.key)) for part in parts]
        n_new, n_streams = sum(self.registry.get(part.key) is None for part in parts), len(self.registry)
        if n_new and n_streams + n_new > self.max_streams:
            raise ApiError(
                "too_many_streams",
                f"stream: expected at most {self.max_streams} streams, {n_streams} exist. Delete some.",
            )
        accepted = []
        for part, values in zip(parts, aligned, strict=True):
            stream = self.registry.get(part.key) or self._new_stream(part.key, values.shape[1], part.names)
            index, skipped = _skip_late(stream, part, values)
            chosen = values if len(index) == len(part) else values[index]
            times = part.times if len(index) == len(part) else [part.times[row] for row in index]
            accepted.append(AcceptedPoints(stream, chosen, times, skipped))
        return accepted

    def _new_stream(self, key: str, width: int, names: tuple[str, ...] | None) -> StreamInfo:
        stream = self.registry.add(StreamRow(self._next_stream_id, key, width, names, time.time()))
        self._next_stream_id += 1
        return stream

    def _find_stored_response(self, connection: Connection, request: IngestRequest) -> list[dict[str, Any]] | None:
        """Return the response to the same request before, None if this is the first."""
        if request.idempotency_key is None:
            return None
        row = connection.execute(
            select(IDEMPOTENCY_TABLE).where(IDEMPOTENCY_TABLE.c.key == request.idempotency_key)
        ).first()
        if row is None:
            return None
        check_same_request(request.digest, row.digest)
        response: list[dict[str, Any]] = json.loads(row.response)
        return response

    def _store_response(
        self, connection: Connection, request: IngestRequest, response: list[dict[str, Any]], now: float
    ) -> None:
        """Store the response under the idempotency key, and the position of the source."""
        if request.idempotency_key is not None:
            bulk_insert(
                connection, IDEMPOTENCY_TABLE, [(request.idempotency_key, now, request.digest, json.dumps(response))]
            )
        if request.source_position is not None:
            name, position = request.source_position
            connection.execute(SOURCE_POSITIONS_TABLE.delete().where(SOURCE_POSITIONS_TABLE.c.name == name))
            bulk_insert(connection, SOURCE_POSITIONS_TABLE, [(name, json.dumps(position))])

    def _process_accepted(
        self, connection: Connection, accepted: list[AcceptedPoints], now: float, outcome: GroupOutcome
    ) -> None:
        """Learn accepted points and store their results."""
        changed = {piece.stream.entry.id: piece.stream for piece in accepted if len(piece.values)}
        for width in sorted({stream.entry.width for stream in changed.values()}):
            pieces = [piece for piece in accepted if len(piece.values) and piece.stream.entry.width == width]
            result = process_group_of_width(self.models, width, pieces, now)
            write_blocks(connection, result.blocks)
            alarms = list(result.iter_alarms(self._next_alarm_id))
            if alarms:
                self._next_alarm_id += len(alarms)
                write_alarms(connection, alarms, [self.registry.get_id(alarm["key"]) for alarm in alarms])
                outcome.alarms += alarms
        if changed:
            self.registry.touch(changed.values())
            self.registry.n_points += sum(len(piece.values) for piece in accepted)
            outcome.streams |= changed.keys()
        if outcome.alarms:
            self.registry.invalidate_order()

    def delete_stream(self, key: str) -> int:
        """Delete a stream, its points, its alarms and its model; return its id."""
        with self.registry.lock:
            stream = self.registry.get(key)
            if stream is None:
                raise unknown_stream_error(key)
            stream_id = stream.entry.id
            with self.store.write_transaction() as connection:
                delete_stream(connection, stream_id)
                set_meta(connection, "next_alarm_id", self._next_alarm_id)  # ids are never reused
            self.models.drop(stream_id)
            self.registry.remove(stream)
            self.checkpointed_rows.pop(stream_id, None)
        return stream_id

    def start_checkpoint(self) -> CheckpointWriter:
        """Return the writer of a checkpoint of the present state."""
        self._checkpoint_id += 1
        counts = self.models.counts()
        row_counts = np.array([(stream_id, seen) for stream_id, (seen, _) in counts.items()], np.int64).reshape(-1, 2)
        return CheckpointWriter(self._checkpoint_id, self.models.to_bytes(), row_counts)

    def finish_checkpoint(self, checkpoint: CheckpointWriter) -> None:
        """Record that a checkpoint is complete."""
        self.checkpointed_rows = dict(checkpoint.row_counts.tolist())

    def expire_idempotency_keys(self) -> None:
        """Delete stored responses that are older than a day."""
        with self.store.write_transaction() as connection:
            connection.execute(
                IDEMPOTENCY_TABLE.delete().where(IDEMPOTENCY_TABLE.c.created < time.time() - IDEMPOTENCY_TTL_S)
            )


def unknown_stream_error(key: str) -> ApiError:
    """Return the error for a key without a stream."""
    return ApiError("unknown_stream", f"stream: {key!r:.80} does not exist")


def check_same_request(digest: str, stored_digest: str) -> None:
    """Raise if a request has the idempotency key of another one."""
    if digest != stored_digest:
        raise ApiError("idempotency_conflict", "Idempotency-Key: already used by another request. Use a new key.")


def _align_values(part: StreamPoints, stream: StreamInfo | None) -> Vector:
    """Return the values in the order of the stream's variables."""
    if stream is None:
        return part.values
    _check_time_kind(part, stream)
    width, names = stream.entry.width, stream.entry.names
    if part.names is not None:
        if names is None:
            raise ApiError(
                "unknown_variable",
                f"values: the variables of {part.key!r:.80} have no names. Send {width} values as a list.",
            )
        unknown = [name for name in part.names if name not in names]
        if unknown:
            raise ApiError(
                "unknown_variable",
                f"values: {part.key!r:.80} has no variable {unknown[0]!r:.80}; it has {', '.join(names):.300}",
            )
        values = np.full((len(part), width), np.nan)
        values[:, [names.index(name) for name in part.names]] = part.values
        return values
    if part.values.shape[1] != width:
        raise ApiError(
            "dimension_mismatch", f"values: expected {width} per point of {part.key!r:.80}, got {part.values.shape[1]}"
        )
    return part.values


def _check_time_kind(part: StreamPoints, stream: StreamInfo) -> None:
    """Raise if the times of a stream would be numbers and dates."""
    latest = stream.clock.latest
    event_time = next((time for time in part.event_times if time is not None), None)
    if latest is not None and event_time is not None and type(latest) is not type(event_time):
        kind = "numbers" if isinstance(latest, float) else "dates"
        raise ApiError("invalid_time", f"time: expected {kind} as in earlier points of {part.key!r:.80}")


def _skip_late(stream: StreamInfo, part: StreamPoints, values: Vector) -> tuple[list[int], dict[str, int]]:
    """Return the indexes of the points to learn, and how many were skipped for which reason."""
    if part.event_times.count(None) == len(part):
        return list(range(len(part))), {"late": 0, "duplicate": 0}
    arrivals = [
        stream.clock.check(event_time, point)
        for event_time, point in zip(part.event_times, values.tolist(), strict=True)
    ]
    n_late = sum(arrival == LATE for arrival in arrivals)
    index = [row for row, arrival in enumerate(arrivals) if not arrival.is_skipped]
    return index, {"late": n_late, "duplicate": len(part) - len(index) - n_late}
