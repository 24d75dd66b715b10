"""`random.Random(seed).sample(range(n), k)` of the standard library, in compiled code: the same draws, without a list.

A generator is a vector of whole numbers: the words of the Mersenne Twister [1]_ and, last, how many of them are used.

.. [1] Matsumoto, M. and Nishimura, T. (1998). Mersenne Twister: a 623-dimensionally equidistributed uniform
   pseudo-random number generator. ACM Transactions on Modeling and Computer Simulation 8(1), 3–30.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from holdfast.scheme.compiling import kernel

Wholes = npt.NDArray[np.int64]

WORDS, OFFSET = 624, 397


@lru_cache(maxsize=32)
def seeded(seed: int) -> Wholes:
    """The generator of `random.Random(seed)` before its first draw."""
    generator = np.array(random.Random(seed).getstate()[1], np.int64)
    generator.flags.writeable = False
    return generator


def by_pool(n: int, k: int) -> bool:
    """Whether the standard library draws k out of n from a list of those left, rather than again if drawn before.

    It takes what needs less memory; the draws differ.
    """
    return n <= 21 + (4 ** math.ceil(math.log(k * 3, 4)) if k > 5 else 0)


@kernel
def refill(generator: Wholes) -> None:
    """The next 624 words."""
    for i in range(WORDS):
        following = i + 1 if i + 1 < WORDS else 0
        distant = i + OFFSET if i + OFFSET < WORDS else i + OFFSET - WORDS
        mixed = (generator[i] & 0x80000000) | (generator[following] & 0x7FFFFFFF)
        generator[i] = generator[distant] ^ (mixed >> 1) ^ (0x9908B0DF if mixed & 1 else 0)
    generator[WORDS] = 0


@kernel
def below(generator: Wholes, n: int, bits: int) -> int:
    """A number from 0 to n − 1, where n has this many bits: words are cut to as many until one is small enough."""
    drawn = n
    while drawn >= n:
        if generator[WORDS] >= WORDS:
            refill(generator)
        word = generator[generator[WORDS]]
        generator[WORDS] += 1
        word ^= word >> 11
        word ^= (word << 7) & 0x9D2C5680
        word ^= (word << 15) & 0xEFC60000
        word ^= word >> 18
        drawn = word >> (32 - bits)
    return drawn


@kernel
def sample(generator: Wholes, n: int, k: int, pool: bool, left: Wholes, drawn: Wholes) -> None:
    """k of the numbers 0 … n − 1 into `drawn`; `left` is room for n numbers; `pool` as `by_pool` says."""
    bits = 0
    while n >> bits:
        bits += 1
    for i in range(n):
        left[i] = i
    for i in range(k):
        if pool:
            remaining = n - i
            bits -= remaining >> (bits - 1) == 0
            j = below(generator, remaining, bits)
            drawn[i] = left[j]
            left[j] = left[remaining - 1]
        else:
            j = below(generator, n, bits)
            while left[j] < 0:
                j = below(generator, n, bits)
            drawn[i] = j
            left[j] = -1
