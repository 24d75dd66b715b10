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

from holdfast.errors import BadInputError, HoldfastError
from holdfast.fleet import Fleet
from holdfast.learners.reading import NamedRows
from holdfast.learners.trace import Trace
from holdfast.streams.ahead import Ahead
from holdfast.streams.batch import Batch
from holdfast.streams.checkpoints import Checkpoints
from holdfast.streams.lateness import Lateness
from holdfast.streams.results import Results
from holdfast.streams.saving import FORMAT, Model, require_position, require_same_run, restored, settings_of
from holdfast.streams.separate import stream_keys
from holdfast.streams.sink import Sink
from holdfast.streams.sinks import closing
from holdfast.streams.source import Source
from holdfast.streams.tally import Tally

log = logging.getLogger("holdfast.streams")
EVERY = 5.0  # seconds between checkpoints
SHARE = 0.1  # of the time, at most, that goes into checkpoints
SELDOM = 12.0  # times as long as it should be, at most, between checkpoints that take long
PATIENCE = 0.25  # seconds to wait for a batch before looking whether there is something else to do
LAST = 1.5  # seconds that a source has for its last batch, when somebody wants to stop


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
        sink: Sink,
        checkpoints: Checkpoints | None = None,
        *,
        every: float = EVERY,
        late: str = "skip",
        stop: threading.Event | None = None,
        about: Mapping[str, Any] | None = None,
        seen: Callable[[Results], None] | None = None,
        record: str | None = None,
    ) -> None:
        self.source, self.model, self.sink, self.checkpoints = source, model, sink, checkpoints
        self.every, self.stop, self.record = every, stop or threading.Event(), record
        self.tally, self.lateness, self.position = Tally(), Lateness(late, getattr(model, "max_keys", None)), None
        self.about = dict(about or {})
        self.behind: tuple[int, str] | None = None
        self.committed_at: float | None = None
        self.ticks: list[Callable[..., None]] = []
        """Are called again and again with the run, and at the end with last=True."""

        self.name = uuid.uuid4().hex[:12]
        self._seen = seen
        self._uncommitted = 0  # records
        self._next_commit = 0.0

    def run(self) -> Tally:
        """Runs until the source ends or `stop` is set; what has been read by then is learnt."""
        over = threading.Event()
        with closing([self.source, self.sink]), ExitStack() as at_the_end:
            self._begin()
            ahead = Ahead(self.source.read(self.position))
            at_the_end.callback(ahead.stop)
            at_the_end.callback(over.set)
            threading.Thread(target=self._hurry_on_stop, args=(over,), name="holdfast stop", daemon=True).start()
            until = math.inf
            while not ahead.ended:
                if until == math.inf and self.stop.is_set():
                    ahead.finish()
                    until = time.monotonic() + LAST
                batch = ahead.take(PATIENCE)
                if batch is not None:
                    self._learn(batch)
                elif time.monotonic() > until:
                    break
                self._commit_if_due(batch is not None and batch.urgent)
                for tick in self.ticks:
                    tick(self)
            self.sink.drain()
            self._commit()
            for tick in self.ticks:
                tick(self, last=True)
        return self.tally

    def require_delivered(self) -> None:
        """Raises, if results could not be delivered and are not in a checkpoint either; for after the run."""
        if self.checkpoints is None and self.sink.undelivered:
            raise HoldfastError(f"{self.sink.undelivered} alarms could not be delivered; a checkpoint would keep them")

    def _hurry_on_stop(self, over: threading.Event) -> None:
        """Sinks do not wait any more when somebody wants to stop, although they may be waiting just now."""
        while not over.is_set():
            if self.stop.wait(PATIENCE):
                self.sink.hurry()
                return

    # Beginning

    def _begin(self) -> None:
        found = None if self.checkpoints is None else self.checkpoints.newest()
        mark = None
        if found is not None:
            mark = self._resume(*found)
        self.model._is_told_elsewhere("bad")  # in the tally, with reasons
        self.sink.rewind(mark)
        self._next_commit = time.monotonic() + self.every
        if found is None and self.checkpoints is not None:
            self.sink.claim()
            self._commit()  # so that there is something to come back to before anything is told

    def _resume(self, header: dict[str, Any], body: memoryview) -> Any:
        require_same_run(header, self.model, self.about)
        size = header["model_size"]
        self.model = restored(self.model, body[:size])
        self.lateness.restore(bytes(body[size:]))
        self.tally = Tally.of_json(header["tally"])
        self.position, self.name = header["position"], header["run"]
        log.info("resumed after %d records, %d alarms", self.tally.records, self.tally.n_alarms)
        return header["mark"]

    # Going on

    def _learn(self, batch: Batch) -> None:
        first_record = self.tally.records
        taken, late, repeated = self.lateness.sift(batch)
        self.tally.note_read(batch, late, repeated)
        if len(taken):
            trace = self._process(taken)
            counts = (first_record, self.tally.points, self.tally.n_alarms, self.name)
            results = Results(taken, trace, *counts)
            self.sink.write(results)
            self.tally.note_learnt(results)
            if self._seen is not None:
                self._seen(results)
        if self.checkpoints is not None and self.position is None:
            require_position(batch)
        self.position = batch.position
        self.behind = None if batch.behind is None else (batch.behind, batch.behind_in)
        self._uncommitted += batch.n_records

    def _process(self, batch: Batch) -> Trace:
        points: Any = batch.values if batch.names is None else NamedRows(batch.values, batch.names)
        keys = stream_keys(batch)
        if isinstance(self.model, Fleet):
            if keys is None:
                raise BadInputError("a fleet needs the key of each point: say which column has it (key=…)")
            return self.model.update(keys, points)
        if keys is not None:
            raise BadInputError("the points have keys: for many streams give a Fleet, such as Fleet(SRA())")
        return self.model.process(points, record=self.record)

    def _commit_if_due(self, urgent: bool) -> None:
        if self._uncommitted and (urgent or time.monotonic() >= self._next_commit):
            self._commit()

    def _commit(self) -> None:
        """The sink makes sure of what it has, then all is written down, then the source may forget."""
        mark = self.sink.flush()
        began = time.monotonic()
        if self.checkpoints is not None:
            self.tally.checkpoints += 1
            state = self.model.to_bytes()
            header = {
                "run_format": FORMAT,
                "run": self.name,
                "about": self.about,
                "model": settings_of(self.model),
                "model_size": len(state),
                "position": self.position,
                "mark": mark,
                "tally": self.tally.as_json(),
            }
            self.checkpoints.save(header, (state, self.lateness.to_bytes()))
        taken = time.monotonic() - began
        if self.position is not None:
            getattr(self.source, "committed", lambda _: None)(self.position)
        self._uncommitted, self.committed_at = 0, time.time()
        self._next_commit = time.monotonic() + min(max(self.every, taken / SHARE), SELDOM * self.every)
