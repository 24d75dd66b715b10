"""Texts → rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from holdfast.errors import InvalidTypeError
from holdfast.fleet.found import NO_ROW, UNKNOWN_ROW, Integers, Lookup
from holdfast.fleet.missing import is_missing


class StrTable:
    """Which row each key has."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}

    def get_row(self, key: Any) -> int | None:
        """The row of a key, None if it has none."""
        return self.rows.get(key) if isinstance(key, str) else None

    def look_up(self, strings: Sequence[Any]) -> Lookup:
        """The rows of texts; what is no text is missing (None, NaN, …) or an error."""
        rows = np.fromiter(map(self.rows.get, strings, repeat(NO_ROW)), np.int64, len(strings))
        unknown_numbers: dict[str, int] = {}
        first_index: list[int] = []
        for i in np.flatnonzero(rows == NO_ROW).tolist():
            string = strings[i]
            if isinstance(string, str):
                if string not in unknown_numbers:
                    unknown_numbers[str.__str__(string)] = len(
                        unknown_numbers
                    )  # also of a kind of text that shows itself otherwise
                    first_index.append(i)
                rows[i] = UNKNOWN_ROW - unknown_numbers[string]
            elif not is_missing(string):
                raise InvalidTypeError(f"the keys of this fleet are texts, got {string!r} ({type(string).__name__})")
        return Lookup(rows, list(unknown_numbers), np.array(first_index, np.int64))

    def look_up_codes(self, codes: Integers, strings: Sequence[Any]) -> Lookup:
        """The rows of keys that are told by their places in a list of texts, −1 for a missing one."""
        occurs = np.zeros(len(strings), np.bool_)
        occurs[codes[codes >= 0]] = True
        result = self.look_up(
            [string if is_used else None for string, is_used in zip(strings, occurs.tolist(), strict=True)]
        )
        rows = np.append(result.rows, NO_ROW)[codes]
        positions = np.flatnonzero(rows <= UNKNOWN_ROW)[::-1]
        first_index = np.empty(len(result.unknown_keys), np.int64)
        first_index[UNKNOWN_ROW - rows[positions]] = positions  # the last one written, the first of the call, stays
        order = np.argsort(first_index)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        rows[positions] = UNKNOWN_ROW - rank[UNKNOWN_ROW - rows[positions]]
        return Lookup(rows, [result.unknown_keys[i] for i in order.tolist()], first_index[order])

    def put(self, keys: Sequence[str], rows: Iterable[int]) -> None:
        """Gives rows to keys."""
        self.rows.update(zip(keys, rows, strict=True))

    def remove(self, keys: Sequence[str]) -> None:
        """Forgets keys."""
        for key in keys:
            self.rows.pop(key, None)
