"""The one thread that learns and writes: it takes all posts that wait, as one group, so that they share one commit."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from limpet.server.db.checkpoints import CheckpointWriter
from limpet.server.errors import ApiError
from limpet.server.ingest.compaction import Compactor
from limpet.server.ingest.parse import IngestRequest
from limpet.server.ingest.processor import GroupOutcome, GroupProcessor

log = logging.getLogger("limpet.server")
GROUP_MAX_POINTS = 20_000  # points of a group, so that nobody waits long
MAX_QUEUED_POINTS = 400_000  # points that may wait in all
CHECKPOINT_INTERVAL_S = 30.0  # seconds between checkpoints
CHECKPOINT_POINTS_THRESHOLD = 500_000  # points after which one is due anyway: as many are relearnt in some seconds
CLEANUP_INTERVAL_S = 3600.0  # seconds between looks at what is not needed any more
IDLE_TIMEOUT_S = 0.25  # seconds without posts, after which there is time for something else


@dataclass(eq=False)
class WriterTask:
    """Something else that is done between groups, and where its result goes."""

    function: Callable[[], Any]
    result: Future[Any] = field(default_factory=Future)


class WriterThread:
    """Works at a desk until it is stopped.

    keep: points of a stream that are kept in full. on_told: is called after each group with what has happened.
    """

    def __init__(
        self,
        processor: GroupProcessor,
        max_full_points: int,
        on_outcome: Callable[[GroupOutcome], None],
        checkpoint_interval_s: float = CHECKPOINT_INTERVAL_S,
    ) -> None:
        self.processor, self.checkpoint_interval_s = processor, checkpoint_interval_s
        self._on_outcome = on_outcome
        self._queue: queue.Queue[IngestRequest | WriterTask | None] = queue.Queue()
        self._lock = threading.Lock()
        self.n_queued_points = 0  # points
        self._stopped = False
        self._is_consistent = True  # what is in memory is what is in the store
        self._checkpoint_writer: CheckpointWriter | None = None
        self._checkpoint_due, self._n_points_since_checkpoint, self._cleanup_due = (
            time.monotonic() + checkpoint_interval_s,
            0,
            0.0,
        )
        self._compactor = Compactor(max_full_points)
        self._thread = threading.Thread(target=self._run, name="limpet keeper", daemon=True)
        self._thread.start()

    def submit(self, request: IngestRequest) -> Future[list[dict[str, Any]]]:
        """Takes a post; its answer comes once all of it is kept."""
        with self._lock:
            self._check_running()
            if self.n_queued_points and self.n_queued_points + request.n_points > MAX_QUEUED_POINTS:
                message = f"{self.n_queued_points} points are waiting to be learnt; send again later"
                raise ApiError("overloaded", message, headers={"Retry-After": "1"})
            self.n_queued_points += request.n_points
            self._queue.put(request)
        return request.future

    def call(self, function: Callable[[], Any]) -> Future[Any]:
        """Does something between two groups."""
        task = WriterTask(function)
        with self._lock:
            self._check_running()
            self._queue.put(task)
        return task.result

    def _check_running(self) -> None:
        if self._stopped:
            raise ApiError("stopping", "the server is stopping", headers={"Retry-After": "5"})

    def stop(self) -> None:
        """What waits is done, a checkpoint is written, and that is all."""
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
                log.error("what is done between posts could not be done, and will be tried again: %s", error)
                self._is_consistent = False  # memory may be ahead of the store
                self._recover()
                time.sleep(IDLE_TIMEOUT_S)

    def _next(self) -> tuple[list[IngestRequest], WriterTask | None, bool]:
        """Posts that wait, a task after them, and whether that is the end."""
        requests: list[IngestRequest] = []
        n_points = 0
        try:
            item = self._queue.get(
                timeout=0.0 if self._checkpoint_writer is not None or self._compactor.has_candidates else IDLE_TIMEOUT_S
            )
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
            self._process_group(
                [request for request in requests if request.future.set_running_or_notify_cancel()], n_points
            )
        finally:
            with self._lock:
                self.n_queued_points -= n_points

    def _process_group(self, requests: list[IngestRequest], n_points: int) -> None:
        if not self._is_consistent:
            self._recover()
        if not self._is_consistent:
            _fail_requests(requests, "the store cannot be read")
            return
        try:
            results, outcome = self.processor.process_group(requests)
        except Exception as error:
            log.error("a group of %d points is lost to its senders, who are told: %s", n_points, error)
            self._is_consistent = False
            self._recover()
            _fail_requests(requests, str(error))
        else:
            for request, result in zip(requests, results, strict=True):
                if isinstance(result, ApiError):
                    request.future.set_exception(result)
                else:
                    request.future.set_result(result)
            self._n_points_since_checkpoint += n_points
            self._compactor.add_candidates(outcome.streams, n_points)
            if outcome.streams:
                self._on_outcome(outcome)

    def _recover(self) -> None:
        """What is in memory becomes what is in the store; if that cannot be read now, it is tried again later."""
        self._checkpoint_writer = None
        try:
            self.processor.recover()
            self._is_consistent = True
        except Exception as error:
            log.error("the store cannot be read, trying again: %s", error)

    # Between groups

    def _run_maintenance(self) -> None:
        """A little of what has to be done; after a group, enough for the store not to grow faster than it shrinks."""
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
        checkpoint, self._checkpoint_writer = (
            self._checkpoint_writer,
            None,
        )  # one that fails is given up: it would lack a piece
        assert checkpoint is not None
        try:
            with self.processor.store.write_transaction() as connection:
                done = checkpoint.write_next_chunk(connection)
        except Exception:
            self._n_points_since_checkpoint += 1  # so that the next one is due in time
            raise
        if done:
            self.processor.finish_checkpoint(checkpoint)
            self._compactor.add_candidates(
                self.processor.checkpointed_rows, 0
            )  # what had to wait for it may be condensed now
        else:
            self._checkpoint_writer = checkpoint

    def _run_task(self, task: WriterTask) -> None:
        if not task.result.set_running_or_notify_cancel():
            return
        try:
            if not self._is_consistent:
                raise ApiError("store_unavailable", "the store cannot be read", headers={"Retry-After": "5"})
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
            log.error("the last checkpoint could not be written; its points will be learnt again: %s", error)


def _fail_requests(requests: list[IngestRequest], reason: str) -> None:
    """Tells the senders that nothing of it was stored."""
    for request in requests:
        error = ApiError("store_unavailable", f"nothing was stored: {reason}", headers={"Retry-After": "5"})
        request.future.set_exception(error)
