"""Files of lines as sources: separated values or JSON, finished or still growing."""

from __future__ import annotations

import gzip
import logging
import os
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from holdfast.errors import BadInputError
from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns, Wanted, columns_at
from holdfast.streams.csv_lines import CsvLines
from holdfast.streams.dialect import Dialect
from holdfast.streams.lines import AT_ONCE, Block, blocks
from holdfast.streams.records import TOO_LONG, RecordReader

log = logging.getLogger("holdfast.streams")
HEAD = 1 << 16  # bytes to understand a file by
MARKED = 1024  # bytes by which a file is known again
LOOK = 0.2  # seconds until one looks again whether more has come
CSV, JSON = "csv", "json"
SUFFIXES = {".csv": CSV, ".tsv": CSV, ".txt": CSV, ".dat": CSV, ".jsonl": JSON, ".ndjson": JSON, ".json": JSON}


class JsonLines:
    """Makes batches of lines of JSON."""

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader

    @property
    def columns(self) -> Columns | None:
        """What was understood; None until there is something to understand."""
        return self._reader.columns

    def as_json(self) -> dict[str, Any]:
        """What it goes by besides the columns, as JSON can hold it."""
        return {}

    def batch(self, data: bytes, position: Any) -> Batch:
        """The points in some whole lines."""
        return self._reader.batch([line for line in data.split(b"\n") if line.strip()], position)


def reader_of(position: dict[str, Any], wanted: Wanted) -> CsvLines | JsonLines:
    """What read the lines up to a position."""
    known = columns_at(position)
    if known is not None and "dialect" in position["reader"]:
        return CsvLines(Dialect.of_json(position["reader"]["dialect"]), known)
    return JsonLines(RecordReader(wanted, known))


