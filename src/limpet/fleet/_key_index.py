"""Map keys, all strings or all integers as the first key of the fleet, to rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import jit_entry_point, kernel
from limpet.exceptions import InvalidTypeError

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NO_MISSING_FLAGS: Flags = np.zeros(0, np.bool_)
NO_ROW, UNKNOWN_ROW = -1, -2  # of a missing key; of the i-th unknown key: UNKNOWN_ROW − i


class Lookup(NamedTuple):
    """Rows of keys: NO_ROW if missing, UNKNOWN_ROW − i for the i-th unknown key."""

    rows: Integers
    unknown_keys: Sequence[Any]  # in the order of their first occurrence
    first_index: Integers  # of each unknown key in the call


# Integers → rows: a hash table with open addressing, in one array

KEY_COLUMN, ROW_COLUMN = 0, 1  # of a slot
EMPTY_SLOT, REMOVED_SLOT = np.int64(-1), np.int64(-2)  # in the row column of slots without a key
HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
MIN_TABLE_SLOTS = 1 << 13
LOOKUP_CHUNK_KEYS = 1 << 12  # looked up between checks of the free slots


@kernel
def first_slot(key: int, n_slots: int) -> int:
    """Return the first slot to probe; the number of slots is a power of two."""
    hash_ = (np.uint64(key) ^ (np.uint64(key) >> np.uint64(32))) * HASH_MULTIPLIER
    return np.int64(hash_ ^ (hash_ >> np.uint64(32))) & (n_slots - 1)  # type: ignore[return-value]


@kernel
def find_slot(slots: Integers, key: int) -> int:
    """Return the slot of a key; if unknown, −1 − the slot in which to insert it."""
    slot, free_slot = first_slot(key, len(slots)), -1
    while slots[slot, ROW_COLUMN] != EMPTY_SLOT:
        if slots[slot, ROW_COLUMN] == REMOVED_SLOT:
            free_slot = slot if free_slot < 0 else free_slot
        elif slots[slot, KEY_COLUMN] == key:
            return slot
        slot = (slot + 1) & (len(slots) - 1)
    return -1 - (slot if free_slot < 0 else free_slot)


def _look_up(slots, keys, missing, start, stop, rows, unknown_keys, first_index, n_unknown):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        if len(missing) > 0 and missing[i]:
            rows[i] = NO_ROW
            continue
        slot = find_slot(slots, keys[i])
        if slot < 0:
            slot = -1 - slot
            slots[slot, KEY_COLUMN], slots[slot, ROW_COLUMN] = keys[i], UNKNOWN_ROW - 1 - n_unknown
            unknown_keys[n_unknown], first_index[n_unknown] = keys[i], i
            n_unknown += 1
        rows[i] = slots[slot, ROW_COLUMN] if slots[slot, ROW_COLUMN] >= 0 else slots[slot, ROW_COLUMN] + 1
    return n_unknown


def _put(slots, keys, rows):  # type: ignore[no-untyped-def]
    added = 0
    for i in range(len(keys)):
        slot = find_slot(slots, keys[i])
        if slot < 0:
            slot = -1 - slot
            added += slots[slot, ROW_COLUMN] == EMPTY_SLOT
        slots[slot, KEY_COLUMN], slots[slot, ROW_COLUMN] = keys[i], rows[i]
    return added


def _get_row(slots, key):  # type: ignore[no-untyped-def]
    slot = find_slot(slots, key)
    return slots[slot, ROW_COLUMN] if slot >= 0 else NO_ROW


_compiled_look_up = jit_entry_point(_look_up, releases_gil=True)
_compiled_put = jit_entry_point(_put, releases_gil=True)
_compiled_get_row = jit_entry_point(_get_row)


class IntHashTable:
    """Rows of integer keys."""

    def __init__(self) -> None:
        self._clear(MIN_TABLE_SLOTS)

    def _clear(self, n_slots: int) -> None:
        self.slots = np.zeros((n_slots, 2), np.int64)
        self.slots[:, ROW_COLUMN] = EMPTY_SLOT
        self.n_used_slots = 0  # including removed ones

    def get_row(self, key: Any) -> int | None:
        if not isinstance(key, int) or isinstance(key, bool):
            return None
        row = int(_compiled_get_row(self.slots, key))
        return row if row >= 0 else None

    def look_up(self, keys: Integers, missing: Flags) -> Lookup:
        """Return the rows of keys; `missing` may be empty.

        Unknown keys are added to the table: the caller must `put` their rows or `remove` them.
        """
        rows, unknown_keys, first_index = (np.empty(len(keys), np.int64) for _ in range(3))
        n_unknown = 0
        for start in range(0, len(keys), LOOKUP_CHUNK_KEYS):
            self._reserve(LOOKUP_CHUNK_KEYS)
            stop, n_before = min(start + LOOKUP_CHUNK_KEYS, len(keys)), n_unknown
            n_unknown = _compiled_look_up(
                self.slots, keys, missing, start, stop, rows, unknown_keys, first_index, n_before
            )
            self.n_used_slots += n_unknown - n_before
        return Lookup(rows, unknown_keys[:n_unknown].tolist(), first_index[:n_unknown].copy())

    def put(self, keys: Sequence[int] | Integers, rows: Integers) -> None:
        self._reserve(len(keys))
        self.n_used_slots += _compiled_put(self.slots, np.asarray(keys, np.int64), rows)

    def remove(self, keys: Sequence[int]) -> None:
        _compiled_put(self.slots, np.array(keys, np.int64), np.full(len(keys), REMOVED_SLOT))

    def _reserve(self, n_new: int) -> None:
        if 2 * (self.n_used_slots + n_new) > len(self.slots):
            occupied = (self.slots[:, ROW_COLUMN] != EMPTY_SLOT) & (self.slots[:, ROW_COLUMN] != REMOVED_SLOT)
            keys, rows = self.slots[occupied].T.copy()
            n_slots = len(self.slots)
            while 2 * (len(keys) + n_new) > n_slots:
                n_slots *= 2
            self._clear(n_slots)
            self.n_used_slots = _compiled_put(self.slots, keys, rows)


# Missing keys: None, NaN, and the null values of libraries

NULL_TYPE_NAMES = frozenset({"NoneType", "NAType", "NaTType", "MaskedConstant"})  # names avoid imports


def is_null_type(key_type: type) -> bool:
    """Return whether a type is one of missing values: None, NA, NaT, numpy's masked."""
    return key_type.__name__ in NULL_TYPE_NAMES


