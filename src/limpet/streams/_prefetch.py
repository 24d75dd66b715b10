"""Read the next batches in a thread while one is processed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator

from limpet.exceptions import InvalidInputError
from limpet.streams.batch import Batch

MAX_QUEUED_BATCHES = 2  # bounds the memory, however fast the source is


class _End:
    """The end of the source, and the error that caused it, if any."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.failure = failure


class PrefetchingReader:
    """A thread that reads batches ahead, up to a bounded number."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._queue: queue.Queue[Batch | _End] = queue.Queue(MAX_QUEUED_BATCHES)
        self._finishing, self._stopped = threading.Event(), threading.Event()
        self.ended = False
        self._thread = threading.Thread(target=self._read_batches, args=(batches,), name="limpet source", daemon=True)
        self._thread.start()

    def take(self, timeout_s: float) -> Batch | None:
        """Return the next batch; None if none arrives in time, or after the end (`ended`)."""
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
        """End after the batch that is being read."""
        self._finishing.set()

    def stop(self, timeout_s: float = 2.0) -> None:
        """End, and discard what has been read."""
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
                    raise InvalidInputError(f"source: read() must yield batches, got {type(batch).__name__}.")
                if not self._put(batch):
                    break
                if self._finishing.is_set():
                    break
            if isinstance(batches, Generator):
                batches.close()
            self._put(_End())
        except BaseException as error:  # raised again by `take`
            self._put(_End(error))

    def _put(self, item: Batch | _End) -> bool:
        """Wait for a place in the queue; return False if the reader was stopped."""
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False
