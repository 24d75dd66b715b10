"""Files of lines as sources: separated values or JSON, finished or still growing."""

from __future__ import annotations

import gzip
import logging
import os
import time
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from holdfast.errors import BadInputError
from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns, Wanted
from holdfast.streams.lines import AT_ONCE, blocks
from holdfast.streams.positions import part_of
from holdfast.streams.readers import (
    CSV,
    HEAD,
    JSON,
    LinesReader,
    batch_of,
    describing,
    is_enough,
    is_text,
    reader_for,
    reader_of,
)

log = logging.getLogger("holdfast.streams")
MARKED = 1024  # bytes by which a file is known again
LOOK = 0.2  # seconds until one looks again whether more has come
SUFFIXES = {".csv": CSV, ".tsv": CSV, ".jsonl": JSON, ".ndjson": JSON, ".json": JSON}


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
        self.packed = self.path.suffix.lower() == ".gz"
        plain = Path(self.path.stem) if self.packed else self.path
        self.form = form or SUFFIXES.get(plain.suffix.lower())
        if self.packed and follow:
            raise BadInputError(f"{self.path} is packed: it cannot be followed; read it once")
        self.reader: LinesReader | None = None

    @property
    def columns(self) -> Columns | None:
        """What was understood."""
        return None if self.reader is None else self.reader.columns

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Batches from this position on."""
        if position:
            part_of(position, "reader", dict), part_of(position, "head", list), part_of(position, "offset", int)
        self.reader = reader_of(position, self.wanted) if position else None
        while True:
            with self._open() as file:
                offset = self._resume(file, position) if position else None
                if offset is None:
                    offset = yield from self._begin(file)
                if offset is not None:
                    yield from self._batches(file, offset)
                if not self.follow:
                    return
            log.info("%s was replaced: going on with the new one", self.path)
            position = None

    def _open(self) -> IO[bytes]:
        if self.path.is_fifo():
            raise BadInputError(f"{self.path} is a pipe, which can be read once: `holdfast watch {self.path} --once`")
        with self._told():
            opener: Callable[..., Any] = gzip.open if self.packed else open
            file: IO[bytes] = opener(self.path, "rb")
            file.read(1)
            file.seek(0)
            return file

    def _begin(self, file: IO[bytes]) -> Generator[Batch, None, int | None]:
        """Understands the file; the offset of the first record, None if it was replaced before there was one."""
        head = self._take(file, HEAD)
        while self.follow and not is_enough(head, self.form):
            position = None if self.reader is None else describing(self.reader) | {"offset": 0, "head": [0, 0]}
            yield Batch(np.zeros((0, 1)), position)
            time.sleep(LOOK)
            if self._was_replaced(file):
                return None
            head += self._take(file, HEAD - len(head))
        if not head.strip():
            raise BadInputError(f"{self.path} is empty")
        if not is_text(head):
            raise BadInputError(f"{self.path} is no text: expected separated values or JSON in UTF-8, a record a line")
        if self.follow or len(head) == HEAD:  # then the last line may be cut
            head = head[: head.rfind(b"\n") + 1] or head
        try:
            self.reader, begin = reader_for(head, self.wanted, self.form, self.reader)
        except BadInputError as error:
            raise BadInputError(f"{self.path}: {error}") from None
        return begin

    def _resume(self, file: IO[bytes], position: dict[str, Any]) -> int | None:
        """The offset to go on at; None if this is another file than it was."""
        length, checksum = position["head"]
        with self._told():
            same = zlib.crc32(file.read(length)) == checksum
            size = file.seek(position["offset"]) if self.packed else os.fstat(file.fileno()).st_size
            same &= size >= position["offset"]
            file.seek(0)
        if not same:
            log.warning("%s is not the file that it was at the last checkpoint: read from its beginning", self.path)
        return int(position["offset"]) if same and position["offset"] else None

    def _batches(self, file: IO[bytes], offset: int) -> Iterator[Batch]:
        with self._told():
            file.seek(0)
            head = file.read(MARKED)
            file.seek(offset)
        size = 0 if self.packed else os.fstat(file.fileno()).st_size
        for block in blocks(lambda n: self._more(file, n), offset, lambda: not self._was_emptied(file), self.at_once):
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
        data = self._take(file, n)
        if data or not self.follow:
            return data
        time.sleep(LOOK)
        if self._was_replaced(file):
            return self._take(file, n)  # what came at the last moment
        return self._take(file, n) or None

    def _take(self, file: IO[bytes], n: int) -> bytes:
        with self._told():
            return file.read(n)

    def _was_replaced(self, file: IO[bytes]) -> bool:
        """Whether there is another file of this name, or the same one was emptied."""
        try:
            now, then = os.stat(self.path), os.fstat(file.fileno())
        except OSError:
            return False  # it is gone; a new one may come
        return (now.st_ino, now.st_dev) != (then.st_ino, then.st_dev) or self._was_emptied(file)

    def _was_emptied(self, file: IO[bytes]) -> bool:
        return self.follow and os.fstat(file.fileno()).st_size < file.tell()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of reading in words."""
        try:
            yield
        except (OSError, EOFError, zlib.error) as error:
            why = str(getattr(error, "strerror", None) or error).lower()
            raise BadInputError(f"{self.path} cannot be read: {why}") from None