def is_missing(key: Any) -> bool:
    """Return whether a key is missing.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    return is_null_type(type(key)) or (isinstance(key, float | np.floating) and bool(key != key))


# Strings → rows


class StrTable:
    """Rows of string keys."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}

    def get_row(self, key: Any) -> int | None:
        return self.rows.get(key) if isinstance(key, str) else None

    def look_up(self, strings: Sequence[Any]) -> Lookup:
        """Return the rows of strings; other values must be missing (None, NaN, …)."""
        rows = np.fromiter(map(self.rows.get, strings, repeat(NO_ROW)), np.int64, len(strings))
        unknown_numbers: dict[str, int] = {}
        first_index: list[int] = []
        for i in np.flatnonzero(rows == NO_ROW).tolist():
            string = strings[i]
            if isinstance(string, str):
                if string not in unknown_numbers:
                    unknown_numbers[str.__str__(string)] = len(unknown_numbers)  # a subclass may override str()
                    first_index.append(i)
                rows[i] = UNKNOWN_ROW - unknown_numbers[string]
            elif not is_missing(string):
                raise InvalidTypeError(
                    f"keys: must be strings, as this fleet has, got {string!r} ({type(string).__name__})."
                )
        return Lookup(rows, list(unknown_numbers), np.array(first_index, np.int64))

    def look_up_codes(self, codes: Integers, strings: Sequence[Any]) -> Lookup:
        """Return the rows of keys from codes: indices in strings, −1 for a missing key."""
        occurs = np.zeros(len(strings), np.bool_)
        occurs[codes[codes >= 0]] = True
        used = [string if is_used else None for string, is_used in zip(strings, occurs.tolist(), strict=True)]
        result = self.look_up(used)
        rows = np.append(result.rows, NO_ROW)[codes]
        positions = np.flatnonzero(rows <= UNKNOWN_ROW)[::-1]
        first_index = np.empty(len(result.unknown_keys), np.int64)
        first_index[UNKNOWN_ROW - rows[positions]] = positions  # written last: the first of the call
        order = np.argsort(first_index)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        rows[positions] = UNKNOWN_ROW - rank[UNKNOWN_ROW - rows[positions]]
        return Lookup(rows, [result.unknown_keys[i] for i in order.tolist()], first_index[order])

    def put(self, keys: Sequence[str], rows: Iterable[int]) -> None:
        self.rows.update(zip(keys, rows, strict=True))

    def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.rows.pop(key, None)


