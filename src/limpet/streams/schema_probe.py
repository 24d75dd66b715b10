"""A source whose first records have been looked at."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from limpet.streams.batch import Batch
from limpet.streams.schema import Schema, schema_from_position
from limpet.streams.sources.base import Source


class ProbedSource:
    """A source that is read from a position on, and says what its columns are before anything is learnt."""

    def __init__(self, source: Source, position: Any = None) -> None:
        self.source = source
        self._batches, self._buffered = source.read(position), list[Batch]()
        self.columns: Schema | None = schema_from_position(position)
        """What has been understood."""

    def wait_for_schema(self, stop: threading.Event) -> bool:
        """Waits for the first points; whether there were any before the end, or before somebody said stop."""
        for batch in self._batches:
            if len(batch):
                self._buffered.append(batch)
                self.columns = self.columns or schema_from_position(batch.position)
                return True
            if batch.n_records:
                self._add_rejects(batch)
            if stop.is_set():
                return False
        return False

    def _add_rejects(self, batch: Batch) -> None:
        """However many records are refused before the first good one, one batch tells of them."""
        if not self._buffered:
            self._buffered.append(batch)
            return
        first = self._buffered[0]
        first.rejects.merge(batch.rejects, first.n_records)
        first.n_records += batch.n_records
        first.position = batch.position

    def read(self, position: Any = None) -> Iterator[Batch]:
        """All batches from where it was opened."""
        while self._buffered:
            yield self._buffered.pop(0)
        yield from self._batches

    def commit(self, position: Any) -> None:
        """All up to there has been learnt."""
        getattr(self.source, "commit", lambda _: None)(position)

    def close(self) -> None:
        """Nothing more is wanted."""
        getattr(self.source, "close", lambda: None)()
