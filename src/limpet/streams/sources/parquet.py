"""Parquet files of any size as a source."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.streams.batch import MAX_KEPT_ERRORS, Batch, InputErrorLog, position_field
from limpet.streams.formats import arrow
from limpet.streams.formats.arrow import import_pyarrow
from limpet.streams.formats.json import NO_KEY, NO_TIME_REASON, SCHEMA_SAMPLE_RECORDS
from limpet.streams.schema import ANY_COLUMNS, ColumnSpec, Schema, infer_schema
from limpet.streams.sources.base import BaseSource

PARQUET_BATCH_ROWS = 1 << 16
READ_BUFFER_BYTES = 1 << 20  # per column


class ParquetSource(BaseSource):
    """Rows of a Parquet file: required columns only, up to `batch_rows` at a time.

    Values are numbers of any width, and booleans on request; null is a missing value. The key is a column of strings or
    integers, the time one of timestamps, dates, numbers or strings; rows without them are malformed. The columns are
    inferred from the types and the first rows.
    """

    def __init__(
        self, path: str | os.PathLike[str], spec: ColumnSpec = ANY_COLUMNS, *, batch_rows: int = PARQUET_BATCH_ROWS
    ) -> None:
        self.path, self.batch_rows = os.fspath(path), batch_rows
        self._file = self._open(())
        self.n_rows: int = self._file.metadata.num_rows
        self._fingerprint = [self.n_rows, self._checksum()]
        self._types = self._file.schema_arrow
        duplicates = [name for name, n in Counter(self._types.names).items() if n > 1]
        if duplicates:
            raise InvalidInputError(f"source: columns of {self.path} must be distinct, got {duplicates[0]!r} repeated.")
        self.schema = infer_schema(self._sample(spec), spec)
        self._check_columns(self.schema, 0)

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield the batches after a position {"row": …, "file": …}."""
        row = position_field(position, "row", int) or 0
        schema = self.schema
        assert schema is not None
        if position is not None and position_field(position, "file", list) != self._fingerprint:
            raise CheckpointError(f"source: {self.path} was replaced since the checkpoint. Use a new folder for it.")
        self._check_columns(schema, row)
        string_columns = [schema.key] if schema.key and arrow.is_string_type(self._types.field(schema.key).type) else []
        with self._open(string_columns) as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            groups, skip = _select_row_groups(row, sizes)
            required = list(schema.required_columns)
            batches = file.iter_batches(self.batch_rows, row_groups=groups, columns=required) if groups else iter(())
            while (rows := self._next_rows(batches, row)) is not None:
                if skip >= len(rows):
                    skip -= len(rows)
                    continue
                rows, skip = rows.slice(skip), 0
                row += len(rows)
                yield self._make_batch(rows, schema, row)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _open(self, string_columns: Any) -> Any:
        """Open the file, some columns as dictionaries; `pre_buffer` reads whole groups."""
        pa = import_pyarrow()
        try:
            return pa.parquet.ParquetFile(
                self.path, read_dictionary=string_columns, buffer_size=READ_BUFFER_BYTES, pre_buffer=False
            )
        except (OSError, pa.ArrowException) as error:
            number = getattr(error, "errno", None)
            reason = os.strerror(number) if number else str(error).splitlines()[0]
            raise InvalidInputError(f"source: {self.path} cannot be read: {reason}.") from None

    def _checksum(self) -> int:
        """Checksum of the footer, which has the offsets of all columns."""
        size = self._file.metadata.serialized_size + 8  # its length and the magic bytes
        with open(self.path, "rb") as file:
            file.seek(-size, os.SEEK_END)
            return zlib.crc32(file.read(size))

    def _next_rows(self, batches: Iterator[Any], row: int) -> Any:
        try:
            return next(batches, None)
        except (OSError, import_pyarrow().ArrowException) as error:
            reason = str(error).splitlines()[0]
            raise InvalidInputError(f"source: {self.path} cannot be read after row {row}: {reason}.") from None

    def _sample(self, spec: ColumnSpec) -> list[dict[str, Any]]:
        """Return the first rows as plain values; empty columns get a typed placeholder."""
        batches = self._file.iter_batches(SCHEMA_SAMPLE_RECORDS) if self.n_rows else iter(())
        rows = self._next_rows(batches, 0)
        if rows is None:
            rows = import_pyarrow().RecordBatch.from_pylist([{}], self._types)
        columns = {}
        for name, column in zip(self._types.names, rows.columns, strict=True):
            values, placeholder = arrow.convert_column(column, as_numbers=name in (spec.columns or ()))
            is_empty = all(value is None for value in values)
            columns[name] = [placeholder, *values[1:]] if is_empty else values
        return [{name: values[i] for name, values in columns.items()} for i in range(len(rows))]

    def _check_columns(self, schema: Schema, row: int) -> None:
        """Raise if a column is missing or of a wrong type, or if the file has fewer rows."""
        for name in schema.required_columns:
            if name not in self._types.names:
                raise InvalidInputError(f"source: must have the column {name!r}, got {self.path} without it.")
        empty = self._types.empty_table().to_batches() or [import_pyarrow().RecordBatch.from_pylist([], self._types)]
        self._make_batch(empty[0], schema, 0)
        if row > self.n_rows:
            raise InvalidInputError(f"position: {self.path} has {self.n_rows} rows, got row {row}.")

    def _make_batch(self, rows: Any, schema: Schema, end: int) -> Batch:
        n = len(rows)
        values = np.empty((n, len(schema.values)))
        for i, name in enumerate(schema.values):
            values[:, i] = arrow.to_float64(rows.column(name))
        keys = None if schema.key is None else arrow.to_keys(rows.column(schema.key))
        times, invalid = None, {}
        if keys is not None and keys.codes is not None:
            invalid[NO_KEY] = keys.codes < 0
        if schema.time is not None and schema.time_kind is not None:
            times, invalid[NO_TIME_REASON] = arrow.to_times(rows.column(schema.time), schema.time_kind)
        position = {"row": end, "file": self._fingerprint}
        batch = Batch(values, position, schema.values, keys, times, schema, lag=self.n_rows - end)
        batch.malformed = _make_input_errors(invalid, rows)
        batch.tz_aware = schema.is_zoned
        return batch if not batch.malformed.total else batch.filter(~np.logical_or.reduce(list(invalid.values())))


def _make_input_errors(flags_by_reason: dict[str, arrow.Flags], rows: Any) -> InputErrorLog:
    """Count the malformed rows, each for its first reason, and keep the first few."""
    malformed = InputErrorLog()
    seen: arrow.Flags = np.zeros(len(rows), np.bool_)
    first: list[tuple[int, str]] = []
    for reason, flags in flags_by_reason.items():
        indexes = np.flatnonzero(flags & ~seen)
        seen |= flags
        malformed.counts[reason] += len(indexes)
        first += [(index, reason) for index in indexes[:MAX_KEPT_ERRORS].tolist()]
    malformed.counts += Counter()  # removes zeros
    for index, reason in sorted(first)[:MAX_KEPT_ERRORS]:
        record = {name: arrow.convert_column(rows.column(name).slice(index, 1))[0][0] for name in rows.schema.names}
        malformed.keep(reason, index, repr(record))
    return malformed


def _select_row_groups(row: int, sizes: list[int]) -> tuple[list[int], int]:
    """Return the row groups to read, and how many rows of the first to skip.

    >>> _select_row_groups(250, [100, 100, 100, 100])
    ([2, 3], 50)
    """
    for i, size in enumerate(sizes):
        if row < size:
            return list(range(i, len(sizes))), row
        row -= size
    return [], 0
