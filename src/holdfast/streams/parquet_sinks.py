"""Results to Parquet: one file that is there at the end, or a folder of parts that is whole at any moment."""

from __future__ import annotations

import contextlib
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
from holdfast.streams.owners import OwnerFile, locked, new_owner, require_free, require_own, sync_folder
from holdfast.streams.results import Results
from holdfast.streams.sink import Sink, mark_of, parts_of
from holdfast.streams.tables import check_what

PART = re.compile(r"part-([0-9]{6,})\.parquet")
WRITING = ".writing"  # at the end of the name of a file that is not whole
GROUP = 1 << 16  # rows that are written together


class ParquetFile(Sink):
    """Writes one file, which is there and whole once this is drained and closed. what: "points" or "alarms".

    A run that ends by an error leaves no file. It cannot be gone on with after a crash: `ParquetParts` can.
    """

    alone = True

    def __init__(self, path: str | os.PathLike[str], what: str) -> None:
        arrow()
        self.path, self.what = Path(path), check_what(what)
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise BadInputError(f"{path} cannot be written: it is a folder, or in none that is there")
        self._file: _Growing | None = None
        self._nothing = Results(Batch(np.zeros((0, 1))), Trace(np.zeros(0), np.zeros(0, np.int8)))
        self.name = f"{what} in {self.path.resolve()}"
        self._is_closed = self._is_whole = False

    def write(self, results: Results) -> None:
        """Adds to the file."""
        if not len(results):  # may not know its columns yet
            self._nothing = results
            return
        self._file = self._file or _Growing(self.path)
        self._file.add(table_of(results, self.what))

    def flush(self) -> Any:
        """How many rows it has."""
        return mark_of(self, rows=0 if self._file is None else self._file.n_rows)

    def rewind(self, mark: Any) -> None:
        """Only to the beginning."""
        if mark is not None and parts_of(self, mark)["rows"]:
            raise BadInputError(f"{self.path} cannot be gone on with: results to be resumed go to a folder of parts")

    def drain(self) -> None:
        """All has been written."""
        self._is_whole = True

    def close(self) -> None:
        """The file is there, if only with the names of its columns; unless the run was cut short."""
        if self._is_closed:
            return
        self._is_closed = True
        if not self._is_whole:
            if self._file is not None:
                self._file.abandon()
            return
        if self._file is None:
            self._file = _Growing(self.path)
            self._file.add(table_of(self._nothing, self.what))
        self._file.finish()


class ParquetParts(Sink):
    """Writes a folder of files part-000000.parquet, …, each whole when it appears. what: "points" or "alarms".

    There is one for each flush that has something to write, and the mark is how many there are: after a crash nothing
    is lost and nothing is there twice. A new run goes on after the parts that it finds, unless they belong to one that
    can be resumed: see `LinesFile`, which is held in the same way.
    """

    alone = True

    def __init__(self, folder: str | os.PathLike[str], what: str) -> None:
        arrow()
        self.folder, self.what = Path(folder), check_what(what)
        self.name = f"{what} in {self.folder.resolve()}{os.sep}"
        self._owners, self._is_new = OwnerFile(self.folder.resolve()), not self.folder.exists()
        self._owner: str | None = None
        self._begun = False
        self._handle: int | None = None  # of the folder, while it is ours
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInputError(f"{folder} cannot be a folder of parts: {error.strerror}") from None
        self._n_parts = self._next_number()
        self._part: _Growing | None = None
        self._schema: Any = None

    def write(self, results: Results) -> None:
        """Adds to the part that will be there at the next flush."""
        if not self._begun:
            self.rewind(None)
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
        return mark_of(self, parts=self._n_parts, owner=self._owner)

    def rewind(self, mark: Any) -> None:
        """Removes later parts, the last one first, and what had been begun; None: all that is there stays."""
        try:
            self._take()
            if mark is None:
                if self._is_new:
                    self._owners.forget()
                self._n_parts = self._next_number()
                require_free(str(self.folder), self._owners.read(), self._n_parts)
                self._owners.forget()  # of one that has added nothing
            else:
                self._n_parts, self._owner = int(parts_of(self, mark)["parts"]), mark["owner"]
                beyond = sorted((one for one in self._numbers() if one >= self._n_parts), reverse=True)
                require_own(str(self.folder), self._owners.read(), self._owner, len(beyond))
                for number in beyond:
                    self._path(number).unlink()
            for path in self.folder.glob(f".part-*{WRITING}"):
                path.unlink()
            sync_folder(self.folder)
            self._begun = True
        except BaseException:
            self._let_go()
            raise

    def claim(self) -> None:
        """What is added from now on is this run's alone."""
        owner = new_owner(self._n_parts)
        self._owner = owner.name if self._owners.write(owner) else None

    def close(self) -> None:
        """What has not been flushed is."""
        if self._part is not None:
            self.flush()
        self._let_go()

    def _take(self) -> None:
        if self._handle is None and os.name == "posix":
            self._handle = os.open(self.folder, os.O_RDONLY)
            if not locked(self._handle):
                raise BadInputError(f"{self.folder} is in use by another run, or given twice")

    def _let_go(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

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
        sync_folder(self.path.parent)

    def abandon(self) -> None:
        """The file will never be there."""
        with contextlib.suppress(OSError, ValueError, arrow().ArrowException):
            self._writer.close()  # which writes its end
        self._handle.close()
        self.other.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._waiting:
            self._writer.write_table(arrow().concat_tables(self._waiting))
        self._waiting, self._n_written = [], self.n_rows
