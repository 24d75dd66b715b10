"""Reads what users pass as keys and points of many streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from holdfast.errors import InvalidInputError, InvalidTypeError
from holdfast.fleet.columns import is_column, keys_from_column, to_series
from holdfast.fleet.keys import IntKeys, StrKeys
from holdfast.fleet.listed_keys import keys_from_array, keys_from_list
from holdfast.learners.reading import LabelledArray, Names, read_rows
from holdfast.scheme.state import Vector


def read_keys(keys: Any) -> IntKeys | StrKeys:
    """The keys of a call: a list, a tuple, an array or a column of a dataframe.

    >>> read_keys(["a", None]).values, read_keys(np.array([3.0, np.nan])).missing
    (['a', None], array([False,  True]))
    """
    if isinstance(keys, IntKeys | StrKeys):
        return keys
    if isinstance(keys, np.ndarray):
        return keys_from_array(keys)
    if isinstance(keys, Sequence) and not isinstance(keys, str | bytes | bytearray):
        return keys_from_list(keys if isinstance(keys, list) else list(keys))
    if is_column(keys):
        return keys_from_column(to_series(keys))
    raise InvalidTypeError(f"keys: expected a list, an array or a column, one key a point, got {type(keys).__name__}")


def read_points(X: Any, n: int, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    """The points of a call, (n, width). Of rows of unequal length those of another width become NaN: not usable."""
    if isinstance(X, list | tuple) and X and _are_rows(X):
        lengths = [len(x) for x in X]
        expected = width or Counter(lengths).most_common(1)[0][0]
        if len(set(lengths)) > 1 or lengths[0] != expected:
            _raise_on_string(x for row, length in zip(X, lengths, strict=True) if length != expected for x in row)
            X = [x if length == expected else [np.nan] * expected for x, length in zip(X, lengths, strict=True)]
    points, names = read_rows(X if isinstance(X, LabelledArray) else _check_no_strings(X), width, names)
    if len(points) != n:
        raise InvalidInputError(f"expected a point for each key, got {n} keys and {len(points)} points")
    return points, names


def _are_rows(X: Sequence[Any]) -> bool:
    """Whether each is a point of several numbers; a text is none, though it has a length."""
    types = set(map(type, X))
    if not all(issubclass(type_, Sequence | np.ndarray) and not issubclass(type_, str | bytes) for type_ in types):
        return False
    return np.ndarray not in types or all(np.ndim(x) > 0 for x in X if isinstance(x, np.ndarray))


def _check_no_strings(X: Any) -> Any:
    """The same, if there is no text among other things: where some are missing, it would be read as a number."""
    array = X
    if isinstance(X, list | tuple):
        try:
            array = np.asarray(X)
        except (TypeError, ValueError):  # of no one shape: `read_rows` says so
            return X
    if isinstance(array, np.ndarray) and array.dtype.kind == "O":
        _raise_on_string(array.flat)
    return array if isinstance(array, np.ndarray) and array.dtype.kind in "biuf" else X


def _raise_on_string(values: Iterable[Any]) -> None:
    for x in values:
        if isinstance(x, str | bytes):
            raise InvalidTypeError(f"expected numbers, got {type(x).__name__} {x!r}")
