"""Files of lines as sinks: what was written after a mark is cut off again."""

from __future__ import annotations

import csv
import io
import logging
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import BadInputError, CheckpointError
from holdfast.streams.owners import Owner, OwnerFile, locked, new_owner, require_free, require_own
from holdfast.streams.results import Results
from holdfast.streams.sink import Sink, mark_of, parts_of
from holdfast.streams.tables import ALARMS, check_what, columns_of, json_line, records_of, rows_of

log = logging.getLogger("holdfast.streams")
TAIL = 256  # bytes before a mark, by which it is known again


class LinesFile(Sink):
    """A file that lines are added to. what: "alarms" or "points". anew: whether what is there is written over.

    One run has it at a time, by a lock, from `rewind` to `close`. A run that can be resumed has it for good: see
    `OwnerFile`. A mark holds the size of the file, a checksum of the last bytes before it, and the owner.
    """

    alone = True

    def __init__(self, path: str | os.PathLike[str], what: str = ALARMS, *, anew: bool = False) -> None:
        self.path, self.what, self._anew = Path(path), check_what(what), anew
        self.name = f"{what} in {self.path.resolve()}"
        if not self.path.absolute().parent.is_dir():
            raise BadInputError(f"{self.path} cannot be written: there is no folder {self.path.parent}")
        self._owners = OwnerFile(self.path.resolve())
        self._owner: str | None = None
        self._is_new = not self.path.exists()
        self._begun = False
        try:
            self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._error(error) from None

    def write(self, results: Results) -> None:
        """Adds lines; others can read them at once."""
        if not self._begun:
            self.rewind(None)
        rest = memoryview(self.lines(results).encode("utf-8", "replace"))
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise self._error(error) from None

    def _error(self, error: OSError) -> BadInputError:
        return BadInputError(f"{self.path} cannot be written: {(error.strerror or str(error)).lower()}")

    def lines(self, results: Results) -> str:
        """The results as lines."""
        raise NotImplementedError

    def flush(self) -> Any:
        """How many bytes the file has, all on the disk. If it was moved away, as logs are, a new one is begun."""
        if self._begun and self._was_moved():
            self._begin_another()
        size = self._file.tell()
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._error(error) from None
        return mark_of(self, size=size, tail=self._tail(size), owner=self._owner)

    def _was_moved(self) -> bool:
        try:
            there, ours = os.stat(self.path), os.fstat(self._file.fileno())
        except FileNotFoundError:
            return True
        return (there.st_ino, there.st_dev) != (ours.st_ino, ours.st_dev)

    def _begin_another(self) -> None:
        log.warning("%s was moved away: going on in a new one", self.path)
        try:
            os.fsync(self._file.fileno())
            self._file.close()
            self._file = open(self.path, "a+b", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._error(error) from None
        if not locked(self._file.fileno()):
            raise BadInputError(f"{self.path} is in use by another run")
        self._file.seek(0, os.SEEK_END)
        if self._owner is not None:
            self._owners.write(Owner(self._owner, self._file.tell()))

    def rewind(self, mark: Any) -> None:
        """Cuts off what came after the mark."""
        try:
            if not locked(self._file.fileno()):
                raise BadInputError(f"{self.path} is in use by another run, or given twice")
            self._begin() if mark is None else self._go_back(parts_of(self, mark))
        except BaseException:
            self.close()
            raise
        self._file.seek(0, os.SEEK_END)
        self._begun = True

    def _begin(self) -> None:
        if self._anew:
            self._file.truncate(0)
        if self._anew or self._is_new:
            self._owners.forget()
        require_free(str(self.path), self._owners.read(), self._size)
        self._owners.forget()  # of one that has added nothing

    def claim(self) -> None:
        """What is added from now on is this run's alone."""
        owner = new_owner(self._size)
        self._owner = owner.name if self._owners.write(owner) else None

    def _go_back(self, mark: dict[str, Any]) -> None:
        size, known = self._size, int(mark["size"])
        if size < known:
            raise CheckpointError(f"{self.path} has {size:,} bytes, the checkpoint knows of {known:,}: lines are gone")
        if self._tail(known) != mark["tail"]:
            raise CheckpointError(f"{self.path} is not the file that the checkpoint knows: its lines are others")
        self._owner = mark["owner"]
        require_own(str(self.path), self._owners.read(), self._owner, size - known)
        self._file.truncate(known)

    @property
    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _tail(self, size: int) -> int:
        """A checksum of the bytes before this place."""
        begin = max(size - TAIL, 0)
        return zlib.crc32(os.pread(self._file.fileno(), size - begin, begin))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class JsonLinesFile(LinesFile):
    """A JSON object a line."""

    def lines(self, results: Results) -> str:
        """One line a row."""
        return "".join(f"{json_line(record)}\n" for record in records_of(results, self.what))


class CsvFile(LinesFile):
    """Separated values, the names first."""

    _names: Sequence[str] | None = None

    def _begin_another(self) -> None:
        super()._begin_another()
        self._names = None

    def lines(self, results: Results) -> str:
        """One line a row; before the first one the names, unless they are there already."""
        if not len(results) or (self.what == ALARMS and not results.trace.alarms and self._file.tell()):
            return ""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if self._names is None:
            self._names = columns_of(results, self.what)
            if not self._file.tell():
                writer.writerow(self._names)
            else:
                self._check_names()
        for row in rows_of(results, self.what):
            writer.writerow([_cell(one) for one in row])
        return text.getvalue()

    def _check_names(self) -> None:
        with open(self.path, encoding="utf-8", errors="replace", newline="") as file:
            found = next(csv.reader(file), [])
        if found != list(self._names or ()):
            raise BadInputError(
                f"{self.path} has other columns: {', '.join(found)}; expected {', '.join(self._names or ())}. "
                "Give the name of another file"
            )


def _cell(value: Any) -> Any:
    """A value as it stands in a file; several are separated by spaces.

    >>> _cell(True), _cell(["a", "b"]), _cell(None)
    (1, 'a b', None)
    """
    if isinstance(value, bool):
        return int(value)
    return " ".join(value) if isinstance(value, list) else value
