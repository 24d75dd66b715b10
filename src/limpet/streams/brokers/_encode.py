"""Encode results as messages, and count those not confirmed by the broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from limpet.exceptions import LimpetError
from limpet.streams.results import BatchResult, first_index, to_json_line, to_records

STOP_TIMEOUT_S = 5.0  # waiting for a lost broker after `stop`


def encode_messages(results: BatchResult, table: str) -> Iterator[tuple[int, str, bytes, str | None]]:
    """Yield the number in the run, the id, the JSON and the key of each message."""
    for n, row in enumerate(to_records(results, table), first_index(results, table)):
        name, key = f"{results.run_id}-{table}-{n}", row.get("key")
        text = to_json_line({"id": name} | row)
        yield n, name, text.encode("utf-8", "replace"), None if key is None else str(key)


class PendingPublishes:
    """Count of unconfirmed messages, shared by the sender and the receiver of confirmations."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._count = 0
        self.failure: Exception | None = None

    def add(self, n: int) -> None:
        """Change the count by `n`."""
        with self._changed:
            self._count += n
            if n < 0:
                self._changed.notify_all()

    def fail(self, failure: Exception) -> None:
        """Raise an error where confirmations are waited for."""
        with self._changed:
            self.failure = failure
            self._changed.notify_all()

    def wait(self, max_pending: int, timeout_s: float) -> None:
        """Wait until at most `max_pending` messages are unconfirmed, or raise after `timeout_s`."""
        started = time.monotonic()
        with self._changed:
            while self._count > max_pending and self.failure is None:
                if time.monotonic() - started > timeout_s:
                    raise LimpetError(f"{self._name} has not confirmed {self._count} messages within {timeout_s:g} s.")
                self._changed.wait(0.1)
            if self.failure is not None:
                raise self.failure
