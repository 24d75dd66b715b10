"""Keys one by one: in lists, in arrays, and by their places in a list of those that there are.

Where all keys of a call are missing they are of neither kind, and fit every fleet: see `nobody`.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from holdfast.errors import InvalidInputError, InvalidTypeError
from holdfast.fleet.found import NO_ROW, Flags, Integers
from holdfast.fleet.keys import INT64_REQUIREMENT, IntKeys, StrKeys, is_valid_utf8
from holdfast.fleet.missing import is_null_type

VALIDATE_CHUNK_KEYS = 1 << 13  # texts that are tried together
EXPECTED_KEYS_MESSAGE = "keys: expected texts or whole numbers"


def all_missing(n: int) -> StrKeys:
    """n keys, all of them missing: places in a list of no texts.

    >>> nobody(2).values, nobody(2).codes
    ([], array([-1, -1]))
    """
    return StrKeys([], np.full(n, NO_ROW, np.int64))


def keys_from_list(keys: list[Any]) -> IntKeys | StrKeys:
    """The keys in a list: whole numbers to the last digit, texts as they are, whatever is missing among them.

    >>> read_listed([2**60 + 1, None]).values, read_listed(["a", None]).values
    (array([1152921504606846977,                   0]), ['a', None])
    """
    types = set(map(type, keys))
    if types <= {str}:
        return _check_str_keys(keys, all_str=True)
    if types == {int}:
        return IntKeys.from_array(_to_int64(keys))
    present = {type_ for type_ in types if not is_null_type(type_)}
    str_types = {type_ for type_ in present if issubclass(type_, str)}
    int_types = {type_ for type_ in present if issubclass(type_, int | np.integer) and type_ is not bool}
    float_types = {type_ for type_ in present if issubclass(type_, float | np.floating)}
    if invalid_types := present - str_types - int_types - float_types:
        _raise_invalid_key(f"{EXPECTED_KEYS_MESSAGE}, got", next(key for key in keys if type(key) in invalid_types))
    if not str_types:
        return _int_keys_from_list(keys, types - present, int_types, float_types)
    for key in keys if int_types or float_types else ():
        if type(key) in int_types or (type(key) in float_types and key == key):
            _raise_invalid_key(f"{EXPECTED_KEYS_MESSAGE}, all of one kind, got texts and", key)
    return _check_str_keys(keys, all_str=False)


def keys_from_array(keys: npt.NDArray[Any]) -> IntKeys | StrKeys:
    """The keys in an array; those that are masked are missing."""
    if keys.ndim != 1:
        raise InvalidInputError(f"keys: expected one key a point, got an array of shape {keys.shape}")
    if keys.dtype.kind not in "iufUTO":
        raise InvalidTypeError(f"{EXPECTED_KEYS_MESSAGE}, got an array of {keys.dtype}")
    if keys.dtype.kind in "iuf" and not isinstance(keys, np.ma.MaskedArray):
        return check_int_keys(IntKeys.from_array(keys))
    return keys_from_list(keys.tolist())


def keys_from_codes(codes: Integers, categories: list[Any]) -> IntKeys | StrKeys:
    """Keys that are told by their places in a list, −1 for a missing one."""
    keys = keys_from_list(categories)
    if codes.max(initial=NO_ROW) < 0 or (isinstance(keys, StrKeys) and keys.codes is not None):
        return all_missing(len(codes))
    if isinstance(keys, StrKeys):
        return StrKeys(keys.values, codes)
    missing = np.append(keys.missing if len(keys.missing) else np.zeros(len(keys), np.bool_), True)
    return check_int_keys(IntKeys(np.append(keys.values, 0)[codes], missing[codes]))


def check_int_keys(keys: IntKeys) -> IntKeys | StrKeys:
    """Whole numbers, unless all of them are missing."""
    return all_missing(len(keys)) if len(keys.missing) and keys.missing.all() else keys


def _check_str_keys(keys: list[Any], all_str: bool) -> StrKeys:
    """Texts as they are, unless one cannot be written to a file."""
    for start in range(0, len(keys), VALIDATE_CHUNK_KEYS):
        strings = keys[start : start + VALIDATE_CHUNK_KEYS]
        strings = strings if all_str else [string for string in strings if isinstance(string, str)]
        try:
            "".join(strings).encode()  # all at once, for speed
        except UnicodeEncodeError:
            invalid = next(string for string in strings if not is_valid_utf8(string))
            raise InvalidInputError(
                f"keys: {invalid!r} holds half a character, which cannot be written as UTF-8"
            ) from None
    return StrKeys(keys)


def _int_keys_from_list(
    keys: list[Any], null_types: set[type], int_types: set[type], float_types: set[type]
) -> IntKeys | StrKeys:
    """Numbers of these types; `gone` are those of what is missing."""
    if not int_types:  # floats alone are what becomes of whole numbers where some are missing
        return check_int_keys(
            IntKeys.from_array(np.array([math.nan if type(key) in null_types else key for key in keys], np.float64))
        )
    IntKeys.from_array(np.array([key for key in keys if type(key) in float_types], np.float64))  # refuses fractions
    missing: Flags = np.array([type(key) in null_types or bool(key != key) for key in keys], np.bool_)
    return IntKeys(
        _to_int64([0 if is_null else int(key) for key, is_null in zip(keys, missing.tolist(), strict=True)]), missing
    )


def _to_int64(keys: Collection[int]) -> Integers:
    try:
        return np.array(keys, np.int64)
    except OverflowError:
        largest = max(keys, key=abs)
        raise InvalidTypeError(f"keys: whole numbers {INT64_REQUIREMENT}, got {largest}; make texts of them") from None


def _raise_invalid_key(message: str, key: Any) -> NoReturn:
    raise InvalidTypeError(f"{message} {key!r} ({type(key).__name__})")
