"""Hashes of texts, and whether they told them apart: over the bytes of a column as Arrow lays them out.

Text i is data[edges[i] : edges[i + 1]].
"""

from __future__ import annotations

import numpy as np

from holdfast.scheme.compiling import jit_entry_point

FNV_PRIME, FNV_OFFSET_BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)  # FNV-1a


def _hash_strings(data, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        hash_ = FNV_OFFSET_BASIS
        for k in range(offsets[i], offsets[i + 1]):
            hash_ = (hash_ ^ np.uint64(data[k])) * FNV_PRIME
        out[i] = np.int64(hash_)


def _codes_match_strings(data, offsets, codes, categories, category_offsets):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        if codes[i] >= 0:
            start, category_start = offsets[i], category_offsets[codes[i]]
            length = offsets[i + 1] - start
            if category_offsets[codes[i] + 1] - category_start != length:
                return False
            for k in range(length):
                if data[start + k] != categories[category_start + k]:
                    return False
    return True


hash_strings = jit_entry_point(_hash_strings, releases_gil=True)
"""(data, edges, out): a number of 64 bits for each text."""

codes_match_strings = jit_entry_point(_codes_match_strings, releases_gil=True)
"""(data, edges, codes, kinds, kinds' edges): whether every text is the one that its code names; −1 names none."""
