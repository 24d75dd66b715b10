"""Each variable as a stream of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from limpet.fleet._key_index import StrKeys
from limpet.streams.batch import Batch
from limpet.streams.results import to_str_list
from limpet.streams.schema import Schema
from limpet.streams.sources.base import Source

KEY_SEPARATOR = " / "  # key and variable
MAX_JOINT_COLUMNS = 8  # columns that are watched jointly unless it is said otherwise


class SplitColumns:
    """A source whose records have several variables, as one of points with one: a stream for each variable.

    >>> class One:
    ...     def read(self, position):
    ...         yield Batch([[1.0, 20.0], [2.0, 21.0]], names=("a", "b"))
    >>> (batch,) = Separate(One()).read(None)
    >>> batch.values.ravel(), texts_of(batch.channels)
    (array([ 1., 20.,  2., 21.]), ['a', 'b', 'a', 'b'])
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    @property
    def columns(self) -> Schema | None:
        """What was understood."""
        return getattr(self.source, "columns", None)

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Batches from this position on."""
        for batch in self.source.read(position):
            yield split_batch(batch)

    def commit(self, position: Any) -> None:
        """All up to there has been learnt."""
        getattr(self.source, "commit", lambda _: None)(position)

    def close(self) -> None:
        """Nothing more is wanted."""
        getattr(self.source, "close", lambda: None)()


def split_batch(batch: Batch) -> Batch:
    """The variables of a batch one after another, record by record."""
    n, width = batch.values.shape
    assert batch.record_index is not None
    names = list(batch.names or (f"x{i}" for i in range(width)))
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
        variable_names=StrKeys(names, np.tile(np.arange(width), n)),
        record_index=np.repeat(batch.record_index, width),
    )


def composite_keys(batch: Batch) -> StrKeys | None:
    """Which stream each point is of: key, variable, or both."""
    keys, channels = batch.keys, batch.variable_names
    if keys is None or channels is None:
        return keys if channels is None else channels
    if not len(batch):
        return StrKeys([])
    assert channels.codes is not None
    index_by_key: dict[Any, int] = {}
    if keys.codes is None:
        codes = np.array([index_by_key.setdefault(key, len(index_by_key)) for key in to_str_list(keys)], np.int64)
    else:
        unique_codes, first = np.unique(keys.codes, return_index=True)
        values, index_by_code = (
            (*keys.values, None),
            np.zeros(len(keys.values) + 1, np.int64),
        )  # None is the one of code −1
        for code in unique_codes[np.argsort(first)].tolist():
            index_by_code[code] = index_by_key.setdefault(values[code], len(index_by_key))
        codes = index_by_code[keys.codes]
    labels = [f"{key}{KEY_SEPARATOR}{name}" for key in index_by_key for name in channels.values]
    return StrKeys(labels, codes * len(channels.values) + channels.codes)
