"""The keys of the last call, so that one with the same keys need not look them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.fleet.found import Integers
from holdfast.fleet.keys import Numbers, Texts
from holdfast.fleet.turns import Turns


@dataclass(frozen=True, eq=False)
class Latest:
    """Keys as they were given, and what they were found to be."""

    keys: Any
    kinds: set[type]
    asked: Numbers | Texts
    rows: Integers
    keyless: Integers
    turns: Turns
    version: int

    @classmethod
    def of(cls, keys: Any, *found: Any) -> Latest | None:
        """With a copy of the keys; None for a container that might change without being noticed."""
        if type(keys) in (list, np.ndarray):
            return cls(keys.copy(), kinds_of(keys), *found)
        return cls(keys, kinds_of(keys), *found) if type(keys) in (tuple, range) else None

    def is_for(self, keys: Any, version: int) -> bool:
        """Whether these are the same keys, and have the same rows still."""
        if version != self.version or type(keys) is not type(self.keys) or len(keys) != len(self.keys):
            return False
        try:
            if isinstance(keys, np.ndarray):
                same = keys.dtype == self.keys.dtype and bool(np.array_equal(keys, self.keys))
            else:
                same = bool(keys == self.keys)
        except (TypeError, ValueError):  # pandas' NA, of which nothing can be said; an array among the keys
            return False
        return same and kinds_of(keys) == self.kinds  # True is equal to 1, and no key


def kinds_of(keys: Any) -> set[type]:
    """The types of the keys in a container that may have several."""
    several = isinstance(keys, list | tuple) or (isinstance(keys, np.ndarray) and keys.dtype.kind == "O")
    return set(map(type, keys)) if several else set()
