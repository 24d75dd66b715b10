"""What Spark's columns may be, and what the answers are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from holdfast.engines.spark.columns import answer_names
from holdfast.engines.spark.plan import Plan
from holdfast.errors import BadInputError, WrongTypeError

WHOLE = ("tinyint", "smallint", "int", "bigint")
NUMBERS = (*WHOLE, "float", "double", "boolean")
DATES = ("timestamp", "timestamp_ntz", "date")
TEXTS = ("string",)
TYPES = {
    "score": "double",
    "change_score": "double",
    "p_value": "double",
    "dropped": "boolean",
    "bad": "boolean",
    "anomaly": "boolean",
    "change": "boolean",
    "late": "boolean",
    "alarms": "array<struct<kind: string, row: bigint, onset: bigint, size: double, direction: string, "
    "variables: array<string>, p_value: double, message: string>>",
}
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
MICROSECONDS = {
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
    kind = _kind(types, key)
    if kind not in (*TEXTS, *WHOLE):
        raise WrongTypeError(f"column {key!r} holds {kind}: keys are texts or whole numbers; cast it to string")
    return kind in TEXTS


def values_in(types: dict[str, str], values: Any, others: Sequence[str | None]) -> tuple[str, ...]:
    """The columns to learn from: those given, or all others that hold numbers."""
    if values is None:
        candidates = (name for name, kind in types.items() if is_number(kind) and kind != "boolean")  # as in a fleet
        found = tuple(name for name in candidates if name not in others)
    else:
        found = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else (values,)
    for name in found:
        if not is_number(kind := _kind(types, name)):
            raise WrongTypeError(f"column {name!r} holds {kind}, not numbers: leave it out or cast it")
    if not found or len(set(found)) < len(found):
        raise BadInputError(f"values: expected one or more columns with numbers, each once, got {_listed(found)}")
    if both := [name for name in found if name in others]:
        raise BadInputError(f"values: {_listed(both)} is the key or the time")
    return found


def unit_of(types: dict[str, str], time: str | None) -> str:
    """ "us" for dates and timestamps, "" for whole numbers."""
    if time is None:
        return ""
    kind = _kind(types, time)
    if kind not in (*DATES, *WHOLE):
        raise WrongTypeError(f"column {time!r} holds {kind}: times are timestamps, dates or whole numbers; cast it")
    return "us" if kind in DATES else ""


def is_number(kind: str) -> bool:
    """Whether a type of Spark's is one of numbers."""
    return kind in NUMBERS or kind.startswith("decimal")


def duration(name: str, given: Any, unit: str, least: int = 1) -> int | None:
    """How long that is, in the unit of the times.

    >>> duration("idle", "7 days", "us"), duration("idle", timedelta(minutes=1), "us"), duration("idle", 100, "")
    (604800000000, 60000000, 100)
    """
    if given is None:
        return None
    found: float | None = None
    if unit and isinstance(given, timedelta):
        found = given / timedelta(microseconds=1)
    elif unit and isinstance(given, str) and (parts := DURATION.fullmatch(given)):
        found = float(parts[1]) * _microseconds(parts[2].lower())
    elif not unit and isinstance(given, int) and not isinstance(given, bool):
        found = given
    if found is None or math.isnan(found) or int(found) < least:
        expected = "a duration such as '7 days'" if unit else "a whole number, as the times are"
        raise BadInputError(f"{name}: expected {expected}, got {given!r}")
    return int(found)


def _microseconds(word: str) -> float:
    return MICROSECONDS.get(word) or MICROSECONDS.get(word.removesuffix("s")) or math.nan


def refuse_taken(types: Iterable[str], plan: Plan) -> None:
    """Refuses a frame with columns that are called as the answers are; to Spark large letters are small ones."""
    taken = {name.lower() for name in types}
    names = [plan.prefix + name for name in answer_names(plan.on_autopilot, plan.time is not None)]
    if clash := [name for name in names if name.lower() in taken]:
        raise BadInputError(f"the frame has a column {_listed(clash)} already: give a prefix")


def _kind(types: dict[str, str], name: str) -> str:
    if not isinstance(name, str) or name not in types:
        raise BadInputError(f"there is no column {name!r}; there are {_listed(types)}")
    return types[name]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
