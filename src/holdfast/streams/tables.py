"""The two tables that results make, points and alarms, in the forms that sinks write."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from holdfast.errors import BadInputError
from holdfast.streams.results import ALARM_COLUMNS, Results

POINTS, ALARMS = "points", "alarms"


def check_what(what: str) -> str:
    """The name of a table."""
    if what not in (POINTS, ALARMS):
        raise BadInputError(f"expected {POINTS!r} or {ALARMS!r}, got {what!r}")
    return what


def columns_of(results: Results, what: str) -> tuple[str, ...]:
    """The names of the columns."""
    return ALARM_COLUMNS if what == ALARMS else tuple(results.point_columns())


def rows_of(results: Results, what: str) -> list[tuple[Any, ...]]:
    """The rows: numbers, flags, texts, lists of texts; None where there is nothing."""
    if what == ALARMS:
        return [tuple(row.values()) for row in results.alarm_rows()]
    return list(zip(*map(plain, results.point_columns().values()), strict=True))


def records_of(results: Results, what: str) -> list[dict[str, Any]]:
    """The rows, by the names of their columns."""
    if what == ALARMS:
        return results.alarm_rows()
    columns = results.point_columns()
    return [dict(zip(columns, row, strict=True)) for row in zip(*map(plain, columns.values()), strict=True)]


def first_of(results: Results, what: str) -> int:
    """How many rows there were before."""
    return results.first_alarm if what == ALARMS else results.first_point


def plain(column: Any) -> list[Any]:
    """A column of plain values; numbers that JSON does not have are None.

    >>> plain(np.array([1.5, np.nan]))
    [1.5, None]
    """
    if not isinstance(column, np.ndarray):
        return list(column)
    if column.dtype.kind == "f" and not (finite := np.isfinite(column)).all():
        column = column.astype(object)
        column[~finite] = None
    return list(column.tolist())


def json_line(record: dict[str, Any]) -> str:
    """A record as one line of JSON."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False)
