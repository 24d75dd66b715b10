"""File sinks, truncated to the last checkpoint by the run that owns them."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.learners.serialization import atomic_write
from limpet.streams.results import (
    ALARMS_TABLE,
    BatchResult,
    check_table,
    get_column_names,
    to_json_line,
    to_records,
    to_rows,
)
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset

log = logging.getLogger("limpet.streams")
TAIL_CHECKSUM_BYTES = 256  # before an offset


class SinkOwner(NamedTuple):
    """A run that may truncate; `since` is the prior size in bytes, rows or parts."""

    name: str
    since: int


class OwnerLockFile:
    """The hidden file `.NAME.limpet` beside results, which names their owner.

    Only a run with checkpoints truncates results, so only such a run is an owner, from before its first checkpoint. A
    new run does not append to owned results, since they would be truncated when the owner resumes; the owner does not
    truncate results that have another owner, or none. Extended attributes of the results would need no second file, but
    not every file system and not every copy keeps them.
    """

    def __init__(self, results: Path) -> None:
        self.path = results.with_name(f".{results.name}.limpet")

    def read(self) -> SinkOwner | None:
        """Return the owner, None if the results have none."""
        try:
            data = json.loads(self.path.read_bytes())
            return SinkOwner(str(data["owner"]), int(data["since"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise InvalidInputError(f"{self.path}: must name the owner of the results, cannot be read.") from None

    def write(self, owner: SinkOwner) -> bool:
        """Set the owner durably; return False if the file cannot be written."""
        try:
            atomic_write(self.path, [json.dumps({"owner": owner.name, "since": owner.since}).encode()])
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove the owner."""
        with suppress(OSError):
            self.path.unlink()


class OwnedSink(BaseSink):
    """Results in a file or folder locked by one run, from `truncate_to` to `close`.

    A run with checkpoints owns the results permanently, see `OwnerLockFile`.
    """

    is_exclusive = True

    def __init__(self, path: Path, table: str) -> None:
        self.path, self.table = path, check_table(table)
        self.name = f"{table} in {path.resolve()}"
        self._owners, self._is_new = OwnerLockFile(path.resolve()), not path.exists()
        self._owner: str | None = None
        self._started = False

    @abstractmethod
    def _lock(self) -> bool:
        """Lock the results; return False if another process holds the lock."""

    @abstractmethod
    def _count(self) -> int:
        """Return the size of the results."""

    @abstractmethod
    def _truncate(self, offset: dict[str, Any]) -> None:
        """Truncate the results to the offset of an earlier run with the same owner."""

    def truncate_to(self, offset: Any) -> None:
        """Truncate the results to the offset."""
        try:
            if not self._lock():
                raise InvalidInputError(f"{self.path}: in use by another run, or given twice.")
            if offset is None:
                self._start()
            else:
                self._truncate(check_offset(self, offset))
        except BaseException:
            self.close()
            raise
        self._started = True

    def _start(self) -> None:
        if self._is_new:
            self._owners.remove()
        check_unowned(str(self.path), self._owners.read(), self._count())
        self._owners.remove()  # an owner that has not written anything

    def acquire(self) -> None:
        """Become the owner of what is appended from now on."""
        name = uuid4().hex[:12]
        self._owner = name if self._owners.write(SinkOwner(name, self._count())) else None


def check_folder(path: Path) -> None:
    """Raise if the folder of a file is missing."""
    if not path.absolute().parent.is_dir():
        raise InvalidInputError(f"{path}: cannot be written, its folder {path.parent} does not exist.")


def check_unowned(target: str, owner: SinkOwner | None, count: int) -> None:
    """Raise if a new run must not append; an owner without output is ignored."""
    if owner is not None and count != owner.since:
        raise InvalidInputError(
            f"{target}: must not belong to another checkpoint folder, whose run would truncate it. Use another file."
        )


def check_owner(target: str, owner: SinkOwner | None, expected_owner: str | None, n_later: int) -> None:
    """Raise if a run must not resume, since another run has written results."""
    if (None if owner is None else owner.name) != expected_owner and (owner is not None or n_later > 0):
        raise CheckpointError(
            f"{target}: another run has written to it since the checkpoint. Nothing changed. Use a new file and folder."
        )


