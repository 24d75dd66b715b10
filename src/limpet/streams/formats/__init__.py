"""Readers of lines of inferred format, CSV or JSON, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from limpet.streams.batch import Batch
from limpet.streams.formats.csv import CsvDialect, CsvReader, sniff
from limpet.streams.formats.json import MAX_RECORD_BYTES, RECORD_TOO_LONG, JsonReader
from limpet.streams.schema import ColumnSpec, Schema

HEAD_BYTES = 1 << 16  # bytes that format and columns are inferred from
READ_BLOCK_BYTES = 1 << 18  # about the size of a batch
MAX_LOGGED_LINE_BYTES = 400  # of an oversized line
BOM_BYTES = "\ufeff".encode()
MAX_NON_TEXT_SHARE = 0.3  # of the characters of a text file
CSV_FORMAT, JSON_FORMAT = "csv", "json"
LinesReader = CsvReader | JsonReader


def reader_from_schema(schema: Schema, spec: ColumnSpec) -> LinesReader:
    """Return the reader that reads lines as a schema describes them."""
    if schema.format:
        return CsvReader(CsvDialect(**schema.format | {"names": tuple(schema.format["names"])}), schema)
    return JsonReader(spec, schema)


def has_full_line(head: bytes, input_format: str | None) -> bool:
    """Return whether data still arriving has a whole record after the header."""
    lines = [line for line in head.split(b"\n")[:-1] if line.strip() and not line.startswith(b"#")]
    if len(lines) > 1 or len(head) >= HEAD_BYTES:
        return True
    return len(lines) == 1 and (
        _is_json(head, input_format) or not sniff([lines[0].decode("utf-8", "replace")]).has_header
    )


def sniff_reader(
    head: bytes, spec: ColumnSpec, input_format: str | None, previous: LinesReader | None = None
) -> tuple[LinesReader, int]:
    """Infer format and columns; return the reader and the first record's offset.

    Names and columns stay those of `previous`, the reader of the data that these replace.
    """
    if previous is not None and previous.schema is not None:
        spec = previous.schema.spec
    if _is_json(head, input_format):
        reader = JsonReader(spec, previous.schema if isinstance(previous, JsonReader) else None)
        _parse_lines(reader, head)  # which infers the columns
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


def _parse_lines(reader: LinesReader, data: bytes) -> Batch:
    if isinstance(reader, JsonReader):
        return reader.make_batch([line for line in data.split(b"\n") if line.strip()], None)
    return reader.make_batch(data, None)


def is_text(head: bytes) -> bool:
    """Return whether a file with this head is text, a few malformed records aside."""
    text = head.decode("utf-8", "replace")
    n_non_text = sum(char == "\ufffd" or (char < " " and char not in "\t\r\n\f") for char in text)
    return n_non_text <= MAX_NON_TEXT_SHARE * len(text)


@dataclass(frozen=True)
class Block:
    """Whole lines, the offset after them, and the start of an omitted oversized line."""

    data: bytes
    end: int
    oversized_prefix: bytes | None = None

    def make_batch(self, reader: LinesReader, position: dict[str, Any]) -> Batch:
        """Parse the lines; an oversized one is counted as a malformed record."""
        batch = _parse_lines(reader, self.data) if self.data else Batch(np.zeros(0))
        batch.position, batch.schema = position, reader.schema
        if self.oversized_prefix is not None:
            batch.malformed.add(RECORD_TOO_LONG, batch.n_records, self.oversized_prefix)
            batch.n_records += 1
        return batch


def iter_line_blocks(
    read: Callable[[int], bytes | None],
    offset: int,
    is_last_line_complete: Callable[[], bool] = lambda: True,
    block_bytes: int = READ_BLOCK_BYTES,
) -> Iterator[Block]:
    """Yield blocks of lines after an offset; an empty one if no whole line arrived.

    `read` returns b"" at the end, None if no data has arrived yet. `is_last_line_complete` is called at the end, if the
    last line has no line end.

    >>> pieces = iter([b"a\\nb", b"c\\n", None, b"d", b""])
    >>> [(block.data, block.end) for block in iter_line_blocks(lambda n: next(pieces), 0)]
    [(b'a\\n', 2), (b'bc\\n', 5), (b'', 5), (b'', 5), (b'd', 6)]
    """
    pieces: list[bytes] = []  # of an incomplete line
    size = 0  # of the pieces
    oversized_prefix: bytes | None = None
    while (piece := read(block_bytes)) != b"":
        if piece is None:
            yield Block(b"", offset)
            continue
        if oversized_prefix is not None:
            end = piece.find(b"\n") + 1
            size += end or len(piece)
            if not end:
                yield Block(b"", offset)
                continue
            offset += size
            yield Block(b"", offset, oversized_prefix)
            oversized_prefix, size, piece = None, 0, piece[end:]
        cut = piece.rfind(b"\n") + 1
        data = b""
        if cut:
            data = b"".join([*pieces, piece[:cut]])
            pieces, size = [], 0
            offset += len(data)
        yield Block(data, offset)
        pieces.append(piece[cut:])
        size += len(piece) - cut
        if size > MAX_RECORD_BYTES:
            oversized_prefix, pieces = b"".join(pieces)[:MAX_LOGGED_LINE_BYTES], []
    rest = b"".join(pieces)
    if oversized_prefix is not None:
        yield Block(b"", offset + size, oversized_prefix)
    elif rest and is_last_line_complete():
        yield Block(rest, offset + len(rest))
