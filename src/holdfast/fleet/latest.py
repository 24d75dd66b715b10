"""The keys of the last call, so that one with the same keys need not look them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.fleet.found import Integers
from holdfast.fleet.keys import IntKeys, StrKeys
from holdfast.fleet.turns import PointSchedule


@dataclass(frozen=True, eq=False)
class KeyCache:
    """Keys as they were given, and what they were found to be."""

    keys: Any
    types: set[type]
    parsed_keys: IntKeys | StrKeys
    rows: Integers
    missing_points: Integers
    schedule: PointSchedule
    version: int

    @classmethod
    def from_keys(cls, keys: Any, *lookup: Any) -> KeyCache | None:
        """With a copy of the keys; None for a container that might change without being noticed."""
        if type(keys) in (list, np.ndarray):
            return cls(keys.copy(), key_types(keys), *lookup)
        return cls(keys, key_types(keys), *lookup) if type(keys) in (tuple, range) else None

    def matches(self, keys: Any, version: int) -> bool:
        """Whether these are the same keys, and have the same rows still."""
        if version != self.version or type(keys) is not type(self.keys) or len(keys) != len(self.keys):
            return False
        try:
            if isinstance(keys, np.ndarray):
                is_equal = keys.dtype == self.keys.dtype and bool(np.array_equal(keys, self.keys))
            else:
                is_equal = bool(keys == self.keys)
        except (TypeError, ValueError):  # pandas' NA, of which nothing can be said; an array among the keys
            return False
        return is_equal and key_types(keys) == self.types  # True is equal to 1, and no key


def key_types(keys: Any) -> set[type]:
    """The types of the keys in a container that may have several."""
    may_be_mixed = isinstance(keys, list | tuple) or (isinstance(keys, np.ndarray) and keys.dtype.kind == "O")
    return set(map(type, keys)) if may_be_mixed else set()
