"""Standard input as a source: `tail -f x.csv | holdfast watch -`."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from typing import Any

from holdfast.errors import BadInputError
from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns, Wanted
from holdfast.streams.csv_lines import CsvLines
from holdfast.streams.files import HEAD, JsonLines, batch_of, reader_for, reader_of
from holdfast.streams.lines import blocks

PATIENCE = 0.25  # seconds


class StandardInput:
    """What is piped in. It cannot be read again: what had come since the last checkpoint is lost in a crash."""

    def __init__(self, wanted: Wanted | None = None, *, form: str | None = None) -> None:
        self.wanted, self.form = wanted or Wanted(), form
        self.reader: CsvLines | JsonLines | None = None

    @property
    def columns(self) -> Columns | None:
        """What was understood."""
        return None if self.reader is None else self.reader.columns

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Batches of what comes; of a position only what the columns are matters."""
        head = b""
        if position:
            self.reader = reader_of(position, self.wanted)
        while self.reader is None or (position and b"\n" not in head):
            piece = _read(HEAD)
            if piece:
                head += piece
            if piece == b"" or (b"\n" in head and self.reader is not None):
                break
            if self.reader is None and b"\n" in head.strip() and not _more_is_waiting():
                self._begin(head)
        if self.reader is None:
            self._begin(head)
        assert self.reader is not None
        head = head[self._skipped(head, bool(position)) :]
        pieces = iter([head] if head else [])
        for block in blocks(lambda n: next(pieces, None) or _read(n), 0):
            yield batch_of(self.reader, block, {})

    def _begin(self, head: bytes) -> None:
        if not head.strip():
            raise BadInputError("standard input is empty")
        self.reader, self._begins = reader_for(head, self.wanted, self.form)

    def _skipped(self, head: bytes, resumed: bool) -> int:
        """How many bytes come before the first record; a header that comes again is passed over."""
        if not resumed:
            return self._begins
        first = head[: head.find(b"\n") + 1]
        return len(first) if isinstance(self.reader, CsvLines) and self.reader.is_header(first) else 0


def _more_is_waiting() -> bool:
    return bool(select.select([sys.stdin], [], [], 0.05)[0])


def _read(n: int) -> bytes | None:
    """What has come, None if nothing has."""
    if not select.select([sys.stdin], [], [], PATIENCE)[0]:
        return None
    return os.read(sys.stdin.fileno(), n)
