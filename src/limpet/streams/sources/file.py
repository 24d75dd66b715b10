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

from limpet.exceptions import InvalidInputError
from limpet.streams.batch import Batch, position_field
from limpet.streams.formats import (
    CSV_FORMAT,
    HEAD_BYTES,
    JSON_FORMAT,
    LinesReader,
    has_full_line,
    is_text,
    make_batch_from_block,
    reader_from_position,
    reader_state,
    sniff_reader,
)
from limpet.streams.formats.lines import READ_BLOCK_BYTES, iter_line_blocks
from limpet.streams.schema import ColumnSpec, Schema

log = logging.getLogger("limpet.streams")
HEAD_CHECKSUM_BYTES = 1024  # bytes by which a file is known again
POLL_INTERVAL_S = 0.2  # seconds until one looks again whether more has come
FORMAT_BY_SUFFIX = {
    ".csv": CSV_FORMAT,
    ".tsv": CSV_FORMAT,
    ".jsonl": JSON_FORMAT,
    ".ndjson": JSON_FORMAT,
    ".json": JSON_FORMAT,
}


class FileSource:
    """The lines of a file, from the first to the last; with `follow` it goes on as the file grows.

    path: of a file of separated values, or of JSON, a record a line; .gz is unpacked. form: "csv" or "json", else told
    by the name or the beginning. at_once: bytes in a batch, about. A file that is replaced while it is followed (as
    logs are) is read to its end, then the new one from its beginning.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        spec: ColumnSpec | None = None,
        *,
        form: str | None = None,
        follow: bool = False,
        block_bytes: int = READ_BLOCK_BYTES,
    ) -> None:
        self.path, self.spec, self.follow, self.block_bytes = Path(path), spec or ColumnSpec(), follow, block_bytes
        self.is_gzip = self.path.suffix.lower() == ".gz"
        plain = Path(self.path.stem) if self.is_gzip else self.path
        self.form = form or FORMAT_BY_SUFFIX.get(plain.suffix.lower())
        if self.is_gzip and follow:
            raise InvalidInputError(f"{self.path} is packed: it cannot be followed; read it once")
        self.reader: LinesReader | None = None

    @property
    def columns(self) -> Schema | None:
        """What was understood."""
        return None if self.reader is None else self.reader.columns

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Batches from this position on."""
        if position:
            (
                position_field(position, "reader", dict),
                position_field(position, "head", list),
                position_field(position, "offset", int),
            )
        self.reader = reader_from_position(position, self.spec) if position else None
        while True:
            with self._open() as file:
                offset = self._resume(file, position) if position else None
                if offset is None:
                    offset = yield from self._start(file)
                if offset is not None:
                    yield from self._read_batches(file, offset)
                if not self.follow:
                    return
            log.info("%s was replaced: going on with the new one", self.path)
            position = None

    def _open(self) -> IO[bytes]:
        if self.path.is_fifo():
            raise InvalidInputError(f"{self.path} is a pipe, which can be read once: `limpet watch {self.path} --once`")
        with self._wrap_errors():
            opener: Callable[..., Any] = gzip.open if self.is_gzip else open
            file: IO[bytes] = opener(self.path, "rb")
            file.read(1)
            file.seek(0)
            return file

    def _start(self, file: IO[bytes]) -> Generator[Batch, None, int | None]:
        """Understands the file; the offset of the first record, None if it was replaced before there was one."""
        head = self._read_bytes(file, HEAD_BYTES)
        while self.follow and not has_full_line(head, self.form):
            position = None if self.reader is None else reader_state(self.reader) | {"offset": 0, "head": [0, 0]}
            yield Batch(np.zeros((0, 1)), position)
            time.sleep(POLL_INTERVAL_S)
            if self._was_replaced(file):
                return None
            head += self._read_bytes(file, HEAD_BYTES - len(head))
        if not head.strip():
            raise InvalidInputError(f"{self.path} is empty")
        if not is_text(head):
            raise InvalidInputError(
                f"{self.path} is no text: expected separated values or JSON in UTF-8, a record a line"
            )
        if self.follow or len(head) == HEAD_BYTES:  # then the last line may be cut
            head = head[: head.rfind(b"\n") + 1] or head
        try:
            self.reader, start = sniff_reader(head, self.spec, self.form, self.reader)
        except InvalidInputError as error:
            raise InvalidInputError(f"{self.path}: {error}") from None
        return start

    def _resume(self, file: IO[bytes], position: dict[str, Any]) -> int | None:
        """The offset to go on at; None if this is another file than it was."""
        length, checksum = position["head"]
        with self._wrap_errors():
            is_same_file = zlib.crc32(file.read(length)) == checksum
            size = file.seek(position["offset"]) if self.is_gzip else os.fstat(file.fileno()).st_size
            is_same_file &= size >= position["offset"]
            file.seek(0)
        if not is_same_file:
            log.warning("%s is not the file that it was at the last checkpoint: read from its beginning", self.path)
        return int(position["offset"]) if is_same_file and position["offset"] else None

    def _read_batches(self, file: IO[bytes], offset: int) -> Iterator[Batch]:
        with self._wrap_errors():
            file.seek(0)
            head = file.read(HEAD_CHECKSUM_BYTES)
            file.seek(offset)
        size = 0 if self.is_gzip else os.fstat(file.fileno()).st_size
        for block in iter_line_blocks(
            lambda n: self._read_more(file, n), offset, lambda: not self._was_emptied(file), self.block_bytes
        ):
            assert self.reader is not None
            if len(head) < min(HEAD_CHECKSUM_BYTES, block.end):
                head = os.pread(file.fileno(), HEAD_CHECKSUM_BYTES, 0)  # it has grown
            length = min(len(head), block.end)
            position = {"offset": block.end, "head": [length, zlib.crc32(head[:length])]}
            batch = make_batch_from_block(self.reader, block, position)
            if not self.is_gzip:
                if block.end > size or not len(batch):
                    size = os.fstat(file.fileno()).st_size
                batch.lag, batch.lag_unit = max(size - block.end, 0), "bytes"
            yield batch

    def _read_more(self, file: IO[bytes], n: int) -> bytes | None:
        """What the file has next: nothing at the end, None if more may come."""
        data = self._read_bytes(file, n)
        if data or not self.follow:
            return data
        time.sleep(POLL_INTERVAL_S)
        if self._was_replaced(file):
            return self._read_bytes(file, n)  # what came at the last moment
        return self._read_bytes(file, n) or None

    def _read_bytes(self, file: IO[bytes], n: int) -> bytes:
        with self._wrap_errors():
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
    def _wrap_errors(self) -> Iterator[None]:
        """Errors of reading in words."""
        try:
            yield
        except (OSError, EOFError, zlib.error) as error:
            why = str(getattr(error, "strerror", None) or error).lower()
            raise InvalidInputError(f"{self.path} cannot be read: {why}") from None
