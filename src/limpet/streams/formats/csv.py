"""Lines of separated values as points: quickly by pyarrow where all is well, else one after another, with reasons.

Both read the same: what becomes of a line does not depend on those around it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import StrKeys
from limpet.fleet._key_input import keys_from_column, to_series
from limpet.streams.batch import Batch
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
from limpet.streams.rejects import RejectLog
from limpet.streams.schema import ColumnSpec, Schema, infer_schema, join_names
from limpet.streams.timestamps import (
    ISO_FORMAT,
    NUMBER_FORMAT,
    ZONED_ISO_FORMAT,
    Times,
    parse_iso_ns,
    parse_time,
    to_time_array,
)

# Lines of separated values as points, quickly, by pyarrow.

NEWLINE_BYTE = ord("\n")
SAFE_TIME_RANGE_NS = np.array(["1679", "2261"], "datetime64[ns]").view(np.int64)  # between them, whatever the zone


class ArrowCsvReader:
    """Makes batches of lines in which all is well, exactly as `CsvLines` does, and leaves the others to it."""

    def __init__(self, dialect: CsvDialect, columns: Schema) -> None:
        import narwhals  # noqa: F401 # which reads the keys
        import pyarrow
        import pyarrow.csv

        self._pyarrow, self._csv = pyarrow, pyarrow.csv
        self.dialect, self.columns = dialect, columns

    def make_batch(self, data: bytes, position: Any) -> Batch | None:
        """The points in some whole lines, where nothing is out of the ordinary; else None."""
        if not is_arrow_safe(data):
            return None
        table = self._read_table(data)
        if table is None or len(table) != data.count(b"\n") + (not data.endswith(b"\n")):  # quotes over several lines
            return None
        columns, n = self.columns, len(table)
        values = np.empty((n, len(columns.values)))
        for i, name in enumerate(columns.values):
            column = table.column(name)
            values[:, i] = _column_to_numpy(column, np.float64)  # what is null is NaN
            if np.count_nonzero(np.isnan(values[:, i])) != column.null_count:  # such as nan(1)
                return None
        keys, times = None, None
        if columns.key is not None:
            key_codes = keys_from_column(to_series(table.column(columns.key)))
            assert isinstance(key_codes, StrKeys)
            assert key_codes.codes is not None
            keys, last = key_codes, key_codes.values[key_codes.codes[-1]]
            if "" in keys.values or "\n" in last:  # a quote that the last line does not close
                return None
        if columns.time is not None and (times := _column_to_times(table.column(columns.time))) is None:
            return None
        return Batch(
            values, position, columns.values, keys, times, n_records=n, tz_aware=columns.time_kind == ZONED_ISO_FORMAT
        )

    def _read_table(self, data: bytes) -> Any:
        """The columns needed, or None where something is not as it should be."""
        pa, csv = self._pyarrow, self._csv
        for options in self._options:
            try:
                return csv.read_csv(pa.BufferReader(data), *options)
            except (pa.ArrowInvalid, pa.ArrowKeyError):
                continue
        return None

    @cached_property
    def _options(self) -> list[Any]:
        """How pyarrow is to read, one way after another: a column of times has a zone in all lines or in none."""
        pa, csv = self._pyarrow, self._csv
        types = dict.fromkeys(self.columns.values, pa.float64())
        if self.columns.key is not None:
            types[self.columns.key] = pa.dictionary(pa.int32(), pa.string())
        time, kinds = self.columns.time, [pa.float64() if self.columns.time_kind == NUMBER_FORMAT else pa.string()]
        if self.columns.time_kind in (ISO_FORMAT, ZONED_ISO_FORMAT):
            kinds = [pa.timestamp("ns"), pa.timestamp("ns", tz="UTC")][
                :: -1 if self.columns.time_kind == ZONED_ISO_FORMAT else 1
            ]
        return [
            (
                csv.ReadOptions(use_threads=False, block_size=1 << 30, column_names=self.dialect.names),
                csv.ParseOptions(delimiter=self.dialect.separator),
                csv.ConvertOptions(
                    column_types=types if time is None else types | {time: kind},
                    include_columns=self.columns.required_columns,
                    null_values=MISSING_VALUES,
                    decimal_point=self.dialect.decimal,
                ),
            )
            for kind in kinds
        ]


def is_arrow_safe(data: bytes) -> bool:
    """Whether lines are lines to everyone: none too long, no other kind of line end, no mark before them."""
    if data.startswith(BOM.encode()):
        return False
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return False
    if len(data) <= MAX_RECORD_BYTES:
        return True
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == NEWLINE_BYTE)
    return bool(np.diff(ends, prepend=-1, append=len(data)).max() <= MAX_RECORD_BYTES)


def _column_to_numpy(column: Any, kind: type[np.float64] | type[np.int64]) -> npt.NDArray[Any]:
    """The numbers of a column, NaN where there is none; pyarrow's own way would take half a second to load pandas."""
    column = column.fill_null(np.nan) if column.null_count else column
    parts: list[npt.NDArray[Any]] = [
        np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * np.dtype(kind).itemsize)
        for chunk in column.chunks
        if len(chunk)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, kind)])


def _column_to_times(column: Any) -> Times | None:
    """The times of a column; None if there is one that has to be looked at."""
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


