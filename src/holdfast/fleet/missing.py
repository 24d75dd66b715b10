"""Keys that are missing: None, NaN, and what libraries have in their place."""

from __future__ import annotations

from typing import Any

import numpy as np

STAND_INS = frozenset({"NoneType", "NAType", "NaTType", "MaskedConstant"})  # by name, so that nothing is imported


def stands_for_nothing(kind: type) -> bool:
    """Whether all there is of this type is missing: None, pandas' NA and NaT, numpy's masked."""
    return kind.__name__ in STAND_INS


def is_missing(key: Any) -> bool:
    """Whether this is no key at all.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    return stands_for_nothing(type(key)) or (isinstance(key, float | np.floating) and bool(key != key))
