"""Lines of separated values as points, quickly, by pyarrow."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.fleet.columns import keys_from_column, to_series
from holdfast.fleet.keys import StrKeys
from holdfast.streams.batch import Batch
from holdfast.streams.columns import Schema
from holdfast.streams.dialect import BOM, MISSING_VALUES, CsvDialect
from holdfast.streams.records import MAX_RECORD_BYTES
from holdfast.streams.times import ISO_FORMAT, NUMBER_FORMAT, ZONED_ISO_FORMAT, Times

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
