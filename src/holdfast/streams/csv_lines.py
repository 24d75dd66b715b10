"""Lines of separated values as points: quickly by pyarrow where all is well, else one after another, with reasons.

Both read the same: what becomes of a line does not depend on those around it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.errors import BadInputError
from holdfast.fleet.keys import Texts
from holdfast.streams.arrow_csv import QuickLines
from holdfast.streams.batch import Batch
from holdfast.streams.columns import Columns, Wanted, listed, understand
from holdfast.streams.dialect import MARK, MISSING, Dialect, dialect_of, fields_of, names_of, number_of
from holdfast.streams.records import ENOUGH, LONGEST, NO_KEY, NO_TIME, NOT_UTF8, TOO_LONG
from holdfast.streams.refusals import Refusals
from holdfast.streams.times import ISO, NUMBER, ZONED, as_time, as_times, nanoseconds

NEWLINE = ord("\n")
SURELY = np.array(["1679", "2261"], "datetime64[ns]").view(np.int64)  # between them, whatever the zone


class CsvLines:
    """Makes batches of lines of one dialect and one set of columns."""

    def __init__(self, dialect: Dialect, columns: Columns) -> None:
        self.dialect, self.columns = dialect, columns
        places = {name: i for i, name in enumerate(dialect.names)}
        self._places = {name: places[name] for name in columns.needed}
        self._quickly = _quick_reader(dialect, columns)

    @classmethod
    def understood(cls, head: bytes, wanted: Wanted, former: CsvLines | None = None) -> CsvLines:
        """By the beginning of a file; the former reader again, if this one goes on without names where it ended."""
        lines = [line.rstrip(b"\r").decode("utf-8", "replace") for line in head.split(b"\n")][: 10 * ENOUGH]
        dialect = dialect_of(lines)
        if former is not None and not dialect.has_header and former.dialect.has_header:
            goes_on = len(dialect.names) == len(former.dialect.names) and dialect.separator == former.dialect.separator
            if goes_on:
                return former
        body = [line for line in lines[dialect.comments :] if line.strip()][dialect.has_header :]
        width = len(dialect.names)
        rows = [row for line in body if len(row := fields_of(line, dialect.separator)) == width][:ENOUGH]
        if body and not rows:
            fields = len(fields_of(body[0], dialect.separator))
            raise BadInputError(f"the first line names {listed(dialect.names)}, but the next one has {fields} fields")
        if not body and wanted.columns is None and dialect.names:
            raise BadInputError(f"there are no records after the names {listed(dialect.names)}")
        typed = [{name: _typed(one, dialect) for name, one in zip(dialect.names, row, strict=True)} for row in rows]
        return cls(dialect, understand(typed or [dict.fromkeys(dialect.names)], wanted))

    def as_json(self) -> dict[str, Any]:
        """What it goes by besides the columns, as JSON can hold it."""
        return {"dialect": self.dialect.as_json()}

    def is_header(self, line: bytes) -> bool:
        """Whether this line has the names of the columns."""
        text = line.decode("utf-8", "replace").strip("\r\n").removeprefix(MARK)
        return self.dialect.has_header and names_of(text, self.dialect.separator) == self.dialect.names

    def batch(self, data: bytes, position: Any) -> Batch:
        """The points in some whole lines."""
        quick = None if self._quickly is None else self._quickly.batch(data, position)
        return self._of_lines(data, position) if quick is None else quick

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
        if self.columns.time_kind == NUMBER:
            number = number_of(field, self.dialect.decimal)
            return None if number is None or number != number else as_time(number, NUMBER)
        if self.columns.time_kind in (ISO, ZONED):
            return nanoseconds(field.strip())
        return None if _is_broken(field) else field


def _quick_reader(dialect: Dialect, columns: Columns) -> QuickLines | None:
    """The quick way, None without pyarrow or narwhals."""
    try:
        return QuickLines(dialect, columns)
    except ImportError:
        return None


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
