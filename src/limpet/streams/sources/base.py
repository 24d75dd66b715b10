"""The base class of sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from limpet.streams.batch import Batch
from limpet.streams.schema import Schema


class BaseSource(ABC):
    """A source of points. A subclass needs `read`.

    Attributes
    ----------
    schema : Schema or None
        Columns of the records; None as long as they are not known. A run that resumes sets it before `read`, to what
        it was at that position, so that columns are not inferred again.

    Examples
    --------
    >>> class Numbers(BaseSource):
    ...     def read(self, position):
    ...         for start in range(position or 0, 1000, 100):
    ...             yield Batch(range(start, start + 100), position=start + 100)
    >>> sum(len(batch) for batch in Numbers().read(300))
    700
    """

    schema: Schema | None = None

    @abstractmethod
    def read(self, position: Any) -> Iterator[Batch]:
        """Yield the batches after a position; None is the beginning.

        A source that waits for data yields an empty batch at least twice per second, so that a run can stop. The
        position of each batch is the one after it: any value that JSON can hold.
        """

    def commit(self, position: Any) -> None:
        """Forget everything up to a position: it has been learned, and will not be read again."""

    def close(self) -> None:
        """Release files and connections."""
