"""Line files as sinks. The sink truncates the file to the last checkpoint."""

from __future__ import annotations

import csv
import io
import logging
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.streams.results import (
    ALARMS_TABLE,
    BatchResult,
    check_table,
    get_column_names,
    to_json_line,
    to_records,
    to_rows,
)
from limpet.streams.sinks._ownership import OwnerLockFile, SinkOwner, check_owner, check_unowned, make_owner, try_lock
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset

log = logging.getLogger("limpet.streams")
TAIL_CHECKSUM_BYTES = 256  # before an offset


class LinesFile(BaseSink):
    """A file that lines are appended to.

    One run at a time holds a lock, from `truncate_to` to `close`; a run with checkpoints owns the file permanently, see
    `OwnerLockFile`. An offset holds the size of the file, a checksum of the last bytes, and the owner.

    Parameters
    ----------
    path : str or path
        The file.
    table : {"alarms", "points"}
        What to write.
    overwrite : bool
        Whether to replace an existing file instead of appending to it.
    """

    is_exclusive = True

    def __init__(self, path: str | os.PathLike[str], table: str = ALARMS_TABLE, *, overwrite: bool = False) -> None:
        self.path, self.table, self._overwrite = Path(path), check_table(table), overwrite
        self.name = f"{table} in {self.path.resolve()}"
        if not self.path.absolute().parent.is_dir():
            raise InvalidInputError(f"{self.path}: cannot be written, its folder {self.path.parent} does not exist")
        self._owners = OwnerLockFile(self.path.resolve())
        self._owner: str | None = None
        self._is_new = not self.path.exists()
        self._started = False
        try:
            self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._error(error) from None

    def write(self, results: BatchResult) -> None:
        """Append lines; other processes can read them at once."""
        if not self._started:
            self.truncate_to(None)
        remaining = memoryview(self.format_lines(results).encode("utf-8", "replace"))
        try:
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
        except OSError as error:
            raise self._error(error) from None

    def _error(self, error: OSError) -> InvalidInputError:
        return InvalidInputError(f"{self.path}: cannot be written: {(error.strerror or str(error)).lower()}")

    def format_lines(self, results: BatchResult) -> str:
        """Format results as lines."""
        raise NotImplementedError

    def flush(self) -> Any:
        """Sync the file and return the offset.

        If the file was moved, as by log rotation, continue in a new one.
        """
        if self._started and self._was_moved():
            self._reopen()
        size = self._file.tell()
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._error(error) from None
        return make_offset(self, size=size, tail=self._tail_checksum(size), owner=self._owner)

    def _was_moved(self) -> bool:
        try:
            current, opened = os.stat(self.path), os.fstat(self._file.fileno())
        except FileNotFoundError:
            return True
        return (current.st_ino, current.st_dev) != (opened.st_ino, opened.st_dev)

    def _reopen(self) -> None:
        log.warning("%s was moved, continuing in a new file", self.path)
        try:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._error(error) from None
        if not try_lock(self._file.fileno()):
            raise InvalidInputError(f"{self.path}: in use by another run")
        self._file.seek(0, os.SEEK_END)
        if self._owner is not None:
            self._owners.write(SinkOwner(self._owner, self._file.tell()))

    def truncate_to(self, offset: Any) -> None:
        """Truncate the file to the offset."""
        try:
            if not try_lock(self._file.fileno()):
                raise InvalidInputError(f"{self.path}: in use by another run, or given twice")
            self._start() if offset is None else self._resume(check_offset(self, offset))
        except BaseException:
            self.close()
            raise
        self._file.seek(0, os.SEEK_END)
        self._started = True

    def _start(self) -> None:
        if self._overwrite:
            self._file.truncate(0)
        if self._overwrite or self._is_new:
            self._owners.remove()
        check_unowned(str(self.path), self._owners.read(), self._size)
        self._owners.remove()  # an owner that has not written anything

    def acquire(self) -> None:
        """Become the owner of what is appended from now on."""
        owner = make_owner(self._size)
        self._owner = owner.name if self._owners.write(owner) else None

    def _resume(self, offset: dict[str, Any]) -> None:
        size, known_size = self._size, int(offset["size"])
        if size < known_size:
            raise CheckpointError(
                f"{self.path}: must have the {known_size:,} bytes of the checkpoint, got {size:,}. Lines are missing"
            )
        if self._tail_checksum(known_size) != offset["tail"]:
            raise CheckpointError(f"{self.path}: must be the file of the checkpoint, got one with other lines")
        self._owner = offset["owner"]
        check_owner(str(self.path), self._owners.read(), self._owner, size - known_size)
        self._file.truncate(known_size)

    @property
    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _tail_checksum(self, size: int) -> int:
        """Return a checksum of the last bytes before this size."""
        start = max(size - TAIL_CHECKSUM_BYTES, 0)
        return zlib.crc32(os.pread(self._file.fileno(), size - start, start))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class JsonLinesFile(LinesFile):
    """JSON lines: one object per row."""

    def format_lines(self, results: BatchResult) -> str:
        """Format each row as one line."""
        return "".join(f"{to_json_line(record)}\n" for record in to_records(results, self.table))


class CsvFile(LinesFile):
    """Comma-separated values with a header."""

    _names: Sequence[str] | None = None

    def _reopen(self) -> None:
        super()._reopen()
        self._names = None

    def format_lines(self, results: BatchResult) -> str:
        """Format each row as one line, after a header if the file is empty."""
        if not len(results) or (self.table == ALARMS_TABLE and not results.trace.alarms and self._file.tell()):
            return ""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if self._names is None:
            self._names = get_column_names(results, self.table)
            if not self._file.tell():
                writer.writerow(self._names)
            else:
                self._check_names()
        for row in to_rows(results, self.table):
            writer.writerow([_format_cell(value) for value in row])
        return text.getvalue()

    def _check_names(self) -> None:
        with open(self.path, encoding="utf-8", errors="replace", newline="") as file:
            header = next(csv.reader(file), [])
        if header != list(self._names or ()):
            raise InvalidInputError(
                f"{self.path}: must have the columns {', '.join(self._names or ())}, got {', '.join(header)}. "
                "Give another file"
            )


def _format_cell(value: Any) -> Any:
    """Convert a value to a cell; lists become strings separated by spaces.

    >>> _format_cell(True), _format_cell(["a", "b"]), _format_cell(None)
    (1, 'a b', None)
    """
    if isinstance(value, bool):
        return int(value)
    return " ".join(value) if isinstance(value, list) else value
