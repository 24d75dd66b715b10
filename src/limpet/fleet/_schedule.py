"""Group the points of a call by stream, preserving arrival order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._jit.compile import jit_entry_point
from limpet._jit.simd import LANES

Integers = npt.NDArray[np.int64]

SORT_THRESHOLD_STREAMS_PER_POINT = 16  # with more streams per point, points are sorted rather than counted
MAX_SEQUENTIAL_TAIL_STREAMS = 2  # a group of at most so many streams runs faster sequentially than in lanes


@dataclass(frozen=True, eq=False)
class PointSchedule:
    """The points of each stream.

    Stream s has the points order[starts[s]] … order[starts[s] + counts[s] − 1].

    streams: distinct rows of the matrix of states. See `limpet.core.batched_algorithm`.
    """

    streams: Integers
    starts: Integers
    counts: Integers
    order: Integers

    @classmethod
    def from_rows(cls, rows: Integers, n_rows: int) -> PointSchedule:
        """Make the schedule of points whose streams are rows[i], ignoring negative ones.

        n_rows: number of rows of the matrix of states.
        """
        if SORT_THRESHOLD_STREAMS_PER_POINT * len(rows) > n_rows:
            return cls(*_compiled_sort_by_stream(rows, n_rows))
        order = np.argsort(rows, kind="stable")  # few points in many streams: avoids a pass over the streams
        order = order[np.searchsorted(rows[order], 0) :]
        streams, starts, counts = np.unique(rows[order], return_index=True, return_counts=True)
        return cls(streams, starts, counts, order)

    def __len__(self) -> int:
        return len(self.streams)

    @cached_property
    def n_points(self) -> int:
        """The number of points."""
        return int(self.counts.sum())

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all streams have equally many points."""
        return not len(self) or bool(self.counts.min() == self.counts.max())

    @cached_property
    def is_in_order(self) -> bool:
        """Whether each stream has one point, in the order of the streams."""
        n = len(self)
        return self.is_uniform and n == len(self.order) and bool((self.order[self.starts] == np.arange(n)).all())

    def find_marked(self, marked: npt.NDArray[np.integer[Any]]) -> tuple[list[int], list[int]]:
        """Return the positions in `order` of the marked points, and the stream of each."""
        if self.is_in_order:
            stream_indices = np.flatnonzero(marked)
            return self.starts[stream_indices].tolist(), stream_indices.tolist()
        positions = np.flatnonzero(marked[self.order])
        by_start = np.argsort(self.starts) if len(positions) else positions
        stream_indices = by_start[np.searchsorted(self.starts[by_start], positions, side="right") - 1]
        return positions.tolist(), stream_indices.tolist()

    def select(self, selection: npt.NDArray[np.bool_] | Integers | slice) -> PointSchedule:
        """Return the schedule of some of the streams."""
        return PointSchedule(self.streams[selection], self.starts[selection], self.counts[selection], self.order)

    def remaining(self, n_consumed: Integers) -> PointSchedule:
        """Return the schedule without the first n_consumed[s] points of stream s."""
        advanced = PointSchedule(self.streams, self.starts + n_consumed, self.counts - n_consumed, self.order)
        return advanced.select(advanced.counts > 0)

    def merge(self, others: PointSchedule) -> PointSchedule:
        """Return the union with other streams of the same call."""
        streams, starts = np.append(self.streams, others.streams), np.append(self.starts, others.starts)
        return PointSchedule(streams, starts, np.append(self.counts, others.counts), self.order)

    def sort_by_length(self) -> PointSchedule:
        """Sort streams by decreasing number of points. The lanes of a group then finish at about the same time."""
        if self.is_uniform:
            return self
        by_count = np.argsort(-self.counts, kind="stable")
        return PointSchedule(self.streams[by_count], self.starts[by_count], self.counts[by_count], self.order)

    def split_for_lanes(self) -> tuple[PointSchedule, PointSchedule]:
        """Split into a schedule for lanes and a remainder.

        The remainder has the last points of streams with many more points than the others.
        """
        if self.is_uniform and not 0 < len(self) % LANES <= MAX_SEQUENTIAL_TAIL_STREAMS:
            return self, self.select(slice(0))
        schedule = self.sort_by_length()
        group_starts = np.arange(0, len(schedule), LANES)
        tail_streams = np.minimum(group_starts + MAX_SEQUENTIAL_TAIL_STREAMS, len(schedule) - 1)
        n_rounds = (
            np.where(group_starts + MAX_SEQUENTIAL_TAIL_STREAMS < len(schedule), schedule.counts[tail_streams], 0)
            if len(schedule)
            else group_starts
        )
        lane_counts = np.minimum(schedule.counts, np.repeat(n_rounds, LANES)[: len(schedule)])
        in_lanes = PointSchedule(schedule.streams, schedule.starts, lane_counts, schedule.order)
        return in_lanes.select(lane_counts > 0), schedule.remaining(lane_counts)

    def partition(self, n: int) -> list[slice]:
        """Return n slices of the streams with about equally many points each."""
        shares = np.arange(1, n) / n
        if self.is_uniform:
            edges = (shares * len(self)).astype(np.int64)
        else:
            n_points_through = np.cumsum(self.counts)
            edges = np.searchsorted(n_points_through, shares * n_points_through[-1])
        edges = np.concatenate([[0], -(-edges // LANES) * LANES, [len(self)]])
        return [slice(first, last) for first, last in pairwise(edges.tolist()) if first < last]


def _sort_by_stream(rows, n_rows):  # type: ignore[no-untyped-def]
    counts_by_row, n_streams = np.zeros(n_rows, np.int64), 0
    for i in range(len(rows)):
        if rows[i] >= 0:
            n_streams += counts_by_row[rows[i]] == 0
            counts_by_row[rows[i]] += 1
    streams, starts, counts = (
        np.empty(n_streams, np.int64),
        np.empty(n_streams, np.int64),
        np.empty(n_streams, np.int64),
    )
    s, n = 0, 0
    for row in range(n_rows):
        if counts_by_row[row] > 0:
            streams[s], starts[s], counts[s] = row, n, counts_by_row[row]
            counts_by_row[row], n, s = n, n + counts_by_row[row], s + 1
    order = np.empty(n, np.int64)
    for i in range(len(rows)):
        if rows[i] >= 0:
            order[counts_by_row[rows[i]]] = i
            counts_by_row[rows[i]] += 1
    return streams, starts, counts, order


_compiled_sort_by_stream = jit_entry_point(_sort_by_stream, allocates=True, releases_gil=True)
