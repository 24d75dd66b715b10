"""Infer the columns of a source before its points are processed."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from typing import Any

from limpet.streams.batch import Batch
from limpet.streams.schema import Schema
from limpet.streams.sources.base import BaseSource


class ProbedSource(BaseSource):
    """A source whose columns can be inferred before it is read; the batches read for that are not lost.

    Parameters
    ----------
    source : BaseSource
        The source to probe.
    """

    def __init__(self, source: BaseSource) -> None:
        self.source = source
        self._position: Any = None
        self._batches: Iterator[Batch] | None = None
        self._buffered: list[Batch] = []

    @property
    def schema(self) -> Schema | None:
        """Columns of the records, if they are known."""
        return self.source.schema

    @schema.setter
    def schema(self, schema: Schema | None) -> None:
        self.source.schema = schema

    def wait_for_schema(self, stop: threading.Event, position: Any = None) -> bool:
        """Read from a position until the first points; return whether any arrived before the end and before `stop`."""
        self._start(position)
        assert self._batches is not None
        for batch in self._batches:
            if len(batch):
                self._buffered.append(batch)
                self.schema = self.schema or batch.schema
                return True
            if batch.n_records:
                self._add_rejects(batch)
            if stop.is_set():
                return False
        return False

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield the batches after a position; those that were read from there to infer the columns come first."""
        if self._batches is None or position != self._position:
            self._start(position)
        assert self._batches is not None
        while self._buffered:
            yield self._buffered.pop(0)
        batches, self._batches = self._batches, None
        yield from batches

    def commit(self, position: Any) -> None:
        """Forget everything up to a position."""
        self.source.commit(position)

    def close(self) -> None:
        """Release what the source holds."""
        self.source.close()

    def _start(self, position: Any) -> None:
        if isinstance(self._batches, Generator):
            self._batches.close()
        self._position, self._batches, self._buffered = position, self.source.read(position), []

    def _add_rejects(self, batch: Batch) -> None:
        """Merge the malformed records before the first point into one batch."""
        if not self._buffered:
            self._buffered.append(batch)
            return
        first = self._buffered[0]
        first.rejects.merge(batch.rejects, first.n_records)
        first.n_records += batch.n_records
        first.position, first.schema = batch.position, batch.schema
