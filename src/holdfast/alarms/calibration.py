"""From surprise to a p-value: how rare a surprise of this size has been in this stream.

Surprises are counted in bins. Within the range where some have been seen, the p-value is the share of those that were
larger, interpolated. Beyond, the largest ones seen are continued as an exponential tail: with Student's densities the
surprise grows with the logarithm of the distance, so that a power law has exactly such a tail, and whatever has lighter
tails is judged with caution. The uncertainty of a slope taken from k values is carried along (the predictive
distribution of an exponential whose scale is estimated): p = k/n · (1 + x/Σ)^(−k), Σ the sum of their excesses.

A surprise far beyond the level counts as one just beyond it: a glitch does not hide the next one. But only while no
more anomalies have been called than were promised; then each counts for what it is, and nothing is taken to be rarer
than it has been. So what keeps coming, or cannot be told by a tail (counts, values that are mostly the same), is
called a few times only.

Before the counts are too large for the room they have, all of them are halved, and go on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.autopilot.sizes import Sizes
from holdfast.scheme.compiling import kernel
from holdfast.scheme.counting import MOST, Counts, add_count, count_at, count_below, halve_counts
from holdfast.scheme.elementary import at_least, exp, log

ENOUGH = 10.0  # larger ones, for a share to be taken as it is
USUAL = 0.1  # share of larger ones above which a straight line between two edges will do
MANY, OFTEN = 15000.0, 0.002  # points from which on the tail may not fall quicker than from this share on
TAIL = 16.0  # largest ones that the tail is fitted to
CAUTION = 150.0  # points: while the views are still learning, the largest surprises come somewhat too often
SPARE = 2.0  # anomalies more than were promised, before the level rises to them

# tally = [ points counted | anomalies called ], whole numbers of 32 bits; then there is a tree of counts
COUNTED, CALLED, TALLY = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Calibration:
    """The compiled functions; `tally` and `tree` are the two parts of what is kept."""

    tally_size: int
    tree_size: int
    """Places that the two parts take in a state."""

    p_value: Callable[..., Any]
    """(tally, tree, surprise, far) → the chance of a surprise as large as this one, from those seen so far."""

    count_surprise: Callable[..., Any]
    """(tally, tree, surprise, p, level, far): counts a surprise; one beyond the level counts as if it lay just beyond
    it, as long as the promise is kept."""

    keep_small: Callable[..., Any]
    """(tally, tree): halves the counts if they are about to be too large."""


@cache
def calibration_functions(sizes: Sizes) -> Calibration:
    """With as many bins as there is room for."""
    fine, fine_bins, coarse, bins, most = sizes.fine, sizes.fine_bins, sizes.coarse, sizes.surprises, sizes.most
    turn = fine * fine_bins

    @kernel
    def last_entry(tree: Counts) -> int:
        return int(tree[bins - 1])

    @kernel
    def sum_of_all(tree: Counts) -> int:
        return count_below(tree, bins)

    total_of = last_entry if bins & (bins - 1) == 0 else sum_of_all

    @kernel
    def edge(place: int) -> float:
        """The lower edge of a bin."""
        return fine * place if place <= fine_bins else turn + coarse * (place - fine_bins)

    @kernel
    def bin_of(surprise: float) -> int:
        """The bin of a surprise."""
        if surprise < turn:
            return int(at_least(surprise, 0.0) * (1.0 / fine))
        place = fine_bins + int((surprise - turn) * (1.0 / coarse)) if surprise < edge(bins) else bins - 1
        return place if place < bins else bins - 1

    @kernel
    def base_of(tree: Counts, total: float, largest: float) -> int:
        """The bin from which on there are so many of the largest ones, at least."""
        place = bins - 1
        while place > 0 and total - count_below(tree, place) < largest:
            place -= 1
        return place

    @kernel
    def mean_excess(tree: Counts, total: float, place: int) -> float:
        """By how much, on average, the largest ones exceed the lower edge of the bin from which on they are."""
        excess, before = 0.0, 0.0
        for j in range(bins - 1, place - 1, -1):
            now = total - count_below(tree, j)
            excess += (now - before) * (0.5 * (edge(j) + edge(j + 1)) - edge(place))
            before = now
        return excess / before

    @kernel
    def tail_p_value(tree: Counts, surprise: float, total: float) -> float:
        """Beyond what has been seen often: the largest values continued as an exponential tail.

        Outliers of limited size can make the very end of the tail look steeper than what goes on beyond them: where
        many points have been seen, the tail falls no quicker than it does from its largest five-hundredth on.
        """
        place = base_of(tree, total, TAIL)
        above, slope = total - count_below(tree, place), mean_excess(tree, total, place)
        if total > MANY:
            slope = at_least(slope, mean_excess(tree, total, base_of(tree, total, OFTEN * total)))
        x = at_least(surprise - edge(place), 0.0) / (above * slope)
        return (1.0 + CAUTION / total) * above / (total + 1.0) * exp(-above * log(1.0 + x))

    @kernel
    def in_promise(tally: Counts, far: float) -> bool:
        """Whether no more anomalies have been called than were promised, and a few."""
        return tally[CALLED] <= SPARE + far * tally[COUNTED]

    @kernel
    def p_value(tally: Counts, tree: Counts, surprise: float, far: float) -> float:
        surprise = surprise if surprise < edge(bins) else edge(bins)  # beyond, all are alike
        total, place = float(total_of(tree)), bin_of(surprise)
        low = total - count_below(tree, place)
        larger = low - count_at(tree, place)
        if larger < ENOUGH:
            p = tail_p_value(tree, surprise, total)
            if not in_promise(tally, far):
                p = at_least(p, (larger + 0.5 * (low - larger)) / (total + 1.0))  # as often as it has been seen
            return p if p < 1.0 else 1.0
        width = edge(place + 1) - edge(place)
        along = (surprise - edge(place)) / width if surprise > 0.0 else 0.0
        if larger > USUAL * total:
            return (low - along * (low - larger) + 0.5) / (total + 1.0)
        return exp((1.0 - along) * log(low + 0.5) + along * log(larger + 0.5)) / (total + 1.0)

    @kernel
    def count_surprise(tally: Counts, tree: Counts, surprise: float, p: float, level: float, far: float) -> None:
        place = bin_of(surprise)
        if p <= level and in_promise(tally, far):
            while place > 0 and p_value(tally, tree, edge(place), far) <= level:
                place -= 1
        add_count(tree, bins, place)
        tally[COUNTED] += 1

    @kernel
    def keep_small(tally: Counts, tree: Counts) -> None:
        if tally[COUNTED] >= MOST:
            tally[COUNTED], tally[CALLED] = MOST // 2, tally[CALLED] // 2
        if total_of(tree) >= most:
            halve_counts(tree, len(tree), (tally[COUNTED] // (most // 2)) & 1)  # rounded up and down in turn

    tally_size, tree_size = sizes.places_for_whole(TALLY), sizes.places_for_counts(bins)
    return Calibration(tally_size, tree_size, p_value, count_surprise, keep_small)
