"""Points from lines of CSV: by pyarrow where all lines are well-formed, else line by line, with reasons.

Both give the same: the result of a line does not depend on the lines around it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._format import join_names
from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import StrKeys
from limpet.fleet._key_input import keys_from_column, to_series
from limpet.streams.batch import Batch, RejectLog
from limpet.streams.formats.csv_dialect import (
    BOM,
    MISSING_VALUES,
    CsvDialect,
    parse_header,
    parse_number,
    sniff,
    split_fields,
)
from limpet.streams.formats.json import (
    MAX_RECORD_BYTES,
    NO_KEY,
    NO_TIME,
    NOT_UTF8,
    RECORD_TOO_LONG,
    SCHEMA_SAMPLE_RECORDS,
)
from limpet.streams.schema import ColumnSpec, Schema, infer_schema
from limpet.streams.timestamps import (
    ISO_FORMAT,
    NUMBER_FORMAT,
    ZONED_ISO_FORMAT,
    Times,
    parse_iso_ns,
    parse_time,
    to_time_array,
)

NEWLINE_BYTE = ord("\n")
SAFE_TIME_RANGE_NS = np.array(["1679", "2261"], "datetime64[ns]").view(np.int64)  # valid in any zone


class ArrowCsvReader:
    """Make batches of well-formed lines, equal to those of `CsvReader`."""

    def __init__(self, dialect: CsvDialect, schema: Schema) -> None:
        import narwhals  # noqa: F401 # which reads the keys
        import pyarrow
        import pyarrow.csv

        self._pyarrow, self._csv = pyarrow, pyarrow.csv
        self.dialect, self.schema = dialect, schema

    def make_batch(self, data: bytes, position: Any) -> Batch | None:
        """Parse whole lines; return None if any is not well-formed."""
        if not is_arrow_safe(data):
            return None
        table = self._read_table(data)
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
            key_codes = keys_from_column(to_series(table.column(schema.key)))
            assert isinstance(key_codes, StrKeys)
            assert key_codes.codes is not None
            keys, last = key_codes, key_codes.values[key_codes.codes[-1]]
            if "" in keys.values or "\n" in last:  # a quote that the last line does not close
                return None
        if schema.time is not None and (times := _column_to_times(table.column(schema.time))) is None:
            return None
        return Batch(
            values, position, schema.values, keys, times, n_records=n, tz_aware=schema.time_kind == ZONED_ISO_FORMAT
        )

    def _read_table(self, data: bytes) -> Any:
        """Return the required columns, or None if pyarrow cannot parse them."""
        pa, csv = self._pyarrow, self._csv
        for options in self._options:
            try:
                return csv.read_csv(pa.BufferReader(data), *options)
            except (pa.ArrowInvalid, pa.ArrowKeyError):
                continue
        return None

    @cached_property
    def _options(self) -> list[Any]:
        """Options of pyarrow to try: a column of times has a zone in all lines or in none."""
        pa, csv = self._pyarrow, self._csv
        types = dict.fromkeys(self.schema.values, pa.float64())
        if self.schema.key is not None:
            types[self.schema.key] = pa.dictionary(pa.int32(), pa.string())
        time, kinds = self.schema.time, [pa.float64() if self.schema.time_kind == NUMBER_FORMAT else pa.string()]
        if self.schema.time_kind in (ISO_FORMAT, ZONED_ISO_FORMAT):
            kinds = [pa.timestamp("ns"), pa.timestamp("ns", tz="UTC")][
                :: -1 if self.schema.time_kind == ZONED_ISO_FORMAT else 1
            ]
        return [
            (
                csv.ReadOptions(use_threads=False, block_size=1 << 30, column_names=self.dialect.names),
                csv.ParseOptions(delimiter=self.dialect.separator),
                csv.ConvertOptions(
                    column_types=types if time is None else types | {time: kind},
                    include_columns=self.schema.required_columns,
                    null_values=MISSING_VALUES,
                    decimal_point=self.dialect.decimal,
                ),
            )
            for kind in kinds
        ]


def is_arrow_safe(data: bytes) -> bool:
    """Return whether pyarrow splits the lines alike: no oversized line, no other line ends, no byte order mark."""
    if data.startswith(BOM.encode()):
        return False
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return False
    if len(data) <= MAX_RECORD_BYTES:
        return True
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == NEWLINE_BYTE)
    return bool(np.diff(ends, prepend=-1, append=len(data)).max() <= MAX_RECORD_BYTES)


def _column_to_numpy(column: Any, kind: type[np.float64] | type[np.int64]) -> npt.NDArray[Any]:
    """Return the numbers of a column, NaN for null; `to_numpy` of pyarrow would import pandas (0.5 s)."""
    column = column.fill_null(np.nan) if column.null_count else column
    parts: list[npt.NDArray[Any]] = [
        np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * np.dtype(kind).itemsize)
        for chunk in column.chunks
        if len(chunk)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, kind)])


def _column_to_times(column: Any) -> Times | None:
    """Return the times of a column, or None if any has to be parsed separately."""
    if column.null_count:
        return None
    if str(column.type) == "double":
        numbers: Times = _column_to_numpy(column, np.float64)
        return numbers if (np.abs(numbers) < 1e300).all() else None
    if str(column.type).startswith("timestamp"):
        import pyarrow

        moments = _column_to_numpy(column.cast(pyarrow.int64()), np.int64)
        return (
            moments.view("datetime64[ns]")
            if SAFE_TIME_RANGE_NS[0] < moments.min() and moments.max() < SAFE_TIME_RANGE_NS[1]
            else None
        )
    strings = np.empty(len(column), object)
    strings[:] = column.to_pylist()
    return None if "\n" in strings[-1] else strings


class CsvReader:
    """Make batches of lines of one dialect and one schema."""

    def __init__(self, dialect: CsvDialect, schema: Schema) -> None:
        self.dialect, self.schema = dialect, replace(schema, format=dialect.to_dict())
        index_by_name = {name: i for i, name in enumerate(dialect.names)}
        self._field_index = {name: index_by_name[name] for name in schema.required_columns}
        self._arrow_reader = _make_arrow_reader(dialect, schema)

    @classmethod
    def from_sample(cls, head: bytes, spec: ColumnSpec, previous: CsvReader | None = None) -> CsvReader:
        """Infer dialect and columns from the beginning of a file; `previous` is kept if this file has no header."""
        lines = [line.rstrip(b"\r").decode("utf-8", "replace") for line in head.split(b"\n")][
            : 10 * SCHEMA_SAMPLE_RECORDS
        ]
        dialect = sniff(lines)
        if previous is not None and not dialect.has_header and previous.dialect.has_header:
            is_continuation = (
                len(dialect.names) == len(previous.dialect.names) and dialect.separator == previous.dialect.separator
            )
            if is_continuation:
                return previous
        body = [line for line in lines[dialect.comments :] if line.strip()][dialect.has_header :]
        width = len(dialect.names)
        rows = [row for line in body if len(row := split_fields(line, dialect.separator)) == width][
            :SCHEMA_SAMPLE_RECORDS
        ]
        if body and not rows:
            fields = len(split_fields(body[0], dialect.separator))
            raise InvalidInputError(
                f"the header has the columns {join_names(dialect.names)}, but the next line has {fields} fields"
            )
        if not body and spec.columns is None and dialect.names:
            raise InvalidInputError(f"no records after the header {join_names(dialect.names)}")
        sample = [
            {name: _parse_field(field, dialect) for name, field in zip(dialect.names, row, strict=True)} for row in rows
        ]
        return cls(dialect, infer_schema(sample or [dict.fromkeys(dialect.names)], spec))

    def is_header(self, line: bytes) -> bool:
        """Return whether a line is the header."""
        text = line.decode("utf-8", "replace").strip("\r\n").removeprefix(BOM)
        return self.dialect.has_header and parse_header(text, self.dialect.separator) == self.dialect.names

    def make_batch(self, data: bytes, position: Any) -> Batch:
        """Parse whole lines."""
        result = None if self._arrow_reader is None else self._arrow_reader.make_batch(data, position)
        return self._make_batch_from_lines(data, position) if result is None else result

    def _make_batch_from_lines(self, data: bytes, position: Any) -> Batch:
        schema, rejects = self.schema, RejectLog()
        points: list[list[float]] = []
        record_indexes: list[int] = []
        keys: list[str] = []
        times: list[Any] = []
        n = 0
        for line in data.split(b"\n"):
            if not line.rstrip(b"\r"):
                continue
            result = self._parse_line(line)
            if isinstance(result, str):
                rejects.add(result, n, line)
            else:
                point, moment, key = result
                points.append(point)
                times.append(moment)
                keys.append(key)
                record_indexes.append(n)
            n += 1
        values = np.array(points, np.float64).reshape(len(points), len(schema.values))
        return Batch(
            values,
            position,
            schema.values,
            None if schema.key is None else StrKeys(keys),
            None if schema.time is None or schema.time_kind is None else to_time_array(times, schema.time_kind),
            n_records=n,
            record_index=np.array(record_indexes, np.int64),
            rejects=rejects,
            tz_aware=schema.time_kind == ZONED_ISO_FORMAT,
        )

    def _parse_line(self, line: bytes) -> tuple[list[float], Any, str] | str:
        """Return values, time and key of a line, or the reason why it has none."""
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
            if _has_invalid_utf8(key):
                return NOT_UTF8
        if self.schema.time is not None:
            moment = self._parse_time(fields[self._field_index[self.schema.time]])
            if moment is None:
                return _reason_unless_invalid_utf8(text, NO_TIME)
        return point, moment, key

    def _parse_time(self, field: str) -> Any:
        if self.schema.time_kind == NUMBER_FORMAT:
            number = parse_number(field, self.dialect.decimal)
            return None if number is None or number != number else parse_time(number, NUMBER_FORMAT)
        if self.schema.time_kind in (ISO_FORMAT, ZONED_ISO_FORMAT):
            return parse_iso_ns(field.strip())
        return None if _has_invalid_utf8(field) else field


def _make_arrow_reader(dialect: CsvDialect, schema: Schema) -> ArrowCsvReader | None:
    """Return the fast reader, None without pyarrow or narwhals."""
    try:
        return ArrowCsvReader(dialect, schema)
    except ImportError:
        return None


def _parse_field(field: str, dialect: CsvDialect) -> Any:
    """Return a field as a number, a string, or None if it is missing."""
    number = parse_number(field, dialect.decimal)
    if number is None:
        return field.strip()
    if field.strip() in MISSING_VALUES:
        return None
    return int(number) if field.strip().lstrip("+-").isdigit() and abs(number) < 2**53 else number


def _has_invalid_utf8(text: str) -> bool:
    """Return whether a string was decoded from invalid UTF-8."""
    return any("\udc80" <= char <= "\udcff" for char in text)


def _reason_unless_invalid_utf8(text: str, reason: str) -> str:
    return NOT_UTF8 if _has_invalid_utf8(text) else reason
