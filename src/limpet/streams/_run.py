"""The Python side of `limpet watch`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from limpet.exceptions import InvalidInputError
from limpet.fleet import Fleet
from limpet.learners.base import StochasticApproximation
from limpet.streams.checkpoint_store import CheckpointStore, Model
from limpet.streams.results import BatchResult
from limpet.streams.run_stats import RunStats
from limpet.streams.runner import CHECKPOINT_INTERVAL_S, Runner
from limpet.streams.sinks.base import BaseSink, CallbackSink, MultiSink
from limpet.streams.sources.base import Source
from limpet.streams.uri import open_sink, open_source, redact


@dataclass(frozen=True)
class RunResult:
    """What a run came to: the model as it is now, and the counts since the run first began."""

    model: Model
    stats: RunStats


def run(
    source: str | os.PathLike[str] | Source,
    learner: StochasticApproximation | Fleet,
    sink: str | BaseSink | Callable[[BatchResult], object] | Sequence[Any] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    *,
    checkpoint_interval: float = CHECKPOINT_INTERVAL_S,
    late: str = "skip",
    stop: threading.Event | None = None,
) -> RunResult:
    """Learns all that a source gives and tells a sink what it came to; resumes where it was, if there is a checkpoint.

    source: a Source, or the name of one: a file, a folder, a URL of a broker; see `limpet.streams.source_at`.
    model: a learner, or a fleet where points have keys. It learns; where a run is resumed, the model of the checkpoint
        takes its place, and is in the outcome.
    sink: a BaseSink, the name of one, a function that is called with the `Results` of each batch, or a list of these.
    checkpoint: a folder. State, position of the source and position of the sink are written there every `every`
        seconds, together; after a crash the same call goes on, and nothing is lost. Nothing is told twice if the
        sink can take back what it was told after the last checkpoint: files, SQLite and JetStream can. With 0 there is
        one after each batch; more than a tenth of the time is not spent on them otherwise.
    late: "skip" points that are older than the last one of their stream or repeat it, or "learn" them as they come.
    stop: to end the run from another thread: what has been read is learnt, then all is written down.

    >>> import numpy as np
    >>> from limpet import SRA
    >>> from limpet.streams import Batch
    >>> class Levels:
    ...     def read(self, position):
    ...         stream = np.random.default_rng(1).normal(20.0, 0.5, 1000)
    ...         stream[700] = 35.0
    ...         for first in range(position or 0, 1000, 250):
    ...             yield Batch(stream[first : first + 250], position=first + 250)
    >>> alarms = []
    >>> outcome = run(Levels(), SRA(), lambda results: alarms.extend(results.alarms))
    >>> outcome.tally.points, [alarm.row for alarm in alarms]
    (1000, [700])
    """
    if not isinstance(learner, StochasticApproximation | Fleet):
        raise InvalidInputError(f"model: expected a learner such as SRA(), or a Fleet, got {learner!r}")
    opened_source = open_source(source) if isinstance(source, str | os.PathLike) else source
    if not isinstance(opened_source, Source):
        raise InvalidInputError(f"source: expected a name, or something with read(position), got {source!r}")
    checkpoints = None if checkpoint is None else CheckpointStore(checkpoint)
    try:
        about = {"source": redact(os.fspath(source))} if isinstance(source, str | os.PathLike) else {}
        runner = Runner(
            opened_source,
            learner,
            coerce_sink(sink),
            checkpoints,
            checkpoint_interval=checkpoint_interval,
            late=late,
            stop=stop,
            run_id_fields=about,
        )
        stats = runner.run()
        runner.raise_if_undelivered()
    finally:
        if checkpoints is not None:
            checkpoints.close()
    return RunResult(runner.model, stats)


def coerce_sink(sink: Any) -> BaseSink:
    """Return the sink that a URI, a path, a function or a list of sinks stands for."""
    if isinstance(sink, BaseSink):
        return sink
    if isinstance(sink, str | os.PathLike):
        return open_sink(os.fspath(sink))
    if isinstance(sink, list | tuple):
        return MultiSink([coerce_sink(item) for item in sink])
    if callable(sink):
        return CallbackSink(sink)
    raise InvalidInputError(
        f"sink: must be a path, a URI, a function, a limpet.streams.BaseSink or a list of these, got {sink!r}"
    )
