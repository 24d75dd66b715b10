"""Reads what users pass as keys and points of many streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from holdfast.errors import BadInputError, WrongTypeError
from holdfast.fleet.columns import is_column, read_key_column, series_of
from holdfast.fleet.keys import Numbers, Texts
from holdfast.fleet.listed_keys import read_array, read_listed
from holdfast.learners.reading import NamedRows, Names, read_rows
from holdfast.scheme.state import Vector


def read_keys(keys: Any) -> Numbers | Texts:
    """The keys of a call: a list, a tuple, an array or a column of a dataframe.

    >>> read_keys(["a", None]).values, read_keys(np.array([3.0, np.nan])).missing
    (['a', None], array([False,  True]))
    """
    if isinstance(keys, Numbers | Texts):
        return keys
    if isinstance(keys, np.ndarray):
        return read_array(keys)
    if isinstance(keys, Sequence) and not isinstance(keys, str | bytes | bytearray):
        return read_listed(keys if isinstance(keys, list) else list(keys))
    if is_column(keys):
        return read_key_column(series_of(keys))
    raise WrongTypeError(f"keys: expected a list, an array or a column, one key a point, got {type(keys).__name__}")


def read_points(X: Any, n: int, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    """The points of a call, (n, width). Of rows of unequal length those of another width become NaN: not usable."""
    if isinstance(X, list | tuple) and X and _are_rows(X):
        lengths = [len(x) for x in X]
        expected = width or Counter(lengths).most_common(1)[0][0]
        if len(set(lengths)) > 1 or lengths[0] != expected:
            _refuse_texts(x for row, length in zip(X, lengths, strict=True) if length != expected for x in row)
            X = [x if length == expected else [np.nan] * expected for x, length in zip(X, lengths, strict=True)]
    points, names = read_rows(X if isinstance(X, NamedRows) else _without_texts(X), width, names)
    if len(points) != n:
        raise BadInputError(f"expected a point for each key, got {n} keys and {len(points)} points")
    return points, names


def _are_rows(X: Sequence[Any]) -> bool:
    """Whether each is a point of several numbers; a text is none, though it has a length."""
    kinds = set(map(type, X))
    if not all(issubclass(kind, Sequence | np.ndarray) and not issubclass(kind, str | bytes) for kind in kinds):
        return False
    return np.ndarray not in kinds or all(np.ndim(x) > 0 for x in X if isinstance(x, np.ndarray))


def _without_texts(X: Any) -> Any:
    """The same, if there is no text among other things: where some are missing, it would be read as a number."""
    array = X
    if isinstance(X, list | tuple):
        try:
            array = np.asarray(X)
        except (TypeError, ValueError):  # of no one shape: `read_rows` says so
            return X
    if isinstance(array, np.ndarray) and array.dtype.kind == "O":
        _refuse_texts(array.flat)
    return array if isinstance(array, np.ndarray) and array.dtype.kind in "biuf" else X


def _refuse_texts(values: Iterable[Any]) -> None:
    for x in values:
        if isinstance(x, str | bytes):
            raise WrongTypeError(f"expected numbers, got {type(x).__name__} {x!r}")
