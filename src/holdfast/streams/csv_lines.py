"""Lines of separated values as points: quickly by pyarrow where all is well, else one after another, with reasons.

Both read the same: what becomes of a line does not depend on those around it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.fleet.columns import read_key_column, series_of
from holdfast.fleet.keys import Texts
from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns, Wanted, understand
from holdfast.streams.dialect import MISSING, Dialect, dialect_of, fields_of, number_of
from holdfast.streams.records import ENOUGH, LONGEST, NO_KEY, NO_TIME, NOT_UTF8, TOO_LONG
from holdfast.streams.refusals import SHOWN, Refusals
from holdfast.streams.times import ISO, NUMBER, ZONED, Times, as_time, as_times, nanoseconds

NEWLINE, QUOTE = ord("\n"), ord('"')


class CsvLines:
    """Makes batches of lines of one dialect and one set of columns."""

    def __init__(self, dialect: Dialect, columns: Columns) -> None:
        self.dialect, self.columns = dialect, columns
        wanted = [*columns.values, *(one for one in (columns.time, columns.key) if one is not None)]
        self._needed = tuple(dict.fromkeys(wanted))
        self._places = {name: dialect.names.index(name) for name in self._needed}
        self._quickly: Any = _quick_reader()

    @classmethod
    def understood(cls, head: bytes, wanted: Wanted) -> CsvLines:
        """By the beginning of a file, of which the last line may be cut."""
        lines = [line.decode("utf-8", "replace") for line in head.splitlines()][: 10 * ENOUGH]
        dialect = dialect_of(lines)
        body = [line for line in lines[dialect.comments :] if line.strip()][dialect.has_header :]
        width = len(dialect.names)
        rows = [row for line in body if len(row := fields_of(line, dialect.separator)) == width][:ENOUGH]
        typed = [{name: _typed(one, dialect) for name, one in zip(dialect.names, row, strict=True)} for row in rows]
        return cls(dialect, understand(typed or [dict.fromkeys(dialect.names)], wanted))

    def as_json(self) -> dict[str, Any]:
        """What it goes by besides the columns, as JSON can hold it."""
        return {"dialect": self.dialect.as_json()}

    def is_header(self, line: bytes) -> bool:
        """Whether this line has the names of the columns."""
        text = line.decode("utf-8", "replace").strip("\r\n\ufeff")
        return [one.strip() for one in fields_of(text, self.dialect.separator)] == list(self.dialect.names)

    def batch(self, data: bytes, position: Any) -> Batch:
        """The points in some whole lines."""
        if self._quickly is not None and is_plain(data):
            table = self._table(data)
            if table is not None:
                return self._of_table(table, position)
        return self._of_lines(data, position)

    # Quickly

    def _table(self, data: bytes) -> Any:
        """The columns needed, or None where something is not as it should be."""
        pa, csv = self._quickly
        types = dict.fromkeys(self.columns.values, pa.float64())
        if self.columns.key is not None:
            types[self.columns.key] = pa.dictionary(pa.int32(), pa.string())
        time, kinds = self.columns.time, [pa.float64() if self._has_numbers else pa.string()]
        if self.columns.time_kind in (ISO, ZONED):
            kinds = [pa.timestamp("ns"), pa.timestamp("ns", tz="UTC")][:: -1 if self.columns.time_kind == ZONED else 1]
        separator, decimal = self.dialect.separator, self.dialect.decimal
        for kind in kinds:
            try:
                return csv.read_csv(
                    pa.BufferReader(data),
                    csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=self.dialect.names),
                    csv.ParseOptions(delimiter=separator),
                    csv.ConvertOptions(
                        column_types=types if time is None else types | {time: kind},
                        include_columns=self._needed,
                        null_values=MISSING,
                        decimal_point=decimal,
                    ),
                )
            except (pa.ArrowInvalid, pa.ArrowKeyError):
                continue
        return None

    @property
    def _has_numbers(self) -> bool:
        return self.columns.time_kind == NUMBER

    def _of_table(self, table: Any, position: Any) -> Batch:
        columns, n = self.columns, len(table)
        values = np.empty((n, len(columns.values)))
        for i, name in enumerate(columns.values):
            values[:, i] = table.column(name).to_numpy()  # what is null is NaN
        keys, times, good = None, None, np.ones(n, bool)
        refused = Refusals()
        if columns.key is not None:
            found = read_key_column(series_of(table.column(columns.key)))
            assert isinstance(found, Texts)
            keys = found
            assert keys.codes is not None
            nameless = np.isin(keys.codes, [-1, *(i for i, one in enumerate(keys.values) if not one)])
            self._refuse(NO_KEY, nameless, table, refused)
            good &= ~nameless
        if columns.time is not None:
            times, timeless = _times(table.column(columns.time))
            self._refuse(NO_TIME, timeless & good, table, refused)
            good &= ~timeless
        zoned = columns.time_kind == ZONED
        batch = Batch(values, position, columns.values, keys, times, n_records=n, refused=refused, zoned=zoned)
        return batch if good.all() else batch.only(good)

    def _refuse(self, reason: str, which: Any, table: Any, refused: Refusals) -> None:
        for place in np.flatnonzero(which).tolist():
            shown = table.slice(place, 1).to_pylist()[0].values() if len(refused.first) < SHOWN else ()
            refused.add(reason, place, self.dialect.separator.join("" if one is None else str(one) for one in shown))

    # One after another

    def _of_lines(self, data: bytes, position: Any) -> Batch:
        columns, refused = self.columns, Refusals()
        points: list[list[float]] = []
        places: list[int] = []
        keys: list[str] = []
        times: list[Any] = []
        n = 0
        for line in data.split(b"\n"):
            if not line.rstrip(b"\r"):
                continue
            found = self._point(line)
            if isinstance(found, str):
                refused.add(found, n, line)
            else:
                point, moment, key = found
                points.append(point)
                times.append(moment)
                keys.append(key)
                places.append(n)
            n += 1
        values = np.array(points, np.float64).reshape(len(points), len(columns.values))
        return Batch(
            values,
            position,
            columns.values,
            None if columns.key is None else Texts(keys),
            None if columns.time is None or columns.time_kind is None else as_times(times, columns.time_kind),
            n_records=n,
            places=np.array(places, np.int64),
            refused=refused,
            zoned=columns.time_kind == ZONED,
        )

    def _point(self, line: bytes) -> tuple[list[float], Any, str] | str:
        """The values, time and key of a line, or why it has none."""
        if len(line) > LONGEST:
            return TOO_LONG
        text = line.rstrip(b"\r").decode("utf-8", "surrogateescape")
        fields = fields_of(text, self.dialect.separator)
        if len(fields) != len(self.dialect.names):
            return _if_utf8(text, f"not {len(self.dialect.names)} fields")
        point = []
        for name in self.columns.values:
            number = number_of(fields[self._places[name]], self.dialect.decimal)
            if number is None:
                return _if_utf8(text, f"{name!r} is not a number")
            point.append(number)
        key, moment = "", None
        if self.columns.key is not None:
            key = fields[self._places[self.columns.key]]
            if not key:
                return NO_KEY
            if _is_broken(key):
                return NOT_UTF8
        if self.columns.time is not None:
            moment = self._time(fields[self._places[self.columns.time]])
            if moment is None:
                return _if_utf8(text, NO_TIME)
        return point, moment, key

    def _time(self, field: str) -> Any:
        if self._has_numbers:
            number = number_of(field, self.dialect.decimal)
            return None if number is None or number != number else as_time(number, NUMBER)
        if self.columns.time_kind in (ISO, ZONED):
            return nanoseconds(field.strip())
        return None if _is_broken(field) else field


def is_plain(data: bytes) -> bool:
    """Whether lines are lines to everyone: none too long, quotes closed in each, no other kind of line end."""
    if data.count(b"\r") != data.count(b"\r\n"):
        return False
    array = np.frombuffer(data, np.uint8)
    ends = np.append(np.flatnonzero(array == NEWLINE), len(data))
    if np.diff(ends, prepend=-1).max() > LONGEST:
        return False
    if QUOTE not in data:
        return True
    before = np.searchsorted(np.flatnonzero(array == QUOTE), ends)
    return not (np.diff(before, prepend=0) % 2).any()


def _quick_reader() -> Any:
    """pyarrow and its reader, None without them."""
    try:
        import pyarrow
        import pyarrow.csv
    except ImportError:
        return None
    return pyarrow, pyarrow.csv


def _times(column: Any) -> tuple[Times, Any]:
    """The times of a column, and which rows have none."""
    missing = column.is_null().to_numpy()
    if str(column.type) == "double":
        numbers = column.to_numpy()
        return numbers, missing | ~(np.abs(numbers) < 1e300)
    if str(column.type).startswith("timestamp"):
        import pyarrow

        return column.cast(pyarrow.int64()).fill_null(0).to_numpy().view("datetime64[ns]"), missing
    texts = np.empty(len(column), object)
    texts[:] = column.to_pylist()
    return texts, missing


def _typed(field: str, dialect: Dialect) -> Any:
    """A field as a number, a text, or None if it is missing."""
    number = number_of(field, dialect.decimal)
    if number is None:
        return field.strip()
    if field.strip() in MISSING:
        return None
    return int(number) if field.strip().lstrip("+-").isdigit() and abs(number) < 2**53 else number


def _is_broken(text: str) -> bool:
    """Whether there were bytes in it that are no UTF-8."""
    return any("\udc80" <= one <= "\udcff" for one in text)


def _if_utf8(text: str, reason: str) -> str:
    return NOT_UTF8 if _is_broken(text) else reason
