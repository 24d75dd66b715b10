"""Lines of CSV or JSON of a file, complete or growing, stdin or a named pipe."""

from __future__ import annotations

import gzip
import logging
import os
import select
import sys
import time
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from limpet.exceptions import InvalidInputError
from limpet.streams import formats
from limpet.streams.batch import Batch, position_field
from limpet.streams.formats.csv import CsvReader
from limpet.streams.schema import ANY_COLUMNS, ColumnSpec
from limpet.streams.sources.base import BaseSource

log = logging.getLogger("limpet.streams")
HEAD_CHECKSUM_BYTES = 1024  # that identify a file
POLL_INTERVAL_S = 0.2  # between checks for more data
PIPE_TIMEOUT_S = 0.25  # between empty batches of a pipe
SETTLE_TIMEOUT_S = 0.05  # without data until the first data of a pipe are inspected
CSV_SUFFIXES, JSON_SUFFIXES = (".csv", ".tsv"), (".jsonl", ".ndjson", ".json")
FORMAT_BY_SUFFIX = dict.fromkeys(CSV_SUFFIXES, formats.CSV_FORMAT) | dict.fromkeys(JSON_SUFFIXES, formats.JSON_FORMAT)


class FileSource(BaseSource):
    """Lines of a CSV or JSON file (or .gz); with `follow`, also those appended later.

    A file that is replaced while it is followed, as logs are, is read to its end, then the new one from its beginning.
    A batch has about `block_bytes`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        spec: ColumnSpec = ANY_COLUMNS,
        *,
        input_format: str | None = None,
        follow: bool = False,
        block_bytes: int = formats.READ_BLOCK_BYTES,
    ) -> None:
        self.path, self.spec, self.follow, self.block_bytes = Path(path), spec, follow, block_bytes
        self.is_gzip = self.path.suffix.lower() == ".gz"
        plain = Path(self.path.stem) if self.is_gzip else self.path
        self.input_format = input_format or FORMAT_BY_SUFFIX.get(plain.suffix.lower())
        if self.is_gzip and follow:
            raise InvalidInputError(f"source: must not be compressed to be followed, got {self.path}. Read it once.")
        self._reader: formats.LinesReader | None = None

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield the batches after a position {"offset": …, "head": …}."""
        self._reader = None
        if position is not None:
            position_field(position, "head", list)
            position_field(position, "offset", int)
            self._reader = None if self.schema is None else formats.reader_from_schema(self.schema, self.spec)
        while True:
            with self._open() as file:
                offset = None if position is None else self._resume(file, position)
                if offset is None or self._reader is None:
                    start = yield from self._start(file)
                    offset = start if offset is None or start is None else offset
                if offset is not None:
                    yield from self._read_batches(file, offset)
                if not self.follow:
                    return
            log.info("%s was replaced: continuing with the new file", self.path)
            position = None

    def _open(self) -> IO[bytes]:
        if self.path.is_fifo():
            raise InvalidInputError(f"source: must be a file, got a pipe. Use `limpet watch {self.path} --no-follow`.")
        with self._wrap_errors():
            opener: Callable[..., Any] = gzip.open if self.is_gzip else open
            file: IO[bytes] = opener(self.path, "rb")
            file.read(1)
            file.seek(0)
            return file

    def _start(self, file: IO[bytes]) -> Generator[Batch, None, int | None]:
        """Infer format and columns; return the first record's offset, None if replaced."""
        head = self._read_bytes(file, formats.HEAD_BYTES)
        while self.follow and not formats.has_full_line(head, self.input_format):
            position = None if self._reader is None else {"offset": 0, "head": [0, 0]}
            yield Batch(np.zeros((0, 1)), position, schema=self.schema)
            time.sleep(POLL_INTERVAL_S)
            if self._was_replaced(file):
                return None
            head += self._read_bytes(file, formats.HEAD_BYTES - len(head))
        if not head.strip():
            raise InvalidInputError(f"source: must be a non-empty file, got {self.path}.")
        if not formats.is_text(head):
            raise InvalidInputError(f"source: must be UTF-8 text, one CSV or JSON record per line, got {self.path}.")
        if self.follow or len(head) == formats.HEAD_BYTES:  # the last line may be incomplete
            head = head[: head.rfind(b"\n") + 1] or head
        try:
            self._reader, start = formats.sniff_reader(head, self.spec, self.input_format, self._reader)
        except InvalidInputError as error:
            raise InvalidInputError(f"{self.path}: {error}") from None
        self.schema = self._reader.schema
        return start

    def _resume(self, file: IO[bytes], position: dict[str, Any]) -> int | None:
        """Return the offset to continue at, None if this is not the same file."""
        length, checksum = position["head"]
        with self._wrap_errors():
            is_same_file = zlib.crc32(file.read(length)) == checksum
            size = file.seek(position["offset"]) if self.is_gzip else os.fstat(file.fileno()).st_size
            is_same_file &= size >= position["offset"]
            file.seek(0)
        if not is_same_file:
            log.warning("%s was replaced since the last checkpoint: reading it from the beginning", self.path)
        return int(position["offset"]) if is_same_file and position["offset"] else None

    def _read_batches(self, file: IO[bytes], offset: int) -> Iterator[Batch]:
        with self._wrap_errors():
            file.seek(0)
            head = file.read(HEAD_CHECKSUM_BYTES)
            file.seek(offset)
        size = 0 if self.is_gzip else os.fstat(file.fileno()).st_size
        for block in formats.iter_line_blocks(
            lambda n: self._read_more(file, n), offset, lambda: not self._was_emptied(file), self.block_bytes
        ):
            assert self._reader is not None
            if len(head) < min(HEAD_CHECKSUM_BYTES, block.end):
                head = os.pread(file.fileno(), HEAD_CHECKSUM_BYTES, 0)  # the file has grown
            length = min(len(head), block.end)
            position = {"offset": block.end, "head": [length, zlib.crc32(head[:length])]}
            batch = block.make_batch(self._reader, position)
            self.schema = batch.schema
            if not self.is_gzip:
                if block.end > size or not len(batch):
                    size = os.fstat(file.fileno()).st_size
                batch.lag, batch.lag_unit = max(size - block.end, 0), "bytes"
            yield batch

    def _read_more(self, file: IO[bytes], n: int) -> bytes | None:
        """Return the next bytes of the file: b"" at the end, None if more can follow."""
        data = self._read_bytes(file, n)
        if data or not self.follow:
            return data
        time.sleep(POLL_INTERVAL_S)
        if self._was_replaced(file):
            return self._read_bytes(file, n)  # written before it was replaced
        return self._read_bytes(file, n) or None

    def _read_bytes(self, file: IO[bytes], n: int) -> bytes:
        with self._wrap_errors():
            return file.read(n)

    def _was_replaced(self, file: IO[bytes]) -> bool:
        """Return whether the path is another file now, or the file was truncated."""
        try:
            is_same = os.path.samestat(os.stat(self.path), os.fstat(file.fileno()))
        except OSError:
            return False  # deleted; a new file can follow
        return not is_same or self._was_emptied(file)

    def _was_emptied(self, file: IO[bytes]) -> bool:
        return self.follow and os.fstat(file.fileno()).st_size < file.tell()

    @contextmanager
    def _wrap_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError, zlib.error) as error:
            reason = str(getattr(error, "strerror", None) or error).lower()
            raise InvalidInputError(f"source: {self.path} cannot be read: {reason}.") from None


