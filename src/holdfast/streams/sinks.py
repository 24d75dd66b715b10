"""Sinks made of others: several at once, or a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.errors import CheckpointError
from holdfast.streams.results import Results
from holdfast.streams.sink import Sink


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
        marks = mark if mark is not None else [None] * len(self.sinks)
        if len(marks) != len(self.sinks):
            raise CheckpointError(f"the checkpoint knows of {len(marks)} sinks, now there are {len(self.sinks)}")
        for sink, own in zip(self.sinks, marks, strict=True):
            sink.rewind(own)

    def drain(self) -> None:
        """Drains all."""
        for sink in self.sinks:
            sink.drain()

    def hurry(self) -> None:
        """Hurries all."""
        for sink in self.sinks:
            sink.hurry()

    def close(self) -> None:
        """Closes all."""
        for sink in self.sinks:
            sink.close()


class Calling(Sink):
    """A function that takes results; whatever else a sink can do is asked of `owner`, if it can do it."""

    def __init__(self, function: Callable[[Results], object], owner: Any = None) -> None:
        self._function, self._owner = function, owner

    def write(self, results: Results) -> None:
        """Calls it."""
        self._function(results)

    def flush(self) -> Any:
        """How far it has come."""
        return getattr(self._owner, "flush", lambda: None)()

    def rewind(self, mark: Any) -> None:
        """Goes back to a mark."""
        getattr(self._owner, "rewind", lambda _: None)(mark)

    def close(self) -> None:
        """Nothing more will come."""
        getattr(self._owner, "close", lambda: None)()
