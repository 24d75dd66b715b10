"""Keys that are missing: None, NaN, and what libraries have in their place."""

from __future__ import annotations

from typing import Any

import numpy as np

NULL_TYPE_NAMES = frozenset({"NoneType", "NAType", "NaTType", "MaskedConstant"})  # by name, so that nothing is imported


def is_null_type(key_type: type) -> bool:
    """Whether all there is of this type is missing: None, pandas' NA and NaT, numpy's masked."""
    return key_type.__name__ in NULL_TYPE_NAMES


def is_missing(key: Any) -> bool:
    """Whether this is no key at all.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    return is_null_type(type(key)) or (isinstance(key, float | np.floating) and bool(key != key))
