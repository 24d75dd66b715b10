"""What is kept in memory under a name, up to so many bytes; what was not used for longest leaves first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

Value = TypeVar("Value")


class SizedLRUCache(Generic[Value]):
    """Names with what is kept under them.

    >>> shelf = Shelf[str](most=10)
    >>> shelf.put("a", "first", 6), shelf.put("b", "second", 6), shelf.get("a"), shelf.get("b")
    (None, None, None, 'second')
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self._bytes = max_bytes, 0
        self._entries: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> Value | None:
        """What is kept under the name; None if it has left."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return None if entry is None else entry[0]

    def put(self, key: str, value: Value, n_bytes: int) -> None:
        """Keeps it; the newest stays even if it is larger than all the room."""
        with self._lock:
            self._bytes -= self._entries.pop(key, (None, 0))[1]
            self._entries[key] = value, n_bytes
            self._bytes += n_bytes
            while self._bytes > self.max_bytes and len(self._entries) > 1:
                _, (_, freed) = self._entries.popitem(last=False)
                self._bytes -= freed
