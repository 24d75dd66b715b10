"""Readers of lines: CSV or JSON, inferred from the beginning of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from limpet.streams.batch import Batch
from limpet.streams.formats.csv import CsvReader
from limpet.streams.formats.csv_dialect import CsvDialect, sniff
from limpet.streams.formats.json import RECORD_TOO_LONG, JsonReader
from limpet.streams.formats.lines import Block
from limpet.streams.schema import ColumnSpec, Schema

HEAD_BYTES = 1 << 16  # bytes that format and columns are inferred from
BOM_BYTES = "\ufeff".encode()
MAX_NON_TEXT_SHARE = 0.3  # of the characters of a text file
CSV_FORMAT, JSON_FORMAT = "csv", "json"


class JsonLinesReader:
    """Make batches of lines of JSON."""

    def __init__(self, reader: JsonReader) -> None:
        self._reader = reader

    @property
    def schema(self) -> Schema | None:
        """Columns of the records; None until the first record."""
        return self._reader.schema

    def make_batch(self, data: bytes, position: Any) -> Batch:
        """Parse whole lines."""
        return self._reader.make_batch([line for line in data.split(b"\n") if line.strip()], position)


LinesReader = CsvReader | JsonLinesReader


def reader_from_schema(schema: Schema, spec: ColumnSpec) -> LinesReader:
    """Return the reader that reads lines as a schema describes them."""
    if schema.format:
        return CsvReader(CsvDialect.from_dict(schema.format), schema)
    return JsonLinesReader(JsonReader(spec, schema))


def has_full_line(head: bytes, input_format: str | None) -> bool:
    """Return whether data that is still arriving has a whole record, after the header."""
    lines = [line for line in head.split(b"\n")[:-1] if line.strip() and not line.startswith(b"#")]
    if len(lines) > 1 or len(head) >= HEAD_BYTES:
        return True
    return len(lines) == 1 and (
        _is_json(head, input_format) or not sniff([lines[0].decode("utf-8", "replace")]).has_header
    )


def sniff_reader(
    head: bytes, spec: ColumnSpec, input_format: str | None, previous: LinesReader | None = None
) -> tuple[LinesReader, int]:
    """Infer format and columns from the first bytes.

    Parameters
    ----------
    head : bytes
        The beginning of the data.
    spec : ColumnSpec
        Columns requested by the user.
    input_format : {"csv", "json"} or None
        The format; None: inferred.
    previous : CsvReader or JsonLinesReader, optional
        The reader of the data that these replace: names and columns stay the same.

    Returns
    -------
    tuple
        The reader, and the offset of the first record.
    """
    if previous is not None and previous.schema is not None:
        spec = previous.schema.spec
    if _is_json(head, input_format):
        reader = JsonLinesReader(JsonReader(spec, previous.schema if isinstance(previous, JsonLinesReader) else None))
        reader.make_batch(head, None)  # which infers the columns
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


def _is_json(head: bytes, input_format: str | None) -> bool:
    return input_format == JSON_FORMAT or (
        input_format is None and head.removeprefix(BOM_BYTES).lstrip()[:1] in (b"{", b"[")
    )


def _find_line_end(head: bytes, start: int) -> int:
    return head.find(b"\n", start) + 1 or len(head)


def make_batch_from_block(reader: LinesReader, block: Block, position: dict[str, Any]) -> Batch:
    """Parse a block of lines; an oversized line is counted as a malformed record."""
    batch = reader.make_batch(block.data, None) if block.data else Batch(np.zeros((0, 1)))
    batch.position, batch.schema = position, reader.schema
    if block.oversized_prefix is not None:
        batch.rejects.add(RECORD_TOO_LONG, batch.n_records, block.oversized_prefix)
        batch.n_records += 1
    return batch


def is_text(head: bytes) -> bool:
    """Return whether a file that begins like this is a text file, a few malformed records aside."""
    text = head.decode("utf-8", "replace")
    return sum(
        char == "\ufffd" or (char < " " and char not in "\t\r\n\f") for char in text
    ) <= MAX_NON_TEXT_SHARE * len(text)
