"""Reads what users pass as keys and points of many streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.errors import BadInputError, WrongTypeError
from holdfast.fleet.columns import read_key_column, series_of
from holdfast.fleet.keys import Numbers, Texts
from holdfast.learners.reading import Names, read_rows
from holdfast.scheme.state import Vector


def read_keys(keys: Any) -> Numbers | Texts:
    """The keys of a call: a list, a tuple, an array or a column of a dataframe.

    >>> read_keys(["a", None]).values, read_keys(np.array([3.0, np.nan])).missing
    (['a', None], array([False,  True]))
    """
    if isinstance(keys, str | bytes | Mapping) or np.ndim(keys) == 0:
        raise WrongTypeError(f"keys: expected a list, an array or a column, one key a point, got {type(keys).__name__}")
    if hasattr(keys, "dtype") and not isinstance(keys, np.ndarray):
        return read_key_column(series_of(keys))
    if isinstance(keys, np.ndarray):
        return _of_array(keys)
    keys = keys if isinstance(keys, list) else list(keys)
    kinds = set(map(type, keys))
    if kinds <= {int}:
        return _of_array(np.array(keys)) if keys else Texts([])
    if kinds & {str, np.str_}:
        return Texts(keys)
    if bool in kinds or not kinds <= {int, float, type(None), np.int64, np.int32, np.float64}:
        other = next(
            (key for key in keys if not isinstance(key, int | float | str | None) or isinstance(key, bool)), keys[0]
        )
        raise WrongTypeError(f"keys: expected texts or whole numbers, got {other!r} ({type(other).__name__})")
    return _of_array(np.array([np.nan if key is None else key for key in keys]))


def _of_array(keys: npt.NDArray[Any]) -> Numbers | Texts:
    if keys.ndim != 1:
        raise BadInputError(f"keys: expected one key a point, got an array of shape {keys.shape}")
    if keys.dtype.kind in "iuf":
        return Numbers.of(keys)
    if keys.dtype.kind == "U":
        return Texts(keys.tolist())
    if keys.dtype.kind == "O":
        return read_keys(keys.tolist())
    raise WrongTypeError(f"keys: expected texts or whole numbers, got an array of {keys.dtype}")


def read_points(X: Any, n: int, width: int | None, names: Names | None) -> tuple[Vector, Names | None]:
    """The points of a call, (n, width). Of rows of unequal length those of another width become NaN: not usable."""
    if isinstance(X, list | tuple) and X and all(isinstance(x, Sequence | np.ndarray) for x in X):
        lengths = [len(x) for x in X]
        expected = width or Counter(lengths).most_common(1)[0][0]
        if len(set(lengths)) > 1 or lengths[0] != expected:
            X = [x if length == expected else [np.nan] * expected for x, length in zip(X, lengths, strict=True)]
    points, names = read_rows(X, width, names)
    if len(points) != n:
        raise BadInputError(f"expected a point for each key, got {n} keys and {len(points)} points")
    return points, names
