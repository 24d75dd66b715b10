"""Which columns of the records are values, which one is the time, which one the key: as told, or as they look."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from holdfast.errors import BadInputError
from holdfast.streams.refusals import shortened
from holdfast.streams.times import ISO, TEXT, ZONED, is_number, kind_of

NONE = "none"  # said in place of a name: there is no such column
WORD = re.compile(r"[A-ZÄÖÜ]?[^\W\d_A-ZÄÖÜ]+|[A-ZÄÖÜ]+")  # of a name: also of one like sensorId
TIME_NAMES = {"time", "timestamp", "datetime", "date", "ts", "epoch", "when", "zeit", "zeitstempel", "datum", "t"}
BESIDE_TIME = {"stamp", "s", "sec", "seconds", "ms", "us", "ns", "min", "h", "utc", "gmt", "unix", "local", "iso"}
KEY_NAMES = {
    *("key", "sensor", "device", "machine", "host", "station", "series", "unit", "symbol", "ticker", "tag", "metric"),
    *("channel", "customer", "account", "meter", "asset", "pump", "engine", "node", "instance", "source", "stream"),
    "hostname",
}
BESIDE_KEY = {"id", "uid", "uuid", "no", "nr", "number", "code", "name"}
COUNTER_NAMES = {"", "index", "row", "id", "n", "no", "nr", "#", "unnamed: 0", "line"}


@dataclass(frozen=True)
class Wanted:
    """What the user says about columns; None is left to be found out, "none" means that there is none."""

    columns: tuple[str, ...] | None = None
    key: str | None = None
    time: str | None = None


@dataclass(frozen=True)
class Columns:
    """What was understood: the columns of the values, that of the time and how times are given, that of the key.

    left_out: the other columns, each with the reason. hints: what the user may want to know.
    """

    values: tuple[str, ...]
    time: str | None = None
    time_kind: str | None = None
    key: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    hints: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return self._as_json

    @cached_property
    def _as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, kept: dict[str, Any]) -> Columns:
        """What `as_json` was called on."""
        return cls(**kept | {"values": tuple(kept["values"]), "hints": tuple(kept["hints"])})

    @property
    def needed(self) -> tuple[str, ...]:
        """Those that have to be read, values first."""
        return tuple(dict.fromkeys([*self.values, *(one for one in (self.time, self.key) if one is not None)]))

    @property
    def wanted(self) -> Wanted:
        """To ask for the same columns in other records."""
        return Wanted(self.values, self.key or NONE, self.time or NONE)


def columns_at(position: Any) -> Columns | None:
    """What had been understood at a position of a source, if anything."""
    kept = position.get("columns") if isinstance(position, dict) else None
    return None if kept is None else Columns.of_json(kept)


def understand(sample: Sequence[dict[str, Any]], wanted: Wanted) -> Columns:
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
    told = [*(wanted.columns or ()), *(name for name in (wanted.key, wanted.time) if name not in (None, NONE))]
    unknown = [name for name in told if name not in seen]
    if unknown:
        raise BadInputError(f"there is no column {', '.join(map(repr, unknown))}; there are {listed(list(seen))}")
    names += [name for name in told if name not in names]
    kinds = {name: _usual([record[name] for record in sample if record.get(name) is not None]) for name in names}
    time = _time_column(kinds, wanted)
    key = _key_column(kinds, wanted, time)
    left_out: dict[str, str] = {}
    if wanted.columns is not None:
        values = wanted.columns
        for name in values:
            _require_numbers(name, kinds[name])
            if name in (key, time):
                raise BadInputError(f"column {name!r} cannot be a value and the {'key' if name == key else 'time'}")
        if len(set(values)) < len(values):
            raise BadInputError(f"each column once: got {listed(values)}")
    else:
        candidates = [name for name in names if name not in (time, key)]
        left_out = {name: why for name in candidates if (why := _why_no_value(name, kinds[name]))}
        values = tuple(name for name in candidates if name not in left_out)
    if not values:
        raise BadInputError(f"no column holds numbers to watch; there are {listed(names)}")
    hints = _hints(kinds, left_out, time, wanted) if key is None and wanted.key is None else ()
    time_kind = None if time is None else kind_of(kinds[time]) or TEXT
    return Columns(tuple(values), time, time_kind, key, left_out, hints)


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names in a row; where there are many, not all of them.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more


def _usual(values: Sequence[Any]) -> list[Any]:
    """Those of the kind that most are of: numbers, texts, or something else."""
    groups: dict[str, list[Any]] = {"numbers": [], "texts": [], "others": []}
    for one in values:
        groups["numbers" if is_number(one) else "texts" if isinstance(one, str) else "others"].append(one)
    return max(groups.values(), key=len)


def _time_column(kinds: dict[str, list[Any]], wanted: Wanted) -> str | None:
    if wanted.time is not None:
        return None if wanted.time == NONE else wanted.time
    free = [name for name in kinds if name not in (wanted.columns or ()) and name != wanted.key]
    ranks = {name: _likeness_to_time(name, kinds[name]) for name in free}
    return min(free, key=lambda name: ranks[name], default=None) if min(ranks.values(), default=NO) < NO else None


def is_time_name(name: str) -> bool:
    """Whether a column of this name may well be the time.

    >>> [is_time_name(name) for name in ("Time (s)", "timestamp_ms", "Date/Time", "t [°C]", "uptime")]
    [True, True, True, False, False]
    """
    words = words_of(name)
    return bool(words & TIME_NAMES) and words <= TIME_NAMES | BESIDE_TIME


def words_of(name: str) -> set[str]:
    """The words of a name, in small letters."""
    return {word.lower() for word in WORD.findall(name)}


NO = 9


def _likeness_to_time(name: str, values: Sequence[Any]) -> int:
    """Small for what is surely the time: moments before numbers, these before days, and texts last; else `NO`."""
    kind, named = kind_of(values), is_time_name(name)
    if kind in (ISO, ZONED):
        days = all(len(one) == len("2024-05-01") for one in values)
        return (2 if days else 0) if named else 5
    if not named or kind is None:
        return NO
    if kind == TEXT:
        return 4
    if "t" in words_of(name):  # which may be a temperature
        return 3 if len(values) > 2 and _is_even(values) else NO
    return 1 if _rises(values) else NO


def _key_column(kinds: dict[str, list[Any]], wanted: Wanted, time: str | None) -> str | None:
    if wanted.key is not None:
        return None if wanted.key == NONE else wanted.key
    for name, values in kinds.items():
        words = words_of(name)
        named = len(words - BESIDE_KEY) == 1 and words - BESIDE_KEY <= KEY_NAMES
        if name != time and name not in (wanted.columns or ()) and named and values:
            texts = all(isinstance(one, str) for one in values)
            numbered = bool(words & BESIDE_KEY) and all(type(one) is int for one in values)  # sensor_id: 17
            if texts or numbered:
                return name
    return None


def _why_no_value(name: str, values: Sequence[Any]) -> str | None:
    """Why a column is not watched; None if it is."""
    if not values:
        return "is empty"
    if isinstance(values[0], dict | list):
        return "is nested"
    if not is_number(values[0]):
        return "holds texts" if isinstance(values[0], str) else "holds no numbers"
    if _plain(name) in COUNTER_NAMES and len(values) > 1 and _counts(values):
        return "counts the rows"
    return None


def _require_numbers(name: str, values: Sequence[Any]) -> None:
    if values and not is_number(values[0]):
        raise BadInputError(f"column {name!r} holds {shortened(values[0])!r}, not numbers")


def _hints(kinds: dict[str, list[Any]], left_out: dict[str, str], time: str | None, wanted: Wanted) -> tuple[str, ...]:
    """Which columns may be keys: texts that repeat themselves, or where times do, whole numbers that do."""
    repeated = time is not None and len(set(map(str, kinds[time]))) <= len(kinds[time]) / 2
    hints = []
    for name, values in kinds.items():
        distinct = len(set(map(str, values)))
        texts = left_out.get(name) == "holds texts" and 1 < distinct <= len(values) / 4
        numbers = (
            repeated and name != time and 1 < distinct <= len(values) / 2 and all(type(one) is int for one in values)
        )
        if texts or (numbers and name not in (wanted.columns or ())):
            hints.append(f"if each {name!r} is a stream of its own, say --key {name}")
    return tuple(hints)


def _plain(name: str) -> str:
    return name.strip().lower()


def _is_even(values: Sequence[float]) -> bool:
    """Whether values grow by the same step, roundings aside."""
    step = values[1] - values[0]
    return step > 0 and all(abs(after - before - step) <= 1e-6 * step for before, after in pairwise(values))


def _rises(values: Sequence[float]) -> bool:
    """Whether values rise; of many, a few may be late, or there may be several streams one after another."""
    usual = [one for one in values if abs(one) < 1e300]
    falls = sum(after < before for before, after in pairwise(usual))
    return falls <= (len(usual) // 5 if len(usual) > 10 else 0)


def _counts(values: Sequence[float]) -> bool:
    return all(after == before + 1 for before, after in pairwise(values))
