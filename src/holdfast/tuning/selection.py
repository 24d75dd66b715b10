"""The best of many settings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holdfast.errors import InvalidInputError


def select_best(values: npt.ArrayLike, largest: bool = True) -> int:
    """Returns the index of the setting with the best average over all the rest: streams, restarts.

    A setting with a NaN anywhere, one that left some stream without a value, is not chosen; of equal ones the first is.

    >>> choose([[0.7, 0.9], [0.9, 0.8], [1.0, float("nan")]])
    1
    >>> choose([[0.2, 0.1], [0.5, 0.1]], largest=False)
    0
    """
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        received = type(values).__name__
        raise InvalidInputError(
            f"values: expected an array of numbers, as sweep(…).values is, got {received}"
        ) from error
    if not isinstance(largest, bool | np.bool_):
        raise InvalidInputError(f"largest: expected True or False, got {largest!r}")
    if table.ndim == 0 or not table.size:
        raise InvalidInputError(f"values: expected one or more for each setting, got shape {table.shape}")
    averages = table.reshape(len(table), -1).mean(axis=1)
    if np.isnan(averages).all():
        received = f"NaN in each of {len(table)} settings, in {np.isnan(table).sum()} of {table.size} values"
        raise InvalidInputError(f"values: expected at least one setting with a value for every stream, got {received}")
    return int(np.nanargmax(averages) if largest else np.nanargmin(averages))
