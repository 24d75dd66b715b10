"""Which columns of the records are values, which one is the time, which one the key: as told, or as they look."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from limpet.exceptions import InvalidInputError
from limpet.streams.rejects import shorten
from limpet.streams.timestamps import ISO_FORMAT, TEXT_FORMAT, ZONED_ISO_FORMAT, infer_time_format, is_number

NO_COLUMN = "none"  # said in place of a name: there is no such column
WORD_PATTERN = re.compile(r"[A-ZÄÖÜ]?[^\W\d_A-ZÄÖÜ]+|[A-ZÄÖÜ]+")  # of a name: also of one like sensorId
TIME_NAMES = {"time", "timestamp", "datetime", "date", "ts", "epoch", "when", "zeit", "zeitstempel", "datum", "t"}
TIME_NAME_QUALIFIERS = {
    "stamp",
    "s",
    "sec",
    "seconds",
    "ms",
    "us",
    "ns",
    "min",
    "h",
    "utc",
    "gmt",
    "unix",
    "local",
    "iso",
}
KEY_NAMES = {
    *("key", "sensor", "device", "machine", "host", "station", "series", "unit", "symbol", "ticker", "tag", "metric"),
    *("channel", "customer", "account", "meter", "asset", "pump", "engine", "node", "instance", "source", "stream"),
    "hostname",
}
KEY_NAME_QUALIFIERS = {"id", "uid", "uuid", "no", "nr", "number", "code", "name"}
COUNTER_NAMES = {"", "index", "row", "id", "n", "no", "nr", "#", "unnamed: 0", "line"}


@dataclass(frozen=True)
class ColumnSpec:
    """What the user says about columns; None is left to be found out, "none" means that there is none."""

    columns: tuple[str, ...] | None = None
    key: str | None = None
    time: str | None = None


@dataclass(frozen=True)
class Schema:
    """What was understood: the columns of the values, that of the time and how times are given, that of the key.

    left_out: the other columns, each with the reason. hints: what the user may want to know.
    """

    values: tuple[str, ...]
    time: str | None = None
    time_kind: str | None = None
    key: str | None = None
    ignored: dict[str, str] = field(default_factory=dict)
    hints: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return self._dict

    @cached_property
    def _dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Schema:
        """What `as_json` was called on."""
        return cls(**data | {"values": tuple(data["values"]), "hints": tuple(data["hints"])})

    @property
    def required_columns(self) -> tuple[str, ...]:
        """Those that have to be read, values first."""
        return tuple(dict.fromkeys([*self.values, *(name for name in (self.time, self.key) if name is not None)]))

    @property
    def spec(self) -> ColumnSpec:
        """To ask for the same columns in other records."""
        return ColumnSpec(self.values, self.key or NO_COLUMN, self.time or NO_COLUMN)


def schema_from_position(position: Any) -> Schema | None:
    """What had been understood at a position of a source, if anything."""
    data = position.get("columns") if isinstance(position, dict) else None
    return None if data is None else Schema.from_dict(data)


def infer_schema(sample: Sequence[dict[str, Any]], spec: ColumnSpec) -> Schema:
    """What the columns of some records are: numbers are numbers here, texts texts, and None is missing.

    >>> rows = [{"when": "2024-05-01", "sensor": "a", "t": 20.5, "note": "x"}]
    >>> rows.append({"when": "2024-05-02", "sensor": "b", "t": 21, "note": ""})
    >>> found = understand(rows, Wanted())
    >>> found.time, found.key, found.values, found.left_out
    ('when', 'sensor', ('t',), {'note': 'holds texts'})

    A few records that are unlike the others do not matter: columns are those of most, and so is what they hold.
    """
    seen = Counter(name for record in sample for name in record)
    names = [name for name, times in seen.items() if 2 * times > len(sample)]
    requested = [*(spec.columns or ()), *(name for name in (spec.key, spec.time) if name not in (None, NO_COLUMN))]
    unknown = [name for name in requested if name not in seen]
    if unknown:
        raise InvalidInputError(
            f"there is no column {', '.join(map(repr, unknown))}; there are {join_names(list(seen))}"
        )
    names += [name for name in requested if name not in names]
    values_by_name = {
        name: _select_majority_type([record[name] for record in sample if record.get(name) is not None])
        for name in names
    }
    time = _find_time_column(values_by_name, spec)
    key = _find_key_column(values_by_name, spec, time)
    ignored: dict[str, str] = {}
    if spec.columns is not None:
        values = spec.columns
        for name in values:
            _check_numeric(name, values_by_name[name])
            if name in (key, time):
                raise InvalidInputError(f"column {name!r} cannot be a value and the {'key' if name == key else 'time'}")
        if len(set(values)) < len(values):
            raise InvalidInputError(f"each column once: got {join_names(values)}")
    else:
        candidates = [name for name in names if name not in (time, key)]
        ignored = {name: why for name in candidates if (why := _get_ignore_reason(name, values_by_name[name]))}
        values = tuple(name for name in candidates if name not in ignored)
    if not values:
        raise InvalidInputError(f"no column holds numbers to watch; there are {join_names(names)}")
    hints = _suggest_keys(values_by_name, ignored, time, spec) if key is None and spec.key is None else ()
    time_kind = None if time is None else infer_time_format(values_by_name[time]) or TEXT_FORMAT
    return Schema(tuple(values), time, time_kind, key, ignored, hints)


def join_names(names: Sequence[str], max_names: int = 20) -> str:
    """Names in a row; where there are many, not all of them.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    suffix = f" and {len(names) - max_names} more" if len(names) > max_names else ""
    return (", ".join(names[:max_names]) or "none") + suffix


