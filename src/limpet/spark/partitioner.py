"""Assign keys to buckets by a hash that never changes, as checkpoints use it."""

from __future__ import annotations

from typing import Any

import numpy as np

from limpet.fleet._key_index import Integers, Key
from limpet.fleet._key_input import arrow_string_buffers, hash_strings

HASH_VERSION = 1
# The multipliers of splitmix64.
SPLITMIX_FACTOR_1, SPLITMIX_FACTOR_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def partition_of(keys: Any, n_buckets: int) -> Integers:
    """Return the bucket of each key of an Arrow column of strings or integers.

    Missing keys have no state: they are distributed over all buckets.

    >>> import pyarrow
    >>> partition_of(pyarrow.array(["oil", "water", "oil"]), 64)
    array([ 4, 40,  4])
    >>> partition_of(pyarrow.array([7, 8, None]), 64)
    array([20, 40,  2])
    """
    import pyarrow

    if isinstance(keys, pyarrow.ChunkedArray):
        keys = keys.combine_chunks()
    hashes = np.empty(len(keys), np.int64)
    if pyarrow.types.is_integer(keys.type):
        hashes[:] = keys.cast(pyarrow.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    else:
        hash_strings(*arrow_string_buffers(keys), hashes)
    buckets: Integers = (_mix_bits(hashes.view(np.uint64)) % np.uint64(n_buckets)).astype(np.int64)
    if keys.null_count:
        missing = keys.is_null().to_numpy(zero_copy_only=False)
        buckets[missing] = np.flatnonzero(missing) % n_buckets
    return buckets


def partition_of_list(keys: list[Key], n_buckets: int) -> Integers:
    """Return the bucket of each key of a list of strings or of integers."""
    import pyarrow

    return partition_of(pyarrow.array(keys, pyarrow.large_string() if isinstance(keys[0], str) else None), n_buckets)


def _mix_bits(numbers: Any) -> Any:
    """Mix 64-bit integers (splitmix64): each bit depends on all bits."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * SPLITMIX_FACTOR_1
    numbers = (numbers ^ (numbers >> np.uint64(27))) * SPLITMIX_FACTOR_2
    return numbers ^ (numbers >> np.uint64(31))
