"""The writer thread: process all queued requests as a group with one commit."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from limpet.server.db.checkpoints import CheckpointWriter
from limpet.server.db.history import COMPACT_CHUNK_ROWS, compact_stream, needs_compaction
from limpet.server.db.points import merge_blocks
from limpet.server.ingest.processor import GroupProcessor, IngestRequest
from limpet.server.ingest.stream_state import StreamInfo
from limpet.server.responses import ApiError

log = logging.getLogger("limpet.server")
GROUP_MAX_POINTS = 20_000  # bounds the latency of a group
MAX_QUEUED_POINTS = 400_000
CHECKPOINT_INTERVAL_S = 30.0
CHECKPOINT_POINTS_THRESHOLD = 500_000  # a checkpoint is due earlier after as many points, which take seconds to replay
CLEANUP_INTERVAL_S = 3600.0
IDLE_TIMEOUT_S = 0.25  # without requests, after which maintenance runs
LOOSE_BLOCKS_THRESHOLD = 128  # short blocks of a stream that are merged


@dataclass(eq=False)
class WriterTask:
    """A function to call between groups, and the future of its result."""

    function: Callable[[], Any]
    result: Future[Any] = field(default_factory=Future)


class Compactor:
    """Merge short blocks; downsample a stream's points beyond `retain_points`."""

    def __init__(self, retain_points: int) -> None:
        self.retain_points = retain_points
        self._candidates: dict[int, None] = {}
        self._n_new_points = 0

    @property
    def has_candidates(self) -> bool:
        """Whether streams are waiting to be checked."""
        return bool(self._candidates)

    def add_candidates(self, stream_ids: Iterable[int], n_points: int) -> None:
        """Add streams that have received points, and the number of these."""
        self._candidates |= dict.fromkeys(stream_ids)
        self._n_new_points += n_points

    def compact(self, processor: GroupProcessor) -> None:
        """Check some streams; in a transaction, compact up to twice the points added."""
        n_done, budget, due = -1, 2 * self._n_new_points, list[StreamInfo]()
        while self._candidates and n_done < budget:
            stream_id = next(iter(self._candidates))
            del self._candidates[stream_id]
            n_done += 1
            stream = processor.registry.by_id.get(stream_id)
            if stream is None:
                continue
            if stream.n_loose_blocks >= LOOSE_BLOCKS_THRESHOLD or self._needs_compaction(stream):
                due.append(stream)
                n_excess = stream.n_points - stream.first_row - self.retain_points
                n_done += max(stream.n_loose_blocks, min(n_excess, COMPACT_CHUNK_ROWS))
        self._n_new_points = 0
        if due:
            with processor.store.write_transaction() as connection:
                for stream in due:
                    self._compact_stream(connection, stream, processor.checkpointed_rows.get(stream.entry.id, 0))

    def _needs_compaction(self, stream: StreamInfo) -> bool:
        n_rows = stream.n_points - stream.first_row
        return n_rows > self.retain_points and needs_compaction(n_rows, self.retain_points)

    def _compact_stream(self, connection: Connection, stream: StreamInfo, checkpointed_rows: int) -> None:
        """Merge a stream's short blocks, downsample its oldest points, if too many."""
        stream_id, width = stream.entry.id, stream.entry.width
        if stream.n_loose_blocks >= LOOSE_BLOCKS_THRESHOLD:
            merge_blocks(connection, stream_id, stream.merged_until, stream.n_points, width)
            stream.merged_until, stream.n_loose_blocks = stream.n_points, 0
        if self._needs_compaction(stream):
            end_row = min(stream.n_points, checkpointed_rows)
            first = compact_stream(connection, stream_id, width, stream.first_row, end_row, self.retain_points)
            if first > stream.first_row:
                stream.first_row, stream.merged_until = first, max(first, stream.merged_until)
                self._candidates[stream_id] = None  # more may be due