def reader_for(head: bytes, wanted: Wanted, form: str | None) -> tuple[CsvLines | JsonLines, int]:
    """What reads a flow of lines that begins like this, and how many bytes come before the first record."""
    if form == JSON or (form is None and head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")):
        reader = JsonLines(RecordReader(wanted))
        reader.batch(head[: head.rfind(b"\n") + 1] or head, None)  # which decides what the columns are
        return reader, 0
    understood = CsvLines.understood(head, wanted)
    begin, dialect = 0, understood.dialect
    for _ in range(dialect.comments):
        begin = head.index(b"\n", begin) + 1
    if dialect.has_header:
        while not head[begin : (end := head.find(b"\n", begin) + 1 or len(head))].strip():
            begin = end
        begin = end
    return understood, begin


class FileSource:
    """The lines of a file, from the first to the last; with `follow` it goes on as the file grows.

    path: of a file of separated values, or of JSON, a record a line; .gz is unpacked. form: "csv" or "json", else told
    by the name or the beginning. at_once: bytes in a batch, about. A file that is replaced while it is followed (as
    logs are) is read to its end, then the new one from its beginning.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        wanted: Wanted | None = None,
        *,
        form: str | None = None,
        follow: bool = False,
        at_once: int = AT_ONCE,
    ) -> None:
        self.path, self.wanted, self.follow, self.at_once = Path(path), wanted or Wanted(), follow, at_once
        self.packed = self.path.suffix == ".gz"
        plain = Path(self.path.stem) if self.packed else self.path
        self.form = form or SUFFIXES.get(plain.suffix.lower())
        if self.packed and follow:
            raise BadInputError(f"{self.path} is packed: it cannot be followed; read it once")
        self.reader: CsvLines | JsonLines | None = None

    @property
    def columns(self) -> Columns | None:
        """What was understood."""
        return None if self.reader is None else self.reader.columns

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Batches from this position on."""
        while True:
            with self._open() as file:
                offset = self._resume(file, position) if position else self._begin(file)
                yield from self._batches(file, offset)
                if not self.follow:
                    return
            log.info("%s was replaced: going on with the new one", self.path)
            position = None
            if self.columns is not None:
                self.wanted = self.columns.wanted  # the same ones, wherever they are in the new file

    def _open(self) -> IO[bytes]:
        try:
            opener: Callable[..., Any] = gzip.open if self.packed else open
            file: IO[bytes] = opener(self.path, "rb")
            file.read(1)
            file.seek(0)
            return file
        except (OSError, EOFError) as error:
            raise BadInputError(f"{self.path} cannot be read: {_reason(error)}") from None

    def _begin(self, file: IO[bytes]) -> int:
        """Understands the file; the offset of the first record. One that is empty is waited for."""
        head = file.read(HEAD)
        while not head.count(b"\n") and self.follow:
            time.sleep(LOOK)
            head += file.read(HEAD - len(head))
        if not head.strip():
            raise BadInputError(f"{self.path} is empty")
        if b"\0" in head[:HEAD] and not head.isascii():
            raise BadInputError(f"{self.path} is no text: expected separated values or JSON, a record a line")
        try:
            self.reader, begin = reader_for(head, self.wanted, self.form)
        except BadInputError as error:
            raise BadInputError(f"{self.path}: {error}") from None
        return begin

    def _resume(self, file: IO[bytes], position: dict[str, Any]) -> int:
        """The offset to go on at; the beginning, if this is another file than it was."""
        length, checksum = position["head"]
        if zlib.crc32(file.read(length)) != checksum or file.seek(0, os.SEEK_END) < position["offset"]:
            file.seek(0)
            log.warning("%s is not the file that it was at the last checkpoint: read from its beginning", self.path)
            known = columns_at(position)
            self.wanted = self.wanted if known is None else known.wanted
            return self._begin(file)
        self.reader = reader_of(position, self.wanted)
        return int(position["offset"])

    def _batches(self, file: IO[bytes], offset: int) -> Iterator[Batch]:
        file.seek(0)
        head = file.read(MARKED)
        file.seek(offset)
        size = 0 if self.packed else os.fstat(file.fileno()).st_size
        at_end = "leave" if self.follow else "take"
        for block in blocks(lambda n: self._more(file, n), offset, at_end, self.at_once):
            assert self.reader is not None
            if len(head) < min(MARKED, block.end):
                head = os.pread(file.fileno(), MARKED, 0)  # it has grown
            length = min(len(head), block.end)
            position = {"offset": block.end, "head": [length, zlib.crc32(head[:length])]}
            batch = batch_of(self.reader, block, position)
            if not self.packed:
                if block.end > size or not len(batch):
                    size = os.fstat(file.fileno()).st_size
                batch.behind, batch.behind_in = max(size - block.end, 0), "bytes"
            yield batch

    def _more(self, file: IO[bytes], n: int) -> bytes | None:
        """What the file has next: nothing at the end, None if more may come."""
        try:
            data = file.read(n)
        except (OSError, EOFError, zlib.error) as error:
            raise BadInputError(f"{self.path} cannot be read further: {_reason(error)}") from None
        if data or not self.follow:
            return data
        time.sleep(LOOK)
        data = file.read(n)
        return data or (b"" if self._was_replaced(file) else None)

    def _was_replaced(self, file: IO[bytes]) -> bool:
        """Whether there is another file of this name, or the same one was emptied."""
        try:
            now, then = os.stat(self.path), os.fstat(file.fileno())
        except OSError:
            return False  # it is gone; a new one may come
        return (now.st_ino, now.st_dev) != (then.st_ino, then.st_dev) or now.st_size < file.tell()


def batch_of(reader: CsvLines | JsonLines, block: Block, position: dict[str, Any]) -> Batch:
    """The points of a block. A line that was left out is one more record that could not be read."""
    batch = reader.batch(block.data, None) if block.data else Batch(np.zeros((0, 1)))
    columns = None if reader.columns is None else reader.columns.as_json()
    batch.position = position | {"reader": reader.as_json(), "columns": columns}
    if block.too_long is not None:
        batch.refused.add(TOO_LONG, batch.n_records, block.too_long)
        batch.n_records += 1
    return batch


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).lower()