def _select_majority_type(values: Sequence[Any]) -> list[Any]:
    """Those of the kind that most are of: numbers, texts, or something else."""
    groups: dict[str, list[Any]] = {"numbers": [], "texts": [], "others": []}
    for value in values:
        groups["numbers" if is_number(value) else "texts" if isinstance(value, str) else "others"].append(value)
    return max(groups.values(), key=len)


def _find_time_column(values_by_name: dict[str, list[Any]], spec: ColumnSpec) -> str | None:
    if spec.time is not None:
        return None if spec.time == NO_COLUMN else spec.time
    candidates = [name for name in values_by_name if name not in (spec.columns or ()) and name != spec.key]
    ranks = {name: _rank_as_time(name, values_by_name[name]) for name in candidates}
    return (
        min(candidates, key=lambda name: ranks[name], default=None)
        if min(ranks.values(), default=NOT_A_TIME_RANK) < NOT_A_TIME_RANK
        else None
    )


def is_time_name(name: str) -> bool:
    """Whether a column of this name may well be the time.

    >>> [is_time_name(name) for name in ("Time (s)", "timestamp_ms", "Date/Time", "t [°C]", "uptime")]
    [True, True, True, False, False]
    """
    words = split_words(name)
    return bool(words & TIME_NAMES) and words <= TIME_NAMES | TIME_NAME_QUALIFIERS


def split_words(name: str) -> set[str]:
    """The words of a name, in small letters."""
    return {word.lower() for word in WORD_PATTERN.findall(name)}


NOT_A_TIME_RANK = 9


def _rank_as_time(name: str, values: Sequence[Any]) -> int:
    """Small for what is surely the time: moments before numbers, these before days, and texts last; else `NO`."""
    kind, named = infer_time_format(values), is_time_name(name)
    if kind in (ISO_FORMAT, ZONED_ISO_FORMAT):
        days = all(len(value) == len("2024-05-01") for value in values)
        return (2 if days else 0) if named else 5
    if not named or kind is None:
        return NOT_A_TIME_RANK
    if kind == TEXT_FORMAT:
        return 4
    if "t" in split_words(name):  # which may be a temperature
        return 3 if len(values) > 2 and _is_evenly_spaced(values) else NOT_A_TIME_RANK
    return 1 if _is_increasing(values) else NOT_A_TIME_RANK


def _find_key_column(values_by_name: dict[str, list[Any]], spec: ColumnSpec, time: str | None) -> str | None:
    if spec.key is not None:
        return None if spec.key == NO_COLUMN else spec.key
    for name, values in values_by_name.items():
        words = split_words(name)
        named = len(words - KEY_NAME_QUALIFIERS) == 1 and words - KEY_NAME_QUALIFIERS <= KEY_NAMES
        if name != time and name not in (spec.columns or ()) and named and values:
            all_strings = all(isinstance(value, str) for value in values)
            all_integers = bool(words & KEY_NAME_QUALIFIERS) and all(
                type(value) is int for value in values
            )  # sensor_id: 17
            if all_strings or all_integers:
                return name
    return None


def _get_ignore_reason(name: str, values: Sequence[Any]) -> str | None:
    """Why a column is not watched; None if it is."""
    if not values:
        return "is empty"
    if isinstance(values[0], dict | list):
        return "is nested"
    if not is_number(values[0]):
        return "holds texts" if isinstance(values[0], str) else "holds no numbers"
    if _normalize_name(name) in COUNTER_NAMES and len(values) > 1 and _is_counter(values):
        return "counts the rows"
    return None


def _check_numeric(name: str, values: Sequence[Any]) -> None:
    if values and not is_number(values[0]):
        raise InvalidInputError(f"column {name!r} holds {shorten(values[0])!r}, not numbers")


def _suggest_keys(
    values_by_name: dict[str, list[Any]], ignored: dict[str, str], time: str | None, spec: ColumnSpec
) -> tuple[str, ...]:
    """Which columns may be keys: texts that repeat themselves, or where times do, whole numbers that do."""
    repeated = time is not None and len(set(map(str, values_by_name[time]))) <= len(values_by_name[time]) / 2
    hints = []
    for name, values in values_by_name.items():
        distinct = len(set(map(str, values)))
        is_string_key = ignored.get(name) == "holds texts" and 1 < distinct <= len(values) / 4
        is_integer_key = (
            repeated
            and name != time
            and 1 < distinct <= len(values) / 2
            and all(type(value) is int for value in values)
        )
        if is_string_key or (is_integer_key and name not in (spec.columns or ())):
            hints.append(f"if each {name!r} is a stream of its own, say --key {name}")
    return tuple(hints)


def _normalize_name(name: str) -> str:
    return name.strip().lower()


def _is_evenly_spaced(values: Sequence[float]) -> bool:
    """Whether values grow by the same step, roundings aside."""
    step = values[1] - values[0]
    return step > 0 and all(abs(after - before - step) <= 1e-6 * step for before, after in pairwise(values))


def _is_increasing(values: Sequence[float]) -> bool:
    """Whether values rise; of many, a few may be late, or there may be several streams one after another."""
    finite = [value for value in values if abs(value) < 1e300]
    falls = sum(after < before for before, after in pairwise(finite))
    return falls <= (len(finite) // 5 if len(finite) > 10 else 0)


def _is_counter(values: Sequence[float]) -> bool:
    return all(after == before + 1 for before, after in pairwise(values))
