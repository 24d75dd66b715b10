"""`limpet.run`: a source through a learner into sinks, with atomic checkpoints."""

from __future__ import annotations

import logging
import math
import os
import queue
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from limpet.exceptions import InvalidInputError, LimpetError
from limpet.fleet import Fleet
from limpet.learners.base import Learner
from limpet.learners.input import LabeledArray
from limpet.learners.results import Trace
from limpet.streams import checkpoint_store
from limpet.streams.batch import Batch, composite_keys
from limpet.streams.checkpoint_store import CheckpointStore, LearnerOrFleet
from limpet.streams.event_time import EventTimeFilter
from limpet.streams.results import BatchResult, RunStats
from limpet.streams.schema import Schema
from limpet.streams.sinks.base import BaseSink, CallbackSink, MultiSink, close_all
from limpet.streams.sources.base import BaseSource
from limpet.streams.uri import identify_source, open_sink, open_source

log = logging.getLogger("limpet.streams")
MAX_QUEUED_BATCHES = 2  # read ahead; bounds the memory, however fast the source is
CHECKPOINT_INTERVAL_S = 5.0
MAX_CHECKPOINT_SHARE = 0.1  # of the time; the interval is extended where checkpoints take long
MAX_INTERVAL_FACTOR = 12.0  # of this extension
POLL_TIMEOUT_S = 0.25  # waiting for a batch, between calls of `on_tick`
STOP_TIMEOUT_S = 1.5  # waiting for the last batch after `stop`


@dataclass(frozen=True)
class RunResult:
    """The result of a run.

    Attributes
    ----------
    learner : learner or Fleet
        The learner after the run.
    stats : RunStats
        Counts since the first start of the run.
    """

    learner: LearnerOrFleet
    stats: RunStats


def run(
    source: str | os.PathLike[str] | BaseSource,
    learner: Learner | Fleet,
    sink: str | BaseSink | Callable[[BatchResult], object] | Sequence[Any] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    *,
    checkpoint_interval: float = CHECKPOINT_INTERVAL_S,
    late: str = "skip",
    stop: threading.Event | None = None,
) -> RunResult:
    """Run a source through a learner into sinks; checkpoints resume it after a crash.

    State, source position and sink offset are checkpointed atomically. CSV and JSON-lines files, Parquet folders,
    SQLite and JetStream are exactly-once; other sinks are at-least-once.

    Parameters
    ----------
    source : str, path or BaseSource
        A file, a folder, a URL of a broker (see `limpet.streams.open_source`), or a source.
    learner : learner or Fleet
        A fleet where points have keys. It is updated, unless the run resumes: then the learner of the checkpoint takes
        its place, and is in the result.
    sink : str, BaseSink, callable or sequence of these
        A path or URL (see `limpet.streams.open_sink`), a sink, or a function called with the `BatchResult` of each
        batch.
    checkpoint : str or path, optional
        A folder for checkpoints. Calling `run` again with the same arguments resumes at the last one.
    checkpoint_interval : float
        Seconds between checkpoints; 0: one after each batch. With a positive interval, checkpoints take at most a tenth
        of the time.
    late : {"skip", "learn"}
        Whether to skip late and duplicate points, or to learn all points as they arrive.
    stop : threading.Event, optional
        Ends the run from another thread: batches already read are processed, and a checkpoint is written.

    Returns
    -------
    RunResult

    Raises
    ------
    InvalidInputError
        If an argument is invalid.
    CheckpointError
        If the checkpoint is damaged, or belongs to another run.

    Examples
    --------
    >>> import numpy as np
    >>> from limpet import Detector
    >>> from limpet.streams import BaseSource, Batch
    >>> class Levels(BaseSource):
    ...     def read(self, position):
    ...         stream = np.random.default_rng(1).normal(20.0, 0.5, 1000)
    ...         stream[700] = 35.0
    ...         for start in range(position or 0, 1000, 250):
    ...             yield Batch(stream[start : start + 250], position=start + 250)
    >>> alarms = []
    >>> result = run(Levels(), Detector(), lambda results: alarms.extend(results.alarms))
    >>> result.stats.points, [alarm.row for alarm in alarms]
    (1000, [700])
    """
    if not isinstance(learner, Learner | Fleet):
        raise InvalidInputError(f"learner: must be a learner or a Fleet, got {learner!r}. Use Detector().")
    opened_source = open_source(source) if isinstance(source, str | os.PathLike) else source
    if not isinstance(opened_source, BaseSource):
        raise InvalidInputError(f"source: must be a path, a URL or a BaseSource, got {source!r}.")
    with nullcontext() if checkpoint is None else closing(CheckpointStore(checkpoint)) as checkpoints:
        runner = Runner(
            opened_source,
            learner,
            _to_sink(sink),
            checkpoints,
            checkpoint_interval=checkpoint_interval,
            late=late,
            stop=stop,
            run_id_fields={} if isinstance(source, BaseSource) else {"source": identify_source(os.fspath(source))},
        )
        stats = runner.run()
        runner.raise_if_undelivered()
    return RunResult(runner.learner, stats)


