"""Sinks made of others: several at once, or a function."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.errors import CheckpointError, InvalidInputError
from holdfast.streams.results import BatchResult
from holdfast.streams.sink import Sink, check_offset, make_offset

log = logging.getLogger("holdfast.streams")


@contextmanager
def close_all(parts: Sequence[Any]) -> Iterator[None]:
    """Closes all of these at the end. The first thing to go wrong is raised, what goes wrong after it is logged."""
    first_error: BaseException | None = None
    try:
        yield
    except BaseException as error:
        first_error = error
    for part in parts:
        try:
            getattr(part, "close", lambda: None)()
        except Exception as error:
            if first_error is not None:
                log.error("%s could not be closed: %s", type(part).__name__, error)
            first_error = first_error or error
    if first_error is not None:
        raise first_error


class MultiSink(Sink):
    """All of these."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self.sinks = list(sinks)

    def write(self, results: BatchResult) -> None:
        """Tells each of them."""
        for sink in self.sinks:
            sink.write(results)

    def flush(self) -> list[Any]:
        """The marks of all."""
        return [sink.flush() for sink in self.sinks]

    def truncate_to(self, offset: Any) -> None:
        """Each to its own mark."""
        names = [sink.name for sink in self.sinks if sink.is_exclusive]
        duplicates = [name for name in names if names.count(name) > 1]
        if duplicates:
            raise InvalidInputError(f"{duplicates[0]}: this is given twice")
        offsets = offset if offset is not None else [None] * len(self.sinks)
        if not isinstance(offsets, list):
            raise CheckpointError("the checkpoint is of one sink, now there is a list of them: give the same")
        if len(offsets) != len(self.sinks):
            raise CheckpointError(f"the checkpoint knows of {len(offsets)} sinks, now there are {len(self.sinks)}")
        for sink, sink_offset in zip(self.sinks, offsets, strict=True):
            if sink_offset is not None and sink.name:
                check_offset(sink, sink_offset)  # before anything is taken back anywhere
        try:
            for sink, sink_offset in zip(self.sinks, offsets, strict=True):
                sink.truncate_to(sink_offset)
        except BaseException:
            self.close()  # none keeps what it holds
            raise

    def acquire(self) -> None:
        """Claims all."""
        for sink in self.sinks:
            sink.acquire()

    def drain(self) -> None:
        """Drains all."""
        for sink in self.sinks:
            sink.drain()

    def stop_waiting(self) -> None:
        """Hurries all."""
        for sink in self.sinks:
            sink.stop_waiting()

    @property
    def undelivered(self) -> int:  # type: ignore[override]
        """Those of all."""
        return sum(sink.undelivered for sink in self.sinks)

    def close(self) -> None:
        """Closes all, although one of them may fail."""
        with close_all(self.sinks):
            pass


class CallbackSink(Sink):
    """A function that takes results; whatever else a sink can do is asked of `owner`, if it can do it."""

    def __init__(self, function: Callable[[BatchResult], object], owner: Any = None) -> None:
        self._function, self._owner = function, owner
        self.name = "a function" if owner is None else f"an object {type(owner).__name__}"

    def write(self, results: BatchResult) -> None:
        """Calls it."""
        self._function(results)

    def flush(self) -> Any:
        """How far it has come."""
        return make_offset(self, mark=getattr(self._owner, "flush", lambda: None)())

    def truncate_to(self, offset: Any) -> None:
        """Goes back to a mark."""
        owner_offset = None if offset is None else check_offset(self, offset)["mark"]
        getattr(self._owner, "truncate_to", lambda _: None)(owner_offset)

    def acquire(self) -> None:
        """What is written from now on is this run's alone."""
        getattr(self._owner, "acquire", lambda: None)()

    def drain(self) -> None:
        """Delivers what can be delivered soon."""
        getattr(self._owner, "drain", lambda: None)()

    def stop_waiting(self) -> None:
        """Waits for nobody from now on."""
        getattr(self._owner, "stop_waiting", lambda: None)()

    def close(self) -> None:
        """Nothing more will come."""
        getattr(self._owner, "close", lambda: None)()
