"""Points from CSV lines: by pyarrow if all are well-formed, else line by line."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from limpet._format import join_names
from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import StrKeys, is_valid_utf8
from limpet.fleet._key_input import keys_from_column, to_series
from limpet.streams import timestamps
from limpet.streams.batch import Batch
from limpet.streams.formats.json import (
    MAX_RECORD_BYTES,
    NO_KEY,
    NO_TIME_REASON,
    NOT_UTF8,
    RECORD_TOO_LONG,
    SCHEMA_SAMPLE_RECORDS,
    ParsedRecord,
    batch_from_parsed,
)
from limpet.streams.schema import ColumnSpec, Schema, infer_schema, is_time_name

FIELD_SEPARATORS = ",;\t|"
MISSING_VALUES = ("", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "Null", "None", "none", "-", "?")
DECIMAL_COMMA_PATTERN = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
BOM = "\ufeff"  # byte order mark
NEWLINE_BYTE = ord("\n")
SAFE_TIME_RANGE_NS = np.array(["1679", "2261"], "datetime64[ns]").view(np.int64)  # valid in any zone


@dataclass(frozen=True)
class CsvDialect:
    """Dialect of a CSV file, with `comments` lines (#) before the header."""

    separator: str
    decimal: str
    names: tuple[str, ...]
    has_header: bool
    comments: int = 0


def sniff(lines: Sequence[str]) -> CsvDialect:
    """Infer the dialect from the first lines of a file.

    >>> sniff(["zeit;wert", "1;0,5", "2;0,7"])
    CsvDialect(separator=';', decimal=',', names=('zeit', 'wert'), has_header=True, comments=0)
    >>> sniff(["1.5", "2.5"]).names
    ('value',)
    """
    lines = [line.removeprefix(BOM) if i == 0 else line for i, line in enumerate(lines)]
    comments = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    lines = [line for line in lines[comments:] if line.strip()]
    if not lines:
        return CsvDialect(",", ".", (), False, comments)
    separator = max(FIELD_SEPARATORS, key=lambda field: _count_agreeing_lines(lines, field))
    is_one_column = separator == "," and "," not in lines[0]
    if is_one_column and all(DECIMAL_COMMA_PATTERN.fullmatch(line.strip()) for line in lines[1:]):
        separator = ";"  # the numbers have decimal commas
    rows = [split_fields(line, separator) for line in lines]
    body = rows[1:]
    commas = sum(bool(DECIMAL_COMMA_PATTERN.fullmatch(field.strip())) for row in body for field in row)
    points = sum("." in field and parse_number(field, ".") is not None for row in body for field in row)
    decimal = "," if separator != "," and commas > points else "."
    has_header = _is_header(rows[0], body, decimal)
    names = ("value",) if len(rows[0]) == 1 else tuple(f"column_{i}" for i in range(len(rows[0])))
    if has_header:
        names = parse_header(lines[0], separator)
    return CsvDialect(separator, decimal, names, has_header, comments)


def parse_header(line: str, separator: str) -> tuple[str, ...]:
    """Return the names in the header; duplicates get a number.

    >>> parse_header("a, b ,a", ",")
    ('a', 'b', 'a_2')
    """
    names: dict[str, None] = {}
    for field in split_fields(line, separator):
        name = unique = field.strip()
        numbers = count(2)
        while unique in names:
            unique = f"{name}_{next(numbers)}"
        names[unique] = None
    return tuple(names)


def split_fields(line: str, separator: str) -> list[str]:
    """Split one line into fields; quotes end with the line.

    >>> split_fields('a,"b,""c"" ",d', ",")
    ['a', 'b,"c" ', 'd']
    """
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error:  # a carriage return, or a field of more than 128 kB
        return line.split(separator)


def parse_number(text: str, decimal: str) -> float | None:
    """Return a field as a number, NaN if it is missing, None if it is not a number.

    >>> parse_number(" 1,5 ", ","), parse_number("1_000", "."), parse_number("n/a", ".")
    (1.5, None, None)
    """
    text = text.strip()
    if decimal != ".":
        if "." in text:
            return None
        text = text.replace(decimal, ".")
    try:
        number = float(text)
    except ValueError:
        return float("nan") if text in MISSING_VALUES else None
    return None if "_" in text or not text.isascii() else number


def _count_agreeing_lines(lines: Sequence[str], separator: str) -> tuple[int, int]:
    """Return (count, n) of the most frequent number of fields n, zeros for one field."""
    widths = Counter(len(split_fields(line, separator)) for line in lines)
    width, n_lines = widths.most_common(1)[0]
    return (n_lines, width) if width > 1 else (0, 0)


def _is_header(first: Sequence[str], body: Sequence[Sequence[str]], decimal: str) -> bool:
    """Return whether `first` names a time, or lacks a number that a later line has."""
    if any(is_time_name(field) and len(field.strip()) > 1 for field in first):  # "t" can be a boolean
        return True
    numbers = [i for i, field in enumerate(first) if parse_number(field, decimal) is not None and field.strip()]
    later = (parse_number(field, decimal) is not None and field.strip() for row in body for field in row)
    return not numbers and (not body or any(later))


class ArrowCsvReader:
    """Make batches of well-formed lines, equal to those of `CsvReader`."""

    def __init__(self, dialect: CsvDialect, schema: Schema) -> None:
        import narwhals  # noqa: F401 # which reads the keys
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        self._pyarrow, self._csv, self.schema = pa, arrow_csv, schema
        types = dict.fromkeys(schema.values, pa.float64())
        if schema.key is not None:
            types[schema.key] = pa.dictionary(pa.int32(), pa.string())
        time_types = [pa.float64() if schema.time_kind == timestamps.NUMBER_FORMAT else pa.string()]
        if schema.time_kind in timestamps.ISO_FORMATS:  # all lines have a zone, or none has: the likelier case first
            zones = (None, "UTC") if schema.time_kind == timestamps.ISO_FORMAT else ("UTC", None)
            time_types = [pa.timestamp("ns", zone) for zone in zones]
        self._read = arrow_csv.ReadOptions(use_threads=False, block_size=1 << 30, column_names=dialect.names)
        self._parse = arrow_csv.ParseOptions(delimiter=dialect.separator)
        self._conversions_to_try = [
            arrow_csv.ConvertOptions(
                column_types=types if schema.time is None else types | {schema.time: time_type},
                include_columns=schema.required_columns,
                null_values=MISSING_VALUES,
                decimal_point=dialect.decimal,
            )
            for time_type in time_types
        ]

    def make_batch(self, data: bytes, position: Any) -> Batch | None:
        """Parse whole lines; return None if any is not well-formed."""
        table = self._read_table(data) if _is_arrow_safe(data) else None
        if table is None or len(table) != data.count(b"\n") + (not data.endswith(b"\n")):  # quotes over several lines
            return None
        schema, n = self.schema, len(table)
        values = np.empty((n, len(schema.values)))
        for i, name in enumerate(schema.values):
            column = table.column(name)
            values[:, i] = _column_to_numpy(column, np.float64)  # what is null is NaN
            if np.count_nonzero(np.isnan(values[:, i])) != column.null_count:  # such as nan(1)
                return None
        keys, times = None, None
        if schema.key is not None:
            keys = cast(StrKeys, keys_from_column(to_series(table.column(schema.key))))
            assert keys.codes is not None
            if "" in keys.values or "\n" in keys.values[keys.codes[-1]]:  # a quote that the last line does not close
                return None
        if schema.time is not None and (times := _column_to_times(table.column(schema.time))) is None:
            return None
        return Batch(values, position, schema.values, keys, times, n_records=n, tz_aware=schema.is_zoned)

    def _read_table(self, data: bytes) -> Any:
        for convert in self._conversions_to_try:
            with suppress(self._pyarrow.ArrowInvalid, self._pyarrow.ArrowKeyError):
                return self._csv.read_csv(self._pyarrow.BufferReader(data), self._read, self._parse, convert)
        return None


def _is_arrow_safe(data: bytes) -> bool:
    """Return whether pyarrow splits alike: no oversized line, other line end or BOM."""
    if data.startswith(BOM.encode()):
        return False
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return False
    if len(data) <= MAX_RECORD_BYTES:
        return True
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == NEWLINE_BYTE)
    return bool(np.diff(ends, prepend=-1, append=len(data)).max() <= MAX_RECORD_BYTES)


