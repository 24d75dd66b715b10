"""Infer which columns of the records are the values, the time and the key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from limpet._format import join_names, truncate
from limpet.exceptions import InvalidInputError
from limpet.streams.timestamps import ISO_FORMAT, TEXT_FORMAT, ZONED_ISO_FORMAT, infer_time_format, is_number

NO_COLUMN = "none"  # instead of a name: the records have no such column
WORD_PATTERN = re.compile(r"[A-ZÄÖÜ]?[^\W\d_A-ZÄÖÜ]+|[A-ZÄÖÜ]+")  # of a name, of camelCase too
TIME_NAMES = {"time", "timestamp", "datetime", "date", "ts", "epoch", "when", "zeit", "zeitstempel", "datum", "t"}
TIME_QUALIFIERS = {"stamp", "s", "sec", "seconds", "ms", "us", "ns", "min", "h", "utc", "gmt", "unix", "local", "iso"}
KEY_NAMES = {
    *("key", "sensor", "device", "machine", "host", "station", "series", "unit", "symbol", "ticker", "tag", "metric"),
    *("channel", "customer", "account", "meter", "asset", "pump", "engine", "node", "instance", "source", "stream"),
    "hostname",
}
KEY_QUALIFIERS = {"id", "uid", "uuid", "no", "nr", "number", "code", "name"}
COUNTER_NAMES = {"", "index", "row", "id", "n", "no", "nr", "#", "unnamed: 0", "line"}


@dataclass(frozen=True)
class ColumnSpec:
    """Columns requested by the user; None: inferred, "none": no such column."""

    columns: tuple[str, ...] | None = None
    key: str | None = None
    time: str | None = None


ANY_COLUMNS = ColumnSpec()


@dataclass(frozen=True)
class Schema:
    """The columns of the records of a source."""

    values: tuple[str, ...]
    time: str | None = None
    time_kind: str | None = None  # numbers, ISO 8601 with or without a zone, or other text
    key: str | None = None
    ignored: dict[str, str] = field(default_factory=dict)  # the other columns, each with the reason
    key_candidates: tuple[str, ...] = ()
    format: dict[str, Any] = field(default_factory=dict, compare=False)  # how records are parsed: the dialect of CSV

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Schema:
        """Restore a schema from `to_dict`."""
        return cls(**data | {"values": tuple(data["values"]), "key_candidates": tuple(data["key_candidates"])})

    @property
    def hints(self) -> list[str]:
        """Suggestions for users of the command."""
        return [f"if each {name!r} is a separate stream, use --key {name}" for name in self.key_candidates]

    @property
    def required_columns(self) -> tuple[str, ...]:
        """Columns to read, values first."""
        return tuple(dict.fromkeys([*self.values, *(name for name in (self.time, self.key) if name is not None)]))

    @property
    def is_zoned(self) -> bool:
        """Whether most times have a zone."""
        return self.time_kind == ZONED_ISO_FORMAT

    @property
    def spec(self) -> ColumnSpec:
        """A request for the same columns of other records."""
        return ColumnSpec(self.values, self.key or NO_COLUMN, self.time or NO_COLUMN)


def infer_schema(sample: Sequence[dict[str, Any]], spec: ColumnSpec) -> Schema:
    """Infer columns from a sample of records: numbers, strings, None if missing.

    Columns that occur in more than half of the records count, and each has the type of most of its values.

    >>> rows = [{"when": "2024-05-01", "sensor": "a", "t": 20.5, "note": "x"}]
    >>> rows.append({"when": "2024-05-02", "sensor": "b", "t": 21, "note": ""})
    >>> schema = infer_schema(rows, ColumnSpec())
    >>> schema.time, schema.key, schema.values, schema.ignored
    ('when', 'sensor', ('t',), {'note': 'not numeric'})
    """
    seen = Counter(name for record in sample for name in record)
    names = [name for name, times in seen.items() if 2 * times > len(sample)]
    requested = [*(spec.columns or ()), *(name for name in (spec.key, spec.time) if name not in (None, NO_COLUMN))]
    unknown = [name for name in requested if name not in seen]
    if unknown:
        raise InvalidInputError(
            f"columns: {', '.join(map(repr, unknown))} not found. The columns are {join_names(list(seen))}."
        )
    names += [name for name in requested if name not in names]
    present = {name: [record[name] for record in sample if record.get(name) is not None] for name in names}
    values_by_name = {name: _select_majority_type(values) for name, values in present.items()}
    time = _find_time_column(values_by_name, spec)
    key = _find_key_column(values_by_name, spec, time)
    ignored: dict[str, str] = {}
    if spec.columns is not None:
        values = spec.columns
        for name in values:
            sample_values = values_by_name[name]
            if sample_values and not is_number(sample_values[0]):
                value = sample_values[0] if isinstance(sample_values[0], str) else repr(sample_values[0])
                raise InvalidInputError(f"columns: {name!r} must be numeric, got {truncate(value)!r}.")
            if name in (key, time):
                raise InvalidInputError(f"columns: {name!r} is the {'key' if name == key else 'time'} already.")
        if len(set(values)) < len(values):
            raise InvalidInputError(f"columns: names must be unique, got {join_names(values)}.")
    else:
        candidates = [name for name in names if name not in (time, key)]
        ignored = {name: reason for name in candidates if (reason := _get_ignore_reason(name, values_by_name[name]))}
        values = tuple(name for name in candidates if name not in ignored)
    if not values:
        raise InvalidInputError(f"columns: no column is numeric. The columns are {join_names(names)}.")
    suggested = _suggest_keys(values_by_name, ignored, time, spec) if key is None and spec.key is None else []
    time_kind = None if time is None else infer_time_format(values_by_name[time]) or TEXT_FORMAT
    return Schema(tuple(values), time, time_kind, key, ignored, tuple(suggested))


def _select_majority_type(values: Sequence[Any]) -> list[Any]:
    numbers = [value for value in values if is_number(value)]
    strings = [value for value in values if isinstance(value, str)]
    others = [value for value in values if not is_number(value) and not isinstance(value, str)]
    return max(numbers, strings, others, key=len)


def _find_time_column(values_by_name: dict[str, list[Any]], spec: ColumnSpec) -> str | None:
    if spec.time is not None:
        return None if spec.time == NO_COLUMN else spec.time
    candidates = [name for name in values_by_name if name not in (spec.columns or ()) and name != spec.key]
    ranks = {name: _rank_as_time(name, values_by_name[name]) for name in candidates}
    best = min(ranks, key=lambda name: ranks[name], default=None)
    return best if best is not None and ranks[best] < NOT_A_TIME_RANK else None


def is_time_name(name: str) -> bool:
    """Return whether a column of this name can be the time.

    >>> [is_time_name(name) for name in ("Time (s)", "timestamp_ms", "Date/Time", "t [°C]", "uptime")]
    [True, True, True, False, False]
    """
    words = split_words(name)
    return bool(words & TIME_NAMES) and words <= TIME_NAMES | TIME_QUALIFIERS


def split_words(name: str) -> set[str]:
    """Return the words of a name in lower case."""
    return {word.lower() for word in WORD_PATTERN.findall(name)}


NOT_A_TIME_RANK = 9


def _rank_as_time(name: str, values: Sequence[Any]) -> int:
    """Rank a column as time, lowest first: date-times, numbers, dates, strings."""
    kind, named = infer_time_format(values), is_time_name(name)
    if kind in (ISO_FORMAT, ZONED_ISO_FORMAT):
        days = all(len(value) == len("2024-05-01") for value in values)
        return (2 if days else 0) if named else 5
    if not named or kind is None:
        return NOT_A_TIME_RANK
    if kind == TEXT_FORMAT:
        return 4
    if "t" in split_words(name):  # a temperature, too
        return 3 if len(values) > 2 and _is_evenly_spaced(values) else NOT_A_TIME_RANK
    return 1 if _is_increasing(values) else NOT_A_TIME_RANK


def _find_key_column(values_by_name: dict[str, list[Any]], spec: ColumnSpec, time: str | None) -> str | None:
    if spec.key is not None:
        return None if spec.key == NO_COLUMN else spec.key
    for name, values in values_by_name.items():
        words = split_words(name)
        named = len(words - KEY_QUALIFIERS) == 1 and words - KEY_QUALIFIERS <= KEY_NAMES
        if name != time and name not in (spec.columns or ()) and named and values:
            kinds = {type(value) for value in values}
            if kinds == {str} or (kinds == {int} and words & KEY_QUALIFIERS):  # sensor_id: 17
                return name
    return None


def _get_ignore_reason(name: str, values: Sequence[Any]) -> str | None:
    if not values:
        return "empty"
    if isinstance(values[0], dict | list):
        return "nested"
    if not is_number(values[0]):
        return "not numeric"
    is_counter = len(values) > 1 and all(after == before + 1 for before, after in pairwise(values))
    return "row number" if is_counter and name.strip().lower() in COUNTER_NAMES else None


def _suggest_keys(
    values_by_name: dict[str, list[Any]], ignored: dict[str, str], time: str | None, spec: ColumnSpec
) -> list[str]:
    """Return possible keys: repeated strings and, where times repeat, integers."""
    repeated = time is not None and len(set(map(str, values_by_name[time]))) <= len(values_by_name[time]) / 2
    suggested = []
    for name, values in values_by_name.items():
        distinct = len(set(map(str, values)))
        is_string_key = name in ignored and isinstance((values or [None])[0], str) and 1 < distinct <= len(values) / 4
        is_integer_key = (
            repeated
            and name not in (time, *(spec.columns or ()))
            and 1 < distinct <= len(values) / 2
            and all(type(value) is int for value in values)
        )
        if is_string_key or is_integer_key:
            suggested.append(name)
    return suggested


def _is_evenly_spaced(values: Sequence[float]) -> bool:
    """Whether values increase by the same step, up to rounding."""
    step = values[1] - values[0]
    return step > 0 and all(abs(after - before - step) <= 1e-6 * step for before, after in pairwise(values))


def _is_increasing(values: Sequence[float]) -> bool:
    """Whether values increase; of many, some may be late, or restart."""
    finite = [value for value in values if abs(value) < 1e300]
    falls = sum(after < before for before, after in pairwise(finite))
    return falls <= (len(finite) // 5 if len(finite) > 10 else 0)
