"""All parts of the live monitor together."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from holdfast.learners import SRA
from holdfast.server.live.board import Known
from holdfast.server.live.desk import Desk, unknown_stream
from holdfast.server.live.hub import Hub
from holdfast.server.live.keeper import EVERY, Keeper
from holdfast.server.live.posts import Part, Post
from holdfast.server.store import Store


@dataclass(frozen=True)
class Settings:
    """What the monitor is made with.

    store: a file or a URL. learner: whose settings all streams have. keep: points of a stream that are kept in full,
    and as many buckets of older ones at each level. max_streams: streams, at most. every: seconds between checkpoints.
    """

    store: str
    learner: SRA
    keep: int = 10_000
    max_streams: int = 100_000
    every: float = EVERY

    def told(self) -> dict[str, Any]:
        """As the API tells them."""
        learner = self.learner
        names = ("n_components", "far", "lags", "season", "memory", "gamma", "rho", "beta", "M", "norm")
        own = {name: getattr(learner, name) for name in names}
        own["norm"] = str(own["norm"])
        return {**own, "keep": self.keep, "max_streams": self.max_streams, "every": self.every}


class Watching:
    """The monitor, from its start in an event loop to its end."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self.desk = Desk(store, settings.learner, settings.max_streams)
        self.hub = Hub(asyncio.get_running_loop())
        threading.Thread(target=self._warm_up, name="holdfast warm-up", daemon=True).start()
        self.feeds: list[Any] = []
        """Sources that bring points in."""
        self.keeper = Keeper(self.desk, settings.keep, self.hub.publish, settings.every)

    def _warm_up(self) -> None:
        """Has kernels compiled, and keeps what that leaves in memory out of every search for garbage, which would hold
        up all posts for as long as it takes."""
        self.desk.fleets.warm_up()
        gc.collect()
        gc.freeze()

    async def post(self, parts: list[Part], name: str | None = None, digest: str = "") -> list[dict[str, Any]]:
        """Learns points; the answer comes once they are kept."""
        return await asyncio.wrap_future(self.keeper.submit(Post(parts, name, digest)))

    async def do(self, work: Callable[[], Any]) -> Any:
        """Something that writes, done by the one thread that does."""
        return await asyncio.wrap_future(self.keeper.call(work))

    def known(self, key: str) -> Known:
        """The stream of this key."""
        found = self.desk.board.get(key)
        if found is None:
            raise unknown_stream(key)
        return found

    def stop(self) -> None:
        """Orderly: what waits is learnt, and a checkpoint written."""
        self.keeper.stop()
        self.store.close()


def watching(request: Request) -> Watching:
    """The monitor of the app that was asked."""
    found: Watching = request.app.state.watching
    return found