# Keys

Key = str | int
MIN_INT_KEY, MAX_INT_KEY = -(2**63), 2**63 - 1
INT64_REQUIREMENT = "keys: integers must fit in 64 bits"


def normalize_key(key: object) -> Key | None:
    """Return a key as str or int; None if it is not a valid key.

    >>> normalize_key(np.int8(3)), normalize_key("a"), normalize_key(True), normalize_key(2**70)
    (3, 'a', None, None)
    """
    if isinstance(key, str):
        return str.__str__(key) if is_valid_utf8(key) else None
    if isinstance(key, bool) or not isinstance(key, int | np.integer) or not MIN_INT_KEY <= key <= MAX_INT_KEY:
        return None
    return int(key)


def is_valid_utf8(text: str) -> bool:
    """Return whether a string can be encoded in UTF-8: it has no surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


@dataclass(frozen=True, eq=False)
class IntKeys:
    """Integer keys of a call; `missing` flags the missing ones and may be empty."""

    values: Integers
    missing: Flags

    @classmethod
    def from_array(cls, keys: npt.NDArray[Any]) -> IntKeys:
        """Make keys from numbers; libraries store integers with missing ones as floats.

        >>> IntKeys.from_array(np.array([3.0, np.nan])).missing
        array([False,  True])
        """
        if keys.dtype.kind != "f":
            if keys.dtype.kind == "u" and len(keys) and keys.max() > np.iinfo(np.int64).max:
                raise InvalidTypeError(f"{INT64_REQUIREMENT}, got {keys.max()}. Convert them to strings.")
            return cls(np.ascontiguousarray(keys, np.int64), NO_MISSING_FLAGS)
        missing = np.isnan(keys)
        integers = np.where(missing, 0.0, keys)
        if (integers != np.floor(integers)).any():
            raise InvalidTypeError("keys: must be strings or integers, got numbers with fractions.")
        if not (np.abs(integers) < 2.0**53).all():
            raise InvalidTypeError("keys: floats must be less than 2^53 to be exact. Use integers or strings.")
        return cls(integers.astype(np.int64), missing)

    def __len__(self) -> int:
        return len(self.values)

    def first_missing(self) -> int:
        """Return the index of the first missing key, −1 if none is missing."""
        return int(self.missing.argmax()) if self.missing.any() else -1

    def slice(self, start: int, stop: int) -> IntKeys:
        return IntKeys(self.values[start:stop], self.missing[start:stop])

    def take(self, order: Integers) -> IntKeys:
        return IntKeys(self.values[order], self.missing[order] if len(self.missing) else self.missing)


@dataclass(frozen=True, eq=False)
class StrKeys:
    """String keys of a call, or codes in a list of strings; None, NaN are missing."""

    values: Sequence[Any]
    codes: Integers | None = None

    def __len__(self) -> int:
        return len(self.values) if self.codes is None else len(self.codes)

    def first_missing(self) -> int:
        codes = range(len(self)) if self.codes is None else self.codes.tolist()
        present = (code >= 0 and isinstance(self.values[code], str) for code in codes)
        return next((i for i, is_present in enumerate(present) if not is_present), -1)

    def slice(self, start: int, stop: int) -> StrKeys:
        return StrKeys(self.values[start:stop]) if self.codes is None else StrKeys(self.values, self.codes[start:stop])

    def take(self, order: Integers) -> StrKeys:
        if self.codes is None:
            return StrKeys([self.values[i] for i in order.tolist()])
        return StrKeys(self.values, self.codes[order])


class KeyIndex:
    """The row of each key, and the key of each row."""

    def __init__(self) -> None:
        self._table: IntHashTable | StrTable | None = None
        self._key_of_row: list[Key | None] = []
        self._free_rows: list[int] = []

    def __len__(self) -> int:
        return len(self._key_of_row) - len(self._free_rows)

    def __iter__(self) -> Iterator[Key]:
        return (key for key in self._key_of_row if key is not None)

    @property
    def rows(self) -> Integers:
        """The rows in use, in the order of iteration."""
        return np.array([row for row, key in enumerate(self._key_of_row) if key is not None], np.int64)

    @property
    def n_rows(self) -> int:
        """The number of rows, in use or free."""
        return len(self._key_of_row)

    def get_row(self, key: Any) -> int | None:
        return None if self._table is None else self._table.get_row(key)

    def get_key(self, row: int) -> Key:
        key = self._key_of_row[row]
        assert key is not None
        return key

    def look_up(self, keys: IntKeys | StrKeys) -> Lookup:
        """Return the rows of keys; callers must `add` or `discard_pending` unknown ones."""
        if not len(keys.values):  # all are missing, and fit any fleet
            return Lookup(np.full(len(keys), NO_ROW), [], np.zeros(0, np.int64))
        if isinstance(keys, IntKeys):
            self._table = self._table or IntHashTable()
            if isinstance(self._table, StrTable):
                example = keys.values[0]
                raise InvalidTypeError(f"keys: must be strings, as this fleet has, got integers such as {example}.")
            return self._table.look_up(keys.values, keys.missing)
        self._table = self._table or StrTable()
        if isinstance(self._table, IntHashTable):
            example = keys.values[0]
            raise InvalidTypeError(f"keys: must be integers, as this fleet has, got strings such as {example!r}.")
        if keys.codes is None:
            return self._table.look_up(keys.values)
        return self._table.look_up_codes(keys.codes, keys.values)

    def set_key_type(self, keys: Sequence[Key]) -> None:
        """Set the key type, so that keys can be added without a look-up."""
        if len(keys):
            self._table = StrTable() if isinstance(keys[0], str) else IntHashTable()

    def add(self, keys: Sequence[Key]) -> Integers:
        """Assign rows to unknown keys, free rows first."""
        assert self._table is not None
        reused = [self._free_rows.pop() for _ in range(min(len(self._free_rows), len(keys)))]
        appended = range(len(self._key_of_row), len(self._key_of_row) + len(keys) - len(reused))
        for row, key in zip(reused, keys, strict=False):
            self._key_of_row[row] = key
        self._key_of_row += keys[len(reused) :]
        rows = np.array([*reused, *appended], np.int64)
        self._table.put(keys, rows if isinstance(self._table, IntHashTable) else rows.tolist())  # type: ignore[arg-type]
        return rows

    def discard_pending(self, unknown: Sequence[Key]) -> None:
        """Remove unknown keys of a look-up, which are not added."""
        if self._table is not None and len(unknown):
            self._table.remove(unknown)  # type: ignore[arg-type]

    def release_row(self, row: int) -> None:
        """Remove the key of a row and free the row."""
        self.discard_pending([self.get_key(row)])
        self._key_of_row[row] = None
        self._free_rows.append(row)
