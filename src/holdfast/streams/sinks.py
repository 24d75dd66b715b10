"""Sinks made of others: several at once, or a function."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.errors import BadInputError, CheckpointError
from holdfast.streams.results import Results
from holdfast.streams.sink import Sink, mark_of, parts_of

log = logging.getLogger("holdfast.streams")


@contextmanager
def closing(parts: Sequence[Any]) -> Iterator[None]:
    """Closes all of these at the end. The first thing to go wrong is raised, what goes wrong after it is logged."""
    first: BaseException | None = None
    try:
        yield
    except BaseException as error:
        first = error
    for part in parts:
        try:
            getattr(part, "close", lambda: None)()
        except Exception as error:
            if first is not None:
                log.error("%s could not be closed: %s", type(part).__name__, error)
            first = first or error
    if first is not None:
        raise first


class Several(Sink):
    """All of these."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self.sinks = list(sinks)

    def write(self, results: Results) -> None:
        """Tells each of them."""
        for sink in self.sinks:
            sink.write(results)

    def flush(self) -> list[Any]:
        """The marks of all."""
        return [sink.flush() for sink in self.sinks]

    def rewind(self, mark: Any) -> None:
        """Each to its own mark."""
        names = [sink.name for sink in self.sinks if sink.alone]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise BadInputError(f"{twice[0]}: this is given twice")
        marks = mark if mark is not None else [None] * len(self.sinks)
        if not isinstance(marks, list):
            raise CheckpointError("the checkpoint is of one sink, now there is a list of them: give the same")
        if len(marks) != len(self.sinks):
            raise CheckpointError(f"the checkpoint knows of {len(marks)} sinks, now there are {len(self.sinks)}")
        for sink, own in zip(self.sinks, marks, strict=True):
            if own is not None and sink.name:
                parts_of(sink, own)  # before anything is taken back anywhere
        try:
            for sink, own in zip(self.sinks, marks, strict=True):
                sink.rewind(own)
        except BaseException:
            self.close()  # none keeps what it holds
            raise

    def claim(self) -> None:
        """Claims all."""
        for sink in self.sinks:
            sink.claim()

    def drain(self) -> None:
        """Drains all."""
        for sink in self.sinks:
            sink.drain()

    def hurry(self) -> None:
        """Hurries all."""
        for sink in self.sinks:
            sink.hurry()

    @property
    def undelivered(self) -> int:  # type: ignore[override]
        """Those of all."""
        return sum(sink.undelivered for sink in self.sinks)

    def close(self) -> None:
        """Closes all, although one of them may fail."""
        with closing(self.sinks):
            pass


class Calling(Sink):
    """A function that takes results; whatever else a sink can do is asked of `owner`, if it can do it."""

    def __init__(self, function: Callable[[Results], object], owner: Any = None) -> None:
        self._function, self._owner = function, owner
        self.name = "a function" if owner is None else f"an object {type(owner).__name__}"

    def write(self, results: Results) -> None:
        """Calls it."""
        self._function(results)

    def flush(self) -> Any:
        """How far it has come."""
        return mark_of(self, mark=getattr(self._owner, "flush", lambda: None)())

    def rewind(self, mark: Any) -> None:
        """Goes back to a mark."""
        own = None if mark is None else parts_of(self, mark)["mark"]
        getattr(self._owner, "rewind", lambda _: None)(own)

    def claim(self) -> None:
        """What is written from now on is this run's alone."""
        getattr(self._owner, "claim", lambda: None)()

    def drain(self) -> None:
        """Delivers what can be delivered soon."""
        getattr(self._owner, "drain", lambda: None)()

    def hurry(self) -> None:
        """Waits for nobody from now on."""
        getattr(self._owner, "hurry", lambda: None)()

    def close(self) -> None:
        """Nothing more will come."""
        getattr(self._owner, "close", lambda: None)()
