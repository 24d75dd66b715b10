"""Reads ahead: while one batch is learnt, the next one is being read."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

from limpet.exceptions import InvalidInputError
from limpet.streams.batch import Batch

MAX_QUEUED_BATCHES = 2  # batches that wait at most: so memory stays bounded, however fast the source is


class _End:
    """That nothing more comes, and why, if it is not as it should be."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.failure = failure


class PrefetchingReader:
    """A thread that takes batches from a source as long as somebody takes them from here."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._queue: queue.Queue[Batch | _End] = queue.Queue(MAX_QUEUED_BATCHES)
        self._finishing, self._stopped = threading.Event(), threading.Event()
        self.ended = False
        self._thread = threading.Thread(target=self._read_batches, args=(batches,), name="limpet source", daemon=True)
        self._thread.start()

    def take(self, timeout_s: float) -> Batch | None:
        """The next batch; None if there is none within this time, or if there will be none (`ended`)."""
        try:
            item = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(item, Batch):
            return item
        self.ended = True
        if item.failure is not None:
            raise item.failure
        return None

    def stop_after_current(self) -> None:
        """What is being read is the last."""
        self._finishing.set()

    def stop(self, timeout_s: float = 2.0) -> None:
        """No more is wanted, nor what has been read."""
        self._stopped.set()
        while self._thread.is_alive() and timeout_s > 0.0:
            while not self._queue.empty():
                self._queue.get_nowait()
            self._thread.join(0.05)
            timeout_s -= 0.05

    def _read_batches(self, batches: Iterator[Batch]) -> None:
        try:
            for batch in batches:
                if not isinstance(batch, Batch):
                    raise InvalidInputError(f"the read() of a source gives batches, got {type(batch).__name__}")
                if not self._put(batch):
                    break
                if self._finishing.is_set():
                    break
            getattr(batches, "close", lambda: None)()
            self._put(_End())
        except BaseException as error:  # it is raised where batches are taken
            self._put(_End(error))

    def _put(self, item: Batch | _End) -> bool:
        """Waits until there is room; False if no more is wanted."""
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False
