"""What makes points of a flow of lines: separated values or JSON, found out by its beginning."""

from __future__ import annotations

from typing import Any

import numpy as np

from limpet.streams.batch import Batch
from limpet.streams.formats.csv import CsvReader
from limpet.streams.formats.csv_dialect import CsvDialect, sniff
from limpet.streams.formats.json import RECORD_TOO_LONG, JsonReader
from limpet.streams.formats.lines import Block
from limpet.streams.schema import ColumnSpec, Schema, schema_from_position

HEAD_BYTES = 1 << 16  # bytes to understand a flow by
BOM_BYTES = "\ufeff".encode()  # that some programs put before everything else
MAX_NON_TEXT_SHARE = 0.3  # the part of a text, at most, that is no text
CSV_FORMAT, JSON_FORMAT = "csv", "json"


class JsonLinesReader:
    """Makes batches of lines of JSON."""

    def __init__(self, reader: JsonReader) -> None:
        self._reader = reader

    @property
    def columns(self) -> Schema | None:
        """What was understood; None until there is something to understand."""
        return self._reader.columns

    def to_dict(self) -> dict[str, Any]:
        """What it goes by besides the columns, as JSON can hold it."""
        return {}

    def make_batch(self, data: bytes, position: Any) -> Batch:
        """The points in some whole lines."""
        return self._reader.make_batch([line for line in data.split(b"\n") if line.strip()], position)


LinesReader = CsvReader | JsonLinesReader


def reader_from_position(position: dict[str, Any], spec: ColumnSpec) -> LinesReader:
    """What read the lines up to a position."""
    schema = schema_from_position(position)
    if schema is not None and "dialect" in position["reader"]:
        return CsvReader(CsvDialect.from_dict(position["reader"]["dialect"]), schema)
    return JsonLinesReader(JsonReader(spec, schema))


def has_full_line(head: bytes, form: str | None) -> bool:
    """Whether a flow that is still coming can be understood: whether it has a whole record, and not only names."""
    lines = [line for line in head.split(b"\n")[:-1] if line.strip() and not line.startswith(b"#")]
    if len(lines) > 1 or len(head) >= HEAD_BYTES:
        return True
    return len(lines) == 1 and (_is_json(head, form) or not sniff([lines[0].decode("utf-8", "replace")]).has_header)


def sniff_reader(
    head: bytes, spec: ColumnSpec, form: str | None, previous: LinesReader | None = None
) -> tuple[LinesReader, int]:
    """What reads a flow of lines that begins like this, and how many bytes come before the first record.

    former: what read the flow that this one takes the place of; names and columns stay the same.
    """
    if previous is not None and previous.columns is not None:
        spec = previous.columns.spec
    if _is_json(head, form):
        reader = JsonLinesReader(JsonReader(spec, previous.columns if isinstance(previous, JsonLinesReader) else None))
        reader.make_batch(head, None)  # which decides what the columns are
        return reader, 0
    start = len(BOM_BYTES) if head.startswith(BOM_BYTES) else 0
    csv_reader = CsvReader.from_sample(head, spec, previous if isinstance(previous, CsvReader) else None)
    dialect = csv_reader.dialect
    for _ in range(dialect.comments):
        start = _find_line_end(head, start)
    if csv_reader is not previous and dialect.has_header:
        while not head[start : _find_line_end(head, start)].strip():
            start = _find_line_end(head, start)
        start = _find_line_end(head, start)
    return csv_reader, start


def _is_json(head: bytes, form: str | None) -> bool:
    return form == JSON_FORMAT or (form is None and head.removeprefix(BOM_BYTES).lstrip()[:1] in (b"{", b"["))


def _find_line_end(head: bytes, start: int) -> int:
    return head.find(b"\n", start) + 1 or len(head)


def make_batch_from_block(reader: LinesReader, block: Block, position: dict[str, Any]) -> Batch:
    """The points of a block. A line that was left out is one more record that could not be read."""
    batch = reader.make_batch(block.data, None) if block.data else Batch(np.zeros((0, 1)))
    batch.position = position | reader_state(reader)
    if block.oversized_prefix is not None:
        batch.rejects.add(RECORD_TOO_LONG, batch.n_records, block.oversized_prefix)
        batch.n_records += 1
    return batch


def reader_state(reader: LinesReader) -> dict[str, Any]:
    """What a position says about how lines are read."""
    return {"reader": reader.to_dict(), "columns": None if reader.columns is None else reader.columns.to_dict()}


def is_text(head: bytes) -> bool:
    """Whether a file that begins like this is one of text, a few broken records aside."""
    text = head.decode("utf-8", "replace")
    return sum(
        char == "\ufffd" or (char < " " and char not in "\t\r\n\f") for char in text
    ) <= MAX_NON_TEXT_SHARE * len(text)
