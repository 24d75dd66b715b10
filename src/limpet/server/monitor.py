"""The live monitor: database, models, writer thread and notifier."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from limpet.learners import SRA, Detector
from limpet.server.db import Store
from limpet.server.ingest.notifier import EventNotifier
from limpet.server.ingest.parse import IngestRequest, StreamPoints
from limpet.server.ingest.processor import GroupProcessor, unknown_stream_error
from limpet.server.ingest.stream_registry import StreamInfo
from limpet.server.ingest.writer import CHECKPOINT_INTERVAL_S, WriterThread
from limpet.streams.checkpoint_store import model_config


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
        config = model_config(self.learner)
        return {
            **{name: value for name, value in config.items() if name not in ("fleet", "max_keys")},
            "retain_points": self.retain_points,
            "max_streams": self.max_streams,
            "checkpoint_interval_s": self.checkpoint_interval_s,
        }


class Monitor:
    """All parts of the monitor, made within a running event loop.

    Parameters
    ----------
    config : MonitorConfig
        The configuration.
    store : Store
        The open database; `stop` closes it.
    """

    def __init__(self, config: MonitorConfig, store: Store) -> None:
        self.config, self.store = config, store
        self.processor = GroupProcessor(store, config.learner, config.max_streams)
        self.notifier = EventNotifier(asyncio.get_running_loop())
        threading.Thread(target=self._warm_up, name="limpet warm-up", daemon=True).start()
        self.readers: list[Any] = []  # of sources
        self.writer = WriterThread(
            self.processor, config.retain_points, self.notifier.publish, config.checkpoint_interval_s
        )

    def _warm_up(self) -> None:
        """Compile kernels, and exclude the objects that remain from garbage collection, which would delay requests."""
        self.processor.models.warm_up()
        gc.collect()
        gc.freeze()

    async def ingest(
        self, parts: list[StreamPoints], idempotency_key: str | None = None, digest: str = ""
    ) -> list[dict[str, Any]]:
        """Learn points; return the response once they are stored."""
        return await asyncio.wrap_future(self.writer.submit(IngestRequest(parts, idempotency_key, digest)))

    async def run_on_writer(self, function: Callable[[], Any]) -> Any:
        """Call a function in the writer thread and return its result."""
        return await asyncio.wrap_future(self.writer.call(function))

    def get_stream(self, key: str) -> StreamInfo:
        """Return the stream with this key, or raise."""
        stream = self.processor.registry.get(key)
        if stream is None:
            raise unknown_stream_error(key)
        return stream

    def stop(self) -> None:
        """Process all queued points, write a checkpoint, and close the database."""
        self.writer.stop()
        self.store.close()


def get_monitor(request: Request) -> Monitor:
    """Return the monitor of the app that received a request."""
    monitor: Monitor = request.app.state.monitor
    return monitor
