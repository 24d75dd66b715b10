"""All parts of the live monitor together."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from limpet.learners import SRA
from limpet.server.db import Store
from limpet.server.ingest.notifier import EventNotifier
from limpet.server.ingest.parse import IngestRequest, StreamPoints
from limpet.server.ingest.processor import GroupProcessor, unknown_stream_error
from limpet.server.ingest.stream_registry import StreamInfo
from limpet.server.ingest.writer import CHECKPOINT_INTERVAL_S, WriterThread


@dataclass(frozen=True)
class MonitorConfig:
    """What the monitor is made with.

    store: a file or a URL. learner: whose settings all streams have. keep: points of a stream that are kept in full,
    and as many buckets of older ones at each level. max_streams: streams, at most. every: seconds between checkpoints.
    """

    store: str
    learner: SRA
    max_full_points: int = 10_000
    max_streams: int = 100_000
    checkpoint_interval_s: float = CHECKPOINT_INTERVAL_S

    def to_api(self) -> dict[str, Any]:
        """As the API tells them."""
        learner = self.learner
        names = ("n_components", "far", "lags", "season", "memory", "gamma", "rho", "beta", "M", "norm")
        params = {name: getattr(learner, name) for name in names}
        params["norm"] = str(params["norm"])
        return {
            **params,
            "keep": self.max_full_points,
            "max_streams": self.max_streams,
            "every": self.checkpoint_interval_s,
        }


class Monitor:
    """The monitor, from its start in an event loop to its end."""

    def __init__(self, config: MonitorConfig, store: Store) -> None:
        self.config, self.store = config, store
        self.processor = GroupProcessor(store, config.learner, config.max_streams)
        self.notifier = EventNotifier(asyncio.get_running_loop())
        threading.Thread(target=self._warm_up, name="limpet warm-up", daemon=True).start()
        self.readers: list[Any] = []
        """Sources that bring points in."""
        self.writer = WriterThread(
            self.processor, config.max_full_points, self.notifier.publish, config.checkpoint_interval_s
        )

    def _warm_up(self) -> None:
        """Has kernels compiled, and keeps what that leaves in memory out of every search for garbage, which would hold
        up all posts for as long as it takes."""
        self.processor.models.warm_up()
        gc.collect()
        gc.freeze()

    async def ingest(
        self, parts: list[StreamPoints], idempotency_key: str | None = None, digest: str = ""
    ) -> list[dict[str, Any]]:
        """Learns points; the answer comes once they are kept."""
        return await asyncio.wrap_future(self.writer.submit(IngestRequest(parts, idempotency_key, digest)))

    async def run_on_writer(self, function: Callable[[], Any]) -> Any:
        """Something that writes, done by the one thread that does."""
        return await asyncio.wrap_future(self.writer.call(function))

    def get_stream(self, key: str) -> StreamInfo:
        """The stream of this key."""
        stream = self.processor.registry.get(key)
        if stream is None:
            raise unknown_stream_error(key)
        return stream

    def stop(self) -> None:
        """Orderly: what waits is learnt, and a checkpoint written."""
        self.writer.stop()
        self.store.close()


def get_monitor(request: Request) -> Monitor:
    """The monitor of the app that was asked."""
    monitor: Monitor = request.app.state.monitor
    return monitor