def _column_to_numpy(column: Any, kind: type[np.float64] | type[np.int64]) -> npt.NDArray[Any]:
    """Return a column, NaN for null; pyarrow's `to_numpy` imports pandas (0.5 s)."""
    column = column.fill_null(np.nan) if column.null_count else column
    parts: list[npt.NDArray[Any]] = [
        np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * np.dtype(kind).itemsize)
        for chunk in column.chunks
        if len(chunk)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, kind)])


def _column_to_times(column: Any) -> timestamps.Times | None:
    """Return the times of a column, or None if any has to be parsed separately."""
    if column.null_count:
        return None
    if str(column.type) == "double":
        numbers: timestamps.Times = _column_to_numpy(column, np.float64)
        return numbers if (np.abs(numbers) < 1e300).all() else None
    if str(column.type).startswith("timestamp"):
        import pyarrow

        moments = _column_to_numpy(column.cast(pyarrow.int64()), np.int64)
        is_safe = SAFE_TIME_RANGE_NS[0] < moments.min() and moments.max() < SAFE_TIME_RANGE_NS[1]
        return moments.view("datetime64[ns]") if is_safe else None
    strings = timestamps.to_time_array(column.to_pylist(), timestamps.TEXT_FORMAT)
    return None if "\n" in strings[-1] else strings


