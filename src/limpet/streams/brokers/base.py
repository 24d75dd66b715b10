"""Base classes of broker sources and sinks."""

from __future__ import annotations

import logging
import threading
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from limpet.exceptions import LimpetError
from limpet.streams.batch import Batch
from limpet.streams.formats.json import SCHEMA_SAMPLE_RECORDS, SUBJECT_COLUMNS, JsonReader
from limpet.streams.results import ALARMS_TABLE, BatchResult, check_table, to_json_line, to_records
from limpet.streams.schema import ColumnSpec
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset
from limpet.streams.sources.base import BaseSource

log = logging.getLogger("limpet.streams")
POLL_TIMEOUT_S = 0.5  # between empty batches
SCHEMA_WAIT_S = 1.0  # that the first messages are buffered for, unless there are enough of them
MAX_BATCH_MESSAGES, MAX_BATCH_BYTES = 1000, 4 << 20
STOP_TIMEOUT_S = 5.0  # waiting for a lost broker after `stop`


class BrokerSource(BaseSource):
    """Source of messages; buffers up to a second of them to infer the columns."""

    def __init__(self, spec: ColumnSpec, follow: bool, batch_size: int = MAX_BATCH_MESSAGES) -> None:
        self._spec, self._follow, self._batch_size = spec, follow, batch_size
        self._connection: Any = None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _start_decoding(self, resumed: bool, position: dict[str, Any]) -> None:
        """Expect messages after a position; if resumed, with the known columns."""
        schema = self.schema if resumed else None
        self._reader, self._decoded_position = JsonReader(self._spec, schema), position
        self._by_subject = (self._spec.key if schema is None else schema.key) in SUBJECT_COLUMNS
        self._buffered: list[Message] = []

    def _make_batch(self, messages: list[Message], position: dict[str, Any], lag: int | None, *, last: bool) -> Batch:
        """Decode messages up to `position`; `last` means that no message follows."""
        if self._reader.schema is None:
            if not self._buffered:
                self._first_arrival = time.monotonic()
            self._buffered += messages
            is_waiting = time.monotonic() - self._first_arrival < SCHEMA_WAIT_S
            if len(self._buffered) < SCHEMA_SAMPLE_RECORDS and is_waiting and not last:
                self.schema = None
                return Batch(np.zeros((0, 1)), self._decoded_position, lag=lag)
            messages, self._buffered = self._buffered, []
        self._decoded_position = position
        subjects = [message.subject for message in messages] if self._by_subject else None
        batch = self._reader.make_batch([message.payload for message in messages], position, subjects)
        batch.lag, self.schema = lag, batch.schema
        return batch


class BrokerSink(BaseSink):
    """Sink of messages numbered in the run; the offset has the number sent."""

    def __init__(self, name: str, table: str, timeout: float = float("inf")) -> None:
        self.name, self._table = name, check_table(table)
        self.timeout = timeout  # seconds to wait for a lost broker
        self._connection: Any = None
        self._n_sent = 0

    @abstractmethod
    def _connect(self, offset: dict[str, Any]) -> Any:
        """Return an open connection."""

    @abstractmethod
    def _send(self, results: BatchResult) -> None:
        """Send one message per alarm or point."""

    def truncate_to(self, offset: Any) -> None:
        """Connect; messages sent after the offset cannot be removed."""
        known: dict[str, Any] = {} if offset is None else check_offset(self, offset)
        self.close()
        self._n_sent = int(known.get("n_sent", 0))
        self._connection = self._connect(known)

    def write(self, results: BatchResult) -> None:
        """Send one message per alarm or point."""
        if self._connection is None:
            self.truncate_to(None)
        self._send(results)

    def _encode(self, results: BatchResult) -> Iterator[tuple[int, bytes, str | None]]:
        """Yield the number in the run, the JSON and the key of each message."""
        first = results.first_alarm if self._table == ALARMS_TABLE else results.first_point
        for n, row in enumerate(to_records(results, self._table), first):
            key, text = row.get("key"), to_json_line({"id": f"{results.run_id}-{self._table}-{n}"} | row)
            yield n, text.encode("utf-8", "replace"), None if key is None else str(key)

    def flush(self) -> Any:
        """Wait until the broker has confirmed all messages."""
        if self._connection is not None:
            self._connection.unconfirmed.wait(0, self.timeout)
        return make_offset(self, n_sent=self._n_sent)

    def stop_waiting(self) -> None:
        """Wait for a lost broker for a few more seconds at most."""
        self.timeout = min(self.timeout, STOP_TIMEOUT_S)

    def close(self) -> None:
        """Close the connection; messages not flushed can be lost."""
        if self._connection is not None:
            self._connection.close()


class PendingPublishes:
    """Count of unconfirmed messages, shared by sender and confirmation receiver."""

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

    def fail(self, failure: Exception | None) -> None:
        """Raise an error where confirmations are waited for."""
        with self._changed:
            self.failure = failure
            self._changed.notify_all()

    def wait(self, max_pending: int, timeout_s: float) -> None:
        """Wait until at most `max_pending` are unconfirmed; raise after `timeout_s`."""
        started = time.monotonic()
        with self._changed:
            while self._count > max_pending and self.failure is None:
                if time.monotonic() - started > timeout_s:
                    raise LimpetError(f"{self._name} has not confirmed {self._count} messages within {timeout_s:g} s.")
                self._changed.wait(0.1)
            if self.failure is not None:
                raise self.failure


class Message(NamedTuple):
    """Message; of NATS, numbered in the stream of `created`, `pending` follow it."""

    number: int
    subject: str
    payload: bytes
    pending: int = 0
    created: str = ""


class MessageQueue(deque[Message]):
    """A queue for one writer and one reader that knows its size in bytes."""

    def __init__(self) -> None:
        super().__init__()
        self._available = threading.Event()
        self._bytes_in = self._bytes_out = 0  # each written by one thread only

    @property
    def n_bytes(self) -> int:
        """Size of the queued payloads."""
        return self._bytes_in - self._bytes_out

    def put(self, message: Message) -> None:
        """Append a message."""
        self._bytes_in += len(message.payload)
        self.append(message)
        self.wake()

    def wake(self) -> None:
        """Wake the waiting reader."""
        if not self._available.is_set():
            self._available.set()

    def take(self, max_messages: int) -> list[Message]:
        """Return queued messages; wait for a moment if the queue is empty."""
        if not self:
            self._available.wait(POLL_TIMEOUT_S)
        messages: list[Message] = []
        size = 0
        while self and len(messages) < max_messages and size < MAX_BATCH_BYTES:
            message = self.popleft()
            messages.append(message)
            size += len(message.payload)
        self._bytes_out += size
        if not self:
            self._available.clear()
            if self:  # put meanwhile
                self._available.set()
        return messages
