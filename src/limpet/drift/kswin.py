"""KSWIN: compare the newest points of a window with a sample of older ones."""

from __future__ import annotations

import math
import random
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import jit_entry_point, kernel
from limpet._validation import FloatArray, check_int, check_positive
from limpet.core.algorithm import MAX_ABS_VALUE
from limpet.drift.base import DriftDetector
from limpet.exceptions import InvalidInputError

IntArray = npt.NDArray[np.int64]

# The exact test of Kolmogorov and Smirnov for two samples of equal size

MAX_SAMPLE_POINTS = 10_000  # beyond, the usual implementations do not compute the exact value


@lru_cache(maxsize=32)
def exact_p_values(size: int) -> FloatArray:
    """Return P(n·D ≥ h) for h = 0 … n, D the distance of two samples of n points.

    The distance is a multiple of 1/n, so that n + 1 values suffice [1]_:
    p_h = 2 (C(2n, n−h) − C(2n, n−2h) + C(2n, n−3h) − …) / C(2n, n), in exact integers up to one correctly rounded
    division. Ties are ignored, as is usual (p is then too large).

    .. [1] Gnedenko, B. V. and Korolyuk, V. S. (1951). On the maximum discrepancy between two empirical distributions.
       Doklady Akademii Nauk SSSR 80, 525–528.
    """
    paths = [1] * (size + 1)  # C(2n, n − j) at j
    for j in range(size - 1, -1, -1):
        paths[j] = paths[j + 1] * (size + j + 1) // (size - j)
    counts = [2 * (sum(paths[h :: 2 * h]) - sum(paths[2 * h :: 2 * h])) for h in range(1, size + 1)]
    p_values = np.array([1.0] + [count / paths[0] for count in counts])
    p_values.flags.writeable = False
    return p_values


# `random.Random(seed).sample(range(n), k)` of the standard library, compiled: river's results depend on these draws.
# A generator is a vector of integers: the words of the Mersenne Twister (Matsumoto and Nishimura, 1998) and, last, how
# many of them are used.

STATE_WORDS, SHIFT_WORDS = 624, 397


def make_generator(seed: int) -> IntArray:
    """Return the generator of `random.Random(seed)` before its first draw."""
    return np.array(random.Random(seed).getstate()[1], np.int64)


def uses_pool(n: int, k: int) -> bool:
    """Return whether the standard library draws from a pool, without rejection."""
    return n <= 21 + (4 ** math.ceil(math.log(k * 3, 4)) if k > 5 else 0)


@kernel
def refill(generator: IntArray) -> None:
    """Generate the next 624 words."""
    words = generator[:STATE_WORDS]  # a negative index counts from the end
    for i in range(STATE_WORDS):
        mixed = (words[i] & 0x80000000) | (words[i + 1 - STATE_WORDS] & 0x7FFFFFFF)
        words[i] = words[i + SHIFT_WORDS - STATE_WORDS] ^ (mixed >> 1) ^ (0x9908B0DF if mixed & 1 else 0)
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
    """Draw k of the integers below n into `drawn`; the workspace has n numbers."""
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


# A sorted sliding window. Each point is inserted, and one pass over the window gives the distance of its newest points
# from others; sorting two samples per point would take most of the time.
# A window of w points has two vectors. `values`: the points by slot (a ring), then sorted. `bookkeeping`: the number of
# points and the oldest slot, then the slot of each sorted point, then the sign of each slot.

COUNT_INDEX, OLDEST_INDEX, HEADER_SIZE = 0, 1, 2


@kernel
def insert_point(values: FloatArray, bookkeeping: IntArray, window: int, n_recent: int, y: float) -> None:
    """Insert a point, in place of the oldest if the window is full.

    The newest n_recent slots have the sign −1. Of equal points the oldest is first: its value finds the one to replace.
    """
    ring, ordered = values[:window], values[window:]
    slots, signs = bookkeeping[HEADER_SIZE : HEADER_SIZE + window], bookkeeping[HEADER_SIZE + window :]
    n_points = bookkeeping[COUNT_INDEX]
    if n_points < window:
        slot, free_index = n_points, n_points
        bookkeeping[COUNT_INDEX] = n_points + 1
    else:
        slot = bookkeeping[OLDEST_INDEX]
        free_index = np.searchsorted(ordered, ring[slot])
        bookkeeping[OLDEST_INDEX] = slot + 1 if slot + 1 < window else 0
    target = np.searchsorted(ordered[:n_points], y, side="right")
    if target > free_index:
        target -= 1
        for k in range(free_index, target):
            ordered[k], slots[k] = ordered[k + 1], slots[k + 1]
    else:
        for k in range(free_index, target, -1):
            ordered[k], slots[k] = ordered[k - 1], slots[k - 1]
    ordered[target], slots[target], ring[slot], signs[slot] = y, slot, y, -1
    signs[slot - n_recent] = 0  # a negative index counts from the end


@kernel
def max_cdf_gap(values: FloatArray, bookkeeping: IntArray, window: int, drawn: IntArray) -> int:
    """Return the maximum gap of the counts of the newest and the drawn points.

    The window is full. `drawn` counts from the oldest point. Of equal values, only the gap after the last one counts.
    """
    ordered = values[window:]
    slots, signs = bookkeeping[HEADER_SIZE : HEADER_SIZE + window], bookkeeping[HEADER_SIZE + window :]
    oldest = bookkeeping[OLDEST_INDEX] - window  # negative, as are the slots from it: they count from the end
    for k in range(len(drawn)):
        signs[oldest + drawn[k]] = 1
    gap, max_gap = 0, 0
    for k in range(window - 1):  # the gap after the last point is 0
        gap += signs[slots[k]]
        size = abs(gap) if ordered[k] != ordered[k + 1] else 0
        max_gap = size if size > max_gap else max_gap
    for k in range(len(drawn)):
        signs[oldest + drawn[k]] = 0
    return max_gap


