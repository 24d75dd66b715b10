"""Who has which points: the points of a call sorted by stream, each stream's own in the order in which they came."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.scheme.compiling import compiled
from holdfast.scheme.lanes import LANES

Integers = npt.NDArray[np.int64]

FEW_OF = 16  # streams a point, from which on points are sorted rather than counted
FEW = 2  # streams left side by side, from which on it is quicker to run them one after another


@dataclass(frozen=True, eq=False)
class Turns:
    """Stream s of these has the points order[begins[s]] … order[begins[s] + counts[s] − 1]. See `scheme.many.Many`.

    streams: rows of the matrix of states, each of them once.
    """

    streams: Integers
    begins: Integers
    counts: Integers
    order: Integers

    @classmethod
    def of(cls, rows: Integers, n_rows: int) -> Turns:
        """The points at rows[i] = stream, in order; a negative one is nobody's. n_rows: of the matrix of states."""
        if FEW_OF * len(rows) > n_rows:
            return cls(*_sort(rows, n_rows))
        order = np.argsort(rows, kind="stable")  # few points among many streams: these are not gone through
        order = order[np.searchsorted(rows[order], 0) :]
        streams, begins, counts = np.unique(rows[order], return_index=True, return_counts=True)
        return cls(streams, begins, counts, order)

    def __len__(self) -> int:
        return len(self.streams)

    @cached_property
    def n_points(self) -> int:
        """How many points there are."""
        return int(self.counts.sum())

    @cached_property
    def even(self) -> bool:
        """Whether all streams have as many points."""
        return not len(self) or bool(self.counts.min() == self.counts.max())

    @cached_property
    def in_order(self) -> bool:
        """Whether each stream has one point, and they come in the order of the streams."""
        n = len(self)
        return self.even and n == len(self.order) and bool((self.order[self.begins] == np.arange(n)).all())

    def places_of(self, marked: npt.NDArray[np.integer[Any]]) -> tuple[list[int], list[int]]:
        """The places in `order` of the points that are marked, and which of the streams each belongs to."""
        if self.in_order:
            owners = np.flatnonzero(marked)
            return self.begins[owners].tolist(), owners.tolist()
        places = np.flatnonzero(marked[self.order])
        by_begin = np.argsort(self.begins) if len(places) else places
        owners = by_begin[np.searchsorted(self.begins[by_begin], places, side="right") - 1]
        return places.tolist(), owners.tolist()

    def some(self, which: npt.NDArray[np.bool_] | Integers | slice) -> Turns:
        """Those of some of the streams."""
        return Turns(self.streams[which], self.begins[which], self.counts[which], self.order)

    def after(self, taken: Integers) -> Turns:
        """What is left when stream s has had taken[s] of its points."""
        left = Turns(self.streams, self.begins + taken, self.counts - taken, self.order)
        return left.some(left.counts > 0)

    def and_also(self, others: Turns) -> Turns:
        """Together with other streams of the same call."""
        streams, begins = np.append(self.streams, others.streams), np.append(self.begins, others.begins)
        return Turns(streams, begins, np.append(self.counts, others.counts), self.order)

    def longest_first(self) -> Turns:
        """Streams with most points first: those that stand side by side then finish at about the same time."""
        if self.even:
            return self
        by_count = np.argsort(-self.counts, kind="stable")
        return Turns(self.streams[by_count], self.begins[by_count], self.counts[by_count], self.order)

    def side_by_side(self) -> tuple[Turns, Turns]:
        """What is to be run side by side, and what is left over for later: where few of them go on much longer."""
        if self.even and not 0 < len(self) % LANES <= FEW:
            return self, self.some(slice(0))
        turns = self.longest_first()
        firsts = np.arange(0, len(turns), LANES)
        alone = np.minimum(firsts + FEW, len(turns) - 1)
        rounds = np.where(firsts + FEW < len(turns), turns.counts[alone], 0) if len(turns) else firsts
        together = np.minimum(turns.counts, np.repeat(rounds, LANES)[: len(turns)])
        both = Turns(turns.streams, turns.begins, together, turns.order)
        return both.some(together > 0), turns.after(together)

    def parts(self, n: int) -> list[slice]:
        """The streams in n parts with about as many points each."""
        shares = np.arange(1, n) / n
        if self.even:
            edges = (shares * len(self)).astype(np.int64)
        else:
            done = np.cumsum(self.counts)
            edges = np.searchsorted(done, shares * done[-1])
        edges = np.concatenate([[0], -(-edges // LANES) * LANES, [len(self)]])
        return [slice(first, last) for first, last in pairwise(edges.tolist()) if first < last]


def _sort_by_stream(rows, n_rows):  # type: ignore[no-untyped-def]
    counts_of, n_streams = np.zeros(n_rows, np.int64), 0
    for i in range(len(rows)):
        if rows[i] >= 0:
            n_streams += counts_of[rows[i]] == 0
            counts_of[rows[i]] += 1
    streams, begins, counts = (
        np.empty(n_streams, np.int64),
        np.empty(n_streams, np.int64),
        np.empty(n_streams, np.int64),
    )
    s, n = 0, 0
    for row in range(n_rows):
        if counts_of[row] > 0:
            streams[s], begins[s], counts[s] = row, n, counts_of[row]
            counts_of[row], n, s = n, n + counts_of[row], s + 1
    order = np.empty(n, np.int64)
    for i in range(len(rows)):
        if rows[i] >= 0:
            order[counts_of[rows[i]]] = i
            counts_of[rows[i]] += 1
    return streams, begins, counts, order


_sort = compiled(_sort_by_stream, allocates=True, releases_gil=True)
