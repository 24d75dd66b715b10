"""Wake listeners. They read what is new from the database, so that no event is lost or repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from limpet.server.errors import ApiError
from limpet.server.ingest.processor import GroupOutcome

MAX_LISTENERS = 200
MAX_PENDING_NOTICES = 100  # per listener


class Listener:
    """A client that waits for events of one stream or of all."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._notices: list[dict[str, Any]] = []

    def wake(self, notice: dict[str, Any] | None = None) -> None:
        """Wake the listener; a notice is an event that is not in rows, such as an acknowledged alarm."""
        if notice is not None:
            self._notices = [*self._notices[1 - MAX_PENDING_NOTICES :], notice]
        self._event.set()

    async def wait(self, timeout_s: float) -> bool:
        """Wait for an event; return False after the timeout."""
        try:
            await asyncio.wait_for(self._event.wait(), timeout_s)
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def take_notices(self) -> list[dict[str, Any]]:
        """Return and remove the pending notices."""
        notices, self._notices = self._notices, []
        return notices


class EventNotifier:
    """All listeners. Only `publish` may be called outside the thread of the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.closed = False
        self._loop = loop
        self._global_listeners: set[Listener] = set()
        self._stream_listeners: dict[int, set[Listener]] = {}

    def publish(self, outcome: GroupOutcome) -> None:
        """Wake the listeners of streams with new points, from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, outcome.streams)

    def _wake(self, streams: set[int]) -> None:
        for listener in self._global_listeners:
            listener.wake()
        for stream_id in self._stream_listeners.keys() & streams:
            for listener in self._stream_listeners[stream_id]:
                listener.wake()

    def notify(self, stream_id: int | None, notice: dict[str, Any] | None) -> None:
        """Send a notice to the listeners of a stream; None: of all streams."""
        for listener in self._global_listeners:
            listener.wake()
        for target_id in list(self._stream_listeners) if stream_id is None else [stream_id]:
            for listener in self._stream_listeners.get(target_id, ()):
                listener.wake(notice)

    def check_capacity(self) -> None:
        """Raise if no further listener is allowed, before the response has started."""
        if len(self._global_listeners) + sum(map(len, self._stream_listeners.values())) >= MAX_LISTENERS:
            raise ApiError("too_many_listeners", f"events: {MAX_LISTENERS} clients are already connected. Close some.")

    @contextmanager
    def subscribe(self, stream_id: int | None = None) -> Iterator[Listener]:
        """Add a listener to one stream, or to all."""
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
        """End all event streams, because the server stops; clients reconnect later."""
        self.closed = True
        self._wake(set(self._stream_listeners))
