"""Check the columns of a DataFrame, and name the types of the result columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from limpet._format import join_names
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.spark.arrow import output_columns
from limpet.spark.job_spec import JobSpec

INTEGER_TYPES = ("tinyint", "smallint", "int", "bigint")
NUMERIC_TYPES = (*INTEGER_TYPES, "float", "double", "boolean")
TIME_TYPES = ("timestamp", "timestamp_ntz", "date")
STRING_TYPES = ("string",)
OUTPUT_TYPES = {
    **dict.fromkeys(("score", "p_value", "change_score"), "double"),
    **dict.fromkeys(("rejected", "anomaly", "change", "invalid", "late", "duplicate"), "boolean"),
    "alarms": "array<struct<kind: string, row: bigint, onset: bigint, size: double, direction: string, "
    "variables: array<string>, p_value: double, message: string>>",
}
DURATION_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
MICROSECONDS_PER_UNIT = {
    **dict.fromkeys(("us", "microsecond"), 1),
    **dict.fromkeys(("ms", "millisecond"), 1_000),
    **dict.fromkeys(("s", "sec", "second"), 1_000_000),
    **dict.fromkeys(("min", "minute"), 60_000_000),
    **dict.fromkeys(("h", "hour"), 3_600_000_000),
    **dict.fromkeys(("d", "day"), 86_400_000_000),
    **dict.fromkeys(("w", "week"), 604_800_000_000),
}


def has_string_keys(types: dict[str, str], key: str) -> bool:
    """Return whether keys are strings; otherwise they are integers.

    Raises
    ------
    InvalidTypeError
        If the column has another type.
    """
    kind = _get_type("key", types, key)
    if kind not in (*STRING_TYPES, *INTEGER_TYPES):
        raise InvalidTypeError(f"key: must be a column of strings or integers, got {key!r} of {kind}. Cast it.")
    return kind in STRING_TYPES


def resolve_value_columns(types: dict[str, str], values: Any, others: Sequence[str | None]) -> tuple[str, ...]:
    """Return the value columns: those given, or all numeric ones but the `others`."""
    if values is None:  # as a fleet does: booleans only on request
        candidates = (name for name, kind in types.items() if is_numeric_type(kind) and kind != "boolean")
        names = tuple(name for name in candidates if name not in others)
    else:
        names = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else (values,)
    for name in names:
        if not is_numeric_type(kind := _get_type("values", types, name)):
            raise InvalidTypeError(
                f"values: must be numeric columns, got {name!r} of {kind}. Leave it out, or cast it to double."
            )
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(f"values: must be one or more different numeric columns, got {_quote(names)}.")
    if overlap := [name for name in names if name in others]:
        raise InvalidInputError(f"values: must not contain the key or the time, got {_quote(overlap)}.")
    return names


def get_time_unit(types: dict[str, str], time: str | None) -> str:
    """Return the unit of times: "us" for dates and timestamps, "" for integers."""
    if time is None:
        return ""
    kind = _get_type("time", types, time)
    if kind not in (*TIME_TYPES, *INTEGER_TYPES):
        raise InvalidTypeError(
            f"time: must be a column of timestamps, dates or integers, got {time!r} of {kind}. Cast it to timestamp."
        )
    return "us" if kind in TIME_TYPES else ""


def is_numeric_type(kind: str) -> bool:
    """Return whether a type of Spark is numeric."""
    return kind in NUMERIC_TYPES or kind.startswith("decimal")


def parse_duration(name: str, value: Any, unit: str, minimum: int = 1) -> int | None:
    """Return a duration as an integer, in the unit of the times.

    >>> parse_duration("idle", "7 days", "us"), parse_duration("idle", timedelta(minutes=1), "us")
    (604800000000, 60000000)
    >>> parse_duration("idle", 100, "")
    100
    """
    if value is None:
        return None
    result: float | None = None
    if unit and isinstance(value, timedelta):
        result = value / timedelta(microseconds=1)
    elif unit and isinstance(value, str) and (parts := DURATION_PATTERN.fullmatch(value)):
        result = float(parts[1]) * _get_unit_microseconds(parts[2].lower())
    elif not unit and isinstance(value, int) and not isinstance(value, bool):
        result = value
    if result is None or math.isnan(result) or int(result) < minimum:
        expected = "a duration such as '7 days'" if unit else "a positive integer, as times are integers"
        raise InvalidInputError(f"{name}: must be {expected}, got {value!r}.")
    return int(result)


def _get_unit_microseconds(word: str) -> float:
    return MICROSECONDS_PER_UNIT.get(word) or MICROSECONDS_PER_UNIT.get(word.removesuffix("s")) or math.nan


def check_name_clash(types: Iterable[str], spec: JobSpec) -> None:
    """Check that no column has the name of a result column; Spark ignores case."""
    used_names = {name.lower() for name in types}
    names = [spec.prefix + name for name in output_columns(spec.is_auto, spec.time is not None)]
    if clash := [name for name in names if name.lower() in used_names]:
        raise InvalidInputError(
            f"prefix: result columns must have new names, got the existing {_quote(clash)}. Give another prefix."
        )


def _get_type(parameter: str, types: dict[str, str], name: str) -> str:
    if not isinstance(name, str) or name not in types:
        raise InvalidInputError(f"{parameter}: must be a column of the DataFrame ({_quote(types)}), got {name!r}.")
    return types[name]


def _quote(names: Iterable[str]) -> str:
    return join_names(map(repr, names))
