"""The order of rows in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import WrongTypeError
from holdfast.fleet.found import Flags, Integers

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw


def in_time(column: nw.Series[Any]) -> tuple[Integers | None, Flags]:
    """The order of the rows in time, those of equal times as they come, None if they are in order already.

    And which rows have no time; they come where the latest do.
    """
    missing: Flags = np.array(column.is_null().to_numpy(), np.bool_)
    times = np.asarray((column.drop_nulls() if missing.any() else column).to_numpy())  # whole numbers stay exact
    if times.dtype.kind in "fmM" and (never := np.isnan(times) if times.dtype.kind == "f" else np.isnat(times)).any():
        times = times[~never]
        missing[~missing] = never
    try:
        if missing.any():
            there, times = times, np.zeros(len(missing), times.dtype)
            times[~missing] = there
            times[missing] = there.max() if len(there) else times[missing]
        if (times[1:] >= times[:-1]).all():
            return None, missing
        return np.argsort(times, kind="stable"), missing
    except (TypeError, ValueError) as error:
        raise WrongTypeError(f"time: the column {column.name!r} holds what has no order: {error}") from None
