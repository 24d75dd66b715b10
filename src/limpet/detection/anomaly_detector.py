"""The anomaly rule: a p-value of the surprise, compared with the rate `far`.

A point is an anomaly if its p-value is at most `far` and it is also far from the current estimate: further than a
Gaussian point is at the rate 10·far (`is_anomaly`). The alarm is raised at the first of consecutive anomalies
(`starts_run`); an invalid point ends them (`auto.stream_kernel`). The surprise of a point is the excess of its score
over the minimum of the score (`auto.step_kernel`).

The p-value is the share of points of this stream with a larger surprise. Surprises are counted in bins. Within the
range of the counts, the p-value is interpolated. Beyond, an exponential tail is fitted to the largest surprises: under
Student's densities the surprise grows with the logarithm of the distance, so that a power law has exactly such a tail,
and lighter tails get conservative p-values. The p-value includes the uncertainty of a slope estimated from k values
(the predictive distribution of an exponential with an estimated scale): p = k/n · (1 + x/Σ)^(−k), Σ the sum of their
excesses.

A surprise far beyond the level counts as one just beyond it, so that one glitch does not mask the next. This holds only
while no more anomalies were reported than `far` allows; then each counts as it is, and no p-value is smaller than the
observed share. Recurring values and distributions without a tail (counts, mostly constant values) are therefore
reported only a few times.

The counts are in a Fenwick tree: entry i (from 1) holds the sum of the bins i − (i & −i) … i − 1. Reading a prefix sum
and adding a count both take as many steps as the number of bins has binary digits. If the number of bins is a power of
two, the last entry is the sum of all. Before the counts overflow, all of them are halved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from limpet._jit.compile import kernel
from limpet._jit.math import exp, log, maximum
from limpet.core.memory_profile import Counts, MemoryProfile
from limpet.core.state import Vector
from limpet.core.threshold import gamma_for_rate

MIN_LARGER_COUNT = 10.0  # larger surprises for which the observed share is used
LINEAR_SHARE_THRESHOLD = 0.1  # share of larger surprises above which p is interpolated linearly
TAIL_SLOPE_MIN_POINTS = 15000.0  # from here on the tail falls no faster than from this share of points on:
TAIL_SLOPE_SHARE = 0.002
TAIL_FIT_POINTS = 16.0  # largest surprises to which the tail is fitted
TAIL_CAUTION_POINTS = 150.0  # while the scorers still learn, large surprises are too frequent
MIN_COUNTED_P_VALUE_FACTOR = 0.1  # times far: a surprise with a smaller p-value is counted at this p-value
DISTANCE_RATE_FACTOR = 10.0  # times far: points more frequent than this under the current estimate are no anomalies
MAX_EXCESS_ANOMALIES = 2.0  # anomalies beyond the promised rate before p-values are bounded by observed shares

# tally = [ points counted | anomalies reported ], integers of 32 bits; tree: a Fenwick tree of counts
N_COUNTED, N_ANOMALIES, TALLY_SIZE = 0, 1, 2
MAX_TALLY = 2**30  # points counted, at which the tally is halved


@kernel
def fenwick_add(tree: Counts, n_bins: int, bin_index: int) -> None:
    """Add one to the count of a bin."""
    i = bin_index + 1
    while i <= n_bins:
        tree[i - 1] += 1
        i += i & -i


@kernel
def fenwick_count(tree: Counts, bin_index: int) -> int:
    """Return the count of a bin."""
    i = bin_index + 1
    total, range_start = int(tree[bin_index]), i - (i & -i)
    i -= 1
    while i > range_start:
        total -= int(tree[i - 1])
        i -= i & -i
    return total


@kernel
def fenwick_prefix_sum(tree: Counts, bin_index: int) -> int:
    """Return the sum of the counts of all bins before `bin_index`."""
    total = 0
    i = bin_index
    while i > 0:
        total += int(tree[i - 1])
        i -= i & -i
    return total


@kernel
def fenwick_halve(tree: Counts, n_bins: int, round_up: int) -> None:
    """Halve the suffix sums of the counts, rounded up or down."""
    for i in range(n_bins, 0, -1):  # from sums to the bins themselves …
        parent = i + (i & -i)
        if parent <= n_bins:
            tree[parent - 1] -= tree[i - 1]
    carry = round_up
    for i in range(n_bins, 0, -1):
        count = int(tree[i - 1]) + carry
        tree[i - 1], carry = count >> 1, count & 1
    for i in range(1, n_bins + 1):  # … and back
        parent = i + (i & -i)
        if parent <= n_bins:
            tree[parent - 1] += tree[i - 1]


class AnomalyKernels(NamedTuple):
    """Compiled functions; `tally` and `tree` are the two parts of the state."""

    # Slots of the two parts in a state
    tally_size: int
    tree_size: int
    # (tally, tree, surprise, squared_distance, far, min_squared_distance) → (p-value, whether the point is an anomaly):
    # counts the surprise afterwards
    observe: Callable[..., Any]
    p_value: Callable[..., Any]  # (tally, tree, surprise, far) → the p-value of a surprise, from those counted so far
    # (tally, tree, surprise, p, level, far): count a surprise; one with p below the level is counted at the level while
    # the promised rate is kept
    count_surprise: Callable[..., Any]
    halve_if_full: Callable[..., Any]  # (tally, tree): halve the counts if they are about to overflow


@cache
def make_anomaly_detector(profile: MemoryProfile) -> AnomalyKernels:
    """Return the anomaly detector for a memory profile."""
    fine_width, n_fine_bins, coarse_width = profile.fine_bin_width, profile.n_fine_bins, profile.coarse_bin_width
    n_bins, max_count, coarse_start = profile.n_surprise_bins, profile.max_count, fine_width * n_fine_bins
    is_power_of_two = n_bins & (n_bins - 1) == 0

    @kernel
    def count_all(tree: Counts) -> int:
        return int(tree[n_bins - 1]) if is_power_of_two else fenwick_prefix_sum(tree, n_bins)

    @kernel
    def bin_edge(index: int) -> float:
        return fine_width * index if index <= n_fine_bins else coarse_start + coarse_width * (index - n_fine_bins)

    @kernel
    def find_bin(surprise: float) -> int:
        if surprise < coarse_start:
            return int(maximum(surprise, 0.0) * (1.0 / fine_width))
        if surprise < bin_edge(n_bins):
            index = n_fine_bins + int((surprise - coarse_start) * (1.0 / coarse_width))
            return index if index < n_bins else n_bins - 1
        return n_bins - 1

    @kernel
    def find_tail_bin(tree: Counts, total: float, min_count: float) -> int:
        """Return the highest bin with at least `min_count` surprises from it on."""
        index = n_bins - 1
        while index > 0 and total - fenwick_prefix_sum(tree, index) < min_count:
            index -= 1
        return index

    @kernel
    def mean_excess(tree: Counts, total: float, index: int) -> float:
        """Return the mean excess of surprises over the lower edge of a bin."""
        excess, before = 0.0, 0.0
        for j in range(n_bins - 1, index - 1, -1):
            now = total - fenwick_prefix_sum(tree, j)
            excess += (now - before) * (0.5 * (bin_edge(j) + bin_edge(j + 1)) - bin_edge(index))
            before = now
        return excess / before

    @kernel
    def tail_p_value(tree: Counts, surprise: float, total: float) -> float:
        """Return the p-value by an exponential tail fitted to the largest surprises.

        Outliers of bounded size can make the end of the tail too steep: with many points, the tail falls no faster than
        from its largest five-hundredth on.
        """
        index = find_tail_bin(tree, total, TAIL_FIT_POINTS)
        above, slope = total - fenwick_prefix_sum(tree, index), mean_excess(tree, total, index)
        if total > TAIL_SLOPE_MIN_POINTS:
            slope = maximum(slope, mean_excess(tree, total, find_tail_bin(tree, total, TAIL_SLOPE_SHARE * total)))
        x = maximum(surprise - bin_edge(index), 0.0) / (above * slope)
        return (1.0 + TAIL_CAUTION_POINTS / total) * above / (total + 1.0) * exp(-above * log(1.0 + x))

    @kernel
    def is_within_promise(tally: Counts, far: float) -> bool:
        return tally[N_ANOMALIES] <= MAX_EXCESS_ANOMALIES + far * tally[N_COUNTED]

    @kernel
    def p_value(tally: Counts, tree: Counts, surprise: float, far: float) -> float:
        surprise = surprise if surprise < bin_edge(n_bins) else bin_edge(n_bins)  # capped at the last bin
        total, index = float(count_all(tree)), find_bin(surprise)
        n_at_least = total - fenwick_prefix_sum(tree, index)
        n_larger = n_at_least - fenwick_count(tree, index)
        if n_larger < MIN_LARGER_COUNT:
            p = tail_p_value(tree, surprise, total)
            if not is_within_promise(tally, far):
                p = maximum(p, (n_larger + 0.5 * (n_at_least - n_larger)) / (total + 1.0))  # the observed share
            return p if p < 1.0 else 1.0
        width = bin_edge(index + 1) - bin_edge(index)
        fraction = (surprise - bin_edge(index)) / width if surprise > 0.0 else 0.0
        if n_larger > LINEAR_SHARE_THRESHOLD * total:
            return (n_at_least - fraction * (n_at_least - n_larger) + 0.5) / (total + 1.0)
        return exp((1.0 - fraction) * log(n_at_least + 0.5) + fraction * log(n_larger + 0.5)) / (total + 1.0)

    @kernel
    def count_surprise(tally: Counts, tree: Counts, surprise: float, p: float, level: float, far: float) -> None:
        index = find_bin(surprise)
        if p <= level and is_within_promise(tally, far):
            while index > 0 and p_value(tally, tree, bin_edge(index), far) <= level:
                index -= 1
        fenwick_add(tree, n_bins, index)
        tally[N_COUNTED] += 1

    @kernel
    def halve_if_full(tally: Counts, tree: Counts) -> None:
        if tally[N_COUNTED] >= MAX_TALLY:
            tally[N_COUNTED], tally[N_ANOMALIES] = MAX_TALLY // 2, tally[N_ANOMALIES] // 2
        if count_all(tree) >= max_count:
            fenwick_halve(tree, len(tree), (tally[N_COUNTED] // (max_count // 2)) & 1)  # alternately rounded

    @kernel
    def observe(
        tally: Counts, tree: Counts, surprise: float, squared_distance: float, far: float, min_squared_distance: float
    ) -> tuple[float, bool]:
        p = p_value(tally, tree, surprise, far)
        count_surprise(tally, tree, surprise, p, MIN_COUNTED_P_VALUE_FACTOR * far, far)
        halve_if_full(tally, tree)
        anomalous = is_anomaly(p, squared_distance, far, min_squared_distance)
        if anomalous:
            tally[N_ANOMALIES] += 1
        return p, anomalous

    tally_size, tree_size = profile.int32_slots(TALLY_SIZE), profile.count_slots(n_bins)
    return AnomalyKernels(tally_size, tree_size, observe, p_value, count_surprise, halve_if_full)


def min_anomaly_distance(far: float, d: int) -> float:
    """Return the distance in sd beyond which a point can be an anomaly."""
    return gamma_for_rate(min(DISTANCE_RATE_FACTOR * far, 0.5), d)


@kernel
def is_anomaly(p: float, squared_distance: float, far: float, min_squared_distance: float) -> bool:
    """Apply the anomaly rule: a rare score, of a point that is far from the estimate."""
    return p <= far and squared_distance > min_squared_distance


@kernel
def starts_run(theta: Vector, in_anomaly_offset: int, anomalous: bool) -> bool:
    """Return whether a point starts a run of anomalies, which raises the alarm."""
    starts = anomalous and theta[in_anomaly_offset] == 0.0
    theta[in_anomaly_offset] = 1.0 if anomalous else 0.0
    return starts
