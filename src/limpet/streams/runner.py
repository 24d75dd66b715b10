"""Run a source through a learner into a sink, with atomic checkpoints of state, source position and sink offset."""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from limpet.exceptions import InvalidInputError, LimpetError
from limpet.fleet import Fleet
from limpet.learners.input import LabelledArray
from limpet.learners.results import Trace
from limpet.streams._prefetch import PrefetchingReader
from limpet.streams.batch import Batch, composite_keys
from limpet.streams.checkpoint_store import (
    RUN_FORMAT_VERSION,
    CheckpointStore,
    Model,
    check_compatible,
    check_position,
    model_config,
    restore_model,
)
from limpet.streams.event_time import EventTimeFilter
from limpet.streams.results import BatchResult
from limpet.streams.run_stats import RunStats
from limpet.streams.schema import Schema
from limpet.streams.sinks.base import BaseSink, close_all
from limpet.streams.sources.base import BaseSource

log = logging.getLogger("limpet.streams")
CHECKPOINT_INTERVAL_S = 5.0
MAX_CHECKPOINT_SHARE = 0.1  # of the time; the interval is extended where checkpoints take long
MAX_INTERVAL_FACTOR = 12.0  # of this extension
POLL_TIMEOUT_S = 0.25  # waiting for a batch, between calls of `on_tick`
STOP_TIMEOUT_S = 1.5  # waiting for the last batch after `stop`


