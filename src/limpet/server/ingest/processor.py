"""Where a group of posts becomes knowledge: admitted, learnt, kept, and only then answered."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from limpet.learners import SRA
from limpet.server.db import Store
from limpet.server.db.alarms import max_alarm_id, write_alarms
from limpet.server.db.checkpoints import CheckpointWriter
from limpet.server.db.engine import bulk_insert, set_meta
from limpet.server.db.points import write_blocks
from limpet.server.db.schema import IDEMPOTENCY_TABLE, SOURCE_POSITIONS_TABLE
from limpet.server.db.streams import StreamRow, add_streams, delete_stream
from limpet.server.errors import ApiError
from limpet.server.ingest.admission import AcceptedPoints, accept_points
from limpet.server.ingest.model_pool import ModelPool, check_same_config, process_group_of_width
from limpet.server.ingest.parse import IngestRequest
from limpet.server.ingest.recovery import recover
from limpet.server.ingest.stream_registry import StreamInfo, StreamRegistry

log = logging.getLogger("limpet.server")
REFERENCE_POINTS = 100  # points that a change is seen against
IDEMPOTENCY_TTL_S = 86_400.0  # seconds that a post is known again by its name


@dataclass(eq=False)
class GroupOutcome:
    """What has happened in a group: the streams that have new points, and alarms as the API tells them."""

    streams: set[int] = field(default_factory=set)
    alarms: list[dict[str, Any]] = field(default_factory=list)


class GroupProcessor:
    """All that is known of all streams, in memory and in the store. One thread works here.

    learner: whose settings all streams have. most: streams, at most.
    """

    def __init__(self, store: Store, learner: SRA, max_streams: int) -> None:
        self.store, self.max_streams = store, max_streams
        self.models = ModelPool(learner)
        self.registry = StreamRegistry(learner.n_init + REFERENCE_POINTS)
        self.checkpointed_rows: dict[int, int] = {}
        """How many rows of each stream are in the checkpoint of the store."""
        config = check_same_config(learner, store.get_meta("learner"))
        with store.write_transaction() as connection:
            set_meta(connection, "learner", config)
        self.recover()

    def recover(self) -> None:
        """All as the store has it: after the start, and after a group that could not be written."""
        with self.store.read_connection() as connection, self.registry.lock:
            recovered = recover(connection, self.models, self.registry)
            self._checkpoint_id, self.checkpointed_rows = recovered.checkpoint_id, recovered.checkpointed_rows
            self._next_alarm_id = max_alarm_id(connection) + 1
        self._next_alarm_id = max(self._next_alarm_id, int(self.store.get_meta("next_alarm") or 1))
        self._next_stream_id = int(self.store.get_meta("next_stream") or 1)
        if recovered.n_replayed:
            log.info("relearnt %d points that the last checkpoint did not have", recovered.n_replayed)

    # Posts

    def process_group(self, requests: Sequence[IngestRequest]) -> tuple[list[Any], GroupOutcome]:
        """Learns and keeps what these posts hold, in order; for each an answer, or the error that it is refused with.

        If this raises, nothing of the group is in the store; what is in memory has to be recovered.
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
                        continue  # sent twice at once: it gets the answer to the first
                    results[index] = self._find_stored_response(connection, request)
                    if results[index] is None:
                        accepted[index] = self._accept(request)
                        index_by_key |= {request.idempotency_key: index} if request.idempotency_key is not None else {}
                except ApiError as refusal:
                    results[index] = refusal
            if self._next_stream_id > first_new_id:
                add_streams(
                    connection,
                    [
                        self.registry.get_by_id(stream_id).entry
                        for stream_id in range(first_new_id, self._next_stream_id)
                    ],
                )
                set_meta(connection, "next_stream", self._next_stream_id)
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
        """The parts of a post: all of them or none, but of a source those that fit."""
        if request.source_position is None:
            return accept_points(request.parts, self.registry, self.max_streams, self._new_stream)
        accepted: list[AcceptedPoints] = []
        for part in request.parts:
            try:
                accepted += accept_points([part], self.registry, self.max_streams, self._new_stream)
            except ApiError as refusal:
                request.rejected_parts.append((part, refusal))
        return accepted

    def _new_stream(self, key: str, width: int, names: tuple[str, ...] | None) -> StreamInfo:
        stream = self.registry.add(StreamRow(self._next_stream_id, key, width, names, time.time()))
        self._next_stream_id += 1
        return stream

    def _find_stored_response(self, connection: Connection, request: IngestRequest) -> list[dict[str, Any]] | None:
        """The answer that the same post has had already."""
        if request.idempotency_key is None:
            return None
        row = connection.execute(
            select(IDEMPOTENCY_TABLE).where(IDEMPOTENCY_TABLE.c.name == request.idempotency_key)
        ).first()
        if row is None:
            return None
        check_same_request(request.digest, row.digest)
        response: list[dict[str, Any]] = json.loads(row.answer)
        return response

    def _store_response(
        self, connection: Connection, request: IngestRequest, response: list[dict[str, Any]], now: float
    ) -> None:
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
        changed = {piece.stream.entry.id: piece.stream for piece in accepted if len(piece.values)}
        for width in sorted({stream.entry.width for stream in changed.values()}):
            pieces = [piece for piece in accepted if len(piece.values) and piece.stream.entry.width == width]
            result = process_group_of_width(self.models, width, pieces, now)
            write_blocks(connection, result.blocks)
            alarms = list(result.iter_alarms(self._next_alarm_id))
            self._next_alarm_id += len(alarms)
            write_alarms(connection, alarms, [self.registry.get_id(alarm["stream"]) for alarm in alarms])
            outcome.alarms += alarms
        if changed:
            self.registry.touch(changed.values())
            self.registry.n_points += sum(len(piece.values) for piece in accepted)
            outcome.streams |= changed.keys()
        if outcome.alarms:
            self.registry.invalidate_order()

    # What else changes

    def delete_stream(self, key: str) -> int:
        """A stream with all that is known of it; its number."""
        with self.registry.lock:
            stream = self.registry.get(key)
            if stream is None:
                raise unknown_stream_error(key)
            stream_id = stream.entry.id
            with self.store.write_transaction() as connection:
                delete_stream(connection, stream_id)
                set_meta(connection, "next_alarm", self._next_alarm_id)  # so that no number is used again
            self.models.drop(stream_id)
            self.registry.remove(stream)
            self.checkpointed_rows.pop(stream_id, None)
        return stream_id

    def start_checkpoint(self) -> CheckpointWriter:
        """All that has been learnt by now, to be written piece by piece."""
        self._checkpoint_id += 1
        counts = self.models.counts()
        row_counts = np.array([(stream_id, seen) for stream_id, (seen, _) in counts.items()], np.int64).reshape(-1, 2)
        return CheckpointWriter(self._checkpoint_id, self.models.to_bytes(), row_counts)

    def finish_checkpoint(self, checkpoint: CheckpointWriter) -> None:
        """The store has it."""
        self.checkpointed_rows = dict(checkpoint.row_counts.tolist())

    def expire_idempotency_keys(self) -> None:
        """Posts of long ago are not known again by their names."""
        with self.store.write_transaction() as connection:
            connection.execute(
                IDEMPOTENCY_TABLE.delete().where(IDEMPOTENCY_TABLE.c.at < time.time() - IDEMPOTENCY_TTL_S)
            )


def unknown_stream_error(key: str) -> ApiError:
    """There is none of this key."""
    return ApiError("unknown_stream", f"there is no stream {key!r:.80}")


def check_same_request(digest: str, stored_digest: str) -> None:
    """Refuses a post that has the name of another one."""
    if digest != stored_digest:
        raise ApiError("other_post", "another post has had this Idempotency-Key")
