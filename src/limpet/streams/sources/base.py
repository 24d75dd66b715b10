"""The base class of sources, and sources that wrap another one."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from limpet.fleet._key_index import StrKeys
from limpet.streams.batch import Batch
from limpet.streams.schema import Schema
from limpet.streams.timestamps import ISO_FORMAT, NUMBER_FORMAT, TEXT_FORMAT


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
    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield the batches after a position; None is the beginning.

        A source that waits for data yields an empty batch at least twice per second, so that a run can stop. The
        position of each batch is the one after it: any value that JSON can hold.
        """

    def commit(self, position: Any) -> None:
        """Release or acknowledge what precedes a position, which is in a checkpoint."""

    def close(self) -> None:
        """Release files and connections."""


class SourceWrapper(BaseSource):
    """A source that changes how another one is read."""

    def __init__(self, source: BaseSource) -> None:
        self.source = source

    @property
    def schema(self) -> Schema | None:
        """Columns of the records, if they are known."""
        return self.source.schema

    @schema.setter
    def schema(self, schema: Schema | None) -> None:
        self.source.schema = schema

    def commit(self, position: Any) -> None:
        """Release or acknowledge what precedes a position, which is in a checkpoint."""
        self.source.commit(position)

    def close(self) -> None:
        """Release what the source holds."""
        self.source.close()


class ProbedSource(SourceWrapper):
    """A source whose columns can be inferred first; batches read for that are kept."""

    def __init__(self, source: BaseSource) -> None:
        super().__init__(source)
        self._position: Any = None
        self._batches: Iterator[Batch] | None = None
        self._buffered: list[Batch] = []

    def wait_for_schema(self, stop: threading.Event, position: Any = None) -> bool:
        """Read to the first points; return whether any arrive before the end or `stop`."""
        for batch in self._start(position):
            if len(batch):
                self._buffered.append(batch)
                self.schema = self.schema or batch.schema or make_schema(batch)
                return True
            if batch.n_records and not self._buffered:
                self._buffered.append(batch)
            elif batch.n_records:  # malformed records before the first point, merged into one batch
                first = self._buffered[0]
                first.malformed.merge(batch.malformed, first.n_records)
                first.n_records += batch.n_records
                first.position, first.schema = batch.position, batch.schema
            if stop.is_set():
                return False
        return False

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield the batches after a position, first those read to infer the columns."""
        batches = self._batches
        if batches is None or position != self._position:
            batches = self._start(position)
        while self._buffered:
            yield self._with_schema(self._buffered.pop(0))
        self._batches = None
        yield from map(self._with_schema, batches)

    def _with_schema(self, batch: Batch) -> Batch:
        batch.schema = batch.schema or self.schema  # checkpoints have it
        return batch

    def _start(self, position: Any) -> Iterator[Batch]:
        if isinstance(self._batches, Generator):
            self._batches.close()
        self._position, self._batches, self._buffered = position, self.source.read(position), []
        return self._batches


def make_schema(batch: Batch) -> Schema:
    """Return the columns of a batch by names, keys and times, if its source has none."""
    key = None if batch.keys is None else "key"
    if batch.times is None:
        return Schema(batch.variables, key=key)
    time_kind = {"M": ISO_FORMAT, "f": NUMBER_FORMAT}.get(batch.times.dtype.kind, TEXT_FORMAT)
    return Schema(batch.variables, "time", time_kind, key)


class SplitColumns(SourceWrapper):
    """A source that yields one stream per variable of another source.

    Parameters
    ----------
    source : BaseSource
        A source whose records have several variables.

    Examples
    --------
    >>> class Pairs(BaseSource):
    ...     def read(self, position):
    ...         yield Batch([[1.0, 20.0], [2.0, 21.0]], names=("a", "b"))
    >>> (batch,) = SplitColumns(Pairs()).read(None)
    >>> batch.values.ravel(), batch.variable_names
    (array([ 1., 20.,  2., 21.]), StrKeys(values=['a', 'b'], codes=array([0, 1, 0, 1])))
    """

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield the batches after a position, split."""
        for batch in self.source.read(position):
            yield split_batch(batch)


def split_batch(batch: Batch) -> Batch:
    """Return the batch with one point per variable, record by record."""
    n, width = batch.values.shape
    assert batch.record_index is not None
    keys = batch.keys
    if keys is not None:
        codes = np.arange(n) if keys.codes is None else keys.codes
        keys = StrKeys(keys.values, np.repeat(codes, width))
    return replace(
        batch,
        values=batch.values.reshape(-1, 1),
        names=("value",),
        keys=keys,
        times=None if batch.times is None else np.repeat(batch.times, width),
        variable_names=StrKeys(list(batch.variables), np.tile(np.arange(width), n)),
        record_index=np.repeat(batch.record_index, width),
    )
