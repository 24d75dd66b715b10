"""A queue of messages between two threads."""

from __future__ import annotations

import threading
from collections import deque
from typing import Protocol, TypeVar

from limpet.streams.brokers._decode import MAX_BATCH_BYTES, POLL_TIMEOUT_S


class Message(Protocol):
    """A message with a payload."""

    @property
    def payload(self) -> bytes:
        """The content."""


MessageT = TypeVar("MessageT", bound=Message)


class MessageQueue(deque[MessageT]):
    """A queue for one writer and one reader that knows its size in bytes."""

    def __init__(self) -> None:
        super().__init__()
        self._available = threading.Event()
        self._bytes_in = self._bytes_out = 0  # each written by one thread only

    @property
    def n_bytes(self) -> int:
        """Size of the queued payloads."""
        return self._bytes_in - self._bytes_out

    def put(self, message: MessageT) -> None:
        """Append a message."""
        self._bytes_in += len(message.payload)
        self.append(message)
        self.wake()

    def wake(self) -> None:
        """Wake the waiting reader."""
        if not self._available.is_set():
            self._available.set()

    def take(self, max_messages: int) -> list[MessageT]:
        """Return queued messages; wait for a moment if the queue is empty."""
        if not self:
            self._available.wait(POLL_TIMEOUT_S)
        messages: list[MessageT] = []
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
