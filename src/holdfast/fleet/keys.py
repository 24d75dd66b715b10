"""Keys and rows. The keys of a fleet are all texts or all whole numbers: the first one decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.errors import InvalidTypeError
from holdfast.fleet.found import NO_MISSING_FLAGS, NO_ROW, Flags, Integers, Lookup
from holdfast.fleet.integer_table import IntHashTable
from holdfast.fleet.text_table import StrTable

Key = str | int
MIN_INT_KEY, MAX_INT_KEY = -(2**63), 2**63 - 1  # whole numbers
INT64_REQUIREMENT = "have to fit in 64 bits"


def normalize_key(key: object) -> Key | None:
    """A key as it is kept; None for what can be none.

    >>> as_key(np.int8(3)), as_key("a"), as_key(True), as_key(2**70)
    (3, 'a', None, None)
    """
    if isinstance(key, str):
        return str.__str__(key) if is_valid_utf8(key) else None
    if isinstance(key, bool) or not isinstance(key, int | np.integer) or not MIN_INT_KEY <= key <= MAX_INT_KEY:
        return None
    return int(key)


def is_valid_utf8(text: str) -> bool:
    """Whether UTF-8 can write it to a file; halves of characters (surrogates) it cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


@dataclass(frozen=True, eq=False)
class IntKeys:
    """Keys of a call that are whole numbers; `missing` marks those that are none, and may be empty."""

    values: Integers
    missing: Flags

    @classmethod
    def from_array(cls, keys: npt.NDArray[Any]) -> IntKeys:
        """The keys in an array of numbers; floats are what becomes of whole numbers where some are missing.

        >>> Numbers.of(np.array([3.0, np.nan])).missing
        array([False,  True])
        """
        if keys.dtype.kind != "f":
            if keys.dtype.kind == "u" and len(keys) and keys.max() > np.iinfo(np.int64).max:
                raise InvalidTypeError(f"keys: whole numbers {INT64_REQUIREMENT}, got {keys.max()}; make texts of them")
            return cls(np.ascontiguousarray(keys, np.int64), NO_MISSING_FLAGS)
        missing = np.isnan(keys)
        integers = np.where(missing, 0.0, keys)
        if (integers != np.floor(integers)).any():
            raise InvalidTypeError("keys: expected texts or whole numbers, got numbers with fractions")
        if not (np.abs(integers) < 2.0**53).all():
            raise InvalidTypeError(
                "keys: floats of 2^53 and more are not exact: give whole numbers, or make texts of them"
            )
        return cls(integers.astype(np.int64), missing)

    def __len__(self) -> int:
        return len(self.values)

    def first_missing(self) -> int:
        """The first that is none, −1 if all are there."""
        return int(self.missing.argmax()) if self.missing.any() else -1

    def slice(self, start: int, stop: int) -> IntKeys:
        """Some of them."""
        return IntKeys(self.values[start:stop], self.missing[start:stop])

    def take(self, order: Integers) -> IntKeys:
        """In another order."""
        return IntKeys(self.values[order], self.missing[order] if len(self.missing) else self.missing)


@dataclass(frozen=True, eq=False)
class StrKeys:
    """Keys of a call that are texts (None or NaN: missing), each as it is or, with codes, by its place in the list."""

    values: Sequence[Any]
    codes: Integers | None = None

    def __len__(self) -> int:
        return len(self.values) if self.codes is None else len(self.codes)

    def first_missing(self) -> int:
        """The first that is none, −1 if all are there."""
        codes = range(len(self)) if self.codes is None else self.codes.tolist()
        present = (code >= 0 and isinstance(self.values[code], str) for code in codes)
        return next((i for i, is_present in enumerate(present) if not is_present), -1)

    def slice(self, start: int, stop: int) -> StrKeys:
        """Some of them."""
        return StrKeys(self.values[start:stop]) if self.codes is None else StrKeys(self.values, self.codes[start:stop])

    def take(self, order: Integers) -> StrKeys:
        """In another order."""
        if self.codes is None:
            return StrKeys([self.values[i] for i in order.tolist()])
        return StrKeys(self.values, self.codes[order])


class KeyIndex:
    """Which row each key has, and which key each row."""

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
        """The rows in use, in the order of `iter`."""
        return np.array([row for row, key in enumerate(self._key_of_row) if key is not None], np.int64)

    @property
    def n_rows(self) -> int:
        """Rows in use and free."""
        return len(self._key_of_row)

    def get_row(self, key: Any) -> int | None:
        """The row of a key, None if it has none."""
        return None if self._table is None else self._table.get_row(key)

    def get_key(self, row: int) -> Key:
        """The key of a row that is in use."""
        key = self._key_of_row[row]
        assert key is not None
        return key

    def look_up(self, keys: IntKeys | StrKeys) -> Lookup:
        """The rows of the keys of a call. Unknown ones must be given rows by `add`, or be forgotten by `forget`."""
        if not len(keys.values):  # all are missing: of what kind they would have been does not matter
            return Lookup(np.full(len(keys), NO_ROW), [], np.zeros(0, np.int64))
        if isinstance(keys, IntKeys):
            self._table = self._table or IntHashTable()
            if isinstance(self._table, StrTable):
                raise InvalidTypeError(f"the keys of this fleet are texts, got whole numbers such as {keys.values[0]}")
            return self._table.look_up(keys.values, keys.missing)
        self._table = self._table or StrTable()
        if isinstance(self._table, IntHashTable):
            raise InvalidTypeError(f"the keys of this fleet are whole numbers, got texts such as {keys.values[0]!r}")
        if keys.codes is None:
            return self._table.look_up(keys.values)
        return self._table.look_up_codes(keys.codes, keys.values)

    def set_key_type(self, keys: Sequence[Key]) -> None:
        """Keys of this kind are to be added, without having been looked up."""
        if len(keys):
            self._table = StrTable() if isinstance(keys[0], str) else IntHashTable()

    def add(self, keys: Sequence[Key]) -> Integers:
        """Gives rows to keys that have been looked up and were unknown: those that are free, then further ones."""
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
        """Keys that have been looked up and were unknown are not to be added after all."""
        if self._table is not None and len(unknown):
            self._table.remove(unknown)  # type: ignore[arg-type]

    def release_row(self, row: int) -> None:
        """The key of a row is forgotten, and the row free."""
        self.discard_pending([self.get_key(row)])
        self._key_of_row[row] = None
        self._free_rows.append(row)
