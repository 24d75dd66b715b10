"""`limpet.run`: run a source through a learner into sinks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from limpet._format import redact_url
from limpet.exceptions import InvalidInputError
from limpet.fleet import Fleet
from limpet.learners.base import Learner
from limpet.streams.checkpoint_store import CheckpointStore, Model
from limpet.streams.results import BatchResult
from limpet.streams.run_stats import RunStats
from limpet.streams.runner import CHECKPOINT_INTERVAL_S, Runner
from limpet.streams.sinks.base import BaseSink, CallbackSink, MultiSink
from limpet.streams.sources.base import BaseSource
from limpet.streams.uri import open_sink, open_source


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

    learner: Model
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
    """Run a source through a learner into sinks; with checkpoints, a run resumes after a crash.

    State, source position and sink offset are checkpointed atomically. Files, SQLite and JetStream are exactly-once;
    other sinks are at-least-once.

    Parameters
    ----------
    source : str, path or BaseSource
        A file, a directory, a URL of a broker (see `limpet.streams.open_source`), or a source.
    learner : learner or Fleet
        A fleet where points have keys. It is updated, unless the run resumes: then the learner of the checkpoint takes
        its place, and is in the result.
    sink : str, BaseSink, callable or sequence of these
        A path or URL (see `limpet.streams.open_sink`), a sink, or a function called with the `BatchResult` of each
        batch.
    checkpoint : str or path, optional
        A directory for checkpoints. Calling `run` again with the same arguments resumes at the last one.
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
    checkpoints = None if checkpoint is None else CheckpointStore(checkpoint)
    try:
        runner = Runner(
            opened_source,
            learner,
            coerce_sink(sink),
            checkpoints,
            checkpoint_interval=checkpoint_interval,
            late=late,
            stop=stop,
            run_id_fields={"source": redact_url(os.fspath(source))} if isinstance(source, str | os.PathLike) else {},
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
