"""What has arrived in one thread and waits to be taken by another."""

from __future__ import annotations

import threading
from collections import deque
from typing import Protocol, TypeVar

from limpet.streams.brokers._decode import MAX_BATCH_BYTES, POLL_TIMEOUT_S


class Message(Protocol):
    """Something with a payload."""

    @property
    def payload(self) -> bytes:
        """What it carries."""


MessageT = TypeVar("MessageT", bound=Message)


class MessageQueue(deque[MessageT]):
    """A queue between two threads, which knows how large it is and who waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self._available = threading.Event()
        self._bytes_in = self._bytes_out = 0  # each is written by one thread only

    @property
    def n_bytes(self) -> int:
        """How much waits."""
        return self._bytes_in - self._bytes_out

    def put(self, message: MessageT) -> None:
        """One more."""
        self._bytes_in += len(message.payload)
        self.append(message)
        self.wake()

    def wake(self) -> None:
        """Lets who waits look again."""
        if not self._available.is_set():
            self._available.set()

    def take(self, max_messages: int) -> list[MessageT]:
        """What is there, if need be after waiting for a while; nothing if nothing comes."""
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
            if self:  # something came in between
                self._available.set()
        return messages
