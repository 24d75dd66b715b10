"""A summary of a stream that stays small however long the stream is: what a picture of it needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.errors import BadInputError
from holdfast.learners.trace import Trace
from holdfast.scheme.algorithm import ANOMALOUS, FATE, REJECTED, UNUSABLE
from holdfast.scheme.state import Vector

MOST = 4096  # buckets; there are at least half as many once the stream is longer than that
ROOM = 64  # buckets there is room for in the beginning: many streams are short
Array = npt.NDArray[Any]

SMALLEST, LARGEST, LAST, COUNT = "smallest", "largest", "last", "count"
KEPT = {  # in what way two neighbours become one
    "least": SMALLEST,
    "greatest": LARGEST,
    "dropped_least": SMALLEST,
    "dropped_greatest": LARGEST,
    "estimate": LAST,
    "score": LARGEST,
    "change_score": LARGEST,
    "n_dropped": COUNT,
    "n_bad": COUNT,
    "n_anomalies": COUNT,
}
OF_VARIABLES = ("least", "greatest", "dropped_least", "dropped_greatest", "estimate")


class Sketch:
    """Buckets of equally many rows, one after another; up to ``most`` rows a bucket is a single row.

    When they are full, neighbours are joined. The sketch depends on the rows alone, not on how they were cut into
    batches.

    names: of the variables. most: buckets, at most; an even number.

    >>> from holdfast import SRA
    >>> sketch, learner = Sketch(("t",)), SRA(gamma=4.0, rho=0.01)
    >>> for batch in np.random.default_rng(0).normal(size=(10, 1000, 1)):
    ...     sketch.add(batch, learner.process(batch))
    >>> sketch.n_rows, sketch.width, len(sketch), sketch.greatest.shape
    (10000, 4, 2500, (1, 2500))
    """

    def __init__(self, names: tuple[str, ...], most: int = MOST) -> None:
        if not names or most < 2 or most % 2:
            raise BadInputError(f"expected names, and an even number of buckets, got {names!r} and {most!r}")
        self.names, self.most = tuple(names), most
        self.n_rows, self.width = 0, 1
        self.watched = False
        """Whether the scores are those of an autopilot, which has a change score of its own."""
        self.last_time: Any = None
        self._times: Array | None = None
        self._kept = {name: self._nothing(name, min(ROOM, most)) for name in KEPT}

    def __len__(self) -> int:
        return -(-self.n_rows // self.width)

    @property
    def exact(self) -> bool:
        """Whether each bucket is a single row."""
        return self.width == 1

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The first row of each bucket."""
        return np.arange(len(self), dtype=np.int64) * self.width

    @property
    def times(self) -> Array | None:
        """The first time of each bucket; None where times are not known."""
        return None if self._times is None else self._times[: len(self)]

    @property
    def least(self) -> Vector:
        """(d, buckets): the least value that was not dropped; NaN where there is none."""
        return self._kept["least"][:, : len(self)]

    @property
    def greatest(self) -> Vector:
        """(d, buckets): the greatest value that was not dropped; NaN where there is none."""
        return self._kept["greatest"][:, : len(self)]

    @property
    def dropped_least(self) -> Vector:
        """(d, buckets): the least value that was dropped; NaN where there is none."""
        return self._kept["dropped_least"][:, : len(self)]

    @property
    def dropped_greatest(self) -> Vector:
        """(d, buckets): the greatest value that was dropped; NaN where there is none."""
        return self._kept["dropped_greatest"][:, : len(self)]

    @property
    def estimate(self) -> Vector:
        """(d, buckets): the last estimate in the bucket; NaN where there is none."""
        return self._kept["estimate"][:, : len(self)]

    @property
    def score(self) -> Vector:
        """(buckets,): the largest score; NaN where there is none."""
        return self._kept["score"][0, : len(self)]

    @property
    def change_score(self) -> Vector:
        """(buckets,): the largest change score; NaN where there is none."""
        return self._kept["change_score"][0, : len(self)]

    @property
    def n_dropped(self) -> Vector:
        """(buckets,): how many rows were dropped."""
        return self._kept["n_dropped"][0, : len(self)]

    @property
    def n_bad(self) -> Vector:
        """(buckets,): how many rows could not be used."""
        return self._kept["n_bad"][0, : len(self)]

    @property
    def n_anomalies(self) -> Vector:
        """(buckets,): how many rows stand out."""
        return self._kept["n_anomalies"][0, : len(self)]

    def add(
        self,
        values: Vector,
        trace: Trace,
        means: Vector | None = None,
        times: Array | None = None,
        which: Array | None = None,
    ) -> None:
        """The rows that come next.

        values: (n, d), NaN where one is missing. trace: what became of them. means: (n, d), the estimate after each,
        NaN where it is not known. times: (n,), of any kind. which: only these entries of all that is given, as where
        a batch holds the rows of many streams.
        """
        fates, score = trace.fates, trace.score
        change_score = None if trace.watched is None else trace.watched[0]
        if which is not None:
            values, fates, score = values[which], fates[which], score[which]
            change_score = None if change_score is None else change_score[which]
            means, times = None if means is None else means[which], None if times is None else times[which]
        shape = (len(score), len(self.names))
        if values.shape != shape or (means is not None and means.shape != shape):
            raise BadInputError(f"expected values and means of shape {shape}, got {values.shape}")
        if not len(values):
            return
        while self.n_rows + len(values) > self.most * self.width:
            self._join_neighbours()
        first, begun = divmod(self.n_rows, self.width)  # the bucket that is next, and how many rows it has already
        starts = np.arange(-begun, len(values), self.width)
        starts[0] = 0
        self._make_room(first + len(starts))
        self._note_times(times, starts[1:] if begun else starts)
        out, bad = fates & FATE == REJECTED, fates & FATE == UNUSABLE
        columns = np.array(values.T, np.float64, order="C")
        news = {"score": np.fmax.reduceat(score, starts)}
        at = np.flatnonzero(out)
        buckets = (begun + at) // self.width
        if len(at):
            runs = np.flatnonzero(np.diff(buckets, prepend=-1))
            for name, smallest in (("dropped_least", np.fmin), ("dropped_greatest", np.fmax)):
                news[name] = np.full((len(columns), len(starts)), np.nan)
                news[name][:, buckets[runs]] = smallest.reduceat(_finite(columns[:, at]), runs, axis=1)
        for name, flags in (("n_dropped", out), ("n_bad", bad), ("n_anomalies", fates & ANOMALOUS > 0)):
            at = np.flatnonzero(flags)
            if len(at):
                news[name] = np.bincount((begun + at) // self.width, minlength=len(starts)).astype(np.float64)
        if change_score is None:
            change_score = np.where(out, np.nan, score)
        else:
            self.watched = True
        news["change_score"] = np.fmax.reduceat(change_score, starts)
        columns[:, out | bad] = np.nan
        columns = _finite(columns)
        news["least"] = np.fmin.reduceat(columns, starts, axis=1)
        news["greatest"] = np.fmax.reduceat(columns, starts, axis=1)
        if means is not None:
            news["estimate"] = _last_known(means, starts)
        for name, more in news.items():
            kept = self._kept[name][:, first : first + len(starts)]
            kept[:] = _join(KEPT[name], kept, more)
        self.n_rows += len(values)

    def _nothing(self, name: str, n_buckets: int) -> Vector:
        shape = (len(self.names) if name in OF_VARIABLES else 1, n_buckets)
        return np.full(shape, 0.0 if KEPT[name] == COUNT else np.nan)

    def _make_room(self, n_buckets: int) -> None:
        """For so many buckets, and so that this need not be done often."""
        room = self._kept["score"].shape[1]
        if n_buckets > room:
            more = min(self.most, max(n_buckets, 2 * room)) - room
            self._kept = {name: np.hstack([kept, self._nothing(name, more)]) for name, kept in self._kept.items()}

    def _join_neighbours(self) -> None:
        """Make one bucket of two; the last one may be left alone, and is then joined to one with nothing in it."""
        whole = -(-len(self) // 2)
        self._make_room(2 * whole)
        if self._times is not None:
            self._times = self._times[: len(self) : 2].copy()
        for name, kept in self._kept.items():
            joined = _join(KEPT[name], kept[:, : 2 * whole : 2], kept[:, 1 : 2 * whole : 2])
            kept[:, whole:] = self._nothing(name, 1)
            kept[:, :whole] = joined
        self.width *= 2

    def _note_times(self, times: Array | None, starts: Array) -> None:
        """The first time of each bucket that begins; where a batch comes without them, there are none from then on."""
        if times is None or (self.n_rows and self._times is None):
            self._times = self.last_time = None
            return
        self._times = times[starts] if self._times is None else np.concatenate([self._times, times[starts]])
        self.last_time = times[-1]


def estimate_of(trace: Trace) -> Vector | None:
    """The estimate after each row, (n, d), if it was recorded; of several components there is no single one."""
    means = trace.recorded.get("means")
    return None if means is None or means.shape[1] != 1 else means[:, 0]


def _join(way: str, before: Array, after: Array) -> Array:
    """What is kept of two buckets together."""
    if way == SMALLEST:
        return np.fmin(before, after)
    if way == LARGEST:
        return np.fmax(before, after)
    return before + after if way == COUNT else np.where(np.isnan(after), before, after)


def _finite(columns: Vector) -> Vector:
    """The same array with NaN for what is infinite."""
    columns[np.isinf(columns)] = np.nan
    return columns


def _last_known(means: Vector, starts: Array) -> Vector:
    """(d, buckets): the last estimate that is a number in each bucket; NaN where there is none."""
    ends = np.append(starts[1:], len(means)) - 1
    last: Vector = means[ends].T
    unknown = np.flatnonzero(np.isnan(last).any(axis=0))
    for bucket in unknown:
        rows = means[starts[bucket] : ends[bucket] + 1]
        for variable in np.flatnonzero(np.isnan(last[:, bucket])):
            known = np.flatnonzero(~np.isnan(rows[:, variable]))
            last[variable, bucket] = rows[known[-1], variable] if len(known) else np.nan
    return last