def try_lock(handle: int) -> bool:
    """Lock an open file or folder until closed; False if another process holds it."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # Windows, or a file system without locks
        return True
    return True


# Files of lines


class LinesFile(OwnedSink):
    """File of appended lines; offsets hold size, checksum of the last bytes, owner."""

    def __init__(self, path: str | os.PathLike[str], table: str = ALARMS_TABLE, *, overwrite: bool = False) -> None:
        super().__init__(Path(path), table)
        self._overwrite = overwrite
        check_folder(self.path)
        self._open()

    def _open(self) -> None:
        with self._wrap_errors():
            self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115

    @contextmanager
    def _wrap_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InvalidInputError(f"{self.path}: cannot be written: {reason}.") from None

    def write(self, results: BatchResult) -> None:
        """Append lines; other processes can read them at once."""
        if not self._started:
            self.truncate_to(None)
        remaining = memoryview(self.format_lines(results).encode("utf-8", "replace"))
        with self._wrap_errors():
            while remaining:
                remaining = remaining[self._file.write(remaining) :]

    def format_lines(self, results: BatchResult) -> str:
        """Format results as lines."""
        raise NotImplementedError

    def flush(self) -> Any:
        """Sync the file and return the offset; after a rotation, continue in a new file."""
        if self._started and self._was_moved():
            self._reopen()
        size = self._file.tell()
        with self._wrap_errors():
            os.fsync(self._file.fileno())
        return make_offset(self, size=size, tail=self._tail_checksum(size), owner=self._owner)

    def _was_moved(self) -> bool:
        try:
            return not os.path.samestat(os.stat(self.path), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return True

    def _reopen(self) -> None:
        log.warning("%s was moved, continuing in a new file", self.path)
        with self._wrap_errors():
            os.fsync(self._file.fileno())
            self._file.close()
        self._open()
        if not self._lock():
            raise InvalidInputError(f"{self.path}: in use by another run.")
        self._file.seek(0, os.SEEK_END)
        if self._owner is not None:
            self._owners.write(SinkOwner(self._owner, self._file.tell()))

    def truncate_to(self, offset: Any) -> None:
        """Truncate the file to the offset."""
        super().truncate_to(offset)
        self._file.seek(0, os.SEEK_END)

    def _lock(self) -> bool:
        return try_lock(self._file.fileno())

    def _start(self) -> None:
        if self._overwrite:
            self._file.truncate(0)
            self._owners.remove()
        super()._start()

    def _truncate(self, offset: dict[str, Any]) -> None:
        size, known_size = self._count(), int(offset["size"])
        if size < known_size:
            raise CheckpointError(
                f"{self.path}: must have the {known_size:,} bytes of the checkpoint, got {size:,}. Lines are missing."
            )
        if self._tail_checksum(known_size) != offset["tail"]:
            raise CheckpointError(f"{self.path}: must be the file of the checkpoint, got one with other lines.")
        self._owner = offset["owner"]
        check_owner(str(self.path), self._owners.read(), self._owner, size - known_size)
        self._file.truncate(known_size)

    def _count(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _tail_checksum(self, size: int) -> int:
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
            if self._file.tell():
                with open(self.path, encoding="utf-8", errors="replace", newline="") as file:
                    header = next(csv.reader(file), [])
                if header != list(self._names):
                    columns = f"{', '.join(self._names)}, got {', '.join(header)}"
                    raise InvalidInputError(f"{self.path}: must have the columns {columns}. Give another file.")
            else:
                writer.writerow(self._names)
        for row in to_rows(results, self.table):
            writer.writerow([_format_cell(value) for value in row])
        return text.getvalue()


def _format_cell(value: Any) -> Any:
    """Convert a value to a cell; lists become strings separated by spaces.

    >>> _format_cell(True), _format_cell(["a", "b"]), _format_cell(None)
    (1, 'a b', None)
    """
    if isinstance(value, bool):
        return int(value)
    return " ".join(value) if isinstance(value, list) else value
