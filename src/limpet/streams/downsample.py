"""Downsample a stream to buckets: extremes, last estimates, scores, counts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet.core.algorithm import OUTCOME_ANOMALY, OUTCOME_INVALID, OUTCOME_REJECTED
from limpet.core.state import Vector
from limpet.exceptions import InvalidInputError
from limpet.learners.results import Trace

MAX_BUCKETS = 4096
INITIAL_BUCKETS = 64  # allocated at first: many streams are short
Array = npt.NDArray[Any]

REDUCE_FIRST, REDUCE_MIN, REDUCE_MAX, REDUCE_LAST = "first", "minimum", "maximum", "last"
REDUCE_SUM, REDUCE_OR = "sum", "or"
UFUNCS = {REDUCE_MIN: np.fmin, REDUCE_MAX: np.fmax, REDUCE_SUM: np.add, REDUCE_OR: np.bitwise_or}
REDUCTIONS = {
    "minimum": REDUCE_MIN,
    "maximum": REDUCE_MAX,
    "rejected_minimum": REDUCE_MIN,
    "rejected_maximum": REDUCE_MAX,
    "estimate": REDUCE_LAST,
    "score": REDUCE_MAX,
    "change_score": REDUCE_MAX,
    "n_rejected": REDUCE_SUM,
    "n_invalid": REDUCE_SUM,
    "n_anomalies": REDUCE_SUM,
}
PER_VARIABLE_COLUMNS = ("minimum", "maximum", "rejected_minimum", "rejected_maximum", "estimate")


def reduce_buckets(reduction: str, values: Array, starts: Array, axis: int = -1) -> Array:
    """Reduce the entries from each start up to the next one; NaN counts as missing.

    >>> values, starts = np.array([3.0, np.nan, 1.0, 5.0, np.nan]), np.array([0, 2])
    >>> [reduce_buckets(how, values, starts).tolist() for how in (REDUCE_FIRST, REDUCE_MIN, REDUCE_LAST)]
    [[3.0, 1.0], [3.0, 1.0], [3.0, 5.0]]
    """
    if reduction == REDUCE_FIRST:
        return np.take(values, starts, axis)
    if reduction != REDUCE_LAST:
        return np.asarray(UFUNCS[reduction].reduceat(values, starts, axis=axis))
    n = values.shape[axis]
    last: Array = np.take(values, np.append(starts[1:], n) - 1, axis)
    if not np.isnan(last).any():  # the usual case
        return last
    index = np.arange(n) if axis in (-1, values.ndim - 1) else np.arange(n)[:, None]
    known = np.maximum.reduceat(np.where(np.isnan(values), -1, index), starts, axis=axis)
    return np.where(known < 0, np.nan, np.take_along_axis(values, known, axis))


class MinMaxSummary:
    """A stream downsampled to buckets of equally many rows, of bounded size.

    Up to `max_buckets` rows each bucket is a single row. When all buckets are full, neighbors are merged. The result
    depends on the rows only, not on how they are cut into batches.

    Parameters
    ----------
    names : tuple of str
        The names of the variables.
    max_buckets : int
        The largest number of buckets, an even number; at least half as many are in use once the stream is longer.

    Attributes
    ----------
    n_rows : int
        The number of rows so far.
    width : int
        The number of rows per bucket.
    is_auto : bool
        Whether the learner computes a change score.
    last_time
        The time of the last row; None without times.

    Examples
    --------
    >>> from limpet import SRA
    >>> summary, learner = MinMaxSummary(("t",)), SRA(gamma=4.0, rho=0.01)
    >>> for batch in np.random.default_rng(0).normal(size=(10, 1000, 1)):
    ...     summary.add(batch, learner.process(batch))
    >>> summary.n_rows, summary.width, len(summary), summary.maximum.shape
    (10000, 4, 2500, (1, 2500))
    """

    minimum: Vector
    """(d, buckets): the smallest value that was not rejected; NaN if missing."""
    maximum: Vector
    """(d, buckets): the largest value that was not rejected; NaN if missing."""
    rejected_minimum: Vector
    """(d, buckets): the smallest rejected value; NaN if missing."""
    rejected_maximum: Vector
    """(d, buckets): the largest rejected value; NaN if missing."""
    estimate: Vector
    """(d, buckets): the last estimate; NaN if missing."""
    score: Vector
    """(buckets,): the largest score; NaN if missing."""
    change_score: Vector
    """(buckets,): the largest change score; NaN if missing."""
    n_rejected: Vector
    """(buckets,): the number of rejected rows."""
    n_invalid: Vector
    """(buckets,): the number of invalid rows."""
    n_anomalies: Vector
    """(buckets,): the number of anomalous rows."""

    def __init__(self, names: tuple[str, ...], max_buckets: int = MAX_BUCKETS) -> None:
        if not names:
            raise InvalidInputError(f"names: must have at least one name, got {names!r}.")
        if max_buckets < 2 or max_buckets % 2:
            raise InvalidInputError(f"max_buckets: must be an even number, got {max_buckets!r}.")
        self.names, self.max_buckets = tuple(names), max_buckets
        self.n_rows, self.width = 0, 1
        self.is_auto = False
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
        """The first time of each bucket; None without times."""
        return None if self._times is None else self._times[: len(self)]

    def value_range(self, variable: int, max_buckets: int) -> tuple[Array, Vector, Vector]:
        """Return first rows, minimum and maximum of larger buckets."""
        starts = np.arange(0, len(self), -(-len(self) // max_buckets))
        low = reduce_buckets(REDUCE_MIN, self.minimum[variable], starts)
        return self.rows[starts], low, reduce_buckets(REDUCE_MAX, self.maximum[variable], starts)

    def add(
        self,
        values: Vector,
        trace: Trace,
        means: Vector | None = None,
        times: Array | None = None,
        selection: Array | None = None,
    ) -> None:
        """Append rows.

        Parameters
        ----------
        values : array (n, d)
            The values, NaN where missing.
        trace : Trace
            The results of the rows.
        means : array (n, d), optional
            The estimate after each row, NaN where unknown.
        times : array (n,), optional
            Times of any type.
        selection : array of int, optional
            The rows to append, where a batch holds the rows of several streams.
        """
        outcomes, score = trace.outcomes, trace.score
        change_score = None if trace.auto_scores is None else trace.auto_scores[0]
        if selection is not None:
            values, outcomes, score = values[selection], outcomes[selection], score[selection]
            change_score = None if change_score is None else change_score[selection]
            means, times = None if means is None else means[selection], None if times is None else times[selection]
        shape = (len(score), len(self.names))
        for name, array in (("values", values), ("means", means)):
            if array is not None and array.shape != shape:
                raise InvalidInputError(f"{name}: must have shape {shape}, got {array.shape}.")
        if not len(values):
            return
        while self.n_rows + len(values) > self.max_buckets * self.width:
            self._merge_neighbors()
        first, n_filled = divmod(self.n_rows, self.width)  # the next bucket, and the rows that it has
        starts = np.arange(-n_filled, len(values), self.width)
        starts[0] = 0
        self._reserve(first + len(starts))
        self._append_times(times, starts[1:] if n_filled else starts)
        rejected, invalid = outcomes & OUTCOME_REJECTED > 0, outcomes & OUTCOME_INVALID > 0
        columns = np.array(values.T, np.float64, order="C")
        updates = {"score": reduce_buckets(REDUCE_MAX, score, starts)}
        if change_score is None:
            change_score = np.where(rejected, np.nan, score)
        else:
            self.is_auto = True
        updates["change_score"] = reduce_buckets(REDUCE_MAX, change_score, starts)
        anomalous = outcomes & OUTCOME_ANOMALY > 0
        for name, flags in (("n_rejected", rejected), ("n_invalid", invalid), ("n_anomalies", anomalous)):
            buckets = (n_filled + np.flatnonzero(flags)) // self.width
            if len(buckets):
                updates[name] = np.bincount(buckets, minlength=len(starts)).astype(np.float64)
        indexes = np.flatnonzero(rejected)  # few
        if len(indexes):
            buckets = (n_filled + indexes) // self.width
            runs = np.flatnonzero(np.diff(buckets, prepend=-1))
            outliers = _replace_infinite(columns[:, indexes])
            for name in ("rejected_minimum", "rejected_maximum"):
                updates[name] = np.full((len(columns), len(starts)), np.nan)
                updates[name][:, buckets[runs]] = reduce_buckets(REDUCTIONS[name], outliers, runs)
        columns[:, rejected | invalid] = np.nan
        columns = _replace_infinite(columns)
        for name in ("minimum", "maximum"):
            updates[name] = reduce_buckets(REDUCTIONS[name], columns, starts)
        if means is not None:
            updates["estimate"] = reduce_buckets(REDUCE_LAST, np.ascontiguousarray(means.T), starts)
        for name, update in updates.items():
            stored = self._columns[name][:, first : first + len(starts)]
            stored[:] = _combine(REDUCTIONS[name], stored, update)
        self.n_rows += len(values)

    def _make_empty(self, name: str, n_buckets: int) -> Vector:
        shape = (len(self.names) if name in PER_VARIABLE_COLUMNS else 1, n_buckets)
        return np.full(shape, 0.0 if REDUCTIONS[name] == REDUCE_SUM else np.nan)

    def _reserve(self, n_buckets: int) -> None:
        """Allocate at least so many buckets, at least doubling their number."""
        capacity = self._columns["score"].shape[1]
        if n_buckets > capacity:
            n_extra = min(self.max_buckets, max(n_buckets, 2 * capacity)) - capacity
            for name, column in self._columns.items():
                self._columns[name] = np.hstack([column, self._make_empty(name, n_extra)])

    def _merge_neighbors(self) -> None:
        """Merge each two buckets, the last one with an empty one if it has no neighbor."""
        n_merged = -(-len(self) // 2)
        self._reserve(2 * n_merged)
        if self._times is not None:
            self._times = self._times[: len(self) : 2].copy()
        for name, column in self._columns.items():
            merged = _combine(REDUCTIONS[name], column[:, : 2 * n_merged : 2], column[:, 1 : 2 * n_merged : 2])
            column[:, n_merged:] = self._make_empty(name, 1)
            column[:, :n_merged] = merged
        self.width *= 2

    def _append_times(self, times: Array | None, starts: Array) -> None:
        """Append first times of new buckets; drop times after a batch without times."""
        if times is None or (self.n_rows and self._times is None):
            self._times = self.last_time = None
            return
        self._times = times[starts] if self._times is None else np.concatenate([self._times, times[starts]])
        self.last_time = times[-1]


def _get_buckets(name: str, summary: MinMaxSummary) -> Vector:
    """Return the buckets in use of a column: those of all variables, or of the rows."""
    buckets = summary._columns[name][:, : len(summary)]
    return buckets if name in PER_VARIABLE_COLUMNS else buckets[0]


for _name in REDUCTIONS:  # the class declares and documents these properties
    setattr(MinMaxSummary, _name, property(partial(_get_buckets, _name)))


def last_estimate(trace: Trace) -> Vector | None:
    """Return the estimate after each row, (n, d), of a model with one component."""
    means = trace.recorded.get("means")
    return None if means is None or means.shape[1] != 1 else means[:, 0]


def _combine(reduction: str, before: Array, after: Array) -> Array:
    return np.where(np.isnan(after), before, after) if reduction == REDUCE_LAST else UFUNCS[reduction](before, after)


def _replace_infinite(columns: Vector) -> Vector:
    """Replace infinite values by NaN in place."""
    columns[np.isinf(columns)] = np.nan
    return columns
