"""From a source through a learner to a sink, with checkpoints: what is learnt, read and told moves together."""

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
from limpet.streams.batch import Batch
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
from limpet.streams.sinks.base import BaseSink, close_all
from limpet.streams.sources.base import Source
from limpet.streams.split_columns import composite_keys

log = logging.getLogger("limpet.streams")
CHECKPOINT_INTERVAL_S = 5.0  # seconds between checkpoints
MAX_CHECKPOINT_SHARE = 0.1  # of the time, at most, that goes into checkpoints
MAX_INTERVAL_FACTOR = 12.0  # times as long as it should be, at most, between checkpoints that take long
POLL_TIMEOUT_S = 0.25  # seconds to wait for a batch before looking whether there is something else to do
STOP_TIMEOUT_S = 1.5  # seconds that a source has for its last batch, when somebody wants to stop


class Runner:
    """One run, which may be interrupted at any moment and resumed.

    A checkpoint holds the state of the model, where the source goes on, and how far the sink has come. It is written
    after the sink has made sure of what it was given. So after a crash the sink is never behind the checkpoint; what it
    has got beyond is taken back, the source is read again from there, and the same comes again to the last bit.

    every: seconds between checkpoints, 0 for one after each batch. late: see `Lateness`. stop: ends it from elsewhere.
    about: what else must be the same for it to be resumed, such as the name of the source. seen: is called with the
    results of each batch. record: the name of an estimate to keep in their traces.
    """

    def __init__(
        self,
        source: Source,
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
        self.stats, self.event_time_filter, self.position = (
            RunStats(),
            EventTimeFilter(late, getattr(model, "max_keys", None)),
            None,
        )
        self.run_id_fields = dict(run_id_fields or {})
        self.lag: tuple[int, str] | None = None
        self.committed_at: float | None = None
        self.on_tick: list[Callable[..., None]] = []
        """Are called again and again with the run, and at the end with last=True."""

        self.run_id = uuid.uuid4().hex[:12]
        self._on_batch = on_batch
        self._uncommitted = 0  # records
        self._next_commit = 0.0

    def run(self) -> RunStats:
        """Runs until the source ends or `stop` is set; what has been read by then is learnt."""
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
        """Raises, if results could not be delivered and are not in a checkpoint either; for after the run."""
        if self.checkpoints is None and self.sink.undelivered:
            raise LimpetError(f"{self.sink.undelivered} alarms could not be delivered; a checkpoint would keep them")

    def _forward_stop_to_sink(self, finished: threading.Event) -> None:
        """Sinks do not wait any more when somebody wants to stop, although they may be waiting just now."""
        while not finished.is_set():
            if self.stop.wait(POLL_TIMEOUT_S):
                self.sink.stop_waiting()
                return

    # Beginning

    def _start(self) -> None:
        checkpoint = None if self.checkpoints is None else self.checkpoints.latest()
        offset = None
        if checkpoint is not None:
            offset = self._resume(*checkpoint)
        self.model._suppress_warning("invalid")  # in the tally, with reasons
        self.sink.truncate_to(offset)
        self._next_commit = time.monotonic() + self.checkpoint_interval
        if checkpoint is None and self.checkpoints is not None:
            self.sink.acquire()
            self._commit()  # so that there is something to come back to before anything is told

    def _resume(self, header: dict[str, Any], body: memoryview) -> Any:
        check_compatible(header, self.model, self.run_id_fields)
        size = header["model_size"]
        self.model = restore_model(self.model, body[:size])
        self.event_time_filter.restore(bytes(body[size:]))
        self.stats = RunStats.from_dict(header["tally"])
        self.position, self.run_id = header["position"], header["run"]
        log.info("resumed after %d records, %d alarms", self.stats.records, self.stats.n_alarms)
        return header["mark"]

    # Going on

    def _process_batch(self, batch: Batch) -> None:
        first_record = self.stats.records
        accepted, late, repeated = self.event_time_filter.filter(batch)
        self.stats.record_read(batch, late, repeated)
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
        self.position = batch.position
        self.lag = None if batch.lag is None else (batch.lag, batch.lag_unit)
        self._uncommitted += batch.n_records

    def _update_model(self, batch: Batch) -> Trace:
        points: Any = batch.values if batch.names is None else LabelledArray(batch.values, batch.names)
        keys = composite_keys(batch)
        if isinstance(self.model, Fleet):
            if keys is None:
                raise InvalidInputError("a fleet needs the key of each point: say which column has it (key=…)")
            return self.model.update(keys, points)
        if keys is not None:
            raise InvalidInputError("the points have keys: for many streams give a Fleet, such as Fleet(SRA())")
        return self.model.process(points, record=self.record)

    def _commit_if_due(self, urgent: bool) -> None:
        if self._uncommitted and (urgent or time.monotonic() >= self._next_commit):
            self._commit()

    def _commit(self) -> None:
        """The sink makes sure of what it has, then all is written down, then the source may forget."""
        offset = self.sink.flush()
        started = time.monotonic()
        if self.checkpoints is not None:
            self.stats.checkpoints += 1
            state = self.model.to_bytes()
            header = {
                "run_format": RUN_FORMAT_VERSION,
                "run": self.run_id,
                "about": self.run_id_fields,
                "model": model_config(self.model),
                "model_size": len(state),
                "position": self.position,
                "mark": offset,
                "tally": self.stats.to_dict(),
            }
            self.checkpoints.save(header, (state, self.event_time_filter.to_bytes()))
        elapsed_s = time.monotonic() - started
        if self.position is not None:
            getattr(self.source, "commit", lambda _: None)(self.position)
        self._uncommitted, self.committed_at = 0, time.time()
        self._next_commit = time.monotonic() + min(
            max(self.checkpoint_interval, elapsed_s / MAX_CHECKPOINT_SHARE),
            MAX_INTERVAL_FACTOR * self.checkpoint_interval,
        )
