"""Compiled `random.Random(seed).sample(range(n), k)` of the standard library.

The results of river's KSWIN depend on these draws.

A generator is a vector of integers: the words of the Mersenne Twister [1]_ and, last, how many of them are used.

.. [1] Matsumoto, M. and Nishimura, T. (1998). Mersenne Twister: a 623-dimensionally equidistributed uniform
   pseudo-random number generator. ACM Transactions on Modeling and Computer Simulation 8(1), 3–30.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import kernel

IntArray = npt.NDArray[np.int64]

STATE_WORDS, SHIFT_WORDS = 624, 397


@lru_cache(maxsize=32)
def make_generator(seed: int) -> IntArray:
    """Return the generator of `random.Random(seed)` before its first draw."""
    generator = np.array(random.Random(seed).getstate()[1], np.int64)
    generator.flags.writeable = False
    return generator


def uses_pool(n: int, k: int) -> bool:
    """Return whether the standard library draws without rejection.

    It selects the algorithm that needs less memory; the draws differ.
    """
    return n <= 21 + (4 ** math.ceil(math.log(k * 3, 4)) if k > 5 else 0)


@kernel
def refill(generator: IntArray) -> None:
    """Generate the next 624 words."""
    for i in range(STATE_WORDS):
        following = i + 1 if i + 1 < STATE_WORDS else 0
        distant = i + SHIFT_WORDS if i + SHIFT_WORDS < STATE_WORDS else i + SHIFT_WORDS - STATE_WORDS
        mixed = (generator[i] & 0x80000000) | (generator[following] & 0x7FFFFFFF)
        generator[i] = generator[distant] ^ (mixed >> 1) ^ (0x9908B0DF if mixed & 1 else 0)
    generator[STATE_WORDS] = 0


@kernel
def draw_below(generator: IntArray, n: int, bits: int) -> int:
    """Draw an integer below n, which has this many bits, by rejection."""
    drawn = n
    while drawn >= n:
        if generator[STATE_WORDS] >= STATE_WORDS:
            refill(generator)
        word = generator[generator[STATE_WORDS]]
        generator[STATE_WORDS] += 1
        word ^= word >> 11
        word ^= (word << 7) & 0x9D2C5680
        word ^= (word << 15) & 0xEFC60000
        word ^= word >> 18
        drawn = word >> (32 - bits)
    return drawn


@kernel
def sample(generator: IntArray, n: int, k: int, use_pool: bool, workspace: IntArray, drawn: IntArray) -> None:
    """Draw k of the integers below n into `drawn`.

    workspace: n numbers; use_pool: see `uses_pool`.
    """
    bits = 0
    while n >> bits:
        bits += 1
    for i in range(n):
        workspace[i] = i
    for i in range(k):
        if use_pool:
            remaining = n - i
            bits -= remaining >> (bits - 1) == 0
            j = draw_below(generator, remaining, bits)
            drawn[i] = workspace[j]
            workspace[j] = workspace[remaining - 1]
        else:
            j = draw_below(generator, n, bits)
            while workspace[j] < 0:
                j = draw_below(generator, n, bits)
            drawn[i] = j
            workspace[j] = -1
