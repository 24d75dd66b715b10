"""From surprise to a p-value: how rare a surprise of this size has been in this stream.

Surprises are counted in bins. Within the range where some have been seen, the p-value is the share of those that were
larger, interpolated. Beyond, the largest ones seen are continued as an exponential tail: with Student's densities the
surprise grows with the logarithm of the distance, so that a power law has exactly such a tail, and whatever has lighter
tails is judged with caution. The uncertainty of a slope taken from k values is carried along (the predictive
distribution of an exponential whose scale is estimated): p = k/n · (1 + x/Σ)^(−k), Σ the sum of their excesses.

A surprise that is called an anomaly counts as one just beyond the level: a glitch does not hide the next one, and yet
anomalies that keep coming raise the level.
"""

from __future__ import annotations

from holdfast.scheme.compiling import kernel
from holdfast.scheme.counting import add_count, count_at, count_below
from holdfast.scheme.elementary import at_least, exp, log
from holdfast.scheme.state import Vector

FINE, FINE_BINS = 0.125, 64  # nats, up to 8 …
COARSE, BINS = 0.5, 128  # … then up to 40
TURN = FINE * FINE_BINS
ENOUGH = 10.0  # larger ones, for a share to be taken as it is
USUAL = 0.1  # share of larger ones above which a straight line between two edges will do
TAIL = 30.0  # largest ones that the tail is fitted to

# calibration = [ counted | tree of counts … ]
SIZE = 1 + BINS


@kernel
def edge(place: int) -> float:
    """The lower edge of a bin."""
    return FINE * place if place <= FINE_BINS else TURN + COARSE * (place - FINE_BINS)


@kernel
def bin_of(surprise: float) -> int:
    """The bin of a surprise."""
    if surprise < TURN:
        return int(at_least(surprise, 0.0) * (1.0 / FINE))
    place = FINE_BINS + int((surprise - TURN) * (1.0 / COARSE)) if surprise < edge(BINS) else BINS - 1
    return place if place < BINS else BINS - 1


@kernel
def tail_p_value(memory: Vector, at: int, surprise: float, total: float) -> float:
    """Beyond what has been seen often: the largest values continued as an exponential tail."""
    place, above = BINS - 1, total - count_below(memory, at + 1, BINS - 1)
    while place > 0 and above < TAIL:
        place -= 1
        above = total - count_below(memory, at + 1, place)
    base, excess, before = edge(place), 0.0, 0.0
    for j in range(BINS - 1, place - 1, -1):
        now = total - count_below(memory, at + 1, j)
        excess += (now - before) * (0.5 * (edge(j) + edge(j + 1)) - base)
        before = now
    return above / (total + 1.0) * exp(-above * log(1.0 + at_least(surprise - base, 0.0) / excess))


@kernel
def p_value(memory: Vector, at: int, surprise: float) -> float:
    """The chance of a surprise as large as this one, from those seen so far."""
    total, place = memory[at], bin_of(surprise)
    low = total - count_below(memory, at + 1, place)
    larger = low - count_at(memory, at + 1, place)
    if larger < ENOUGH:
        p = tail_p_value(memory, at, surprise, total)
        return p if p < 1.0 else 1.0
    width = edge(place + 1) - edge(place)
    along = (surprise - edge(place)) / width if surprise > 0.0 else 0.0
    if larger > USUAL * total:
        return (low - along * (low - larger) + 0.5) / (total + 1.0)
    return exp((1.0 - along) * log(low + 0.5) + along * log(larger + 0.5)) / (total + 1.0)


@kernel
def count_surprise(memory: Vector, at: int, surprise: float, p: float, level: float) -> None:
    """Counts a surprise; one beyond the level counts as if it lay just beyond it."""
    place = bin_of(surprise)
    if p <= level:
        while place > 1 and memory[at] - count_below(memory, at + 1, place - 1) <= level * memory[at]:
            place -= 1
    add_count(memory, at + 1, BINS, place, 1.0)
    memory[at] += 1.0
