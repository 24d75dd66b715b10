"""A source of `holdfast watch` that feeds the monitor: its position is kept with the points, in one transaction."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sqlalchemy import select

from holdfast.scheme.algorithm import LARGEST
from holdfast.server.errors import Refused
from holdfast.server.live.clock import Moment
from holdfast.server.live.posts import Part, Post, check_key
from holdfast.server.live.watching import Watching
from holdfast.server.store.tables import SOURCES
from holdfast.streams.batch import Batch
from holdfast.streams.peeked import Peeked
from holdfast.streams.results import texts_of
from holdfast.streams.separate import TOGETHER, apart, stream_keys
from holdfast.streams.source import Source
from holdfast.streams.times import comparable, told

log = logging.getLogger("holdfast.server")
TOLD = 5  # refusals that are logged


class Feed:
    """Reads a source in a thread of its own, from where it was when the server stopped.

    name: under which its position is kept. stream: the key where the source has none. joint: whether the columns of a
    record are one stream; None: if they are few.
    """

    def __init__(self, watching: Watching, source: Source, name: str, stream: str, joint: bool | None = None) -> None:
        self.name, self.state, self.problem = name, "running", ""
        self.n_records = self.n_refused = 0
        self._watching, self._source, self._stream, self._joint = watching, source, stream, joint
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="holdfast feed", daemon=True)
        self._thread.start()

    def told(self) -> dict[str, Any]:
        """As the API tells it."""
        names = ("name", "state", "problem", "n_records", "n_refused")
        return {name: getattr(self, name) for name in names}

    def stop(self) -> None:
        """What has been read is learnt, and that is all."""
        self._stop.set()
        self._thread.join(5.0)
        getattr(self._source, "close", lambda: None)()

    def _work(self) -> None:
        try:
            self._read()
            self.state = "stopped" if self._stop.is_set() else "ended"
            log.info("%s %s after %d records", self.name, self.state, self.n_records)
        except Exception as error:  # of whatever library reads it
            self.state, self.problem = "failed", str(error)
            log.error("%s is not read any more: %s", self.name, error)

    def _read(self) -> None:
        with self._watching.store.reading() as connection:
            kept = connection.execute(select(SOURCES.c.position).where(SOURCES.c.name == self.name)).scalar()
        peeked = Peeked(self._source, None if kept is None else json.loads(kept))
        if peeked.columns is None:
            peeked.look(self._stop)
        names = () if peeked.columns is None else peeked.columns.values
        separate = len(names) > TOGETHER if self._joint is None else not self._joint
        for batch in peeked.read():
            self._note_refused(batch)
            if batch.n_records:
                self._learn(apart(batch) if separate and len(names) > 1 else batch)
                peeked.committed(batch.position)
            if self._stop.is_set():
                return

    def _learn(self, batch: Batch) -> None:
        """The points of a batch; those that cannot be kept are left out and told of."""
        parts = []
        for part in parts_of(batch, self._stream):
            try:
                check_key(part.key)
            except Refused as refusal:
                self._refuse(len(part), f"{part.key!r:.80}: {refusal}")
            else:
                parts.append(part)
        self.n_records += batch.n_records
        for part, why in self._submit(Post(parts, position=(self.name, batch.position))).left_out:
            self._refuse(len(part), f"{part.key!r:.80}: {why}")

    def _submit(self, post: Post) -> Post:
        """Waits until it is kept, however long the store cannot be written."""
        while True:
            try:
                self._watching.keeper.submit(post).result()
                return post
            except Refused as refusal:
                if refusal.code not in ("overloaded", "store_unavailable") or self._stop.wait(1.0):
                    raise
                post = Post(post.parts, position=post.position)

    def _note_refused(self, batch: Batch) -> None:
        self.n_refused += batch.refused.total

    def _refuse(self, n: int, why: str) -> None:
        self.n_refused += n
        if self.n_refused <= TOLD:
            log.warning("%s: %d points are left out: %s", self.name, n, why)


def parts_of(batch: Batch, stream: str) -> Iterator[Part]:
    """The points of a batch by their streams, those that can be learnt from."""
    in_reach = (np.isnan(batch.values) | (np.abs(batch.values) <= LARGEST)).all(axis=1)
    usable = np.asarray(in_reach & ~np.isnan(batch.values).all(axis=1))
    batch = batch if usable.all() else batch.only(usable)
    keys = stream_keys(batch)
    names = None if batch.channels is not None or batch.values.shape[1] == 1 else batch.names
    order: dict[str, list[int]] = {}
    if keys is None:
        order[stream] = list(range(len(batch)))
    else:
        for place, key in enumerate(texts_of(keys)):
            if key is not None:
                order.setdefault(key, []).append(place)
    times, moments = _times_of(batch)
    for key, places in order.items():
        if places:
            chosen = batch.values if len(places) == len(batch) else batch.values[places]
            yield Part(key, chosen, names, [times[i] for i in places], [moments[i] for i in places])


def _times_of(batch: Batch) -> tuple[list[str | None], list[Moment | None]]:
    """Times as texts and to compare; none, where they cannot be compared."""
    moments = None if batch.times is None else comparable(batch.times)
    if batch.times is None or moments is None:
        return [None] * len(batch), [None] * len(batch)
    missing = np.isnat(batch.times) if batch.times.dtype.kind == "M" else np.isnan(batch.times)
    texts = [None if one is None else str(one) for one in told(batch.times, batch.zoned)]
    return texts, [None if out else moment for moment, out in zip(moments.tolist(), missing.tolist(), strict=True)]


@contextmanager
def feeding(watching: Watching, source: Source, name: str, stream: str, joint: bool | None) -> Iterator[Feed]:
    """Feeds the monitor as long as it runs."""
    feed = Feed(watching, source, name, stream, joint)
    watching.feeds.append(feed)
    try:
        yield feed
    finally:
        feed.stop()
