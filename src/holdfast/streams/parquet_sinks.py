"""Results to Parquet: one file that is there at the end, or a folder of parts that is whole at any moment."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from holdfast.errors import BadInputError
from holdfast.learners.trace import Trace
from holdfast.streams.arrow_columns import arrow, holds_texts
from holdfast.streams.arrow_tables import table_of
from holdfast.streams.batch import Batch
from holdfast.streams.results import Results
from holdfast.streams.sink import Sink
from holdfast.streams.tables import check_what

PART = re.compile(r"part-([0-9]{6,})\.parquet")
WRITING = ".writing"  # at the end of the name of a file that is not whole
GROUP = 1 << 16  # rows that are written together


class ParquetFile(Sink):
    """Writes one file, which is there and whole once this is closed. what: "points" or "alarms".

    It cannot be gone on with after a crash: `ParquetParts` can.
    """

    def __init__(self, path: str | os.PathLike[str], what: str) -> None:
        arrow()
        self.path, self.what = Path(path), check_what(what)
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise BadInputError(f"{path} cannot be written: it is a folder, or in none that is there")
        self._file: _Growing | None = None
        self._nothing = Results(Batch(np.zeros((0, 1))), Trace(np.zeros(0), np.zeros(0, np.int8)))
        self._is_closed = False

    def write(self, results: Results) -> None:
        """Adds to the file."""
        if not len(results):  # may not know its columns yet
            self._nothing = results
            return
        self._file = self._file or _Growing(self.path)
        self._file.add(table_of(results, self.what))

    def flush(self) -> Any:
        """How many rows it has."""
        return 0 if self._file is None else self._file.n_rows

    def rewind(self, mark: Any) -> None:
        """Only to the beginning."""
        if mark:
            raise BadInputError(f"{self.path} cannot be gone on with: results to be resumed go to a folder of parts")

    def close(self) -> None:
        """The file is there, if only with the names of its columns."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._file is None:
            self._file = _Growing(self.path)
            self._file.add(table_of(self._nothing, self.what))
        self._file.finish()


class ParquetParts(Sink):
    """Writes a folder of files part-000000.parquet, …, each whole when it appears. what: "points" or "alarms".

    There is one for each flush that has something to write, and the mark is how many there are: after a crash nothing
    is lost and nothing is there twice. A new run goes on after the parts that it finds.
    """

    def __init__(self, folder: str | os.PathLike[str], what: str) -> None:
        arrow()
        self.folder, self.what = Path(folder), check_what(what)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInputError(f"{folder} cannot be a folder of parts: {error.strerror}") from None
        self._n_parts = self._next_number()
        self._part: _Growing | None = None
        self._schema: Any = None

    def write(self, results: Results) -> None:
        """Adds to the part that will be there at the next flush."""
        table = table_of(results, self.what)
        if not len(table):
            return
        self._require(table.schema)
        self._part = self._part or _Growing(self._path(self._n_parts))
        self._part.add(table)

    def flush(self) -> Any:
        """How many parts there are."""
        if self._part is not None:
            self._part.finish()
            self._part = None
            self._n_parts += 1
        return self._n_parts

    def rewind(self, mark: Any) -> None:
        """Removes later parts, the last one first, and what had been begun; None: all that is there stays."""
        if self._part is not None:
            self._part.abandon()
            self._part = None
        for path in self.folder.glob(f".part-*{WRITING}"):
            path.unlink()
        if mark is not None:
            for number in sorted(self._numbers(), reverse=True):
                if number >= int(mark):
                    self._path(number).unlink()
            _sync(self.folder)
        self._n_parts = self._next_number() if mark is None else int(mark)

    def close(self) -> None:
        """What has not been flushed is."""
        self.flush()

    def _path(self, number: int) -> Path:
        return self.folder / f"part-{number:06}.parquet"

    def _numbers(self) -> list[int]:
        found = (PART.fullmatch(path.name) for path in self.folder.iterdir())
        return [int(one[1]) for one in found if one]

    def _next_number(self) -> int:
        return max(self._numbers(), default=-1) + 1

    def _require(self, schema: Any) -> None:
        """That the columns are those of the parts that are there."""
        if self._schema is None:
            last = max(self._numbers(), default=None)
            self._schema = schema if last is None else arrow().parquet.read_schema(self._path(last))
        if not schema.equals(self._schema):
            was, now = (", ".join(f"{one.name} ({one.type})" for one in which) for which in (self._schema, schema))
            raise BadInputError(f"the parts in {self.folder} have the columns {was}, not {now}: give another folder")


class _Growing:
    """A file under a name of its own, which gets its right name once it is whole and on the disk."""

    def __init__(self, path: Path) -> None:
        self.path, self.other = path, path.with_name(f".{path.name}{WRITING}")
        try:
            self._handle: BinaryIO = self.other.open("wb")
        except OSError as error:
            raise BadInputError(f"{path} cannot be written: {error.strerror}") from None
        self._writer: Any = None
        self._waiting: list[Any] = []
        self.n_rows = self._n_written = 0

    def add(self, table: Any) -> None:
        """Further rows: many at a time, for it takes as long to write a few."""
        if self._writer is None:
            repeated = [one.name for one in table.schema if holds_texts(one.type)]  # numbers hardly ever come again
            self._writer = arrow().parquet.ParquetWriter(self._handle, table.schema, use_dictionary=repeated)
        self._waiting.append(table)
        self.n_rows += len(table)
        if self.n_rows - self._n_written >= GROUP:
            self._write()

    def finish(self) -> None:
        """The file is there."""
        self._write()
        self._writer.close()
        self._handle.flush()
        os.fsync(self._handle.fileno())
        self._handle.close()
        self.other.replace(self.path)
        _sync(self.path.parent)

    def abandon(self) -> None:
        """The file will never be there."""
        self._handle.close()
        self.other.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._waiting:
            self._writer.write_table(arrow().concat_tables(self._waiting))
        self._waiting, self._n_written = [], self.n_rows


def _sync(folder: Path) -> None:
    """Names that were given or taken away are so after a crash, too."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
