"""What a source is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from limpet.streams.batch import Batch


@runtime_checkable
class Source(Protocol):
    """Where points come from.

    `read` gives batches from a position on, None being the beginning: each says the position after it. A source that
    waits for what has not come yet gives an empty batch now and then, at least twice a second, so that those who wait
    for it can do something else. Two more methods are called if there are any: `committed(position)` when all that was
    given up to there has been learnt and will not be asked for again, and `close()` at the end.

    >>> class Numbers:
    ...     def read(self, position):
    ...         for first in range(position or 0, 1000, 100):
    ...             yield Batch(range(first, first + 100), position=first + 100)
    >>> isinstance(Numbers(), Source)
    True
    """

    def read(self, position: Any) -> Iterator[Batch]:
        """Batches from this position on."""
