"""The two tables that results make, points and alarms, in the forms that sinks write."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from holdfast.errors import InvalidInputError
from holdfast.streams.results import ALARM_COLUMNS, BatchResult

POINTS_TABLE, ALARMS_TABLE = "points", "alarms"


def check_table(table: str) -> str:
    """The name of a table."""
    if table not in (POINTS_TABLE, ALARMS_TABLE):
        raise InvalidInputError(f"expected {POINTS_TABLE!r} or {ALARMS_TABLE!r}, got {table!r}")
    return table


def get_column_names(results: BatchResult, table: str) -> tuple[str, ...]:
    """The names of the columns."""
    return ALARM_COLUMNS if table == ALARMS_TABLE else tuple(results.point_columns())


def to_rows(results: BatchResult, table: str) -> list[tuple[Any, ...]]:
    """The rows: numbers, flags, texts, lists of texts; None where there is nothing."""
    if table == ALARMS_TABLE:
        return [tuple(row.values()) for row in results.alarm_records()]
    return list(zip(*map(to_plain_list, results.point_columns().values()), strict=True))


def to_records(results: BatchResult, table: str) -> list[dict[str, Any]]:
    """The rows, by the names of their columns."""
    if table == ALARMS_TABLE:
        return results.alarm_records()
    columns = results.point_columns()
    return [dict(zip(columns, row, strict=True)) for row in zip(*map(to_plain_list, columns.values()), strict=True)]


def first_index(results: BatchResult, table: str) -> int:
    """How many rows there were before."""
    return results.first_alarm if table == ALARMS_TABLE else results.first_point


def to_plain_list(column: Any) -> list[Any]:
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


def to_json_line(record: dict[str, Any]) -> str:
    """A record as one line of JSON."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False)
