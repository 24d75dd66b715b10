"""Wakes those who listen. What they are told they read from the store, so that nothing is lost or doubled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.server.errors import Refused
from holdfast.server.live.desk import Told

MOST = 200  # listeners at a time
NOTICES = 100  # that wait for one of them: who does not read for long has to ask again anyway


class Listener:
    """Somebody who waits for news of one stream, or of all."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._notices: list[dict[str, Any]] = []

    def wake(self, notice: dict[str, Any] | None = None) -> None:
        """There is news; a notice is something that is not in rows, such as an alarm that was acknowledged."""
        if notice is not None:
            self._notices = [*self._notices[1 - NOTICES :], notice]
        self._news.set()

    async def wait(self, seconds: float) -> bool:
        """Whether there was news within this time."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return False
        self._news.clear()
        return True

    def notices(self) -> list[dict[str, Any]]:
        """Those that have come since."""
        taken, self._notices = self._notices, []
        return taken


class Hub:
    """All listeners. Everything but `publish` is called in the thread of the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.closed = False
        self._loop = loop
        self._of_all: set[Listener] = set()
        self._of_stream: dict[int, set[Listener]] = {}

    def publish(self, told: Told) -> None:
        """From any thread: streams have new points."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, told.streams)

    def _wake(self, streams: set[int]) -> None:
        for listener in self._of_all:
            listener.wake()
        for number in self._of_stream.keys() & streams:
            for listener in self._of_stream[number]:
                listener.wake()

    def notify(self, number: int | None, notice: dict[str, Any] | None) -> None:
        """Something of a stream has changed that is not in its rows; None: of many streams."""
        for listener in self._of_all:
            listener.wake()
        for one in list(self._of_stream) if number is None else [number]:
            for listener in self._of_stream.get(one, ()):
                listener.wake(notice)

    def require_room(self) -> None:
        """Refuses one more listener than there may be: before an answer has begun, when that can still be said."""
        if len(self._of_all) + sum(map(len, self._of_stream.values())) >= MOST:
            raise Refused("too_many_listeners", f"{MOST} pages are listening already")

    @contextmanager
    def listening(self, number: int | None = None) -> Iterator[Listener]:
        """A listener to one stream, or to all."""
        self.require_room()
        listener = Listener()
        own = self._of_all if number is None else self._of_stream.setdefault(number, set())
        own.add(listener)
        try:
            yield listener
        finally:
            own.discard(listener)
            if number is not None and not own:
                self._of_stream.pop(number, None)

    def close(self) -> None:
        """The server stops: whoever listens is let go, and comes again later by itself."""
        self.closed = True
        self._wake(set(self._of_stream))
