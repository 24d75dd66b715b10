"""What learns the streams: a fleet for each number of variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from holdfast.errors import CheckpointError, InvalidInputError
from holdfast.fleet import Fleet, from_bytes
from holdfast.learners import SRA
from holdfast.learners.trace import Trace, concatenate
from holdfast.scheme.state import Vector
from holdfast.server.store.points import read_points_after
from holdfast.streams.saving import model_config

REPLAY_CHUNK_POINTS = 50_000  # points relearnt at a time
LONG_RUN_THRESHOLD = 64  # points
MEANS_INTERVAL_ROWS = 8  # rows: how often the means are kept


@dataclass(frozen=True, eq=False)
class StreamRun:
    """Points of one stream, one after another. first: the row of the first."""

    stream_id: int
    first_row: int
    values: Vector

    @property
    def is_long(self) -> bool:
        """Whether it pays to learn it by itself."""
        return len(self.values) >= LONG_RUN_THRESHOLD


class ModelPool:
    """Fleets of one learner's settings, by the number of variables. Streams go by their numbers.

    learner: whose settings all streams have.
    """

    def __init__(self, learner: SRA) -> None:
        self.learner = Fleet(learner).learner  # which refuses what cannot learn many streams
        self._fleets: dict[int, Fleet] = {}

    def process(self, width: int, runs: Sequence[StreamRun]) -> tuple[Trace, Vector]:
        """Learns points of some streams, each of which comes once, long runs before short ones.

        Returns what they came to, one run after another, and the mean of each variable after some of them, (n, d).
        Streams with many points are learnt by themselves, which tells the means on the way; the others in one call.
        """
        fleet, short_runs = self._get_fleet(width), [run for run in runs if not run.is_long]
        results = [_process_run(fleet, run) for run in runs[: len(runs) - len(short_runs)]]
        results += [_process_short_runs(fleet, short_runs)] if short_runs else []
        return concatenate([trace for trace, _ in results]), np.concatenate([means for _, means in results])

    def warm_up(self) -> None:
        """Has what streams of one variable need compiled before the first of them comes."""
        fleet, values = Fleet(self.learner), np.random.default_rng(0).normal(size=(4 * LONG_RUN_THRESHOLD, 1))
        _process_run(fleet, StreamRun(0, 0, values))
        _process_short_runs(fleet, [StreamRun(1, 0, values[: LONG_RUN_THRESHOLD - 1])])

    def get(self, width: int, stream_id: int) -> SRA | None:
        """The learner of one stream; None if it has learnt nothing."""
        fleet = self._fleets.get(width)
        return None if fleet is None or stream_id not in fleet else fleet[stream_id]  # type: ignore[return-value]

    def drop(self, stream_id: int) -> None:
        """Forgets a stream."""
        for fleet in self._fleets.values():
            if stream_id in fleet:
                fleet.drop(stream_id)

    def to_bytes(self) -> dict[int, bytes]:
        """All that has been learnt."""
        return {width: fleet.to_bytes() for width, fleet in self._fleets.items() if len(fleet)}

    def restore(self, bodies: dict[int, bytes]) -> None:
        """What `to_bytes` gave."""
        self._fleets = {}
        for width, body in bodies.items():
            fleet = from_bytes(bytearray(body))
            if not isinstance(fleet, Fleet):
                raise CheckpointError("the store holds a learner where a fleet is expected")
            self._fleets[width] = self._suppress_warnings(fleet)

    def counts(self) -> dict[int, tuple[int, int]]:
        """Of each stream, how many points it has seen and dropped."""
        result: dict[int, tuple[int, int]] = {}
        for fleet in self._fleets.values():
            counts = fleet.counts()
            n_seen, n_rejected = counts["n_seen"].tolist(), counts["n_rejected"].tolist()
            result |= dict(zip(counts["key"], zip(n_seen, n_rejected, strict=True), strict=True))
        return result

    def replay(self, connection: Connection, stream_id: int, width: int, last_row: int) -> int:
        """Learns what the store has of a stream after a row; how many points those were."""
        n_replayed = 0
        while len(points := read_points_after(connection, stream_id, last_row, REPLAY_CHUNK_POINTS, width)):
            if points.first_row != last_row + 1:
                raise CheckpointError(
                    f"rows {last_row + 1} to {points.first_row - 1} of stream {stream_id} are not in the store"
                )
            self._get_fleet(width).update(np.full(len(points), stream_id), points.values)
            last_row, n_replayed = points.first_row + len(points) - 1, n_replayed + len(points)
        return n_replayed

    def _get_fleet(self, width: int) -> Fleet:
        if width not in self._fleets:
            self._fleets[width] = self._suppress_warnings(Fleet(self.learner))
        return self._fleets[width]

    @staticmethod
    def _suppress_warnings(fleet: Fleet) -> Fleet:
        fleet._suppress_warning("invalid")  # such points are refused before
        return fleet


def check_same_config(learner: SRA, stored: dict[str, object] | None) -> dict[str, object]:
    """The settings of this learner, if the store was made with the same."""
    config = model_config(learner)
    for name in config if stored is not None else ():
        if stored is not None and stored.get(name) != config[name]:
            raise InvalidInputError(
                f"the store was made with {name} = {stored.get(name)}, now it is {config[name]}: "
                "give the same setting, or another --store"
            )
    return config


def _process_run(fleet: Fleet, run: StreamRun) -> tuple[Trace, Vector]:
    """Learns a run by the learner of its stream; the means after every few rows, after changes, and after the last."""
    traces, values, means = [], run.values, np.full(run.values.shape, np.nan)
    if run.stream_id not in fleet:
        traces.append(fleet.update(np.array([run.stream_id]), values[:1]))  # so that there is a learner
        values = values[1:]
    learner = fleet[run.stream_id]
    trace = learner.process(values, record="means")
    means_after, rows = means[-len(trace) :], np.arange(run.first_row, run.first_row + len(means))[-len(trace) :]
    is_recorded = (rows % MEANS_INTERVAL_ROWS == MEANS_INTERVAL_ROWS - 1) | trace.change
    is_recorded[1:] |= trace.change[:-1]
    is_recorded[-1] = True
    if trace.means.shape[1] == 1:
        means_after[is_recorded] = trace.means[is_recorded, 0]
    elif learner.started:  # of several components there is a mean of all where their weights are known: at the end
        means_after[-1] = learner.weights @ trace.means[-1]
    return concatenate([*traces, trace]), means


def _process_short_runs(fleet: Fleet, runs: Sequence[StreamRun]) -> tuple[Trace, Vector]:
    """Learns short runs in one call; the means of those that have reached another few rows, after their last points."""
    counts = [len(run.values) for run in runs]
    values = np.concatenate([run.values for run in runs])
    trace = fleet.update(np.repeat([run.stream_id for run in runs], counts), values)
    means, ends = np.full(values.shape, np.nan), np.cumsum(counts).tolist()
    recorded = [
        (run.stream_id, end - 1)
        for run, end in zip(runs, ends, strict=True)
        if (run.first_row + len(run.values)) // MEANS_INTERVAL_ROWS > run.first_row // MEANS_INTERVAL_ROWS
    ]
    stream_ids = [stream_id for stream_id, _ in recorded]
    estimates = (fleet.estimates(name, stream_ids) for name in ("means", "weights"))
    for (_, row), component_means, weights in zip(recorded, *estimates, strict=True):
        if component_means is not None and weights is not None:
            means[row] = weights @ component_means
    return trace, means