class CsvReader:
    """Make batches of lines of one dialect and one schema."""

    def __init__(self, dialect: CsvDialect, schema: Schema) -> None:
        self.dialect, self.schema = dialect, replace(schema, format=asdict(dialect))
        index_by_name = {name: i for i, name in enumerate(dialect.names)}
        self._field_index = {name: index_by_name[name] for name in schema.required_columns}
        try:
            self._arrow_reader: ArrowCsvReader | None = ArrowCsvReader(dialect, schema)
        except ImportError:  # without pyarrow or narwhals
            self._arrow_reader = None

    @classmethod
    def from_sample(cls, head: bytes, spec: ColumnSpec, previous: CsvReader | None = None) -> CsvReader:
        """Infer dialect and columns from a sample; without a header, keep `previous`."""
        raw_lines = head.split(b"\n")[: 10 * SCHEMA_SAMPLE_RECORDS]
        lines = [line.rstrip(b"\r").decode("utf-8", "replace") for line in raw_lines]
        dialect = sniff(lines)
        names, separator = dialect.names, dialect.separator
        if (
            previous is not None
            and (previous.dialect.has_header and not dialect.has_header)
            and (len(previous.dialect.names), previous.dialect.separator) == (len(names), separator)
        ):
            return previous
        body = [line for line in lines[dialect.comments :] if line.strip()][dialect.has_header :]
        rows = [row for line in body if len(row := split_fields(line, separator)) == len(names)]
        if body and not rows:
            fields = len(split_fields(body[0], separator))
            raise InvalidInputError(
                f"the header has the columns {join_names(names)}, but the next line has {fields} fields."
            )
        if not body and spec.columns is None and names:
            raise InvalidInputError(f"no records after the header {join_names(names)}.")
        sample = [
            {name: _parse_field(field, dialect.decimal) for name, field in zip(names, row, strict=True)}
            for row in rows[:SCHEMA_SAMPLE_RECORDS]
        ]
        return cls(dialect, infer_schema(sample or [dict.fromkeys(names)], spec))

    def is_header(self, line: bytes) -> bool:
        """Return whether a line is the header."""
        text = line.decode("utf-8", "replace").strip("\r\n").removeprefix(BOM)
        return self.dialect.has_header and parse_header(text, self.dialect.separator) == self.dialect.names

    def make_batch(self, data: bytes, position: Any) -> Batch:
        """Parse whole lines."""
        result = None if self._arrow_reader is None else self._arrow_reader.make_batch(data, position)
        return self._make_batch_from_lines(data, position) if result is None else result

    def _make_batch_from_lines(self, data: bytes, position: Any) -> Batch:
        lines = (line for line in data.split(b"\n") if line.rstrip(b"\r"))
        return batch_from_parsed(((self._parse_line(line), line) for line in lines), self.schema, position)

    def _parse_line(self, line: bytes) -> ParsedRecord:
        if len(line) > MAX_RECORD_BYTES:
            return RECORD_TOO_LONG
        text = line.rstrip(b"\r").decode("utf-8", "surrogateescape")
        fields = split_fields(text, self.dialect.separator)
        if len(fields) != len(self.dialect.names):
            return _reason_unless_invalid_utf8(text, f"not {len(self.dialect.names)} fields")
        point = []
        for name in self.schema.values:
            number = parse_number(fields[self._field_index[name]], self.dialect.decimal)
            if number is None:
                return _reason_unless_invalid_utf8(text, f"{name!r} is not a number")
            point.append(number)
        key, moment = "", None
        if self.schema.key is not None:
            key = fields[self._field_index[self.schema.key]]
            if not key:
                return NO_KEY
            if not is_valid_utf8(key):
                return NOT_UTF8
        if self.schema.time is not None:
            moment = self._parse_time(fields[self._field_index[self.schema.time]])
            if moment is None:
                return _reason_unless_invalid_utf8(text, NO_TIME_REASON)
        return point, moment, key

    def _parse_time(self, field: str) -> Any:
        kind = self.schema.time_kind or timestamps.TEXT_FORMAT
        if kind == timestamps.NUMBER_FORMAT:
            return timestamps.parse_time(parse_number(field, self.dialect.decimal), kind)
        return timestamps.parse_time(field.strip() if kind in timestamps.ISO_FORMATS else field, kind)


def _parse_field(field: str, decimal: str) -> Any:
    """Return a field as a number, a string, or None if it is missing."""
    field = field.strip()
    number = parse_number(field, decimal)
    if number is None:
        return field
    if field in MISSING_VALUES:
        return None
    return int(number) if field.lstrip("+-").isdigit() and abs(number) < 2**53 else number


def _reason_unless_invalid_utf8(text: str, reason: str) -> str:
    return reason if is_valid_utf8(text) else NOT_UTF8
