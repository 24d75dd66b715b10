"""Results as messages, and how many of them a broker has not confirmed yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from holdfast.errors import HoldfastError
from holdfast.streams.results import Results
from holdfast.streams.tables import first_of, json_line, records_of

HURRIED = 5.0  # seconds to wait for a broker that has gone away, once somebody wants to stop


def messages_of(results: Results, what: str) -> Iterator[tuple[int, str, bytes, str | None]]:
    """The number in the run, the id, the JSON and the key of each message."""
    for n, row in enumerate(records_of(results, what), first_of(results, what)):
        name, key = f"{results.run}-{what}-{n}", row.get("key")
        told = json_line({"id": name} | row)
        yield n, name, told.encode("utf-8", "replace"), None if key is None else str(key)


class Unconfirmed:
    """How many messages are on their way, counted by the one who sends and the one who hears of them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._some = threading.Condition()
        self._count = 0
        self.failure: Exception | None = None

    def add(self, n: int) -> None:
        """So many more, or fewer."""
        with self._some:
            self._count += n
            if n < 0:
                self._some.notify_all()

    def fail(self, failure: Exception) -> None:
        """Nothing more will be confirmed."""
        with self._some:
            self.failure = failure
            self._some.notify_all()

    def wait(self, most: int, patience: float) -> None:
        """Until there are no more than this many; patience: seconds to wait for, of which the caller is not sure."""
        begun = time.monotonic()
        with self._some:
            while self._count > most and self.failure is None:
                if time.monotonic() - begun > patience:
                    raise HoldfastError(f"{self._name} has not confirmed {self._count} messages within {patience:g} s")
                self._some.wait(0.1)
            if self.failure is not None:
                raise self.failure
