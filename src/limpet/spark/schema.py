"""What Spark's columns may be, and what the answers are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.spark.arrow import output_columns
from limpet.spark.job_spec import JobSpec

INTEGER_TYPES = ("tinyint", "smallint", "int", "bigint")
NUMERIC_TYPES = (*INTEGER_TYPES, "float", "double", "boolean")
TIME_TYPES = ("timestamp", "timestamp_ntz", "date")
STRING_TYPES = ("string",)
OUTPUT_TYPES = {
    "score": "double",
    "change_score": "double",
    "p_value": "double",
    "rejected": "boolean",
    "invalid": "boolean",
    "anomaly": "boolean",
    "change": "boolean",
    "late": "boolean",
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


def key_is_text(types: dict[str, str], key: str) -> bool:
    """Whether keys are texts; else they are whole numbers. Anything else is refused."""
    kind = _get_type(types, key)
    if kind not in (*STRING_TYPES, *INTEGER_TYPES):
        raise InvalidTypeError(f"column {key!r} holds {kind}: keys are texts or whole numbers; cast it to string")
    return kind in STRING_TYPES


def resolve_value_columns(types: dict[str, str], values: Any, others: Sequence[str | None]) -> tuple[str, ...]:
    """The columns to learn from: those given, or all others that hold numbers."""
    if values is None:
        candidates = (
            name for name, kind in types.items() if is_numeric_type(kind) and kind != "boolean"
        )  # as in a fleet
        names = tuple(name for name in candidates if name not in others)
    else:
        names = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else (values,)
    for name in names:
        if not is_numeric_type(kind := _get_type(types, name)):
            raise InvalidTypeError(f"column {name!r} holds {kind}, not numbers: leave it out or cast it")
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(
            f"values: expected one or more columns with numbers, each once, got {_format_names(names)}"
        )
    if overlap := [name for name in names if name in others]:
        raise InvalidInputError(f"values: {_format_names(overlap)} is the key or the time")
    return names


def get_time_unit(types: dict[str, str], time: str | None) -> str:
    """ "us" for dates and timestamps, "" for whole numbers."""
    if time is None:
        return ""
    kind = _get_type(types, time)
    if kind not in (*TIME_TYPES, *INTEGER_TYPES):
        raise InvalidTypeError(f"column {time!r} holds {kind}: times are timestamps, dates or whole numbers; cast it")
    return "us" if kind in TIME_TYPES else ""


def is_numeric_type(kind: str) -> bool:
    """Whether a type of Spark's is one of numbers."""
    return kind in NUMERIC_TYPES or kind.startswith("decimal")


def parse_duration(name: str, value: Any, unit: str, minimum: int = 1) -> int | None:
    """How long that is, in the unit of the times.

    >>> duration("idle", "7 days", "us"), duration("idle", timedelta(minutes=1), "us"), duration("idle", 100, "")
    (604800000000, 60000000, 100)
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
        expected = "a duration such as '7 days'" if unit else "a whole number, as the times are"
        raise InvalidInputError(f"{name}: expected {expected}, got {value!r}")
    return int(result)


def _get_unit_microseconds(word: str) -> float:
    return MICROSECONDS_PER_UNIT.get(word) or MICROSECONDS_PER_UNIT.get(word.removesuffix("s")) or math.nan


def check_name_clash(types: Iterable[str], spec: JobSpec) -> None:
    """Refuses a frame with columns that are called as the answers are; to Spark large letters are small ones."""
    used_names = {name.lower() for name in types}
    names = [spec.prefix + name for name in output_columns(spec.is_auto, spec.time is not None)]
    if clash := [name for name in names if name.lower() in used_names]:
        raise InvalidInputError(f"the frame has a column {_format_names(clash)} already: give a prefix")


def _get_type(types: dict[str, str], name: str) -> str:
    if not isinstance(name, str) or name not in types:
        raise InvalidInputError(f"there is no column {name!r}; there are {_format_names(types)}")
    return types[name]


def _format_names(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
