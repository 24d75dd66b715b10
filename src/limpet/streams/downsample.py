"""A summary of a stream that stays small however long the stream is: what a picture of it needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.core.algorithm import OUTCOME_ANOMALY, OUTCOME_INVALID, OUTCOME_MASK, OUTCOME_REJECTED
from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError
from limpet.learners.results import Trace

MAX_BUCKETS = 4096  # buckets; there are at least half as many once the stream is longer than that
INITIAL_BUCKETS = 64  # buckets there is room for in the beginning: many streams are short
Array = npt.NDArray[Any]

REDUCE_MIN, REDUCE_MAX, REDUCE_LAST, REDUCE_SUM = "smallest", "largest", "last", "count"
REDUCTIONS = {  # in what way two neighbours become one
    "least": REDUCE_MIN,
    "greatest": REDUCE_MAX,
    "rejected_minimum": REDUCE_MIN,
    "rejected_maximum": REDUCE_MAX,
    "estimate": REDUCE_LAST,
    "score": REDUCE_MAX,
    "change_score": REDUCE_MAX,
    "n_rejected": REDUCE_SUM,
    "n_invalid": REDUCE_SUM,
    "n_anomalies": REDUCE_SUM,
}
PER_VARIABLE_COLUMNS = ("least", "greatest", "rejected_minimum", "rejected_maximum", "estimate")


class MinMaxSummary:
    """Buckets of equally many rows, one after another; up to ``most`` rows a bucket is a single row.

    When they are full, neighbours are joined. The sketch depends on the rows alone, not on how they were cut into
    batches.

    names: of the variables. most: buckets, at most; an even number.

    >>> from limpet import SRA
    >>> sketch, learner = Sketch(("t",)), SRA(gamma=4.0, rho=0.01)
    >>> for batch in np.random.default_rng(0).normal(size=(10, 1000, 1)):
    ...     sketch.add(batch, learner.process(batch))
    >>> sketch.n_rows, sketch.width, len(sketch), sketch.greatest.shape
    (10000, 4, 2500, (1, 2500))
    """

    def __init__(self, names: tuple[str, ...], max_buckets: int = MAX_BUCKETS) -> None:
        if not names or max_buckets < 2 or max_buckets % 2:
            raise InvalidInputError(f"expected names, and an even number of buckets, got {names!r} and {max_buckets!r}")
        self.names, self.max_buckets = tuple(names), max_buckets
        self.n_rows, self.width = 0, 1
        self.is_auto = False
        """Whether the scores are those of an autopilot, which has a change score of its own."""
        self.last_time: Any = None
        self._times: Array | None = None
        self._columns = {name: self._make_empty(name, min(INITIAL_BUCKETS, max_buckets)) for name in REDUCTIONS}

    def __len__(self) -> int:
        return -(-self.n_rows // self.width)

    @property
    def is_exact(self) -> bool:
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
    def minimum(self) -> Vector:
        """(d, buckets): the least value that was not dropped; NaN where there is none."""
        return self._columns["least"][:, : len(self)]

    @property
    def maximum(self) -> Vector:
        """(d, buckets): the greatest value that was not dropped; NaN where there is none."""
        return self._columns["greatest"][:, : len(self)]

    @property
    def rejected_minimum(self) -> Vector:
        """(d, buckets): the least value that was dropped; NaN where there is none."""
        return self._columns["rejected_minimum"][:, : len(self)]

    @property
    def rejected_maximum(self) -> Vector:
        """(d, buckets): the greatest value that was dropped; NaN where there is none."""
        return self._columns["rejected_maximum"][:, : len(self)]

    @property
    def estimate(self) -> Vector:
        """(d, buckets): the last estimate in the bucket; NaN where there is none."""
        return self._columns["estimate"][:, : len(self)]

    @property
    def score(self) -> Vector:
        """(buckets,): the largest score; NaN where there is none."""
        return self._columns["score"][0, : len(self)]

    @property
    def change_score(self) -> Vector:
        """(buckets,): the largest change score; NaN where there is none."""
        return self._columns["change_score"][0, : len(self)]

    @property
    def n_rejected(self) -> Vector:
        """(buckets,): how many rows were dropped."""
        return self._columns["n_rejected"][0, : len(self)]

    @property
    def n_invalid(self) -> Vector:
        """(buckets,): how many rows could not be used."""
        return self._columns["n_invalid"][0, : len(self)]

    @property
    def n_anomalies(self) -> Vector:
        """(buckets,): how many rows stand out."""
        return self._columns["n_anomalies"][0, : len(self)]

    def add(
        self,
        values: Vector,
        trace: Trace,
        means: Vector | None = None,
        times: Array | None = None,
        selection: Array | None = None,
    ) -> None:
        """The rows that come next.

        values: (n, d), NaN where one is missing. trace: what became of them. means: (n, d), the estimate after each,
        NaN where it is not known. times: (n,), of any kind. which: only these entries of all that is given, as where
        a batch holds the rows of many streams.
        """
        outcomes, score = trace.outcomes, trace.score
        change_score = None if trace.auto_scores is None else trace.auto_scores[0]
        if selection is not None:
            values, outcomes, score = values[selection], outcomes[selection], score[selection]
            change_score = None if change_score is None else change_score[selection]
            means, times = None if means is None else means[selection], None if times is None else times[selection]
        shape = (len(score), len(self.names))
        if values.shape != shape or (means is not None and means.shape != shape):
            raise InvalidInputError(f"expected values and means of shape {shape}, got {values.shape}")
        if not len(values):
            return
        while self.n_rows + len(values) > self.max_buckets * self.width:
            self._merge_neighbors()
        first, n_filled = divmod(self.n_rows, self.width)  # the bucket that is next, and how many rows it has already
        starts = np.arange(-n_filled, len(values), self.width)
        starts[0] = 0
        self._reserve(first + len(starts))
        self._append_times(times, starts[1:] if n_filled else starts)
        rejected, invalid = outcomes & OUTCOME_MASK == OUTCOME_REJECTED, outcomes & OUTCOME_MASK == OUTCOME_INVALID
        columns = np.array(values.T, np.float64, order="C")
        updates = {"score": np.fmax.reduceat(score, starts)}
        indexes = np.flatnonzero(rejected)
        buckets = (n_filled + indexes) // self.width
        if len(indexes):
            runs = np.flatnonzero(np.diff(buckets, prepend=-1))
            for name, ufunc in (("rejected_minimum", np.fmin), ("rejected_maximum", np.fmax)):
                updates[name] = np.full((len(columns), len(starts)), np.nan)
                updates[name][:, buckets[runs]] = ufunc.reduceat(_replace_infinite(columns[:, indexes]), runs, axis=1)
        for name, flags in (
            ("n_rejected", rejected),
            ("n_invalid", invalid),
            ("n_anomalies", outcomes & OUTCOME_ANOMALY > 0),
        ):
            indexes = np.flatnonzero(flags)
            if len(indexes):
                updates[name] = np.bincount((n_filled + indexes) // self.width, minlength=len(starts)).astype(
                    np.float64
                )
        if change_score is None:
            change_score = np.where(rejected, np.nan, score)
        else:
            self.is_auto = True
        updates["change_score"] = np.fmax.reduceat(change_score, starts)
        columns[:, rejected | invalid] = np.nan
        columns = _replace_infinite(columns)
        updates["least"] = np.fmin.reduceat(columns, starts, axis=1)
        updates["greatest"] = np.fmax.reduceat(columns, starts, axis=1)
        if means is not None:
            updates["estimate"] = _find_last_known(means, starts)
        for name, update in updates.items():
            stored = self._columns[name][:, first : first + len(starts)]
            stored[:] = _merge(REDUCTIONS[name], stored, update)
        self.n_rows += len(values)

    def _make_empty(self, name: str, n_buckets: int) -> Vector:
        shape = (len(self.names) if name in PER_VARIABLE_COLUMNS else 1, n_buckets)
        return np.full(shape, 0.0 if REDUCTIONS[name] == REDUCE_SUM else np.nan)

    def _reserve(self, n_buckets: int) -> None:
        """For so many buckets, and so that this need not be done often."""
        capacity = self._columns["score"].shape[1]
        if n_buckets > capacity:
            n_extra = min(self.max_buckets, max(n_buckets, 2 * capacity)) - capacity
            self._columns = {
                name: np.hstack([column, self._make_empty(name, n_extra)]) for name, column in self._columns.items()
            }

    def _merge_neighbors(self) -> None:
        """Make one bucket of two; the last one may be left alone, and is then joined to one with nothing in it."""
        n_merged = -(-len(self) // 2)
        self._reserve(2 * n_merged)
        if self._times is not None:
            self._times = self._times[: len(self) : 2].copy()
        for name, column in self._columns.items():
            merged = _merge(REDUCTIONS[name], column[:, : 2 * n_merged : 2], column[:, 1 : 2 * n_merged : 2])
            column[:, n_merged:] = self._make_empty(name, 1)
            column[:, :n_merged] = merged
        self.width *= 2

    def _append_times(self, times: Array | None, starts: Array) -> None:
        """The first time of each bucket that begins; where a batch comes without them, there are none from then on."""
        if times is None or (self.n_rows and self._times is None):
            self._times = self.last_time = None
            return
        self._times = times[starts] if self._times is None else np.concatenate([self._times, times[starts]])
        self.last_time = times[-1]


def last_estimate(trace: Trace) -> Vector | None:
    """The estimate after each row, (n, d), if it was recorded; of several components there is no single one."""
    means = trace.recorded.get("means")
    return None if means is None or means.shape[1] != 1 else means[:, 0]


def _merge(reduction: str, before: Array, after: Array) -> Array:
    """What is kept of two buckets together."""
    if reduction == REDUCE_MIN:
        return np.fmin(before, after)
    if reduction == REDUCE_MAX:
        return np.fmax(before, after)
    return before + after if reduction == REDUCE_SUM else np.where(np.isnan(after), before, after)


def _replace_infinite(columns: Vector) -> Vector:
    """The same array with NaN for what is infinite."""
    columns[np.isinf(columns)] = np.nan
    return columns


def _find_last_known(means: Vector, starts: Array) -> Vector:
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
