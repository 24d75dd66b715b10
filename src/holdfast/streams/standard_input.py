"""Standard input, or a pipe that has a name, as a source: `tail -f x.csv | holdfast watch -`."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from holdfast.errors import BadInputError
from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns, Wanted
from holdfast.streams.csv_lines import CsvLines
from holdfast.streams.lines import blocks
from holdfast.streams.readers import HEAD, LinesReader, batch_of, is_enough, reader_for, reader_of

PATIENCE = 0.25  # seconds until one looks whether there is something else to do
PAUSE = 0.05  # seconds after which what has come is looked at


class StandardInput:
    """What is piped in. It cannot be read again: what had come since the last checkpoint is lost in a crash.

    path: of a named pipe (`mkfifo`) in place of standard input; with `follow` other writers may come after the first.
    """

    def __init__(
        self,
        wanted: Wanted | None = None,
        *,
        form: str | None = None,
        path: str | os.PathLike[str] | None = None,
        follow: bool = False,
    ) -> None:
        self.wanted, self.form, self.path, self.follow = wanted or Wanted(), form, path, follow
        self.reader: LinesReader | None = None

    @property
    def columns(self) -> Columns | None:
        """What was understood."""
        return None if self.reader is None else self.reader.columns

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Batches of what comes; of a position only what the columns are matters."""
        pipe = self._opened()
        try:
            yield from self._batches(pipe, position)
        finally:
            if self.path is not None:
                os.close(pipe)

    def _batches(self, pipe: int, position: Any) -> Iterator[Batch]:
        self.reader = reader_of(position, self.wanted) if position else None
        head, until = b"", None  # when to look at what has come
        while len(head) < HEAD and (until is None or time.monotonic() < until):
            piece = _read(pipe, HEAD, PATIENCE if until is None else PAUSE)
            if piece == b"" or (piece is None and until is not None):
                break
            head += piece or b""
            if until is None:
                yield Batch(np.zeros((0, 1)), position)
                if b"\n" in head if position else is_enough(head, self.form):
                    until = time.monotonic() + PATIENCE
        begin = self._begin(head)
        pieces = iter([head[begin:]] if head[begin:] else [])
        assert self.reader is not None
        for block in blocks(lambda n: next(pieces, None) or _read(pipe, n, PATIENCE), 0):
            yield batch_of(self.reader, block, {})

    def _begin(self, head: bytes) -> int:
        """Understands what comes; how many bytes there are before the first record: names may come again."""
        if self.reader is not None:
            first = head[: head.find(b"\n") + 1]
            return len(first) if isinstance(self.reader, CsvLines) and self.reader.is_header(first) else 0
        if not head.strip():
            raise BadInputError(f"{self.path or 'standard input'} is empty")
        whole = head[: head.rfind(b"\n") + 1] or head
        self.reader, begin = reader_for(whole, self.wanted, self.form)
        return begin

    def _opened(self) -> int:
        if self.path is None:
            if sys.stdin is None:
                raise BadInputError("there is no standard input")
            return sys.stdin.fileno()
        try:  # one that may write itself never sees the end
            return os.open(self.path, (os.O_RDWR if self.follow else os.O_RDONLY) | os.O_NONBLOCK)
        except OSError as error:
            raise BadInputError(f"{self.path} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _read(pipe: int, n: int, patience: float) -> bytes | None:
    """What has come, None if nothing has."""
    if not select.select([pipe], [], [], patience)[0]:
        return None
    try:
        return os.read(pipe, n)
    except BlockingIOError:  # another one was faster
        return None
