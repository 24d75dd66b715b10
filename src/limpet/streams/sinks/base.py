"""Sinks made of others: several at once, or a function."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.streams.results import BatchResult

# What a sink is.


class Sink:
    """Where results go. A sink of your own needs `write`; with `flush` and `rewind` nothing is told twice.

    write(results): the results of a batch, in the order in which they came.
    flush(): makes sure that all that was written will be there after a crash, and says how far it has come: a mark,
        which is anything that JSON can hold.
    rewind(mark): called once before the first `write`. Takes back all that was written after this mark, so that it
        can be written again; None: nothing has been written yet. A sink that cannot take anything back will tell some
        results twice after a crash.
    claim(): called after `rewind(None)` by a run with checkpoints: what is written from now on may have to be taken
        back, so that no other run must add to it.
    drain(): nothing more will be written. A sink that still has something to deliver may wait a little, before the last
        `flush`. hurry(): somebody wants to stop, so `write` must not wait any more; may be called at any moment.
    close(): at the end. undelivered: how many results it could not deliver, which without a checkpoint are lost.

    name: what it is and where, as it may be shown, which its marks hold. alone: whether two of one name would be in
    each other's way.
    """

    name: str = ""
    is_exclusive: bool = False
    undelivered: int = 0

    def write(self, results: BatchResult) -> None:
        """The results of a batch."""
        raise NotImplementedError

    def flush(self) -> Any:
        """How far it has come."""
        return None

    def truncate_to(self, offset: Any) -> None:
        """Goes back to a mark."""

    def acquire(self) -> None:
        """What is written from now on is this run's alone."""

    def drain(self) -> None:
        """Delivers what can be delivered soon."""

    def stop_waiting(self) -> None:
        """Waits for nobody from now on."""

    def close(self) -> None:
        """Nothing more will come."""


def make_offset(sink: Sink, **parts: Any) -> dict[str, Any]:
    """A mark that says of which sink it is."""
    return {"sink": sink.name, **parts}


def check_offset(sink: Sink, offset: Any) -> dict[str, Any]:
    """What a mark holds, if it is one of this sink."""
    if not isinstance(offset, dict) or "sink" not in offset:
        raise CheckpointError(f"the checkpoint says nothing of {sink.name}: give another --checkpoint folder")
    if offset["sink"] != sink.name:
        raise CheckpointError(
            f"the checkpoint is of {offset['sink']}, now it is {sink.name}: give the same, or another --checkpoint folder"
        )
    return offset


log = logging.getLogger("limpet.streams")


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
