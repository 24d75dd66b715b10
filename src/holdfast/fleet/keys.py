"""Keys and rows. The keys of a fleet are all texts or all whole numbers: the first one decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.errors import WrongTypeError
from holdfast.fleet.found import NOBODY, NONE_MISSING, Flags, Found, Integers
from holdfast.fleet.integer_table import IntegerTable
from holdfast.fleet.text_table import TextTable

Key = str | int
LEAST, MOST = -(2**63), 2**63 - 1  # whole numbers
TOO_LARGE = "have to fit in 64 bits"


def as_key(key: object) -> Key | None:
    """A key as it is kept; None for what can be none.

    >>> as_key(np.int8(3)), as_key("a"), as_key(True), as_key(2**70)
    (3, 'a', None, None)
    """
    if isinstance(key, str):
        return str.__str__(key) if is_writable(key) else None
    if isinstance(key, bool) or not isinstance(key, int | np.integer) or not LEAST <= key <= MOST:
        return None
    return int(key)


def is_writable(text: str) -> bool:
    """Whether UTF-8 can write it to a file; halves of characters (surrogates) it cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Keys of a call that are whole numbers; `missing` marks those that are none, and may be empty."""

    values: Integers
    missing: Flags

    @classmethod
    def of(cls, keys: npt.NDArray[Any]) -> Numbers:
        """The keys in an array of numbers; floats are what becomes of whole numbers where some are missing.

        >>> Numbers.of(np.array([3.0, np.nan])).missing
        array([False,  True])
        """
        if keys.dtype.kind != "f":
            if keys.dtype.kind == "u" and len(keys) and keys.max() > np.iinfo(np.int64).max:
                raise WrongTypeError(f"keys: whole numbers {TOO_LARGE}, got {keys.max()}; make texts of them")
            return cls(np.ascontiguousarray(keys, np.int64), NONE_MISSING)
        missing = np.isnan(keys)
        whole = np.where(missing, 0.0, keys)
        if (whole != np.floor(whole)).any():
            raise WrongTypeError("keys: expected texts or whole numbers, got numbers with fractions")
        if not (np.abs(whole) < 2.0**53).all():
            raise WrongTypeError(
                "keys: floats of 2^53 and more are not exact: give whole numbers, or make texts of them"
            )
        return cls(whole.astype(np.int64), missing)

    def __len__(self) -> int:
        return len(self.values)

    def first_missing(self) -> int:
        """The first that is none, −1 if all are there."""
        return int(self.missing.argmax()) if self.missing.any() else -1

    def piece(self, begin: int, end: int) -> Numbers:
        """Some of them."""
        return Numbers(self.values[begin:end], self.missing[begin:end])

    def take(self, order: Integers) -> Numbers:
        """In another order."""
        return Numbers(self.values[order], self.missing[order] if len(self.missing) else self.missing)


@dataclass(frozen=True, eq=False)
class Texts:
    """Keys of a call that are texts (None or NaN: missing), each as it is or, with codes, by its place in the list."""

    values: Sequence[Any]
    codes: Integers | None = None

    def __len__(self) -> int:
        return len(self.values) if self.codes is None else len(self.codes)

    def first_missing(self) -> int:
        """The first that is none, −1 if all are there."""
        codes = range(len(self)) if self.codes is None else self.codes.tolist()
        there = (code >= 0 and isinstance(self.values[code], str) for code in codes)
        return next((i for i, one in enumerate(there) if not one), -1)

    def piece(self, begin: int, end: int) -> Texts:
        """Some of them."""
        return Texts(self.values[begin:end]) if self.codes is None else Texts(self.values, self.codes[begin:end])

    def take(self, order: Integers) -> Texts:
        """In another order."""
        if self.codes is None:
            return Texts([self.values[i] for i in order.tolist()])
        return Texts(self.values, self.codes[order])


class Keys:
    """Which row each key has, and which key each row."""

    def __init__(self) -> None:
        self._table: IntegerTable | TextTable | None = None
        self._of_row: list[Key | None] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._of_row) - len(self._free)

    def __iter__(self) -> Iterator[Key]:
        return (key for key in self._of_row if key is not None)

    @property
    def rows(self) -> Integers:
        """The rows in use, in the order of `iter`."""
        return np.array([row for row, key in enumerate(self._of_row) if key is not None], np.int64)

    @property
    def n_rows(self) -> int:
        """Rows in use and free."""
        return len(self._of_row)

    def row_of(self, key: Any) -> int | None:
        """The row of a key, None if it has none."""
        return None if self._table is None else self._table.row_of(key)

    def of_row(self, row: int) -> Key:
        """The key of a row that is in use."""
        key = self._of_row[row]
        assert key is not None
        return key

    def look_up(self, asked: Numbers | Texts) -> Found:
        """The rows of the keys of a call. Unknown ones must be given rows by `add`, or be forgotten by `forget`."""
        if not len(asked.values):  # all are missing: of what kind they would have been does not matter
            return Found(np.full(len(asked), NOBODY), [], np.zeros(0, np.int64))
        if isinstance(asked, Numbers):
            self._table = self._table or IntegerTable()
            if isinstance(self._table, TextTable):
                raise WrongTypeError(f"the keys of this fleet are texts, got whole numbers such as {asked.values[0]}")
            return self._table.look_up(asked.values, asked.missing)
        self._table = self._table or TextTable()
        if isinstance(self._table, IntegerTable):
            raise WrongTypeError(f"the keys of this fleet are whole numbers, got texts such as {asked.values[0]!r}")
        if asked.codes is None:
            return self._table.look_up(asked.values)
        return self._table.look_up_coded(asked.codes, asked.values)

    def begin(self, keys: Sequence[Key]) -> None:
        """Keys of this kind are to be added, without having been looked up."""
        if len(keys):
            self._table = TextTable() if isinstance(keys[0], str) else IntegerTable()

    def add(self, keys: Sequence[Key]) -> Integers:
        """Gives rows to keys that have been looked up and were unknown: those that are free, then further ones."""
        assert self._table is not None
        reused = [self._free.pop() for _ in range(min(len(self._free), len(keys)))]
        further = range(len(self._of_row), len(self._of_row) + len(keys) - len(reused))
        for row, key in zip(reused, keys, strict=False):
            self._of_row[row] = key
        self._of_row += keys[len(reused) :]
        rows = np.array([*reused, *further], np.int64)
        self._table.put(keys, rows if isinstance(self._table, IntegerTable) else rows.tolist())  # type: ignore[arg-type]
        return rows

    def forget(self, unknown: Sequence[Key]) -> None:
        """Keys that have been looked up and were unknown are not to be added after all."""
        if self._table is not None and len(unknown):
            self._table.take_out(unknown)  # type: ignore[arg-type]

    def drop(self, row: int) -> None:
        """The key of a row is forgotten, and the row free."""
        self.forget([self.of_row(row)])
        self._of_row[row] = None
        self._free.append(row)
