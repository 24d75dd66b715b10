"""What has arrived in one thread and waits to be taken by another."""

from __future__ import annotations

import threading
from collections import deque
from typing import Protocol, TypeVar

from holdfast.streams.brokers.inlet import BYTES, TICK


class Carrier(Protocol):
    """Something with a payload."""

    @property
    def payload(self) -> bytes:
        """What it carries."""


One = TypeVar("One", bound=Carrier)


class Arrivals(deque[One]):
    """A queue between two threads, which knows how large it is and who waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self._some = threading.Event()
        self._bytes_in = self._bytes_out = 0  # each is written by one thread only

    @property
    def n_bytes(self) -> int:
        """How much waits."""
        return self._bytes_in - self._bytes_out

    def put(self, one: One) -> None:
        """One more."""
        self._bytes_in += len(one.payload)
        self.append(one)
        self.wake()

    def wake(self) -> None:
        """Lets who waits look again."""
        if not self._some.is_set():
            self._some.set()

    def take(self, most: int) -> list[One]:
        """What is there, if need be after waiting for a while; nothing if nothing comes."""
        if not self:
            self._some.wait(TICK)
        taken: list[One] = []
        size = 0
        while self and len(taken) < most and size < BYTES:
            one = self.popleft()
            taken.append(one)
            size += len(one.payload)
        self._bytes_out += size
        if not self:
            self._some.clear()
            if self:  # something came in between
                self._some.set()
        return taken
