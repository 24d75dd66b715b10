"""What a look-up of keys finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NO_MISSING_FLAGS: Flags = np.zeros(0, np.bool_)
NO_ROW, UNKNOWN_ROW = -1, -2  # a row that is none, and what marks a key not seen before: UNKNOWN − its number


class Lookup(NamedTuple):
    """The row of each key; a missing key has NOBODY, one not seen before UNKNOWN − its number.

    unknown: the keys not seen before, numbered in the order they come. first: where in the call each came first.
    """

    rows: Integers
    unknown_keys: Sequence[Any]
    first_index: Integers
