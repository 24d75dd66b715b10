"""Each variable as a stream of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from holdfast.fleet.keys import Texts
from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns
from holdfast.streams.results import texts_of
from holdfast.streams.source import Source

BETWEEN = " / "  # key and variable
TOGETHER = 8  # columns that are watched jointly unless it is said otherwise


class Separate:
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
    def columns(self) -> Columns | None:
        """What was understood."""
        return getattr(self.source, "columns", None)

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Batches from this position on."""
        for batch in self.source.read(position):
            yield apart(batch)

    def committed(self, position: Any) -> None:
        """All up to there has been learnt."""
        getattr(self.source, "committed", lambda _: None)(position)

    def close(self) -> None:
        """Nothing more is wanted."""
        getattr(self.source, "close", lambda: None)()


def apart(batch: Batch) -> Batch:
    """The variables of a batch one after another, record by record."""
    n, width = batch.values.shape
    assert batch.places is not None
    names = list(batch.names or (f"x{i}" for i in range(width)))
    keys = batch.keys
    if keys is not None:
        codes = np.arange(n) if keys.codes is None else keys.codes
        keys = Texts(keys.values, np.repeat(codes, width))
    return replace(
        batch,
        values=batch.values.reshape(-1, 1),
        names=("value",),
        keys=keys,
        times=None if batch.times is None else np.repeat(batch.times, width),
        channels=Texts(names, np.tile(np.arange(width), n)),
        places=np.repeat(batch.places, width),
    )


def stream_keys(batch: Batch) -> Texts | None:
    """Which stream each point is of: key, variable, or both."""
    keys, channels = batch.keys, batch.channels
    if keys is None or channels is None:
        return keys if channels is None else channels
    if not len(batch):
        return Texts([])
    assert channels.codes is not None
    places: dict[Any, int] = {}
    if keys.codes is None:
        codes = np.array([places.setdefault(key, len(places)) for key in texts_of(keys)], np.int64)
    else:
        found, first = np.unique(keys.codes, return_index=True)
        values, of_code = (*keys.values, None), np.zeros(len(keys.values) + 1, np.int64)  # None is the one of code −1
        for code in found[np.argsort(first)].tolist():
            of_code[code] = places.setdefault(values[code], len(places))
        codes = of_code[keys.codes]
    both = [f"{key}{BETWEEN}{name}" for key in places for name in channels.values]
    return Texts(both, codes * len(channels.values) + channels.codes)
