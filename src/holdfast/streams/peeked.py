"""A source whose first records have been looked at."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns, columns_at
from holdfast.streams.source import Source


class Peeked:
    """A source that is read from a position on, and says what its columns are before anything is learnt."""

    def __init__(self, source: Source, position: Any = None) -> None:
        self.source = source
        self._batches, self._first = source.read(position), list[Batch]()
        self.columns: Columns | None = columns_at(position)
        """What has been understood."""

    def look(self, stop: threading.Event) -> bool:
        """Waits for the first points; whether there were any before the end, or before somebody said stop."""
        for batch in self._batches:
            if len(batch):
                self._first.append(batch)
                self.columns = self.columns or columns_at(batch.position)
                return True
            if batch.n_records:
                self._add_refused(batch)
            if stop.is_set():
                return False
        return False

    def _add_refused(self, batch: Batch) -> None:
        """However many records are refused before the first good one, one batch tells of them."""
        if not self._first:
            self._first.append(batch)
            return
        before = self._first[0]
        before.refused.join(batch.refused, before.n_records)
        before.n_records += batch.n_records
        before.position = batch.position

    def read(self, position: Any = None) -> Iterator[Batch]:
        """All batches from where it was opened."""
        while self._first:
            yield self._first.pop(0)
        yield from self._batches

    def committed(self, position: Any) -> None:
        """All up to there has been learnt."""
        getattr(self.source, "committed", lambda _: None)(position)

    def close(self) -> None:
        """Nothing more is wanted."""
        getattr(self.source, "close", lambda: None)()
