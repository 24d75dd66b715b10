"""Arrow columns as points, and results as Arrow tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._optional import optional_import
from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import StrKeys
from limpet.streams import timestamps
from limpet.streams.batch import Batch
from limpet.streams.results import ALARM_COLUMNS, POINTS_TABLE, BatchResult

Flags = npt.NDArray[np.bool_]
NS_PER_UNIT = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
DAY_NS = 86_400 * NS_PER_UNIT["s"]
MAX_INT64 = 2**63 - 1


def import_pyarrow() -> Any:
    """Import pyarrow, which is an extra."""
    with optional_import("a Parquet file", "files"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow


def is_string_type(kind: Any) -> bool:
    """Return whether a type is a string type."""
    return str(kind) in ("string", "large_string", "string_view")


def to_float64(column: Any) -> Vector:
    """Return a column of numbers, booleans or nulls as float64, NaN for null."""
    pa = import_pyarrow()
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not any(check(kind) for check in checks):
        raise InvalidInputError(f"columns: each must be numeric, got {column.type}.")
    numbers = _decode_dictionary(column).cast(pa.float64(), safe=False)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)


def to_keys(column: Any) -> StrKeys:
    """Return dictionary-encoded keys, −1 for null, empty and invalid strings."""
    pa = import_pyarrow()
    types, kind = pa.types, column.type
    if types.is_dictionary(kind) and (not is_string_type(kind.value_type) or len(column.dictionary) > len(column)):
        column = _decode_dictionary(column)
    if types.is_floating(column.type):  # integers with missing values
        numbers = to_float64(column)
        is_whole = (np.abs(numbers) < 2.0**53) & (numbers == np.trunc(numbers))
        column = pa.array(np.where(is_whole, numbers, 0.0).astype(np.int64), mask=~is_whole)
    if not types.is_dictionary(column.type):
        if not (types.is_integer(column.type) or is_string_type(column.type) or types.is_null(column.type)):
            raise InvalidInputError(f"key: must be a column of strings or integers, got {column.type}.")
        column = column if types.is_integer(column.type) else column.cast(pa.large_string())
        column = column.dictionary_encode()
    dictionary = column.dictionary
    is_integer = types.is_integer(dictionary.type)
    values = list(map(str, dictionary.to_pylist())) if is_integer else _to_strings(dictionary)
    codes = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    is_key = np.array([*(bool(text) for text in values), False])
    return StrKeys(values, np.where(is_key[codes], codes, -1))


def to_times(column: Any, kind: str) -> tuple[timestamps.Times, Flags]:
    """Return the times of a column, and which of them are missing or of another kind."""
    pa = import_pyarrow()
    column = _decode_dictionary(column)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return _to_datetime64(column)
    if kind == timestamps.NUMBER_FORMAT:
        numbers = to_float64(column)
        return numbers, ~(np.abs(numbers) < 1e300)
    strings = _to_strings(column if is_string_type(column.type) else column.cast(pa.string()))
    parsed = [timestamps.parse_time(text, kind) for text in strings]
    missing = np.array([value is None for value in parsed], np.bool_)
    if kind in timestamps.ISO_FORMATS:
        parsed = [0 if value is None else value for value in parsed]
    return timestamps.to_time_array(parsed, kind), missing


def convert_column(column: Any, as_numbers: bool = False) -> tuple[list[Any], Any]:
    """Return plain values, None for null, and a placeholder of the column's type.

    Numbers and strings stay as they are, times become ISO 8601 and, with `as_numbers`, booleans 1 and 0; each value of
    another type becomes the placeholder.
    """
    types = import_pyarrow().types
    column = _decode_dictionary(column)
    kind = column.type
    if types.is_null(kind):
        return [None] * len(column), None
    if types.is_integer(kind) or types.is_floating(kind):
        return column.to_pylist(), 0 if types.is_integer(kind) else 0.0
    if types.is_decimal(kind) or (types.is_boolean(kind) and as_numbers):
        return [None if value != value else value for value in to_float64(column).tolist()], 0.0
    if types.is_timestamp(kind) or types.is_date(kind):
        times, missing = _to_datetime64(column)
        zone = getattr(kind, "tz", None)  # dates have none
        strings = timestamps.format_times(times, zone is not None)
        values = [None if is_missing else value for value, is_missing in zip(strings, missing.tolist(), strict=True)]
        return values, "1970-01-01T00:00:00" + "Z" * (zone is not None)
    if is_string_type(kind):
        return _to_strings(column), ""
    placeholder = [] if types.is_nested(kind) else False if types.is_boolean(kind) else kind
    return [placeholder if is_present else None for is_present in column.is_valid().to_pylist()], placeholder


def _to_datetime64(column: Any) -> tuple[timestamps.Times, Flags]:
    """Return timestamps and dates as datetime64[ns], missing if out of range."""
    pa = import_pyarrow()
    if pa.types.is_timestamp(column.type):
        scale = NS_PER_UNIT[column.type.unit]
    else:
        scale = DAY_NS if pa.types.is_date32(column.type) else NS_PER_UNIT["ms"]
        column = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    counts = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    limit = MAX_INT64 // scale
    missing = column.is_null().to_numpy(zero_copy_only=False) | (counts > limit) | (counts < -limit)
    return (np.where(missing, 0, counts) * scale).view("datetime64[ns]"), missing


def _decode_dictionary(column: Any) -> Any:
    return column.dictionary_decode() if import_pyarrow().types.is_dictionary(column.type) else column


def _to_strings(column: Any) -> list[str | None]:
    """Return strings; None for null and for invalid UTF-8."""
    try:
        strings: list[str | None] = column.to_pylist()
        return strings
    except UnicodeDecodeError:
        return [_decode_utf8(data) for data in column.cast(import_pyarrow().large_binary()).to_pylist()]


def _decode_utf8(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def to_arrow_table(results: BatchResult, table: str) -> Any:
    """Return the table of points or of alarms, with types independent of the batch."""
    return _points_table(results) if table == POINTS_TABLE else _alarms_table(results)


def _points_table(results: BatchResult) -> Any:
    pa = import_pyarrow()
    columns = {}
    for name, column in results.point_columns(times_as_strings=False).items():
        if name == "time" and results.batch.times is not None:
            columns[name] = _times_column(results.batch)
        elif isinstance(column, np.ndarray):
            kind = {"b": pa.bool_(), "i": pa.int64()}.get(column.dtype.kind, pa.float64())
            columns[name] = pa.array(column, kind)
        else:
            columns[name] = pa.array(column, pa.string())
    return pa.table(columns)


def _alarms_table(results: BatchResult) -> Any:
    pa = import_pyarrow()
    integer, number, string = pa.int64(), pa.float64(), pa.string()
    types = {"record": integer, "row": integer, "onset": integer, "size": number, "p_value": number}
    types["variables"] = pa.list_(string)
    rows = [row | {"key": None if row["key"] is None else str(row["key"])} for row in results.alarm_records()]
    times = _times_column(results.batch, np.array(results.trace.alarm_index, np.int64))
    columns = [
        times if name == "time" else pa.array([row[name] for row in rows], types.get(name, string))
        for name in ALARM_COLUMNS
    ]
    return pa.table(columns, names=list(ALARM_COLUMNS))


def _times_column(batch: Batch, rows: Any = slice(None)) -> Any:
    """Return the times of some rows; nulls without times."""
    pa = import_pyarrow()
    times, timestamp_type = batch.times, pa.timestamp("ns", "UTC" if batch.tz_aware else None)
    if times is None:
        return pa.nulls(len(rows), timestamp_type)
    if times.dtype.kind == "M":
        return pa.array(times[rows].view(np.int64)).cast(timestamp_type)
    return pa.array(times[rows], pa.float64() if times.dtype.kind == "f" else pa.string())