class Runner:
    """A run, which can be interrupted at any time and resumed.

    A checkpoint holds the state of the model, the position of the source and the offset of the sink. It is written
    after the sink has made its results durable, so that after a crash the sink is never behind the checkpoint: results
    after it are removed, the source is read again from there, and the same results follow, to the last bit.

    Parameters
    ----------
    source : BaseSource
        Where points come from.
    model : learner or Fleet
        What learns them.
    sink : BaseSink
        Where results go.
    checkpoints : CheckpointStore, optional
        Where checkpoints are kept.
    checkpoint_interval : float
        Seconds between checkpoints, 0: one after each batch.
    late : {"skip", "learn"}
        Policy for late and duplicate points, see `EventTimeFilter`.
    stop : threading.Event, optional
        Ends the run from another thread.
    run_id_fields : mapping, optional
        What must not change between start and resume, such as the source.
    on_batch : callable, optional
        Called with the results of each batch.
    record : str, optional
        Name of an estimate to record in the traces.
    """

    def __init__(
        self,
        source: BaseSource,
        model: Model,
        sink: BaseSink,
        checkpoints: CheckpointStore | None = None,
        *,
        checkpoint_interval: float = CHECKPOINT_INTERVAL_S,
        late: str = "skip",
        stop: threading.Event | None = None,
        run_id_fields: Mapping[str, Any] | None = None,
        on_batch: Callable[[BatchResult], None] | None = None,
        record: str | None = None,
    ) -> None:
        self.source, self.model, self.sink, self.checkpoints = source, model, sink, checkpoints
        self.checkpoint_interval, self.stop, self.record = checkpoint_interval, stop or threading.Event(), record
        self.stats = RunStats()
        self.event_time_filter = EventTimeFilter(late, model.max_keys if isinstance(model, Fleet) else None)
        self.position: Any = None
        self.schema: Schema | None = None
        self.run_id_fields = dict(run_id_fields or {})
        self.lag: tuple[int, str] | None = None
        self.committed_at: float | None = None
        self.on_tick: list[Callable[..., None]] = []
        """Called several times per second with the run, and at the end with last=True."""

        self.run_id = uuid.uuid4().hex[:12]
        self._on_batch = on_batch
        self._uncommitted = 0  # records
        self._next_commit = 0.0

    def run(self) -> RunStats:
        """Run until the source ends or `stop` is set; batches read by then are processed."""
        finished = threading.Event()
        with close_all([self.source, self.sink]), ExitStack() as cleanup:
            self._start()
            reader = PrefetchingReader(self.source.read(self.position))
            cleanup.callback(reader.stop)
            cleanup.callback(finished.set)
            threading.Thread(
                target=self._forward_stop_to_sink, args=(finished,), name="limpet stop", daemon=True
            ).start()
            deadline = math.inf
            while not reader.ended:
                if deadline == math.inf and self.stop.is_set():
                    reader.stop_after_current()
                    deadline = time.monotonic() + STOP_TIMEOUT_S
                batch = reader.take(POLL_TIMEOUT_S)
                if batch is not None:
                    self._process_batch(batch)
                elif time.monotonic() > deadline:
                    break
                self._commit_if_due(batch is not None and batch.urgent)
                for tick in self.on_tick:
                    tick(self)
            self.sink.drain()
            self._commit()
            for tick in self.on_tick:
                tick(self, last=True)
        return self.stats

    def raise_if_undelivered(self) -> None:
        """Raise if results could not be delivered and are not in a checkpoint. Call it after the run."""
        if self.checkpoints is None and self.sink.undelivered:
            raise LimpetError(f"{self.sink.undelivered} alarms were not delivered. With a checkpoint they are kept.")

    def _forward_stop_to_sink(self, finished: threading.Event) -> None:
        """Unblock the sink when the run has to stop."""
        while not finished.is_set():
            if self.stop.wait(POLL_TIMEOUT_S):
                self.sink.stop_waiting()
                return

    def _start(self) -> None:
        checkpoint = None if self.checkpoints is None else self.checkpoints.latest()
        offset = None
        if checkpoint is not None:
            offset = self._resume(*checkpoint)
        self.model.suppress_warning("invalid")  # counted in `stats`, with reasons
        self.sink.truncate_to(offset)
        self._next_commit = time.monotonic() + self.checkpoint_interval
        if checkpoint is None and self.checkpoints is not None:
            self.sink.acquire()
            self._commit()  # before the first result, so that the run can resume

    def _resume(self, header: dict[str, Any], body: memoryview) -> Any:
        check_compatible(header, self.model, self.run_id_fields)
        size = header["model_size"]
        self.model = restore_model(self.model, body[:size])
        self.event_time_filter.restore(bytes(body[size:]))
        self.stats = RunStats.from_dict(header["stats"])
        self.position, self.run_id = header["position"], header["run_id"]
        self.schema = None if header["schema"] is None else Schema.from_dict(header["schema"])
        self.source.schema = self.schema
        log.info("resumed after %d records, %d alarms", self.stats.records, self.stats.n_alarms)
        return header["sink_offset"]

    def _process_batch(self, batch: Batch) -> None:
        first_record = self.stats.records
        accepted, n_late, n_duplicates = self.event_time_filter.filter(batch)
        self.stats.record_read(batch, n_late, n_duplicates)
        if len(accepted):
            trace = self._update_model(accepted)
            counts = (first_record, self.stats.points, self.stats.n_alarms, self.run_id)
            results = BatchResult(accepted, trace, *counts)
            self.sink.write(results)
            self.stats.record_processed(results)
            if self._on_batch is not None:
                self._on_batch(results)
        if self.checkpoints is not None and self.position is None:
            check_position(batch)
        self.position, self.schema = batch.position, batch.schema
        self.lag = None if batch.lag is None else (batch.lag, batch.lag_unit)
        self._uncommitted += batch.n_records

    def _update_model(self, batch: Batch) -> Trace:
        points: Any = batch.values if batch.names is None else LabelledArray(batch.values, batch.names)
        keys = composite_keys(batch)
        if isinstance(self.model, Fleet):
            if keys is None:
                raise InvalidInputError("key: a Fleet needs one per point, got none. Name the column with key=….")
            return self.model.update(keys, points)
        if keys is not None:
            raise InvalidInputError("learner: must be a Fleet, because the points have keys. Use Fleet(Detector()).")
        return self.model.process(points, record=self.record)

    def _commit_if_due(self, urgent: bool) -> None:
        if self._uncommitted and (urgent or time.monotonic() >= self._next_commit):
            self._commit()

    def _commit(self) -> None:
        """Flush the sink, write the checkpoint, commit the source, in this order."""
        offset = self.sink.flush()
        started = time.monotonic()
        if self.checkpoints is not None:
            self.stats.checkpoints += 1
            state = self.model.to_bytes()
            header = {
                "run_format": RUN_FORMAT_VERSION,
                "run_id": self.run_id,
                "run_fields": self.run_id_fields,
                "model": model_config(self.model),
                "model_size": len(state),
                "position": self.position,
                "schema": None if self.schema is None else self.schema.to_dict(),
                "sink_offset": offset,
                "stats": self.stats.to_dict(),
            }
            self.checkpoints.save(header, (state, self.event_time_filter.to_bytes()))
        elapsed_s = time.monotonic() - started
        if self.position is not None:
            self.source.commit(self.position)
        self._uncommitted, self.committed_at = 0, time.time()
        self._next_commit = time.monotonic() + min(
            max(self.checkpoint_interval, elapsed_s / MAX_CHECKPOINT_SHARE),
            MAX_INTERVAL_FACTOR * self.checkpoint_interval,
        )
