"""Standard input, or a pipe that has a name, as a source: `tail -f x.csv | limpet watch -`."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from limpet.exceptions import InvalidInputError
from limpet.streams.batch import Batch
from limpet.streams.formats import (
    HEAD_BYTES,
    LinesReader,
    has_full_line,
    make_batch_from_block,
    reader_from_position,
    sniff_reader,
)
from limpet.streams.formats.csv import CsvReader
from limpet.streams.formats.lines import iter_line_blocks
from limpet.streams.schema import ColumnSpec, Schema

POLL_TIMEOUT_S = 0.25  # seconds until one looks whether there is something else to do
SETTLE_TIMEOUT_S = 0.05  # seconds after which what has come is looked at


class StdinSource:
    """What is piped in. It cannot be read again: what had come since the last checkpoint is lost in a crash.

    path: of a named pipe (`mkfifo`) in place of standard input; with `follow` other writers may come after the first.
    """

    def __init__(
        self,
        spec: ColumnSpec | None = None,
        *,
        form: str | None = None,
        path: str | os.PathLike[str] | None = None,
        follow: bool = False,
    ) -> None:
        self.spec, self.form, self.path, self.follow = spec or ColumnSpec(), form, path, follow
        self.reader: LinesReader | None = None

    @property
    def columns(self) -> Schema | None:
        """What was understood."""
        return None if self.reader is None else self.reader.columns

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Batches of what comes; of a position only what the columns are matters."""
        pipe = self._open()
        try:
            yield from self._read_batches(pipe, position)
        finally:
            if self.path is not None:
                os.close(pipe)

    def _read_batches(self, pipe: int, position: Any) -> Iterator[Batch]:
        self.reader = reader_from_position(position, self.spec) if position else None
        head, deadline = b"", None  # when to look at what has come
        while len(head) < HEAD_BYTES and (deadline is None or time.monotonic() < deadline):
            piece = _read(pipe, HEAD_BYTES, POLL_TIMEOUT_S if deadline is None else SETTLE_TIMEOUT_S)
            if piece == b"" or (piece is None and deadline is not None):
                break
            head += piece or b""
            if deadline is None:
                yield Batch(np.zeros((0, 1)), position)
                if b"\n" in head if position else has_full_line(head, self.form):
                    deadline = time.monotonic() + POLL_TIMEOUT_S
        start = self._start(head)
        pieces = iter([head[start:]] if head[start:] else [])
        assert self.reader is not None
        for block in iter_line_blocks(lambda n: next(pieces, None) or _read(pipe, n, POLL_TIMEOUT_S), 0):
            yield make_batch_from_block(self.reader, block, {})

    def _start(self, head: bytes) -> int:
        """Understands what comes; how many bytes there are before the first record: names may come again."""
        if self.reader is not None:
            first = head[: head.find(b"\n") + 1]
            return len(first) if isinstance(self.reader, CsvReader) and self.reader.is_header(first) else 0
        if not head.strip():
            raise InvalidInputError(f"{self.path or 'standard input'} is empty")
        complete_lines = head[: head.rfind(b"\n") + 1] or head
        self.reader, start = sniff_reader(complete_lines, self.spec, self.form)
        return start

    def _open(self) -> int:
        if self.path is None:
            if sys.stdin is None:
                raise InvalidInputError("there is no standard input")
            return sys.stdin.fileno()
        try:  # one that may write itself never sees the end
            return os.open(self.path, (os.O_RDWR if self.follow else os.O_RDONLY) | os.O_NONBLOCK)
        except OSError as error:
            raise InvalidInputError(f"{self.path} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _read(pipe: int, n: int, timeout_s: float) -> bytes | None:
    """What has come, None if nothing has."""
    if not select.select([pipe], [], [], timeout_s)[0]:
        return None
    try:
        return os.read(pipe, n)
    except BlockingIOError:  # another one was faster
        return None
