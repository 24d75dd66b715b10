"""Learners and fleets that have started, to be timed. Of a large fleet some streams learn, the others are copies."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from limpet.exceptions import LimpetWarning
from limpet.fleet import Fleet
from limpet.fleet._membership import StreamSnapshot
from limpet.learners import SRA, Detector, Learner
from limpet_lab.bench._scenarios import COMPONENT_DISTANCE_SD, FloatArray
from limpet_lab.bench._timing import Job

N_LEARNING_STREAMS = 64  # streams that learn; a million starts would take minutes
N_WARMUP_POINTS = 300  # points of each, and of a single learner
SPARE_ROWS = 40_000  # rows more than a call takes, so that a stream does not see the same few again and again
MAX_CALL_SHIFT_ROWS = 997  # rows from the points of a call to those of the next one, at most
MIN_TIMED_POINTS = 5000  # points


def draw_points(n: int, components: int, dim: int, outliers: float = 0.0) -> FloatArray:
    """Draw rows of components of equal weight, σ = 1, 6σ apart in every coordinate, and a share of outliers: (n, d)."""
    rng = np.random.default_rng([components, dim])
    means = COMPONENT_DISTANCE_SD * np.arange(components, dtype=np.float64)[:, None] + np.zeros(dim)
    rows: FloatArray = means[rng.integers(components, size=n)] + rng.standard_normal((n, dim))
    is_outlier = rng.random(n) < outliers
    rows[is_outlier] = rng.uniform(means.min() - 20.0, means.max() + 20.0, (int(is_outlier.sum()), dim))
    return rows


class StreamKind:
    """A kind of stream: its learner, and its points."""

    def __init__(self, components: int, dim: int, outliers: float = 0.0, **settings: Any) -> None:
        self.components, self.dim, self.outliers, self.settings = components, dim, outliers, settings

    def make_learner(self) -> Learner:
        """Return a learner without points."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LimpetWarning)  # that ten first points are few
            learner_class = SRA if {"gamma", "rho"} & set(self.settings) else Detector
            return learner_class(self.components, **self.settings)

    def draw_points(self, n: int) -> FloatArray:
        """(n, d)."""
        return draw_points(n, self.components, self.dim, self.outliers)

    def make_started_learner(self) -> Learner:
        """Return a learner that has started, `process` and `update` compiled."""
        learner, rows = self.make_learner(), self.draw_points(N_WARMUP_POINTS + 1)
        learner.process(rows[:-1])
        learner.update(rows[-1])
        return learner

    @cached_property
    def snapshot(self) -> StreamSnapshot:
        """Streams that have started, each from different points."""
        rng, rows = np.random.default_rng(0), self.draw_points(50 * N_WARMUP_POINTS)
        fleet = Fleet(self.make_learner())
        for _ in range(N_WARMUP_POINTS):
            fleet.update(np.arange(N_LEARNING_STREAMS), rows[rng.integers(len(rows), size=N_LEARNING_STREAMS)])
        return fleet._membership.all_streams()

    @property
    def state_bytes(self) -> int:
        """Bytes of a started stream in the matrix of states."""
        return int(self.snapshot.states[0].nbytes)

    def make_fleet(self, keys: Sequence[Any]) -> Fleet:
        """Return a fleet with these keys, its states copied from `snapshot`."""
        snapshot = self.snapshot
        states = np.empty((len(keys), snapshot.states.shape[1]))
        for first in range(0, len(keys), N_LEARNING_STREAMS):
            part = states[first : first + N_LEARNING_STREAMS]
            part[:] = snapshot.states[: len(part)]
        fleet = Fleet(self.make_learner())
        fleet._executor.set_width(self.dim, None)
        fleet._membership.restore(StreamSnapshot(list(keys), states, snapshot.start_buffers, snapshot.last_seen))
        return fleet

    def make_tick_job(self, n_streams: int) -> tuple[Job, int]:
        """Return a job and its number of points: `Fleet.update` with the same keys at each call, a point per stream."""
        keys = np.arange(n_streams)
        fleet, rows = self.make_fleet(keys.tolist()), self.draw_points(n_streams + SPARE_ROWS)
        return make_cycling_job(partial(fleet.update, keys), rows, n_streams)


def make_cycling_job(
    learn: Callable[[Any], object], rows: Any, n: int, min_points: int = MIN_TIMED_POINTS
) -> tuple[Job, int]:
    """Return a job and its number of points: calls with n rows each, different each time; more calls if n is small."""
    n_calls, i_call = min(max(min_points // n, 1), 1000), 0
    starts = range(0, len(rows) - n + 1, min(n, MAX_CALL_SHIFT_ROWS))

    def job() -> None:
        nonlocal i_call
        for _ in range(n_calls):
            first = starts[i_call % len(starts)]
            learn(rows[first : first + n])
            i_call += 1

    job()  # compiled
    return job, n * n_calls


@cache
def make_sra_kind(components: int = 2, dim: int = 1, outliers: float = 0.0) -> StreamKind:
    """Return SRA with settings; with many parameters it starts from more points than usual."""
    return StreamKind(
        components, dim, outliers, gamma=6.0 * math.sqrt(dim), rho=0.01, n_init=max(10, 4 * components * dim)
    )


@cache
def make_detector_kind(components: int = 1, **settings: Any) -> StreamKind:
    """Return a Detector with this number of components."""
    return StreamKind(components, 1, **settings)


def make_detector_kinds() -> dict[str, StreamKind]:
    """Return the Detector for one and two components, and with compact memory."""
    kinds = {f"Detector, K={K}, d=1": make_detector_kind(K) for K in (1, 2)}
    return kinds | {"compact Detector, K=1, d=1": make_detector_kind(memory="compact")}
