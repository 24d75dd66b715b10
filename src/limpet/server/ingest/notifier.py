"""Wakes those who listen. What they are told they read from the store, so that nothing is lost or doubled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from limpet.server.errors import ApiError
from limpet.server.ingest.processor import GroupOutcome

MAX_LISTENERS = 200  # listeners at a time
MAX_PENDING_NOTICES = 100  # that wait for one of them: who does not read for long has to ask again anyway


class Listener:
    """Somebody who waits for news of one stream, or of all."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._notices: list[dict[str, Any]] = []

    def wake(self, notice: dict[str, Any] | None = None) -> None:
        """There is news; a notice is something that is not in rows, such as an alarm that was acknowledged."""
        if notice is not None:
            self._notices = [*self._notices[1 - MAX_PENDING_NOTICES :], notice]
        self._event.set()

    async def wait(self, timeout_s: float) -> bool:
        """Whether there was news within this time."""
        try:
            await asyncio.wait_for(self._event.wait(), timeout_s)
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def take_notices(self) -> list[dict[str, Any]]:
        """Those that have come since."""
        notices, self._notices = self._notices, []
        return notices


class EventNotifier:
    """All listeners. Everything but `publish` is called in the thread of the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.closed = False
        self._loop = loop
        self._global_listeners: set[Listener] = set()
        self._stream_listeners: dict[int, set[Listener]] = {}

    def publish(self, outcome: GroupOutcome) -> None:
        """From any thread: streams have new points."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, outcome.streams)

    def _wake(self, streams: set[int]) -> None:
        for listener in self._global_listeners:
            listener.wake()
        for stream_id in self._stream_listeners.keys() & streams:
            for listener in self._stream_listeners[stream_id]:
                listener.wake()

    def notify(self, stream_id: int | None, notice: dict[str, Any] | None) -> None:
        """Something of a stream has changed that is not in its rows; None: of many streams."""
        for listener in self._global_listeners:
            listener.wake()
        for target_id in list(self._stream_listeners) if stream_id is None else [stream_id]:
            for listener in self._stream_listeners.get(target_id, ()):
                listener.wake(notice)

    def check_capacity(self) -> None:
        """Refuses one more listener than there may be: before an answer has begun, when that can still be said."""
        if len(self._global_listeners) + sum(map(len, self._stream_listeners.values())) >= MAX_LISTENERS:
            raise ApiError("too_many_listeners", f"{MAX_LISTENERS} pages are listening already")

    @contextmanager
    def subscribe(self, stream_id: int | None = None) -> Iterator[Listener]:
        """A listener to one stream, or to all."""
        self.check_capacity()
        listener = Listener()
        listeners = self._global_listeners if stream_id is None else self._stream_listeners.setdefault(stream_id, set())
        listeners.add(listener)
        try:
            yield listener
        finally:
            listeners.discard(listener)
            if stream_id is not None and not listeners:
                self._stream_listeners.pop(stream_id, None)

    def close(self) -> None:
        """The server stops: whoever listens is let go, and comes again later by itself."""
        self.closed = True
        self._wake(set(self._stream_listeners))
