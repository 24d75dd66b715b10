"""Points of a group are learnt, a number of variables at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection

from limpet.core.state import Vector
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.fleet import Fleet, from_bytes
from limpet.learners import SRA
from limpet.learners.results import Trace, concatenate
from limpet.server.db.blocks import PointBlock, to_api_time
from limpet.server.db.points import read_points_after
from limpet.server.ingest.admission import AcceptedPoints
from limpet.streams.checkpoint_store import model_config

# What learns the streams: a fleet for each number of variables.

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


@dataclass(eq=False)
class GroupResult:
    """What the pieces of some streams came to, in the order of `runs`: pieces of each stream one after another."""

    runs: list[list[AcceptedPoints]]
    trace: Trace
    blocks: list[tuple[int, PointBlock]]
    """By the numbers of streams."""

    now: float

    def iter_alarms(self, first_id: int) -> Iterator[dict[str, Any]]:
        """What was raised, as the API tells it, numbered from this number on; pieces and streams know it as well."""
        starts = np.cumsum([0, *(len(block) for _, block in self.blocks)])
        raised = zip(self.trace.alarm_index, self.trace.alarms, strict=True)
        for alarm_id, (index, alarm) in enumerate(raised, first_id):
            run_index = int(np.searchsorted(starts, index, side="right")) - 1
            run, (_, block) = self.runs[run_index], self.blocks[run_index]
            stream, piece = (
                run[0].stream,
                next(piece for piece in run if alarm.row < piece.first_row + len(piece.values)),
            )
            variables = [stream.names[int(variable)] for variable in alarm.variables]
            record = {
                "id": alarm_id,
                "stream": stream.entry.key,
                "kind": alarm.kind,
                "row": alarm.row,
                "onset": alarm.onset,
                "size": alarm.size if math.isfinite(alarm.size) else None,
                "direction": alarm.direction,
                "variables": variables,
                "p_value": alarm.p_value,
                "time": to_api_time(block.times[alarm.row - block.first_row]),
                "message": alarm.rename_variables(None if stream.has_unnamed_variables else variables).description,
                "raised_at": self.now,
                "acknowledged_at": None,
                "note": "",
            }
            yield record
            piece.alarms.append(record)
            stream.add_alarm(record)


def process_group_of_width(models: ModelPool, width: int, pieces: list[AcceptedPoints], now: float) -> GroupResult:
    """Learns pieces of streams of one width; what is known of the streams follows."""
    arrived = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    by_stream: dict[int, list[AcceptedPoints]] = {}
    for piece in pieces:
        by_stream.setdefault(piece.stream.entry.id, []).append(piece)
    runs = {stream_id: _merge_pieces(stream_pieces) for stream_id, stream_pieces in by_stream.items()}
    order = sorted(runs, key=lambda stream_id: not runs[stream_id].is_long)  # long runs come first
    trace, means = models.process(width, [runs[stream_id] for stream_id in order])
    given_times = [time for stream_id in order for piece in by_stream[stream_id] for time in piece.times]
    times, time_given = (
        [arrived if time is None else time for time in given_times],
        np.array([time is not None for time in given_times]),
    )
    values = np.concatenate([runs[stream_id].values for stream_id in order])
    merged = PointBlock.from_trace(
        0, times, time_given, values, trace, means
    )  # many streams of a point each are quicker so
    end, blocks = 0, []
    for stream_id in order:
        run, stream = runs[stream_id], by_stream[stream_id][0].stream
        start, end = end, end + len(run.values)
        block = merged[start:end]
        block.first_row = run.first_row
        stream.add_block(block)
        stream.last_seen, stream.n_loose_blocks = now, stream.n_loose_blocks + 1
        blocks.append((stream_id, block))
    return GroupResult([by_stream[stream_id] for stream_id in order], trace, blocks, now)


def _merge_pieces(pieces: list[AcceptedPoints]) -> StreamRun:
    """The pieces of one stream together; each is told its first row."""
    stream = pieces[0].stream
    row = stream.n_points
    for piece in pieces:
        piece.first_row = row
        row += len(piece.values)
    values = pieces[0].values if len(pieces) == 1 else np.concatenate([piece.values for piece in pieces])
    return StreamRun(stream.entry.id, stream.n_points, values)
