"""The second lock: the tail of the evidence itself, for streams whose points are not exchangeable.

Where they are, the peaks of log M above a level u₀ exceed it by an exponential amount of mean 1: that is the promise.
Volatility in clusters, long memory or a season make the tail fatter, and false alarms many times as frequent. So the
mean excess m is learnt from the peaks, and the threshold h raised to u₀ + m²·(h − u₀) where m is surely above 1.

A peak counts up to a limit only (a censored exponential), so that real changes, whose peaks have no bound, do not
deafen it: the many small peaks between changes decide. Alarms do not erase what was learnt.
"""

from __future__ import annotations

import math

from holdfast.alarms.layout import LOCK
from holdfast.scheme.compiling import kernel
from holdfast.scheme.elementary import log
from holdfast.scheme.state import Vector

PEAK, UNCENSORED, EXCESS, STRETCH = LOCK, LOCK + 1, LOCK + 2, LOCK + 3  # STRETCH: m² − 1

LEVEL = 3.4  # u₀
FROM, UNTIL = 29.964100047397025, 11.023176380641601  # e^u₀, e^(u₀ − 1): where a peak begins and where it ends
MOST = 2.5  # up to which an excess counts
FORGETTING = 0.999  # of each peak
SURE = 3.0  # standard errors
PRIOR = 20.0  # peaks of mean excess 1 that are taken as seen
LARGEST_STRETCH = 7.0


@kernel
def record(memory: Vector, at: int, alarm: bool) -> None:
    """A peak is over; an alarm cuts it short."""
    if memory[at + PEAK] == 0.0:  # a threshold below the level: no peak has begun
        return
    excess = log(memory[at + PEAK]) - LEVEL
    memory[at + PEAK] = 0.0
    memory[at + EXCESS] *= FORGETTING
    memory[at + UNCENSORED] *= FORGETTING
    memory[at + EXCESS] += excess if excess < MOST else MOST
    if excess < MOST and not alarm:
        memory[at + UNCENSORED] += 1.0
    n = memory[at + UNCENSORED] + PRIOR
    surely = (memory[at + EXCESS] + PRIOR) / (n + SURE * math.sqrt(n))  # a lower bound of m
    stretch = surely * surely - 1.0 if surely > 1.0 else 0.0  # squared: the tail grows fatter farther out
    stretch = stretch if stretch < LARGEST_STRETCH else LARGEST_STRETCH
    memory[at + STRETCH] = stretch


@kernel
def follow(memory: Vector, at: int, evidence: float) -> None:
    """Follows the peaks of M."""
    peak = memory[at + PEAK]
    if evidence > FROM and evidence > peak:
        memory[at + PEAK] = evidence
    elif peak > 0.0 and evidence < UNTIL:
        record(memory, at, False)


@kernel
def raised(memory: Vector, at: int, threshold: float) -> float:
    """The threshold with what the second lock adds, on the scale of log M."""
    above = threshold - LEVEL
    return threshold + (memory[at + STRETCH] * above if above > 0.0 else 0.0)
