"""Parquet files as a source, however large."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from holdfast.errors import BadInputError, CheckpointError
from holdfast.streams.arrow_columns import (
    Flags,
    arrow,
    holds_texts,
    keys_of,
    numbers_of,
    plain_values,
    sample_of,
    times_of,
)
from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns, Wanted, understand
from holdfast.streams.parquet_sinks import ParquetFile, ParquetParts
from holdfast.streams.positions import part_of
from holdfast.streams.records import ENOUGH, NO_KEY, NO_TIME
from holdfast.streams.refusals import SHOWN, Refusals
from holdfast.streams.times import ZONED

__all__ = ["ParquetFile", "ParquetParts", "ParquetSource"]
AT_ONCE = 1 << 16  # rows of a batch
BUFFER = 1 << 20  # bytes that are read at a time, of each column


class ParquetSource:
    """The rows of a Parquet file, from any row on. Only the columns that are needed are read, and a batch at a time.

    wanted: what the user says about the columns. columns: what they are, if that is known; otherwise the types and the
    first rows tell, and it is found here.

    Numbers of any width are values, and yes and no if they are asked for; null is a missing value. The key is a column
    of texts or whole numbers, the time one of timestamps, dates, numbers or texts; rows without them are refused.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        wanted: Wanted | None = None,
        *,
        columns: Columns | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        self.path, self.at_once = os.fspath(path), at_once
        self._file = self._opened(())
        self.n_rows: int = self._file.metadata.num_rows
        self._known_by = [self.n_rows, self._checksum()]
        self._schema = self._file.schema_arrow
        twice = [name for name, n in Counter(self._schema.names).items() if n > 1]
        if twice:
            raise BadInputError(f"{self.path} has more than one column {twice[0]!r}")
        self.columns = columns or understand(self._sample(wanted or Wanted()), wanted or Wanted())
        self._require(self.columns, 0)

    def read(self, position: Any) -> Iterator[Batch]:
        """Batches from a row on."""
        row = part_of(position, "row", int) or 0
        columns = Columns.of_json(part_of(position, "columns", dict)) if position else self.columns
        if position and part_of(position, "file", list) != self._known_by:
            raise CheckpointError(f"{self.path} is not the file that it was at the last checkpoint")
        self._require(columns, row)
        texts = [columns.key] if columns.key and holds_texts(self._schema.field(columns.key).type) else []
        with self._opened(texts) as file:
            groups, skip = _groups_from(row, [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)])
            needed = [*columns.values, *(name for name in (columns.key, columns.time) if name)]
            batches = file.iter_batches(self.at_once, row_groups=groups, columns=needed) if groups else iter(())
            while (rows := self._next(batches, row)) is not None:
                if skip >= len(rows):
                    skip -= len(rows)
                    continue
                rows, skip = rows.slice(skip), 0
                row += len(rows)
                yield self._batch(rows, columns, row)

    def close(self) -> None:
        """The file is not needed any more."""
        self._file.close()

    def _opened(self, texts: Any) -> Any:
        """The file; these columns of texts come with their codes. What is read ahead would be a whole row group."""
        pa = arrow()
        try:
            return pa.parquet.ParquetFile(self.path, read_dictionary=texts, buffer_size=BUFFER, pre_buffer=False)
        except (OSError, pa.ArrowException) as error:
            number = getattr(error, "errno", None)
            why = os.strerror(number) if number else str(error).splitlines()[0]
            raise BadInputError(f"{self.path} cannot be read: {why}") from None

    def _checksum(self) -> int:
        """Of the end of the file, which says where everything in it is."""
        size = self._file.metadata.serialized_size + 8  # its own length, and a word by which Parquet is known
        with open(self.path, "rb") as file:
            file.seek(-size, os.SEEK_END)
            return zlib.crc32(file.read(size))

    def _next(self, batches: Iterator[Any], row: int) -> Any:
        try:
            return next(batches, None)
        except (OSError, arrow().ArrowException) as error:
            why = str(error).splitlines()[0]
            raise BadInputError(f"{self.path} cannot be read from row {row} on: {why}") from None

    def _sample(self, wanted: Wanted) -> list[dict[str, Any]]:
        """The first rows as plain values; one that is made up where there are none."""
        batches = self._file.iter_batches(ENOUGH) if self.n_rows else iter(())
        rows = self._next(batches, 0)
        if rows is None:
            rows = arrow().RecordBatch.from_pylist([{}], self._schema)
        listed = {
            name: sample_of(column, as_numbers=name in (wanted.columns or ()))
            for name, column in zip(self._schema.names, rows.columns, strict=True)
        }
        return [{name: values[i] for name, values in listed.items()} for i in range(len(rows))]

    def _require(self, columns: Columns, row: int) -> None:
        """That it has these columns, and of such types; and that what is read on is the file that it was."""
        for name in (*columns.values, columns.key, columns.time):
            if name is not None and name not in self._schema.names:
                raise BadInputError(f"{self.path} has no column {name!r}")
        nothing = self._schema.empty_table().to_batches() or [arrow().RecordBatch.from_pylist([], self._schema)]
        self._batch(nothing[0], columns, 0)
        if row > self.n_rows:
            raise BadInputError(f"{self.path} has {self.n_rows} rows, but {row} had been read: it is another file")

    def _batch(self, rows: Any, columns: Columns, end: int) -> Batch:
        n = len(rows)
        values = np.empty((n, len(columns.values)))
        for i, name in enumerate(columns.values):
            values[:, i] = numbers_of(rows.column(name))
        keys = None if columns.key is None else keys_of(rows.column(columns.key))
        times, bad = None, {}
        if keys is not None and keys.codes is not None:
            bad[NO_KEY] = keys.codes < 0
        if columns.time is not None and columns.time_kind is not None:
            times, bad[NO_TIME] = times_of(rows.column(columns.time), columns.time_kind)
        batch = Batch(
            values,
            {"row": end, "file": self._known_by, "columns": columns.as_json()},
            columns.values,
            keys,
            times,
            refused=_refusals(bad, rows),
            behind=self.n_rows - end,
            zoned=columns.time_kind == ZONED,
        )
        return batch if not batch.refused.total else batch.only(~np.logical_or.reduce(list(bad.values())))


def _refusals(bad: dict[str, Flags], rows: Any) -> Refusals:
    """Counts of the rows that are bad, each for its first reason, and the first few of them."""
    refused = Refusals()
    seen: Flags = np.zeros(len(rows), np.bool_)
    found: list[tuple[int, str]] = []
    for reason, flags in bad.items():
        places = np.flatnonzero(flags & ~seen)
        seen |= flags
        refused.counts[reason] += len(places)
        found += [(place, reason) for place in places[:SHOWN].tolist()]
    refused.counts += Counter()  # forgets those of which there are none
    for place, reason in sorted(found)[:SHOWN]:
        told = {name: plain_values(rows.column(name).slice(place, 1))[0] for name in rows.schema.names}
        refused.add(reason, place, repr(told))
        refused.counts[reason] -= 1
    return refused


def _groups_from(row: int, sizes: list[int]) -> tuple[list[int], int]:
    """The row groups to read, and how many rows of the first to skip.

    >>> _groups_from(250, [100, 100, 100, 100])
    ([2, 3], 50)
    """
    for i, size in enumerate(sizes):
        if row < size:
            return list(range(i, len(sizes))), row
        row -= size
    return [], 0
