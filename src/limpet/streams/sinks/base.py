"""The base class of sinks, and sinks that consist of others."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.streams.results import BatchResult

log = logging.getLogger("limpet.streams")


class BaseSink(ABC):
    """A destination of results.

    A sink needs `write`. A sink with `flush` and `truncate_to` is exactly-once: a resumed run truncates it to the
    offset in the checkpoint and writes the same results again. Other sinks are at-least-once.

    Attributes
    ----------
    name : str
        Kind and location, without secrets; part of its offsets.
    is_exclusive : bool
        Whether a second sink of the same name would conflict.
    undelivered : int
        Results that could not be delivered; without a checkpoint they are lost.

    Examples
    --------
    >>> class Count(BaseSink):
    ...     n = 0
    ...     def write(self, results):
    ...         self.n += len(results.alarms)
    """

    name: str = ""
    is_exclusive: bool = False
    undelivered: int = 0

    @abstractmethod
    def write(self, results: BatchResult) -> None:
        """Write the results of a batch. Batches arrive in order."""

    def flush(self) -> Any:
        """Make everything written durable and return the offset, which JSON can hold."""
        return None

    def truncate_to(self, offset: Any) -> None:
        """Remove everything written after an offset; None is the offset of a new run.

        Called once before the first `write`.
        """

    def acquire(self) -> None:
        """Mark the sink as owned by this run, so that no other run writes to it.

        Called after `truncate_to(None)` by a run with checkpoints.
        """

    def drain(self) -> None:
        """Deliver pending results; may block briefly.

        Called once after the last `write`, before the last `flush`.
        """

    def stop_waiting(self) -> None:
        """Stop blocking in `write`.

        Called from another thread, at any time, when the run has to stop.
        """

    def close(self) -> None:
        """Release files and connections."""


def make_offset(sink: BaseSink, **parts: Any) -> dict[str, Any]:
    """Return an offset with the name of its sink."""
    return {"sink": sink.name, **parts}


def check_offset(sink: BaseSink, offset: Any) -> dict[str, Any]:
    """Return an offset after checking that it belongs to this sink."""
    if not isinstance(offset, dict) or "sink" not in offset:
        raise CheckpointError(f"checkpoint: has no offset of {sink.name}. Use another checkpoint folder.")
    if offset["sink"] != sink.name:
        raise CheckpointError(
            f"checkpoint: belongs to the sink {offset['sink']}, got {sink.name}. Use that sink, or a new folder."
        )
    return offset


@contextmanager
def close_all(parts: Sequence[Any]) -> Iterator[None]:
    """Close all parts at the end; raise the first error, log the later ones."""
    first_error: BaseException | None = None
    try:
        yield
    except BaseException as error:
        first_error = error
    for part in parts:
        try:
            part.close()
        except Exception as error:
            if first_error is not None:
                log.error("cannot close %s: %s", type(part).__name__, error)
            first_error = first_error or error
    if first_error is not None:
        raise first_error


class MultiSink(BaseSink):
    """Several sinks, each with its own offset."""

    def __init__(self, sinks: Sequence[BaseSink]) -> None:
        self.sinks = list(sinks)

    def write(self, results: BatchResult) -> None:
        """Write to each sink."""
        for sink in self.sinks:
            sink.write(results)

    def flush(self) -> list[Any]:
        """Return the offsets of all sinks."""
        return [sink.flush() for sink in self.sinks]

    def truncate_to(self, offset: Any) -> None:
        """Truncate each sink to its offset; check all offsets before any sink changes."""
        names = [sink.name for sink in self.sinks if sink.is_exclusive]
        duplicates = [name for name in names if names.count(name) > 1]
        if duplicates:
            raise InvalidInputError(f"sink: must be given once, got {duplicates[0]} twice.")
        offsets = offset if offset is not None else [None] * len(self.sinks)
        if not isinstance(offsets, list) or len(offsets) != len(self.sinks):
            n_known = len(offsets) if isinstance(offsets, list) else 1
            raise CheckpointError(
                f"checkpoint: belongs to {n_known} sinks, got {len(self.sinks)}. Use those sinks, or a new folder."
            )
        for sink, sink_offset in zip(self.sinks, offsets, strict=True):
            if sink_offset is not None and sink.name:
                check_offset(sink, sink_offset)
        try:
            for sink, sink_offset in zip(self.sinks, offsets, strict=True):
                sink.truncate_to(sink_offset)
        except BaseException:
            self.close()  # releases the locks of all
            raise

    def acquire(self) -> None:
        """Acquire each sink."""
        for sink in self.sinks:
            sink.acquire()

    def drain(self) -> None:
        """Drain each sink."""
        for sink in self.sinks:
            sink.drain()

    def stop_waiting(self) -> None:
        """Stop blocking in each sink."""
        for sink in self.sinks:
            sink.stop_waiting()

    @property
    def undelivered(self) -> int:  # type: ignore[override]
        """The results that no sink could deliver."""
        return sum(sink.undelivered for sink in self.sinks)

    def close(self) -> None:
        """Close each sink, even if one of them fails."""
        with close_all(self.sinks):
            pass


class AtLeastOnceSink(BaseSink):
    """A sink whose results cannot be undone; its offset identifies the sink only."""

    def flush(self) -> Any:
        """Return the offset."""
        return make_offset(self)

    def truncate_to(self, offset: Any) -> None:
        """Check the offset."""
        if offset is not None:
            check_offset(self, offset)


class CallbackSink(AtLeastOnceSink):
    """A function that is called with the results of each batch."""

    name = "a function"

    def __init__(self, function: Callable[[BatchResult], object]) -> None:
        self._function = function

    def write(self, results: BatchResult) -> None:
        """Call the function."""
        self._function(results)