class StdinSource(BaseSource):
    """Lines of stdin or of the pipe at `path`; with `follow`, also of later writers.

    They cannot be read again: a crash loses what arrived since the last checkpoint.
    """

    def __init__(
        self,
        spec: ColumnSpec = ANY_COLUMNS,
        *,
        input_format: str | None = None,
        path: str | os.PathLike[str] | None = None,
        follow: bool = False,
    ) -> None:
        self.spec, self.input_format, self.path, self.follow = spec, input_format, path, follow
        self._reader: formats.LinesReader | None = None

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield the batches that arrive, at position {}: a pipe cannot be read again."""
        pipe = self._open()
        try:
            yield from self._read_batches(pipe, position)
        finally:
            if self.path is not None:
                os.close(pipe)

    def _read_batches(self, pipe: int, position: Any) -> Iterator[Batch]:
        self._reader = None
        if position is not None and self.schema is not None:
            self._reader = formats.reader_from_schema(self.schema, self.spec)
        head, deadline = b"", None
        while len(head) < formats.HEAD_BYTES and (deadline is None or time.monotonic() < deadline):
            piece = _read_pipe(pipe, formats.HEAD_BYTES, PIPE_TIMEOUT_S if deadline is None else SETTLE_TIMEOUT_S)
            if piece == b"" or (piece is None and deadline is not None):
                break
            head += piece or b""
            if deadline is None:
                yield Batch(np.zeros((0, 1)), position, schema=self.schema)
                if b"\n" in head if self._reader is not None else formats.has_full_line(head, self.input_format):
                    deadline = time.monotonic() + PIPE_TIMEOUT_S
        start = self._start(head)
        pieces = iter([head[start:]] if head[start:] else [])
        assert self._reader is not None
        for block in formats.iter_line_blocks(lambda n: next(pieces, None) or _read_pipe(pipe, n, PIPE_TIMEOUT_S), 0):
            batch = block.make_batch(self._reader, {})
            self.schema = batch.schema
            yield batch

    def _start(self, head: bytes) -> int:
        """Infer format, columns; return the first record's offset (a header may repeat)."""
        if self._reader is not None:
            first = head[: head.find(b"\n") + 1]
            return len(first) if isinstance(self._reader, CsvReader) and self._reader.is_header(first) else 0
        if not head.strip():
            raise InvalidInputError(f"source: must not be empty, got {self.path or 'standard input'}.")
        complete_lines = head[: head.rfind(b"\n") + 1] or head
        self._reader, start = formats.sniff_reader(complete_lines, self.spec, self.input_format)
        self.schema = self._reader.schema
        return start

    def _open(self) -> int:
        if self.path is None:
            if sys.stdin is None:
                raise InvalidInputError("source: must be open, got a closed standard input.")
            return sys.stdin.fileno()
        try:  # opened for writing as well, the pipe has no end
            return os.open(self.path, (os.O_RDWR if self.follow else os.O_RDONLY) | os.O_NONBLOCK)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InvalidInputError(f"source: {self.path} cannot be read: {reason}.") from None


def _read_pipe(pipe: int, n: int, timeout_s: float) -> bytes | None:
    """Return the bytes that have arrived, None if none have."""
    if not select.select([pipe], [], [], timeout_s)[0]:
        return None
    try:
        return os.read(pipe, n)
    except BlockingIOError:  # read by another process
        return None
