"""Parquet files as a source, however large."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.streams.batch import Batch, position_field
from limpet.streams.formats.arrow import (
    Flags,
    import_pyarrow,
    is_string_type,
    to_float64,
    to_keys,
    to_python_values,
    to_sample,
    to_times,
)
from limpet.streams.formats.json import NO_KEY, NO_TIME, SCHEMA_SAMPLE_RECORDS
from limpet.streams.rejects import MAX_KEPT_REJECTS, RejectLog
from limpet.streams.schema import ColumnSpec, Schema, infer_schema
from limpet.streams.sinks.parquet import ParquetFile, ParquetParts
from limpet.streams.timestamps import ZONED_ISO_FORMAT

__all__ = ["ParquetFile", "ParquetParts", "ParquetSource"]
PARQUET_BATCH_ROWS = 1 << 16  # rows of a batch
READ_BUFFER_BYTES = 1 << 20  # bytes that are read at a time, of each column


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
        spec: ColumnSpec | None = None,
        *,
        columns: Schema | None = None,
        batch_rows: int = PARQUET_BATCH_ROWS,
    ) -> None:
        self.path, self.batch_rows = os.fspath(path), batch_rows
        self._file = self._open(())
        self.n_rows: int = self._file.metadata.num_rows
        self._fingerprint = [self.n_rows, self._checksum()]
        self._schema = self._file.schema_arrow
        duplicates = [name for name, n in Counter(self._schema.names).items() if n > 1]
        if duplicates:
            raise InvalidInputError(f"{self.path} has more than one column {duplicates[0]!r}")
        self.columns = columns or infer_schema(self._sample(spec or ColumnSpec()), spec or ColumnSpec())
        self._check_columns(self.columns, 0)

    def read(self, position: Any) -> Iterator[Batch]:
        """Batches from a row on."""
        row = position_field(position, "row", int) or 0
        columns = Schema.from_dict(position_field(position, "columns", dict)) if position else self.columns
        if position and position_field(position, "file", list) != self._fingerprint:
            raise CheckpointError(f"{self.path} is not the file that it was at the last checkpoint")
        self._check_columns(columns, row)
        string_columns = [columns.key] if columns.key and is_string_type(self._schema.field(columns.key).type) else []
        with self._open(string_columns) as file:
            groups, skip = _select_row_groups(
                row, [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            )
            needed = [*columns.values, *(name for name in (columns.key, columns.time) if name)]
            batches = file.iter_batches(self.batch_rows, row_groups=groups, columns=needed) if groups else iter(())
            while (rows := self._next_rows(batches, row)) is not None:
                if skip >= len(rows):
                    skip -= len(rows)
                    continue
                rows, skip = rows.slice(skip), 0
                row += len(rows)
                yield self._make_batch(rows, columns, row)

    def close(self) -> None:
        """The file is not needed any more."""
        self._file.close()

    def _open(self, string_columns: Any) -> Any:
        """The file; these columns of texts come with their codes. What is read ahead would be a whole row group."""
        pa = import_pyarrow()
        try:
            return pa.parquet.ParquetFile(
                self.path, read_dictionary=string_columns, buffer_size=READ_BUFFER_BYTES, pre_buffer=False
            )
        except (OSError, pa.ArrowException) as error:
            number = getattr(error, "errno", None)
            why = os.strerror(number) if number else str(error).splitlines()[0]
            raise InvalidInputError(f"{self.path} cannot be read: {why}") from None

    def _checksum(self) -> int:
        """Of the end of the file, which says where everything in it is."""
        size = self._file.metadata.serialized_size + 8  # its own length, and a word by which Parquet is known
        with open(self.path, "rb") as file:
            file.seek(-size, os.SEEK_END)
            return zlib.crc32(file.read(size))

    def _next_rows(self, batches: Iterator[Any], row: int) -> Any:
        try:
            return next(batches, None)
        except (OSError, import_pyarrow().ArrowException) as error:
            why = str(error).splitlines()[0]
            raise InvalidInputError(f"{self.path} cannot be read from row {row} on: {why}") from None

    def _sample(self, spec: ColumnSpec) -> list[dict[str, Any]]:
        """The first rows as plain values; one that is made up where there are none."""
        batches = self._file.iter_batches(SCHEMA_SAMPLE_RECORDS) if self.n_rows else iter(())
        rows = self._next_rows(batches, 0)
        if rows is None:
            rows = import_pyarrow().RecordBatch.from_pylist([{}], self._schema)
        columns = {
            name: to_sample(column, as_numbers=name in (spec.columns or ()))
            for name, column in zip(self._schema.names, rows.columns, strict=True)
        }
        return [{name: values[i] for name, values in columns.items()} for i in range(len(rows))]

    def _check_columns(self, columns: Schema, row: int) -> None:
        """That it has these columns, and of such types; and that what is read on is the file that it was."""
        for name in (*columns.values, columns.key, columns.time):
            if name is not None and name not in self._schema.names:
                raise InvalidInputError(f"{self.path} has no column {name!r}")
        empty = self._schema.empty_table().to_batches() or [import_pyarrow().RecordBatch.from_pylist([], self._schema)]
        self._make_batch(empty[0], columns, 0)
        if row > self.n_rows:
            raise InvalidInputError(f"{self.path} has {self.n_rows} rows, but {row} had been read: it is another file")

    def _make_batch(self, rows: Any, columns: Schema, end: int) -> Batch:
        n = len(rows)
        values = np.empty((n, len(columns.values)))
        for i, name in enumerate(columns.values):
            values[:, i] = to_float64(rows.column(name))
        keys = None if columns.key is None else to_keys(rows.column(columns.key))
        times, invalid = None, {}
        if keys is not None and keys.codes is not None:
            invalid[NO_KEY] = keys.codes < 0
        if columns.time is not None and columns.time_kind is not None:
            times, invalid[NO_TIME] = to_times(rows.column(columns.time), columns.time_kind)
        batch = Batch(
            values,
            {"row": end, "file": self._fingerprint, "columns": columns.to_dict()},
            columns.values,
            keys,
            times,
            rejects=_make_rejects(invalid, rows),
            lag=self.n_rows - end,
            tz_aware=columns.time_kind == ZONED_ISO_FORMAT,
        )
        return batch if not batch.rejects.total else batch.filter(~np.logical_or.reduce(list(invalid.values())))


def _make_rejects(invalid: dict[str, Flags], rows: Any) -> RejectLog:
    """Counts of the rows that are bad, each for its first reason, and the first few of them."""
    rejects = RejectLog()
    seen: Flags = np.zeros(len(rows), np.bool_)
    rejected_rows: list[tuple[int, str]] = []
    for reason, flags in invalid.items():
        indexes = np.flatnonzero(flags & ~seen)
        seen |= flags
        rejects.counts[reason] += len(indexes)
        rejected_rows += [(index, reason) for index in indexes[:MAX_KEPT_REJECTS].tolist()]
    rejects.counts += Counter()  # forgets those of which there are none
    for index, reason in sorted(rejected_rows)[:MAX_KEPT_REJECTS]:
        record = {name: to_python_values(rows.column(name).slice(index, 1))[0] for name in rows.schema.names}
        rejects.add(reason, index, repr(record))
        rejects.counts[reason] -= 1
    return rejects


def _select_row_groups(row: int, sizes: list[int]) -> tuple[list[int], int]:
    """The row groups to read, and how many rows of the first to skip.

    >>> _groups_from(250, [100, 100, 100, 100])
    ([2, 3], 50)
    """
    for i, size in enumerate(sizes):
        if row < size:
            return list(range(i, len(sizes))), row
        row -= size
    return [], 0
