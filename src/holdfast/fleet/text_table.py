"""Texts → rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from holdfast.errors import WrongTypeError
from holdfast.fleet.found import NOBODY, UNKNOWN, Found, Integers
from holdfast.fleet.missing import is_missing


class TextTable:
    """Which row each key has."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}

    def row_of(self, key: Any) -> int | None:
        """The row of a key, None if it has none."""
        return self.rows.get(key) if isinstance(key, str) else None

    def look_up(self, texts: Sequence[Any]) -> Found:
        """The rows of texts; what is no text is missing (None, NaN, …) or an error."""
        rows = np.fromiter(map(self.rows.get, texts, repeat(NOBODY)), np.int64, len(texts))
        numbers: dict[str, int] = {}
        first: list[int] = []
        for i in np.flatnonzero(rows == NOBODY).tolist():
            text = texts[i]
            if isinstance(text, str):
                if text not in numbers:
                    numbers[str.__str__(text)] = len(numbers)  # also of a kind of text that shows itself otherwise
                    first.append(i)
                rows[i] = UNKNOWN - numbers[text]
            elif not is_missing(text):
                raise WrongTypeError(f"the keys of this fleet are texts, got {text!r} ({type(text).__name__})")
        return Found(rows, list(numbers), np.array(first, np.int64))

    def look_up_coded(self, codes: Integers, texts: Sequence[Any]) -> Found:
        """The rows of keys that are told by their places in a list of texts, −1 for a missing one."""
        occurs = np.zeros(len(texts), np.bool_)
        occurs[codes[codes >= 0]] = True
        found = self.look_up([text if used else None for text, used in zip(texts, occurs.tolist(), strict=True)])
        rows = np.append(found.rows, NOBODY)[codes]
        positions = np.flatnonzero(rows <= UNKNOWN)[::-1]
        first = np.empty(len(found.unknown), np.int64)
        first[UNKNOWN - rows[positions]] = positions  # the last one written, the first of the call, stays
        order = np.argsort(first)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        rows[positions] = UNKNOWN - place[UNKNOWN - rows[positions]]
        return Found(rows, [found.unknown[i] for i in order.tolist()], first[order])

    def put(self, keys: Sequence[str], rows: Iterable[int]) -> None:
        """Gives rows to keys."""
        self.rows.update(zip(keys, rows, strict=True))

    def take_out(self, keys: Sequence[str]) -> None:
        """Forgets keys."""
        for key in keys:
            self.rows.pop(key, None)