MIN_DETECTION_DISTANCE = 0.1  # of the two distributions; a smaller one is no detection, however significant


def write_kswin_scores(
    rows: FloatArray,
    scores: FloatArray,
    values: FloatArray,
    bookkeeping: IntArray,
    generators: IntArray,
    initial_generator: IntArray,
    workspace: IntArray,
    drawn: IntArray,
    score_table: FloatArray,
    critical_gap: int,
    use_pool: bool,
    max_abs_value: float,
) -> None:
    """Score each row, and advance the windows and the generators."""
    n_older, n_recent = len(workspace), len(drawn)
    window = n_older + n_recent
    for i in range(rows.shape[1]):
        column_values, column_bookkeeping, generator = values[i], bookkeeping[i], generators[i]
        for t in range(len(rows)):
            y = rows[t, i]
            scores[t, i] = math.nan
            if not abs(y) <= max_abs_value:
                continue
            insert_point(column_values, column_bookkeeping, window, n_recent, y)
            if column_bookkeeping[COUNT_INDEX] < window:
                continue
            sample(generator, n_older, n_recent, use_pool, workspace, drawn)
            gap = max_cdf_gap(column_values, column_bookkeeping, window, drawn)
            scores[t, i] = score_table[gap]
            if gap >= critical_gap:
                # The window is emptied; signs stay: the sign of a slot is set before it is used.
                column_bookkeeping[COUNT_INDEX] = column_bookkeeping[OLDEST_INDEX] = 0
                for k in range(len(initial_generator)):
                    generator[k] = initial_generator[k]


compiled_kswin = jit_entry_point(write_kswin_scores, releases_gil=True)


# The detector


class KSWIN(DriftDetector):
    """The Kolmogorov–Smirnov test on a sliding window [1]_, equal to river's.

    Of the last `window` points, the newest `stat` are compared with as many drawn at random from the older ones. The
    score is 1 − p with p the exact two-sided p-value [2]_; it takes at most stat + 1 values, few of them close to 1. If
    p ≤ alpha and the distributions differ by more than 0.1, a change is detected: the window is emptied, and the random
    generator is reset. Until the window is full, the score is NaN (river reports p = 0). A point that is not finite is
    not used: its score is NaN.

    Parameters
    ----------
    alpha : float
        Level of a detection.
    window : int
        Number of points in the window.
    stat : int
        Size of the samples, at most half of the window.
    seed : int
        Seed of the random draws, which are those of river's KSWIN; the same for every variable.

    References
    ----------
    .. [1] Raab, C. et al. (2020). Reactive soft prototype computing for concept drift streams.
       Neurocomputing 416, 340–351.
    .. [2] Fukushima, S. et al. (2020). Online robust and adaptive learning from data streams. arXiv:2007.12160.

    Examples
    --------
    >>> import numpy as np
    >>> detector = KSWIN(alpha=0.001, window=40, stat=10)
    >>> scores = detector.process(np.random.default_rng(0).normal(np.repeat([0.0, 5.0], 100)))
    >>> np.flatnonzero(scores > 0.999)
    array([108])
    """

    def __init__(self, alpha: float = 0.005, window: int = 100, stat: int = 30, seed: int = 0) -> None:
        self.alpha = check_positive("alpha", alpha, allow_zero=True, maximum=1.0)
        self.window = check_int("window", window, 2)
        self.stat = check_int("stat", stat, 1)
        self.seed = check_int("seed", seed, 0)
        if not self.can_run(window, stat):
            raise InvalidInputError(
                f"stat: must be at most half of window and at most {MAX_SAMPLE_POINTS}, got {stat} for window={window}."
            )
        super().__init__(alpha=self.alpha, window=self.window, stat=self.stat, seed=self.seed)

    @staticmethod
    def can_run(window: int, stat: int) -> bool:
        """Return whether `stat` points can be drawn from the window − stat older ones."""
        return 2 * stat <= window and stat <= MAX_SAMPLE_POINTS

    def _init_state(self, width: int) -> None:
        p_values = exact_p_values(self.stat)
        detected = (p_values <= self.alpha) & (np.arange(self.stat + 1) / self.stat > MIN_DETECTION_DISTANCE)
        self._critical_gap = int(detected.argmax()) if detected.any() else self.stat + 1
        self._score_table = 1.0 - p_values
        self._initial_generator = make_generator(self.seed)
        self._generators = np.tile(self._initial_generator, (width, 1))
        self._values = np.zeros((width, 2 * self.window))
        self._bookkeeping = np.zeros((width, HEADER_SIZE + 2 * self.window), np.int64)
        self._workspace, self._drawn = np.empty(self.window - self.stat, np.int64), np.empty(self.stat, np.int64)
        self._use_pool = uses_pool(self.window - self.stat, self.stat)

    @property
    def detection_threshold(self) -> float:
        """The smallest score at which a drift is reported; infinite if none is."""
        scores = self._score_table[self._critical_gap :]
        return float(scores[0]) if len(scores) else np.inf

    def _write_scores(self, rows: FloatArray, scores: FloatArray) -> None:
        state = (self._values, self._bookkeeping, self._generators, self._initial_generator)
        settings = (self._score_table, self._critical_gap, self._use_pool, MAX_ABS_VALUE)
        compiled_kswin(rows, scores, *state, self._workspace, self._drawn, *settings)
