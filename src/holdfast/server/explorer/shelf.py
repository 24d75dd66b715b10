"""What is kept in memory under a name, up to so many bytes; what was not used for longest leaves first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

Kept = TypeVar("Kept")


class Shelf(Generic[Kept]):
    """Names with what is kept under them.

    >>> shelf = Shelf[str](most=10)
    >>> shelf.put("a", "first", 6), shelf.put("b", "second", 6), shelf.get("a"), shelf.get("b")
    (None, None, None, 'second')
    """

    def __init__(self, most: int) -> None:
        self.most, self._bytes = most, 0
        self._kept: OrderedDict[str, tuple[Kept, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str) -> Kept | None:
        """What is kept under the name; None if it has left."""
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
            return None if found is None else found[0]

    def put(self, name: str, kept: Kept, size: int) -> None:
        """Keeps it; the newest stays even if it is larger than all the room."""
        with self._lock:
            self._bytes -= self._kept.pop(name, (None, 0))[1]
            self._kept[name] = kept, size
            self._bytes += size
            while self._bytes > self.most and len(self._kept) > 1:
                _, (_, freed) = self._kept.popitem(last=False)
                self._bytes -= freed