class WriterThread:
    """Runs a processor, which no other thread calls, until it is stopped.

    After each group, `on_change` is called with the ids of streams that have new points.
    """

    def __init__(
        self, processor: GroupProcessor, retain_points: int, on_change: Callable[[set[int]], None], interval_s: float
    ) -> None:
        self.processor, self._on_change = processor, on_change
        self.checkpoint_interval_s = interval_s
        self._queue: queue.Queue[IngestRequest | WriterTask | None] = queue.Queue()
        self._lock = threading.Lock()  # of these two; nothing is queued once it has stopped
        self.n_queued_points, self._stopped = 0, False
        self._is_consistent = True  # the state in memory equals that in the database
        self._checkpoint_writer: CheckpointWriter | None = None
        self._checkpoint_due, self._cleanup_due = time.monotonic() + interval_s, 0.0
        self._n_points_since_checkpoint = 0
        self._compactor = Compactor(retain_points)
        self._thread = threading.Thread(target=self._run, name="limpet writer", daemon=True)
        self._thread.start()

    def submit(self, request: IngestRequest) -> Future[list[dict[str, Any]]]:
        """Queue a request; its response is ready once all of it is stored."""
        with self._lock:
            self._check_running()
            if self.n_queued_points and self.n_queued_points + request.n_points > MAX_QUEUED_POINTS:
                raise ApiError("overloaded", f"points: {self.n_queued_points} are queued already. Retry later.")
            self.n_queued_points += request.n_points
            self._queue.put(request)
        return request.future

    def call(self, function: Callable[[], Any]) -> Future[Any]:
        """Queue a function to call between two groups."""
        task = WriterTask(function)
        with self._lock:
            self._check_running()
            self._queue.put(task)
        return task.result

    def _check_running(self) -> None:
        if self._stopped:
            raise ApiError("stopping", "the server is stopping.")

    def stop(self) -> None:
        """Process the queue, write a checkpoint, and stop."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                requests, task, is_end = self._next()
                if requests:
                    self._process_requests(requests)
                if task is not None:
                    self._run_task(task)
                if is_end:
                    self._finish()
                    return
                self._run_maintenance()
            except Exception as error:
                log.error("background maintenance failed, retrying: %s", error)
                self._recover()  # memory may be ahead of the database
                time.sleep(IDLE_TIMEOUT_S)

    def _next(self) -> tuple[list[IngestRequest], WriterTask | None, bool]:
        """Return the queued requests, a task after them, and whether to stop."""
        requests: list[IngestRequest] = []
        n_points, is_busy = 0, self._checkpoint_writer is not None or self._compactor.has_candidates
        try:
            item = self._queue.get(timeout=0.0 if is_busy else IDLE_TIMEOUT_S)
            while isinstance(item, IngestRequest):
                requests.append(item)
                n_points += item.n_points
                if n_points >= GROUP_MAX_POINTS:
                    return requests, None, False
                item = self._queue.get_nowait()
        except queue.Empty:
            return requests, None, False
        return requests, item, item is None

    def _process_requests(self, requests: list[IngestRequest]) -> None:
        n_points = sum(request.n_points for request in requests)
        try:
            running = [request for request in requests if request.future.set_running_or_notify_cancel()]
            self._process_group(running, n_points)
        finally:
            with self._lock:
                self.n_queued_points -= n_points

    def _process_group(self, requests: list[IngestRequest], n_points: int) -> None:
        if not self._is_consistent:
            self._recover()
        if not self._is_consistent:
            _fail_requests(requests, "the database cannot be read")
            return
        try:
            results, changed = self.processor.process_group(requests)
        except Exception as error:
            log.error("failed to store a group of %d points; clients receive 503: %s", n_points, error)
            self._recover()
            _fail_requests(requests, str(error))
            return
        for request, result in zip(requests, results, strict=True):
            if isinstance(result, ApiError):
                request.future.set_exception(result)
            else:
                request.future.set_result(result)
        self._n_points_since_checkpoint += n_points
        self._compactor.add_candidates(changed, n_points)
        if changed:
            self._on_change(changed)

    def _recover(self) -> None:
        """Restore the state from the database; if that fails, a later call retries."""
        self._is_consistent, self._checkpoint_writer = False, None
        try:
            self.processor.recover()
            self._is_consistent = True
        except Exception as error:
            log.error("cannot read the database, retrying: %s", error)

    def _run_maintenance(self) -> None:
        """Do a small part of the maintenance: checkpoint, cleanup, compaction."""
        now = time.monotonic()
        if not self._is_consistent:
            time.sleep(IDLE_TIMEOUT_S)
            self._recover()
            return
        if self._checkpoint_writer is not None:
            self._write_chunk()
        elif self._n_points_since_checkpoint and (
            now >= self._checkpoint_due or self._n_points_since_checkpoint >= CHECKPOINT_POINTS_THRESHOLD
        ):
            self._checkpoint_writer, self._n_points_since_checkpoint = self.processor.start_checkpoint(), 0
            self._checkpoint_due = now + self.checkpoint_interval_s
        elif now >= self._cleanup_due:
            self.processor.expire_idempotency_keys()
            self._cleanup_due = now + CLEANUP_INTERVAL_S
        if self._compactor.has_candidates:
            self._compactor.compact(self.processor)

    def _write_chunk(self) -> None:
        """Write the next chunk of the checkpoint; abandon the checkpoint on failure."""
        checkpoint, self._checkpoint_writer = self._checkpoint_writer, None
        assert checkpoint is not None
        try:
            with self.processor.store.write_transaction() as connection:
                done = checkpoint.write_next_chunk(connection)
        except Exception:
            self._n_points_since_checkpoint += 1  # the next one stays due
            raise
        if done:
            self.processor.finish_checkpoint(checkpoint)
            self._compactor.add_candidates(self.processor.checkpointed_rows, 0)  # rows in a checkpoint can be compacted
        else:
            self._checkpoint_writer = checkpoint

    def _run_task(self, task: WriterTask) -> None:
        if not task.result.set_running_or_notify_cancel():
            return
        try:
            if not self._is_consistent:
                raise ApiError("store_unavailable", "the database cannot be read.")
            task.result.set_result(task.function())
        except BaseException as error:
            task.result.set_exception(error)

    def _finish(self) -> None:
        if not self._is_consistent:
            return
        try:
            self._checkpoint_writer = self.processor.start_checkpoint()
            while self._checkpoint_writer is not None:
                self._write_chunk()
        except Exception as error:
            log.error("failed to write the last checkpoint; its points will be replayed: %s", error)


def _fail_requests(requests: list[IngestRequest], reason: str) -> None:
    for request in requests:
        request.future.set_exception(ApiError("store_unavailable", f"nothing was stored: {reason.rstrip('.')}."))
