"""Keys one by one: in lists, in arrays, and by their places in a list of those that there are.

Where all keys of a call are missing they are of neither kind, and fit every fleet: see `nobody`.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from holdfast.errors import BadInputError, WrongTypeError
from holdfast.fleet.found import NOBODY, Flags, Integers
from holdfast.fleet.keys import TOO_LARGE, Numbers, Texts, is_writable
from holdfast.fleet.missing import stands_for_nothing

AT_ONCE = 1 << 13  # texts that are tried together
EXPECTED = "keys: expected texts or whole numbers"


def nobody(n: int) -> Texts:
    """n keys, all of them missing: places in a list of no texts.

    >>> nobody(2).values, nobody(2).codes
    ([], array([-1, -1]))
    """
    return Texts([], np.full(n, NOBODY, np.int64))


def read_listed(keys: list[Any]) -> Numbers | Texts:
    """The keys in a list: whole numbers to the last digit, texts as they are, whatever is missing among them.

    >>> read_listed([2**60 + 1, None]).values, read_listed(["a", None]).values
    (array([1152921504606846977,                   0]), ['a', None])
    """
    kinds = set(map(type, keys))
    if kinds <= {str}:
        return _writable(keys, all_texts=True)
    if kinds == {int}:
        return Numbers.of(_exact(keys))
    there = {kind for kind in kinds if not stands_for_nothing(kind)}
    texts = {kind for kind in there if issubclass(kind, str)}
    whole = {kind for kind in there if issubclass(kind, int | np.integer) and kind is not bool}
    floats = {kind for kind in there if issubclass(kind, float | np.floating)}
    if strange := there - texts - whole - floats:
        _refuse(f"{EXPECTED}, got", next(key for key in keys if type(key) in strange))
    if not texts:
        return _read_numbers(keys, kinds - there, whole, floats)
    for key in keys if whole or floats else ():
        if type(key) in whole or (type(key) in floats and key == key):
            _refuse(f"{EXPECTED}, all of one kind, got texts and", key)
    return _writable(keys, all_texts=False)


def read_array(keys: npt.NDArray[Any]) -> Numbers | Texts:
    """The keys in an array; those that are masked are missing."""
    if keys.ndim != 1:
        raise BadInputError(f"keys: expected one key a point, got an array of shape {keys.shape}")
    if keys.dtype.kind not in "iufUTO":
        raise WrongTypeError(f"{EXPECTED}, got an array of {keys.dtype}")
    if keys.dtype.kind in "iuf" and not isinstance(keys, np.ma.MaskedArray):
        return known_numbers(Numbers.of(keys))
    return read_listed(keys.tolist())


def coded(codes: Integers, kinds: list[Any]) -> Numbers | Texts:
    """Keys that are told by their places in a list, −1 for a missing one."""
    keys = read_listed(kinds)
    if codes.max(initial=NOBODY) < 0 or (isinstance(keys, Texts) and keys.codes is not None):
        return nobody(len(codes))
    if isinstance(keys, Texts):
        return Texts(keys.values, codes)
    gone = np.append(keys.missing if len(keys.missing) else np.zeros(len(keys), np.bool_), True)
    return known_numbers(Numbers(np.append(keys.values, 0)[codes], gone[codes]))


def known_numbers(keys: Numbers) -> Numbers | Texts:
    """Whole numbers, unless all of them are missing."""
    return nobody(len(keys)) if len(keys.missing) and keys.missing.all() else keys


def _writable(keys: list[Any], all_texts: bool) -> Texts:
    """Texts as they are, unless one cannot be written to a file."""
    for first in range(0, len(keys), AT_ONCE):
        texts = keys[first : first + AT_ONCE]
        texts = texts if all_texts else [text for text in texts if isinstance(text, str)]
        try:
            "".join(texts).encode()  # all at once, for speed
        except UnicodeEncodeError:
            half = next(text for text in texts if not is_writable(text))
            raise BadInputError(f"keys: {half!r} holds half a character, which cannot be written as UTF-8") from None
    return Texts(keys)


def _read_numbers(keys: list[Any], gone: set[type], whole: set[type], floats: set[type]) -> Numbers | Texts:
    """Numbers of these types; `gone` are those of what is missing."""
    if not whole:  # floats alone are what becomes of whole numbers where some are missing
        return known_numbers(Numbers.of(np.array([math.nan if type(key) in gone else key for key in keys], np.float64)))
    Numbers.of(np.array([key for key in keys if type(key) in floats], np.float64))  # refuses fractions
    missing: Flags = np.array([type(key) in gone or bool(key != key) for key in keys], np.bool_)
    return Numbers(
        _exact([0 if lacks else int(key) for key, lacks in zip(keys, missing.tolist(), strict=True)]), missing
    )


def _exact(keys: Collection[int]) -> Integers:
    try:
        return np.array(keys, np.int64)
    except OverflowError:
        largest = max(keys, key=abs)
        raise WrongTypeError(f"keys: whole numbers {TOO_LARGE}, got {largest}; make texts of them") from None


def _refuse(what: str, key: Any) -> NoReturn:
    raise WrongTypeError(f"{what} {key!r} ({type(key).__name__})")
