"""Split records with several variables into one stream per variable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from limpet.fleet._key_index import StrKeys
from limpet.streams.batch import Batch
from limpet.streams.results import to_str_list
from limpet.streams.schema import Schema
from limpet.streams.sources.base import BaseSource

KEY_SEPARATOR = " / "  # between key and variable
MAX_JOINT_COLUMNS = 8  # more columns are split, unless the user chooses


class SplitColumns(BaseSource):
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
    >>> batch.values.ravel(), to_str_list(batch.variable_names)
    (array([ 1., 20.,  2., 21.]), ['a', 'b', 'a', 'b'])
    """

    def __init__(self, source: BaseSource) -> None:
        self.source = source

    @property
    def schema(self) -> Schema | None:
        """Columns of the records, if they are known."""
        return self.source.schema

    @schema.setter
    def schema(self, schema: Schema | None) -> None:
        self.source.schema = schema

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield the batches after a position, split."""
        for batch in self.source.read(position):
            yield split_batch(batch)

    def commit(self, position: Any) -> None:
        """Forget everything up to a position."""
        self.source.commit(position)

    def close(self) -> None:
        """Release what the source holds."""
        self.source.close()


def split_batch(batch: Batch) -> Batch:
    """Return the batch with one point per variable, record by record."""
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
    """Return the stream of each point: key, variable, or both; None if all points belong to one stream."""
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
        )  # None has the code −1
        for code in unique_codes[np.argsort(first)].tolist():
            index_by_code[code] = index_by_key.setdefault(values[code], len(index_by_key))
        codes = index_by_code[keys.codes]
    labels = [f"{key}{KEY_SEPARATOR}{name}" for key in index_by_key for name in channels.values]
    return StrKeys(labels, codes * len(channels.values) + channels.codes)
