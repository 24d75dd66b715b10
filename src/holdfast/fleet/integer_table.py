"""Whole numbers → rows: a hash table with open addresses, in one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.fleet.found import NO_ROW, UNKNOWN_ROW, Flags, Integers, Lookup
from holdfast.scheme.compiling import jit_entry_point, kernel, source_fingerprint

KEY_COLUMN, ROW_COLUMN = 0, 1  # what a place holds
EMPTY_SLOT, REMOVED_SLOT = np.int64(-1), np.int64(-2)  # places without a key: never had one, or no longer
HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
MIN_TABLE_SLOTS, LOOKUP_CHUNK_KEYS = (
    1 << 13,
    1 << 12,
)  # places; keys looked up before it is seen to that there are places left


@kernel
def first_slot(key: int, n_slots: int) -> int:
    """Where to look first; the number of places is a power of two."""
    hash_ = (np.uint64(key) ^ (np.uint64(key) >> np.uint64(32))) * HASH_MULTIPLIER
    return np.int64(hash_ ^ (hash_ >> np.uint64(32))) & (n_slots - 1)  # type: ignore[return-value]


@kernel
def find_slot(slots: Integers, key: int) -> int:
    """The place of a key; −1 − the place where it may be put, if it is not there."""
    slot, free_slot = first_slot(key, len(slots)), -1
    while slots[slot, ROW_COLUMN] != EMPTY_SLOT:
        if slots[slot, ROW_COLUMN] == REMOVED_SLOT:
            free_slot = slot if free_slot < 0 else free_slot
        elif slots[slot, KEY_COLUMN] == key:
            return slot
        slot = (slot + 1) & (len(slots) - 1)
    return -1 - (slot if free_slot < 0 else free_slot)


def _look_up(slots, keys, missing, start, stop, rows, unknown_keys, first_index, n_unknown):  # type: ignore[no-untyped-def]
    stamp  # noqa: B018  (part of what Numba's cache looks at)
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
    stamp  # noqa: B018
    added = 0
    for i in range(len(keys)):
        slot = find_slot(slots, keys[i])
        if slot < 0:
            slot = -1 - slot
            added += slots[slot, ROW_COLUMN] == EMPTY_SLOT
        slots[slot, KEY_COLUMN], slots[slot, ROW_COLUMN] = keys[i], rows[i]
    return added


def _get_row(slots, key):  # type: ignore[no-untyped-def]
    stamp  # noqa: B018
    slot = find_slot(slots, key)
    return slots[slot, ROW_COLUMN] if slot >= 0 else NO_ROW


stamp = source_fingerprint([find_slot])
_compiled_look_up, _compiled_put = (
    jit_entry_point(_look_up, releases_gil=True),
    jit_entry_point(_put, releases_gil=True),
)
_compiled_get_row = jit_entry_point(_get_row)


class IntHashTable:
    """Which row each key has."""

    def __init__(self) -> None:
        self._clear(MIN_TABLE_SLOTS)

    def _clear(self, n_slots: int) -> None:
        self.slots = np.zeros((n_slots, 2), np.int64)
        self.slots[:, ROW_COLUMN] = EMPTY_SLOT
        self.n_used_slots = 0  # places that are not empty

    def get_row(self, key: Any) -> int | None:
        """The row of a key, None if it has none."""
        if not isinstance(key, int) or isinstance(key, bool):
            return None
        row = int(_compiled_get_row(self.slots, key))
        return row if row >= 0 else None

    def look_up(self, keys: Integers, missing: Flags) -> Lookup:
        """The rows of keys; `missing` marks those that are none, and may be empty.

        The unknown ones are in the table from now on, and must be given their rows by `put`, or be taken out.
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
        """Gives rows to keys."""
        self._reserve(len(keys))
        self.n_used_slots += _compiled_put(self.slots, np.asarray(keys, np.int64), rows)

    def remove(self, keys: Sequence[int]) -> None:
        """Forgets keys."""
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