NEWLINE_CODE = ord("\n")
PARSABLE_TIME_RANGE_NS = np.array(["1679", "2261"], "datetime64[ns]").view(np.int64)  # between them, whatever the zone


class CsvReader:
    """Makes batches of lines of one dialect and one set of columns."""

    def __init__(self, dialect: CsvDialect, columns: Schema) -> None:
        self.dialect, self.columns = dialect, columns
        index_by_name = {name: i for i, name in enumerate(dialect.names)}
        self._field_index = {name: index_by_name[name] for name in columns.required_columns}
        self._arrow_reader = _make_arrow_reader(dialect, columns)

    @classmethod
    def from_sample(cls, head: bytes, spec: ColumnSpec, previous: CsvReader | None = None) -> CsvReader:
        """By the beginning of a file; the former reader again, if this one goes on without names where it ended."""
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
                f"the first line names {join_names(dialect.names)}, but the next one has {fields} fields"
            )
        if not body and spec.columns is None and dialect.names:
            raise InvalidInputError(f"there are no records after the names {join_names(dialect.names)}")
        sample = [
            {name: _parse_field(field, dialect) for name, field in zip(dialect.names, row, strict=True)} for row in rows
        ]
        return cls(dialect, infer_schema(sample or [dict.fromkeys(dialect.names)], spec))

    def to_dict(self) -> dict[str, Any]:
        """What it goes by besides the columns, as JSON can hold it."""
        return {"dialect": self.dialect.to_dict()}

    def is_header(self, line: bytes) -> bool:
        """Whether this line has the names of the columns."""
        text = line.decode("utf-8", "replace").strip("\r\n").removeprefix(BOM)
        return self.dialect.has_header and parse_header(text, self.dialect.separator) == self.dialect.names

    def make_batch(self, data: bytes, position: Any) -> Batch:
        """The points in some whole lines."""
        result = None if self._arrow_reader is None else self._arrow_reader.make_batch(data, position)
        return self._make_batch_from_lines(data, position) if result is None else result

    def _make_batch_from_lines(self, data: bytes, position: Any) -> Batch:
        columns, rejects = self.columns, RejectLog()
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
        values = np.array(points, np.float64).reshape(len(points), len(columns.values))
        return Batch(
            values,
            position,
            columns.values,
            None if columns.key is None else StrKeys(keys),
            None if columns.time is None or columns.time_kind is None else to_time_array(times, columns.time_kind),
            n_records=n,
            record_index=np.array(record_indexes, np.int64),
            rejects=rejects,
            tz_aware=columns.time_kind == ZONED_ISO_FORMAT,
        )

    def _parse_line(self, line: bytes) -> tuple[list[float], Any, str] | str:
        """The values, time and key of a line, or why it has none."""
        if len(line) > MAX_RECORD_BYTES:
            return RECORD_TOO_LONG
        text = line.rstrip(b"\r").decode("utf-8", "surrogateescape")
        fields = split_fields(text, self.dialect.separator)
        if len(fields) != len(self.dialect.names):
            return _reason_unless_invalid_utf8(text, f"not {len(self.dialect.names)} fields")
        point = []
        for name in self.columns.values:
            number = parse_number(fields[self._field_index[name]], self.dialect.decimal)
            if number is None:
                return _reason_unless_invalid_utf8(text, f"{name!r} is not a number")
            point.append(number)
        key, moment = "", None
        if self.columns.key is not None:
            key = fields[self._field_index[self.columns.key]]
            if not key:
                return NO_KEY
            if _has_invalid_utf8(key):
                return NOT_UTF8
        if self.columns.time is not None:
            moment = self._parse_time(fields[self._field_index[self.columns.time]])
            if moment is None:
                return _reason_unless_invalid_utf8(text, NO_TIME)
        return point, moment, key

    def _parse_time(self, field: str) -> Any:
        if self.columns.time_kind == NUMBER_FORMAT:
            number = parse_number(field, self.dialect.decimal)
            return None if number is None or number != number else parse_time(number, NUMBER_FORMAT)
        if self.columns.time_kind in (ISO_FORMAT, ZONED_ISO_FORMAT):
            return parse_iso_ns(field.strip())
        return None if _has_invalid_utf8(field) else field


def _make_arrow_reader(dialect: CsvDialect, columns: Schema) -> ArrowCsvReader | None:
    """The quick way, None without pyarrow or narwhals."""
    try:
        return ArrowCsvReader(dialect, columns)
    except ImportError:
        return None


def _parse_field(field: str, dialect: CsvDialect) -> Any:
    """A field as a number, a text, or None if it is missing."""
    number = parse_number(field, dialect.decimal)
    if number is None:
        return field.strip()
    if field.strip() in MISSING_VALUES:
        return None
    return int(number) if field.strip().lstrip("+-").isdigit() and abs(number) < 2**53 else number


def _has_invalid_utf8(text: str) -> bool:
    """Whether there were bytes in it that are no UTF-8."""
    return any("\udc80" <= char <= "\udcff" for char in text)


def _reason_unless_invalid_utf8(text: str, reason: str) -> str:
    return NOT_UTF8 if _has_invalid_utf8(text) else reason
