"""What makes points of a flow of lines: separated values or JSON, found out by its beginning."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns, Wanted, columns_at
from holdfast.streams.csv_lines import CsvLines
from holdfast.streams.dialect import Dialect, dialect_of
from holdfast.streams.lines import Block
from holdfast.streams.records import TOO_LONG, RecordReader

HEAD = 1 << 16  # bytes to understand a flow by
MARK = "\ufeff".encode()  # that some programs put before everything else
ODD = 0.3  # the part of a text, at most, that is no text
CSV, JSON = "csv", "json"


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


LinesReader = CsvLines | JsonLines


def reader_of(position: dict[str, Any], wanted: Wanted) -> LinesReader:
    """What read the lines up to a position."""
    known = columns_at(position)
    if known is not None and "dialect" in position["reader"]:
        return CsvLines(Dialect.of_json(position["reader"]["dialect"]), known)
    return JsonLines(RecordReader(wanted, known))


def is_enough(head: bytes, form: str | None) -> bool:
    """Whether a flow that is still coming can be understood: whether it has a whole record, and not only names."""
    lines = [line for line in head.split(b"\n")[:-1] if line.strip() and not line.startswith(b"#")]
    if len(lines) > 1 or len(head) >= HEAD:
        return True
    return len(lines) == 1 and (
        _is_json(head, form) or not dialect_of([lines[0].decode("utf-8", "replace")]).has_header
    )


def reader_for(
    head: bytes, wanted: Wanted, form: str | None, former: LinesReader | None = None
) -> tuple[LinesReader, int]:
    """What reads a flow of lines that begins like this, and how many bytes come before the first record.

    former: what read the flow that this one takes the place of; names and columns stay the same.
    """
    if former is not None and former.columns is not None:
        wanted = former.columns.wanted
    if _is_json(head, form):
        reader = JsonLines(RecordReader(wanted, former.columns if isinstance(former, JsonLines) else None))
        reader.batch(head, None)  # which decides what the columns are
        return reader, 0
    begin = len(MARK) if head.startswith(MARK) else 0
    understood = CsvLines.understood(head, wanted, former if isinstance(former, CsvLines) else None)
    dialect = understood.dialect
    for _ in range(dialect.comments):
        begin = _after_line(head, begin)
    if understood is not former and dialect.has_header:
        while not head[begin : _after_line(head, begin)].strip():
            begin = _after_line(head, begin)
        begin = _after_line(head, begin)
    return understood, begin


def _is_json(head: bytes, form: str | None) -> bool:
    return form == JSON or (form is None and head.removeprefix(MARK).lstrip()[:1] in (b"{", b"["))


def _after_line(head: bytes, begin: int) -> int:
    return head.find(b"\n", begin) + 1 or len(head)


def batch_of(reader: LinesReader, block: Block, position: dict[str, Any]) -> Batch:
    """The points of a block. A line that was left out is one more record that could not be read."""
    batch = reader.batch(block.data, None) if block.data else Batch(np.zeros((0, 1)))
    batch.position = position | describing(reader)
    if block.too_long is not None:
        batch.refused.add(TOO_LONG, batch.n_records, block.too_long)
        batch.n_records += 1
    return batch


def describing(reader: LinesReader) -> dict[str, Any]:
    """What a position says about how lines are read."""
    return {"reader": reader.as_json(), "columns": None if reader.columns is None else reader.columns.as_json()}


def is_text(head: bytes) -> bool:
    """Whether a file that begins like this is one of text, a few broken records aside."""
    text = head.decode("utf-8", "replace")
    return sum(one == "\ufffd" or (one < " " and one not in "\t\r\n\f") for one in text) <= ODD * len(text)
