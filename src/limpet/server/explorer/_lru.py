"""Cache with a limit in bytes that evicts the least recently used entry."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

Value = TypeVar("Value")


class SizedLRUCache(Generic[Value]):
    """Values by key, with the sizes that the caller gives; safe for threads.

    >>> cache = SizedLRUCache[str](max_bytes=10)
    >>> cache.put("a", "first", 6), cache.put("b", "second", 6), cache.get("a"), cache.get("b")
    (None, None, None, 'second')
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self._bytes = max_bytes, 0
        self._entries: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> Value | None:
        """Return the value of a key, None if it was evicted."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return None if entry is None else entry[0]

    def put(self, key: str, value: Value, n_bytes: int) -> None:
        """Store a value; the newest one stays even if it exceeds the limit."""
        with self._lock:
            self._bytes -= self._entries.pop(key, (None, 0))[1]
            self._entries[key] = value, n_bytes
            self._bytes += n_bytes
            while self._bytes > self.max_bytes and len(self._entries) > 1:
                _, (_, freed) = self._entries.popitem(last=False)
                self._bytes -= freed
