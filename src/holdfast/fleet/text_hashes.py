"""Hashes of texts, and whether they told them apart: over the bytes of a column as Arrow lays them out.

Text i is data[edges[i] : edges[i + 1]].
"""

from __future__ import annotations

import numpy as np

from holdfast.scheme.compiling import compiled

PRIME, BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)  # FNV-1a


def _hashes(data, edges, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        mixed = BASIS
        for k in range(edges[i], edges[i + 1]):
            mixed = (mixed ^ np.uint64(data[k])) * PRIME
        out[i] = np.int64(mixed)


def _agree(data, edges, codes, kinds, kinds_edges):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        if codes[i] >= 0:
            begin, other = edges[i], kinds_edges[codes[i]]
            length = edges[i + 1] - begin
            if kinds_edges[codes[i] + 1] - other != length:
                return False
            for k in range(length):
                if data[begin + k] != kinds[other + k]:
                    return False
    return True


hash_texts = compiled(_hashes, releases_gil=True)
"""(data, edges, out): a number of 64 bits for each text."""

texts_agree = compiled(_agree, releases_gil=True)
"""(data, edges, codes, kinds, kinds' edges): whether every text is the one that its code names; −1 names none."""
