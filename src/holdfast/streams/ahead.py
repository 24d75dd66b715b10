"""Reads ahead: while one batch is learnt, the next one is being read."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

from holdfast.streams.batch import Batch

DEPTH = 2  # batches that wait at most: so memory stays bounded, however fast the source is


class Ahead:
    """A thread that takes batches from a source as long as somebody takes them from here."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._waiting: queue.Queue[Batch | BaseException | None] = queue.Queue(DEPTH)
        self._stopped = threading.Event()
        self.ended = False
        self._thread = threading.Thread(target=self._work, args=(batches,), name="holdfast source", daemon=True)
        self._thread.start()

    def take(self, seconds: float) -> Batch | None:
        """The next batch; None if there is none within this time, or if there will be none (`ended`)."""
        try:
            found = self._waiting.get(timeout=seconds) if seconds > 0.0 else self._waiting.get_nowait()
        except queue.Empty:
            return None
        if isinstance(found, Batch):
            return found
        self.ended = True
        if found is not None:
            raise found
        return None

    def stop(self, patience: float = 2.0) -> None:
        """No more is wanted."""
        self._stopped.set()
        while self._thread.is_alive() and patience > 0.0:
            self._empty()
            self._thread.join(0.05)
            patience -= 0.05

    def _empty(self) -> None:
        while not self._waiting.empty():
            self._waiting.get_nowait()

    def _work(self, batches: Iterator[Batch]) -> None:
        try:
            for batch in batches:
                if not self._put(batch):
                    close = getattr(batches, "close", None)
                    if close is not None:
                        close()
                    return
            self._put(None)
        except BaseException as error:  # it is raised where batches are taken
            self._put(error)

    def _put(self, one: Batch | BaseException | None) -> bool:
        """Waits until there is room; False if no more is wanted."""
        while not self._stopped.is_set():
            try:
                self._waiting.put(one, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False
