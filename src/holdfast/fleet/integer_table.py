"""Whole numbers → rows: a hash table with open addresses, in one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.fleet.found import NOBODY, UNKNOWN, Flags, Found, Integers
from holdfast.scheme.compiling import compiled, fingerprint, kernel

KEY, ROW = 0, 1  # what a place holds
EMPTY, LEFT = np.int64(-1), np.int64(-2)  # places without a key: never had one, or no longer
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
SMALLEST, AT_ONCE = 1 << 13, 1 << 12  # places; keys looked up before it is seen to that there are places left


@kernel
def place_of(key: int, n_places: int) -> int:
    """Where to look first; the number of places is a power of two."""
    mixed = (np.uint64(key) ^ (np.uint64(key) >> np.uint64(32))) * MULTIPLIER
    return np.int64(mixed ^ (mixed >> np.uint64(32))) & (n_places - 1)  # type: ignore[return-value]


@kernel
def find(places: Integers, key: int) -> int:
    """The place of a key; −1 − the place where it may be put, if it is not there."""
    at, free = place_of(key, len(places)), -1
    while places[at, ROW] != EMPTY:
        if places[at, ROW] == LEFT:
            free = at if free < 0 else free
        elif places[at, KEY] == key:
            return at
        at = (at + 1) & (len(places) - 1)
    return -1 - (at if free < 0 else free)


def _look_up(places, asked, missing, begin, end, found, unknown, first, n_unknown):  # type: ignore[no-untyped-def]
    stamp  # noqa: B018  (part of what Numba's cache looks at)
    for i in range(begin, end):
        if len(missing) > 0 and missing[i]:
            found[i] = NOBODY
            continue
        at = find(places, asked[i])
        if at < 0:
            at = -1 - at
            places[at, KEY], places[at, ROW] = asked[i], UNKNOWN - 1 - n_unknown
            unknown[n_unknown], first[n_unknown] = asked[i], i
            n_unknown += 1
        found[i] = places[at, ROW] if places[at, ROW] >= 0 else places[at, ROW] + 1
    return n_unknown


def _put(places, new, values):  # type: ignore[no-untyped-def]
    stamp  # noqa: B018
    added = 0
    for i in range(len(new)):
        at = find(places, new[i])
        if at < 0:
            at = -1 - at
            added += places[at, ROW] == EMPTY
        places[at, KEY], places[at, ROW] = new[i], values[i]
    return added


def _row_of(places, key):  # type: ignore[no-untyped-def]
    stamp  # noqa: B018
    at = find(places, key)
    return places[at, ROW] if at >= 0 else NOBODY


stamp = fingerprint([find])
_compiled_look_up, _compiled_put = compiled(_look_up, releases_gil=True), compiled(_put, releases_gil=True)
_compiled_row_of = compiled(_row_of)


class IntegerTable:
    """Which row each key has."""

    def __init__(self) -> None:
        self._clear(SMALLEST)

    def _clear(self, n_places: int) -> None:
        self.places = np.zeros((n_places, 2), np.int64)
        self.places[:, ROW] = EMPTY
        self.taken = 0  # places that are not empty

    def row_of(self, key: Any) -> int | None:
        """The row of a key, None if it has none."""
        if not isinstance(key, int) or isinstance(key, bool):
            return None
        row = int(_compiled_row_of(self.places, key))
        return row if row >= 0 else None

    def look_up(self, asked: Integers, missing: Flags) -> Found:
        """The rows of keys; `missing` marks those that are none, and may be empty.

        The unknown ones are in the table from now on, and must be given their rows by `put`, or be taken out.
        """
        found, unknown, first = (np.empty(len(asked), np.int64) for _ in range(3))
        n = 0
        for begin in range(0, len(asked), AT_ONCE):
            self._make_room(AT_ONCE)
            end, before = min(begin + AT_ONCE, len(asked)), n
            n = _compiled_look_up(self.places, asked, missing, begin, end, found, unknown, first, before)
            self.taken += n - before
        return Found(found, unknown[:n].tolist(), first[:n].copy())

    def put(self, keys: Sequence[int] | Integers, rows: Integers) -> None:
        """Gives rows to keys."""
        self._make_room(len(keys))
        self.taken += _compiled_put(self.places, np.asarray(keys, np.int64), rows)

    def take_out(self, keys: Sequence[int]) -> None:
        """Forgets keys."""
        _compiled_put(self.places, np.array(keys, np.int64), np.full(len(keys), LEFT))

    def _make_room(self, n: int) -> None:
        if 2 * (self.taken + n) > len(self.places):
            there = (self.places[:, ROW] != EMPTY) & (self.places[:, ROW] != LEFT)
            keys, rows = self.places[there].T.copy()
            n_places = len(self.places)
            while 2 * (len(keys) + n) > n_places:
                n_places *= 2
            self._clear(n_places)
            self.taken = _compiled_put(self.places, keys, rows)
