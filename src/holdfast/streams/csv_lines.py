"""Lines of separated values as points: quickly by pyarrow where all is well, else one after another, with reasons.

Both read the same: what becomes of a line does not depend on those around it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.errors import InvalidInputError
from holdfast.fleet.keys import StrKeys
from holdfast.streams.arrow_csv import ArrowCsvReader
from holdfast.streams.batch import Batch
from holdfast.streams.columns import ColumnSpec, Schema, infer_schema, join_names
from holdfast.streams.dialect import BOM, MISSING_VALUES, CsvDialect, parse_header, parse_number, sniff, split_fields
from holdfast.streams.records import MAX_RECORD_BYTES, NO_KEY, NO_TIME, NOT_UTF8, RECORD_TOO_LONG, SCHEMA_SAMPLE_RECORDS
from holdfast.streams.refusals import RejectLog
from holdfast.streams.times import ISO_FORMAT, NUMBER_FORMAT, ZONED_ISO_FORMAT, parse_iso_ns, parse_time, to_time_array

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
