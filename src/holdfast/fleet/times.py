"""The order of rows in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from holdfast.errors import InvalidTypeError
from holdfast.fleet.found import Flags, Integers

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw


def time_order(column: nw.Series[Any]) -> tuple[Integers | None, Flags]:
    """The order of the rows in time, those of equal times as they come, None if they are in order already.

    And which rows have no time: they come last.
    """
    missing: Flags = np.array(column.is_null().to_numpy(), np.bool_)
    times = _to_numpy(column.drop_nulls() if missing.any() else column)  # without gaps whole numbers stay exact
    if times.dtype.kind in "fmM" and (is_null := np.isnan(times) if times.dtype.kind == "f" else np.isnat(times)).any():
        times = times[~is_null]
        missing[~missing] = is_null
    try:
        if times.ndim > 1:
            raise TypeError(f"several values in each row ({column.dtype})")
        order = None if (times[1:] >= times[:-1]).all() else np.argsort(times, kind="stable")
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(f"time: the column {column.name!r} holds what has no order: {error}") from None
    if missing.any():
        present = np.flatnonzero(~missing)
        order = np.append(present if order is None else present[order], np.flatnonzero(missing))
    return order, missing


def _to_numpy(times: nw.Series[Any]) -> npt.NDArray[Any]:
    if str(times.dtype).endswith("128"):  # which no array but one of objects can hold
        return np.array(times.to_list(), object)
    return np.asarray(times.to_numpy())
