"""The live monitor: database, learners, writer thread, and event listeners."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from limpet.learners import SRA, Detector
from limpet.server.db import Store
from limpet.server.ingest.processor import GroupProcessor
from limpet.server.ingest.stream_state import StreamInfo
from limpet.server.ingest.writer import CHECKPOINT_INTERVAL_S, WriterThread
from limpet.server.responses import ApiError
from limpet.streams.checkpoint_store import learner_config

MAX_LISTENERS = 200
MAX_PENDING_NOTICES = 100  # per listener


@dataclass(frozen=True)
class MonitorConfig:
    """Configuration of the monitor.

    Parameters
    ----------
    database : str
        The name of an SQLite file, or the URL of a PostgreSQL database.
    learner : Detector or SRA
        The learner whose configuration all streams have.
    retain_points : int
        The number of points of a stream that are stored in full, and the number of buckets of older points per level.
    max_streams : int
        The largest number of streams.
    checkpoint_interval_s : float
        Seconds between checkpoints.
    """

    database: str
    learner: Detector | SRA
    retain_points: int = 10_000
    max_streams: int = 100_000
    checkpoint_interval_s: float = CHECKPOINT_INTERVAL_S

    def to_api(self) -> dict[str, Any]:
        """Return the configuration as the API has it."""
        config = learner_config(self.learner)
        learner = {name: config[name] for name in config if name not in ("fleet", "max_keys")}
        limits = ("retain_points", "max_streams", "checkpoint_interval_s")
        return learner | {name: getattr(self, name) for name in limits}


class Listener:
    """A client that waits for events of one stream or of all."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._notices: list[dict[str, Any]] = []

    def wake(self, notice: dict[str, Any] | None = None) -> None:
        """Wake the listener; a notice is an event not in rows, as an acknowledgement."""
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
    """Listeners, which read new events from the database: none is lost or repeated.

    Only `publish` may be called outside the thread of the event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.closed, self._loop = False, loop
        self._listeners: dict[int | None, set[Listener]] = {}  # by stream; None: of all streams

    def publish(self, stream_ids: set[int]) -> None:
        """Wake the listeners of streams with new points, from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, stream_ids)

    def notify(self, stream_id: int | None, notice: dict[str, Any]) -> None:
        """Send a notice to the listeners of a stream; None: of each stream."""
        self._wake(self._listeners.keys() - {None} if stream_id is None else {stream_id}, notice)

    def _wake(self, stream_ids: Set[int | None], notice: dict[str, Any] | None = None) -> None:
        for listener in self._listeners.get(None, ()):
            listener.wake()
        for stream_id in self._listeners.keys() & stream_ids:
            for listener in self._listeners[stream_id]:
                listener.wake(notice)

    def check_capacity(self) -> None:
        """Raise if no further listener is allowed, before the response has started."""
        if sum(map(len, self._listeners.values())) >= MAX_LISTENERS:
            raise ApiError("too_many_listeners", f"events: {MAX_LISTENERS} clients are already connected. Close some.")

    @contextmanager
    def subscribe(self, stream_id: int | None = None) -> Iterator[Listener]:
        """Add a listener to one stream, or to all."""
        self.check_capacity()
        listener, listeners = Listener(), self._listeners.setdefault(stream_id, set())
        listeners.add(listener)
        try:
            yield listener
        finally:
            listeners.discard(listener)
            if not listeners:
                self._listeners.pop(stream_id, None)

    def close(self) -> None:
        """End all event streams, because the server stops; clients reconnect later."""
        self.closed = True
        self._wake(self._listeners.keys())


class Monitor:
    """All parts of the monitor, made within a running event loop."""

    def __init__(self, config: MonitorConfig, store: Store) -> None:
        self.config, self.store = config, store
        self.processor = GroupProcessor(store, config.learner, config.max_streams)
        self.notifier = EventNotifier(asyncio.get_running_loop())
        threading.Thread(target=self._warm_up, name="limpet warm-up", daemon=True).start()
        self.readers: list[Any] = []  # of sources
        interval_s = config.checkpoint_interval_s
        self.writer = WriterThread(self.processor, config.retain_points, self.notifier.publish, interval_s)

    def _warm_up(self) -> None:
        """Compile kernels; freeze objects, whose garbage collection delays requests."""
        self.processor.learners.warm_up()
        gc.collect()
        gc.freeze()

    async def run_on_writer(self, function: Callable[[], Any]) -> Any:
        """Call a function in the writer thread and return its result."""
        return await asyncio.wrap_future(self.writer.call(function))

    def get_stream(self, key: str) -> StreamInfo:
        """Return the stream with this key, or raise."""
        return self.processor.registry.require(key)


async def _get_monitor(request: Request) -> Monitor:
    return request.app.state.monitor  # type: ignore[no-any-return]


MonitorDep = Annotated[Monitor, Depends(_get_monitor)]
"""The monitor of the app that received a request."""
