"""Standard input or a named pipe as a source: `tail -f x.csv | limpet watch -`."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from limpet.exceptions import InvalidInputError
from limpet.streams import formats
from limpet.streams.batch import Batch
from limpet.streams.formats.csv import CsvReader
from limpet.streams.schema import ColumnSpec
from limpet.streams.sources.base import BaseSource

POLL_TIMEOUT_S = 0.25  # between empty batches
SETTLE_TIMEOUT_S = 0.05  # without data until the first data are inspected


class StdinSource(BaseSource):
    """Lines piped in, or those of the named pipe at `path`; with `follow`, also of later writers to the pipe.

    They cannot be read again: a crash loses what arrived since the last checkpoint.
    """

    def __init__(
        self,
        spec: ColumnSpec | None = None,
        *,
        input_format: str | None = None,
        path: str | os.PathLike[str] | None = None,
        follow: bool = False,
    ) -> None:
        self.spec, self.input_format, self.path, self.follow = spec or ColumnSpec(), input_format, path, follow
        self._reader: formats.LinesReader | None = None

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield the batches that arrive. All positions are {}: a pipe cannot be read again."""
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
            piece = _read(pipe, formats.HEAD_BYTES, POLL_TIMEOUT_S if deadline is None else SETTLE_TIMEOUT_S)
            if piece == b"" or (piece is None and deadline is not None):
                break
            head += piece or b""
            if deadline is None:
                yield Batch(np.zeros((0, 1)), position, schema=self.schema)
                if b"\n" in head if self._reader is not None else formats.has_full_line(head, self.input_format):
                    deadline = time.monotonic() + POLL_TIMEOUT_S
        start = self._start(head)
        pieces = iter([head[start:]] if head[start:] else [])
        assert self._reader is not None
        for block in formats.iter_line_blocks(lambda n: next(pieces, None) or _read(pipe, n, POLL_TIMEOUT_S), 0):
            batch = block.make_batch(self._reader, {})
            self.schema = batch.schema
            yield batch

    def _start(self, head: bytes) -> int:
        """Infer format and columns; return the offset of the first record, which can follow a repeated header."""
        if self._reader is not None:
            first = head[: head.find(b"\n") + 1]
            return len(first) if isinstance(self._reader, CsvReader) and self._reader.is_header(first) else 0
        if not head.strip():
            raise InvalidInputError(f"{self.path or 'standard input'} is empty.")
        complete_lines = head[: head.rfind(b"\n") + 1] or head
        self._reader, start = formats.sniff_reader(complete_lines, self.spec, self.input_format)
        self.schema = self._reader.schema
        return start

    def _open(self) -> int:
        if self.path is None:
            if sys.stdin is None:
                raise InvalidInputError("standard input is closed.")
            return sys.stdin.fileno()
        try:  # opened for writing as well, the pipe has no end
            return os.open(self.path, (os.O_RDWR if self.follow else os.O_RDONLY) | os.O_NONBLOCK)
        except OSError as error:
            raise InvalidInputError(f"{self.path} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _read(pipe: int, n: int, timeout_s: float) -> bytes | None:
    """Return the bytes that have arrived, None if none have."""
    if not select.select([pipe], [], [], timeout_s)[0]:
        return None
    try:
        return os.read(pipe, n)
    except BlockingIOError:  # read by another process
        return None
