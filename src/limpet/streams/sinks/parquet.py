"""Parquet as a sink: one file complete at the end, or a folder of parts."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from limpet.exceptions import InvalidInputError
from limpet.learners.results import Trace
from limpet.learners.serialization import fsync_folder
from limpet.streams.batch import Batch
from limpet.streams.formats.arrow import import_pyarrow, is_string_type, to_arrow_table
from limpet.streams.results import BatchResult, check_table
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset
from limpet.streams.sinks.files import OwnedSink, check_owner, try_lock

PART_NAME_PATTERN = re.compile(r"part-([0-9]{6,})\.parquet")
TEMPORARY_SUFFIX = ".writing"  # of incomplete files
ROW_GROUP_ROWS = 1 << 16


class ParquetFile(BaseSink):
    """Writes one file, which exists once the sink is drained and closed.

    A run that fails leaves no file, and a run cannot be resumed with this sink; see `ParquetParts`.
    """

    is_exclusive = True

    def __init__(self, path: str | os.PathLike[str], table: str) -> None:
        import_pyarrow()
        self.path, self.table = Path(path), check_table(table)
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise InvalidInputError(f"{path}: must be a file in an existing folder.")
        self._file: _PartialFile | None = None
        self._empty_results = BatchResult(Batch(np.zeros((0, 1))), Trace(np.zeros(0), np.zeros(0, np.int8)))
        self.name = f"{table} in {self.path.resolve()}"
        self._is_closed = self._is_complete = False

    def write(self, results: BatchResult) -> None:
        """Append the rows of a batch."""
        if not len(results):  # may lack columns
            self._empty_results = results
            return
        self._file = self._file or _PartialFile(self.path)
        self._file.add(to_arrow_table(results, self.table))

    def flush(self) -> Any:
        """Return the number of rows as the offset."""
        return make_offset(self, rows=0 if self._file is None else self._file.n_rows)

    def truncate_to(self, offset: Any) -> None:
        """Accept the offset of an empty file only."""
        if offset is not None and check_offset(self, offset)["rows"]:
            raise InvalidInputError(f"{self.path}: cannot be resumed. Give a folder of parts, with a / after the name.")

    def drain(self) -> None:
        """Mark the file as complete."""
        self._is_complete = True

    def close(self) -> None:
        """Create the file, unless the run has failed. Without rows it has a schema only."""
        if self._is_closed:
            return
        self._is_closed = True
        if not self._is_complete:
            if self._file is not None:
                self._file.discard()
            return
        if self._file is None:
            self._file = _PartialFile(self.path)
            self._file.add(to_arrow_table(self._empty_results, self.table))
        self._file.finish()


class ParquetParts(OwnedSink):
    """Writes a folder of complete files part-000000.parquet, …: exactly-once.

    Each flush with new rows writes one part; the offset is the number of parts. A new run appends after existing parts,
    unless another run owns them.
    """

    def __init__(self, folder: str | os.PathLike[str], table: str) -> None:
        import_pyarrow()
        super().__init__(Path(folder), table)
        self.name += os.sep
        self._lock_handle: int | None = None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"{folder}: cannot be a folder of parts: {error.strerror}.") from None
        self._n_parts = self._next_part_number()
        self._part: _PartialFile | None = None
        self._schema: Any = None

    def write(self, results: BatchResult) -> None:
        """Append the rows of a batch to the next part."""
        if not self._started:
            self.truncate_to(None)
        table = to_arrow_table(results, self.table)
        if not len(table):
            return
        self._check_schema(table.schema)
        self._part = self._part or _PartialFile(self._make_part_path(self._n_parts))
        self._part.add(table)

    def flush(self) -> Any:
        """Complete the part and return the number of parts as the offset."""
        if self._part is not None:
            self._part.finish()
            self._part = None
            self._n_parts += 1
        return make_offset(self, parts=self._n_parts, owner=self._owner)

    def truncate_to(self, offset: Any) -> None:
        """Remove later parts, the last one first, and incomplete files."""
        super().truncate_to(offset)
        for path in self.path.glob(f".part-*{TEMPORARY_SUFFIX}"):
            path.unlink()
        fsync_folder(self.path)

    def _start(self) -> None:
        self._n_parts = self._next_part_number()
        super()._start()

    def _truncate(self, offset: dict[str, Any]) -> None:
        self._n_parts, self._owner = int(offset["parts"]), offset["owner"]
        later_parts = sorted((number for number in self._list_part_numbers() if number >= self._n_parts), reverse=True)
        check_owner(str(self.path), self._owners.read(), self._owner, len(later_parts))
        for number in later_parts:
            self._make_part_path(number).unlink()

    def _count(self) -> int:
        return self._n_parts

    def close(self) -> None:
        """Flush the last part and release the lock."""
        if self._part is not None:
            self.flush()
        if self._lock_handle is not None:
            os.close(self._lock_handle)
            self._lock_handle = None

    def _lock(self) -> bool:
        if self._lock_handle is not None or os.name != "posix":
            return True
        self._lock_handle = os.open(self.path, os.O_RDONLY)
        return try_lock(self._lock_handle)

    def _make_part_path(self, number: int) -> Path:
        return self.path / f"part-{number:06}.parquet"

    def _list_part_numbers(self) -> list[int]:
        matches = (PART_NAME_PATTERN.fullmatch(path.name) for path in self.path.iterdir())
        return [int(match[1]) for match in matches if match]

    def _next_part_number(self) -> int:
        return max(self._list_part_numbers(), default=-1) + 1

    def _check_schema(self, schema: Any) -> None:
        if self._schema is None:
            last = max(self._list_part_numbers(), default=None)
            self._schema = schema if last is None else import_pyarrow().parquet.read_schema(self._make_part_path(last))
        if not schema.equals(self._schema):
            was, now = (", ".join(f"{field.name} ({field.type})" for field in each) for each in (self._schema, schema))
            raise InvalidInputError(
                f"{self.path}: must have the columns of its parts, {was}, got {now}. Give another folder."
            )


class _PartialFile:
    """A file with a temporary name, renamed once it is complete and durable."""

    def __init__(self, path: Path) -> None:
        self.path, self.temporary_path = path, path.with_name(f".{path.name}{TEMPORARY_SUFFIX}")
        try:
            self._handle: BinaryIO = self.temporary_path.open("wb")
        except OSError as error:
            raise InvalidInputError(f"{path}: cannot be written: {error.strerror}.") from None
        self._writer: Any = None
        self._buffered: list[Any] = []
        self.n_rows = self._n_written = 0

    def add(self, table: Any) -> None:
        """Append rows; write them in large groups, since a small group takes as long."""
        if self._writer is None:
            strings = [field.name for field in table.schema if is_string_type(field.type)]
            parquet = import_pyarrow().parquet
            self._writer = parquet.ParquetWriter(self._handle, table.schema, use_dictionary=strings)
        self._buffered.append(table)
        self.n_rows += len(table)
        if self.n_rows - self._n_written >= ROW_GROUP_ROWS:
            self._write()

    def finish(self) -> None:
        """Write the end of the file and rename it."""
        self._write()
        self._writer.close()
        self._handle.flush()
        os.fsync(self._handle.fileno())
        self._handle.close()
        self.temporary_path.replace(self.path)
        fsync_folder(self.path.parent)

    def discard(self) -> None:
        with contextlib.suppress(OSError, ValueError, import_pyarrow().ArrowException):
            self._writer.close()  # writes the end
        self._handle.close()
        self.temporary_path.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._buffered:
            self._writer.write_table(import_pyarrow().concat_tables(self._buffered))
        self._buffered, self._n_written = [], self.n_rows