def _to_sink(sink: Any) -> BaseSink:
    if isinstance(sink, BaseSink):
        return sink
    if isinstance(sink, str | os.PathLike):
        return open_sink(os.fspath(sink))
    if isinstance(sink, list | tuple):
        return MultiSink([_to_sink(item) for item in sink])
    if callable(sink):
        return CallbackSink(sink)
    raise InvalidInputError(
        f"sink: must be a path, a URI, a function, a limpet.streams.BaseSink or a list of these, got {sink!r}."
    )


class Runner:
    """A run with the parameters of `run`, which can be interrupted and resumed.

    A checkpoint holds the state of the learner, the position of the source and the offset of the sink. It is written
    after the sink has made its results durable, so that after a crash the sink is never behind the checkpoint: results
    after it are removed, the source is read again from there, and the same results follow, to the last bit. So
    `run_id_fields`, such as the source, must not change. `record` names an estimate to record in the traces.
    """

    def __init__(
        self,
        source: BaseSource,
        learner: LearnerOrFleet,
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
        self.source, self.learner, self.sink, self.checkpoints = source, learner, sink, checkpoints
        self.checkpoint_interval, self.stop, self.record = checkpoint_interval, stop or threading.Event(), record
        self.stats = RunStats()
        self.event_time_filter = EventTimeFilter(late, learner.max_keys if isinstance(learner, Fleet) else None)
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
            forward_stop = partial(self._forward_stop_to_sink, finished)
            threading.Thread(target=forward_stop, name="limpet stop", daemon=True).start()
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
                is_urgent = batch is not None and batch.urgent
                if self._uncommitted and (is_urgent or time.monotonic() >= self._next_commit):
                    self._commit()
                for tick in self.on_tick:
                    tick(self)
            self.sink.drain()
            self._commit()
            for tick in self.on_tick:
                tick(self, last=True)
        return self.stats

    def raise_if_undelivered(self) -> None:
        """Raise if undelivered results are not in a checkpoint; call it after the run."""
        if self.checkpoints is None and self.sink.undelivered:
            raise LimpetError(f"{self.sink.undelivered} alarms were not delivered. With a checkpoint they are kept.")

    def _forward_stop_to_sink(self, finished: threading.Event) -> None:
        while not finished.is_set():
            if self.stop.wait(POLL_TIMEOUT_S):
                self.sink.stop_waiting()
                return

    def _start(self) -> None:
        checkpoint = None if self.checkpoints is None else self.checkpoints.latest()
        offset = None if checkpoint is None else self._resume(*checkpoint)
        self.learner.suppress_warning("invalid")  # counted in `stats`, with reasons
        self.sink.truncate_to(offset)
        self._next_commit = time.monotonic() + self.checkpoint_interval
        if checkpoint is None and self.checkpoints is not None:
            self.sink.acquire()
            self._commit()  # before the first result, so that the run can resume

    def _resume(self, header: dict[str, Any], body: memoryview) -> Any:
        checkpoint_store.check_compatible(header, self.learner, self.run_id_fields)
        size = header["learner_size"]
        self.learner = checkpoint_store.restore_learner(self.learner, body[:size])
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
            trace = self._update_learner(accepted)
            results = BatchResult(accepted, trace, first_record, self.stats.points, self.stats.n_alarms, self.run_id)
            self.sink.write(results)
            self.stats.record_processed(results)
            if self._on_batch is not None:
                self._on_batch(results)
        if self.checkpoints is not None and self.position is None:
            checkpoint_store.check_position(batch)
        self.position, self.schema = batch.position, batch.schema
        self.lag = None if batch.lag is None else (batch.lag, batch.lag_unit)
        self._uncommitted += batch.n_records

    def _update_learner(self, batch: Batch) -> Trace:
        points: Any = batch.values if batch.names is None else LabeledArray(batch.values, batch.names)
        keys = composite_keys(batch)
        if isinstance(self.learner, Fleet):
            if keys is None:
                raise InvalidInputError("key: a Fleet needs one per point, got none. Name the column with key=….")
            return self.learner.update(keys, points)
        if keys is not None:
            raise InvalidInputError("learner: must be a Fleet, because the points have keys. Use Fleet(Detector()).")
        return self.learner.process(points, record=self.record)

    def _commit(self) -> None:
        """Flush the sink, write the checkpoint, commit the source, in this order."""
        offset = self.sink.flush()
        started = time.monotonic()
        if self.checkpoints is not None:
            self.stats.checkpoints += 1
            state = self.learner.to_bytes()
            header = {
                "run_format": checkpoint_store.RUN_FORMAT_VERSION,
                "run_id": self.run_id,
                "run_fields": self.run_id_fields,
                "learner": checkpoint_store.learner_config(self.learner),
                "learner_size": len(state),
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
        interval_s = max(self.checkpoint_interval, elapsed_s / MAX_CHECKPOINT_SHARE)
        self._next_commit = time.monotonic() + min(interval_s, MAX_INTERVAL_FACTOR * self.checkpoint_interval)


class PrefetchingReader:
    """Thread that reads ahead a bounded number of batches while one is processed."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._queue: queue.Queue[Batch | BaseException | None] = queue.Queue(MAX_QUEUED_BATCHES)
        self._finishing, self._stopped = threading.Event(), threading.Event()
        self.ended = False
        self._thread = threading.Thread(target=self._read_batches, args=(batches,), name="limpet source", daemon=True)
        self._thread.start()

    def take(self, timeout_s: float) -> Batch | None:
        """Return the next batch; None after the timeout or the end (`ended`)."""
        try:
            item = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self.ended = not isinstance(item, Batch)
        if isinstance(item, BaseException):
            raise item
        return item

    def stop_after_current(self) -> None:
        """End after the batch that is being read."""
        self._finishing.set()

    def stop(self, timeout_s: float = 2.0) -> None:
        """End, and discard what has been read."""
        self._stopped.set()
        while self._thread.is_alive() and timeout_s > 0.0:
            while not self._queue.empty():
                self._queue.get_nowait()
            self._thread.join(0.05)
            timeout_s -= 0.05

    def _read_batches(self, batches: Iterator[Batch]) -> None:
        """Queue the batches, and after them the error that ended the source, or None."""
        failure = None
        try:
            for batch in batches:
                if not isinstance(batch, Batch):
                    raise InvalidInputError(f"source: read() must yield batches, got {type(batch).__name__}.")
                if not self._put(batch) or self._finishing.is_set():
                    break
            if isinstance(batches, Generator):
                batches.close()
        except BaseException as error:  # raised again by `take`
            failure = error
        self._put(failure)

    def _put(self, item: Batch | BaseException | None) -> bool:
        """Wait for a place in the queue; return False if the reader was stopped."""
        while not self._stopped.is_set():
            with suppress(queue.Full):
                self._queue.put(item, timeout=0.1)
                return True
        return False
