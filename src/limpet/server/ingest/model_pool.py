"""Learn the points of a group: a fleet for each number of variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection

from limpet.core.state import Vector
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.fleet import Fleet, from_bytes
from limpet.learners import SRA, Detector
from limpet.learners.results import Trace, concatenate
from limpet.server.db.points import PointBlock, read_points_after, to_api_time
from limpet.server.ingest.stream_registry import StreamInfo
from limpet.streams.checkpoint_store import model_config

REPLAY_CHUNK_POINTS = 50_000
LONG_RUN_THRESHOLD = 64  # points, from which on a run is learned by its own learner
MEANS_INTERVAL_ROWS = 8  # how often the estimate is recorded


@dataclass(eq=False)
class AcceptedPoints:
    """Points of one stream and request that are to be learned.

    Parameters
    ----------
    stream : StreamInfo
        The stream.
    values : array of shape (n, d)
        The values in the order of its variables.
    times : list of str or None
        The times as they were sent.
    skipped : dict of str to int
        The number of points that were skipped, by reason.
    """

    stream: StreamInfo
    values: Vector
    times: list[str | None]
    skipped: dict[str, int]
    first_row: int = -1
    alarms: list[dict[str, Any]] = field(default_factory=list)

    def to_api(self) -> dict[str, Any]:
        """Return the response to the sender."""
        n = len(self.values)
        return {
            "stream": self.stream.entry.key,
            "accepted": n,
            "first_row": self.first_row if n else None,
            "last_row": self.first_row + n - 1 if n else None,
            "skipped": self.skipped,
            "alarms": self.alarms,
        }


@dataclass(frozen=True, eq=False)
class StreamRun:
    """Consecutive points of one stream, from `first_row` on."""

    stream_id: int
    first_row: int
    values: Vector

    @property
    def is_long(self) -> bool:
        """Whether the run is learned by the learner of its stream, not in a call to the fleet."""
        return len(self.values) >= LONG_RUN_THRESHOLD


class ModelPool:
    """Learners of all streams: a fleet, keyed by stream id, for each number of variables.

    Parameters
    ----------
    learner : Detector or SRA
        The learner whose configuration all streams have.
    """

    def __init__(self, learner: Detector | SRA) -> None:
        self.learner = Fleet(learner).learner  # raises for learners that a fleet cannot have
        self._fleets: dict[int, Fleet] = {}

    def process(self, width: int, runs: Sequence[StreamRun]) -> tuple[Trace, Vector]:
        """Learn one run of each of some streams.

        Parameters
        ----------
        width : int
            The number of variables.
        runs : sequence of StreamRun
            The runs, long ones first. Long runs are learned separately, which records estimates within the run; all
            others are learned in one call to the fleet.

        Returns
        -------
        trace : Trace
            The results, run by run.
        means : array of shape (n, d)
            The estimate after some of the points; NaN after the others.
        """
        fleet, short_runs = self._get_fleet(width), [run for run in runs if not run.is_long]
        results = [_process_run(fleet, run) for run in runs[: len(runs) - len(short_runs)]]
        results += [_process_short_runs(fleet, short_runs)] if short_runs else []
        return concatenate([trace for trace, _ in results]), np.concatenate([means for _, means in results])

    def warm_up(self) -> None:
        """Compile the kernels for streams of one variable."""
        fleet, values = Fleet(self.learner), np.random.default_rng(0).normal(size=(4 * LONG_RUN_THRESHOLD, 1))
        _process_run(fleet, StreamRun(0, 0, values))
        _process_short_runs(fleet, [StreamRun(1, 0, values[: LONG_RUN_THRESHOLD - 1])])

    def get(self, width: int, stream_id: int) -> Detector | SRA | None:
        """Return the learner of a stream, None if it has not learned any point."""
        fleet = self._fleets.get(width)
        return None if fleet is None or stream_id not in fleet else fleet[stream_id]  # type: ignore[return-value]

    def drop(self, stream_id: int) -> None:
        """Delete the learner of a stream."""
        for fleet in self._fleets.values():
            if stream_id in fleet:
                fleet.drop(stream_id)

    def to_bytes(self) -> dict[int, bytes]:
        """Return the serialized fleets by number of variables."""
        return {width: fleet.to_bytes() for width, fleet in self._fleets.items() if len(fleet)}

    def restore(self, bodies: dict[int, bytes]) -> None:
        """Replace all fleets by those that `to_bytes` serialized."""
        self._fleets = {}
        for width, body in bodies.items():
            fleet = from_bytes(bytearray(body))
            if not isinstance(fleet, Fleet):
                raise CheckpointError("database: the checkpoint holds a learner, expected a fleet.")
            self._fleets[width] = self._suppress_warnings(fleet)

    def counts(self) -> dict[int, tuple[int, int]]:
        """Return the numbers of seen and rejected points by stream id."""
        result: dict[int, tuple[int, int]] = {}
        for fleet in self._fleets.values():
            counts = fleet.counts()
            n_seen, n_rejected = counts["n_seen"].tolist(), counts["n_rejected"].tolist()
            result |= dict(zip(counts["key"], zip(n_seen, n_rejected, strict=True), strict=True))
        return result

    def replay(self, connection: Connection, stream_id: int, width: int, last_row: int) -> int:
        """Learn the stored points of a stream after a row; return their number."""
        n_replayed = 0
        while len(points := read_points_after(connection, stream_id, last_row, REPLAY_CHUNK_POINTS, width)):
            if points.first_row != last_row + 1:
                raise CheckpointError(
                    f"database: rows {last_row + 1} to {points.first_row - 1} of stream {stream_id} are missing."
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
        fleet.suppress_warning("invalid")  # the API refuses such points
        return fleet


def check_same_config(learner: Detector | SRA, stored: dict[str, object] | None) -> dict[str, object]:
    """Return the configuration of a learner, or raise if the database was made with another one."""
    config = model_config(learner)
    for name in config if stored is not None else ():
        if stored is not None and stored.get(name) != config[name]:
            raise InvalidInputError(
                f"{name}: the database was made with {stored.get(name)}, got {config[name]}. "
                "Use the same value or another database."
            )
    return config


def _process_run(fleet: Fleet, run: StreamRun) -> tuple[Trace, Vector]:
    """Learn a run by the learner of its stream; record estimates regularly, around changes and at the end."""
    traces, values, means = [], run.values, np.full(run.values.shape, np.nan)
    if run.stream_id not in fleet:
        traces.append(fleet.update(np.array([run.stream_id]), values[:1]))  # creates the learner
        values = values[1:]
    learner = fleet[run.stream_id]
    trace = learner.process(values, record="means")
    means_after, rows = means[-len(trace) :], np.arange(run.first_row, run.first_row + len(means))[-len(trace) :]
    is_recorded = (rows % MEANS_INTERVAL_ROWS == MEANS_INTERVAL_ROWS - 1) | trace.change
    is_recorded[1:] |= trace.change[:-1]
    is_recorded[-1] = True
    if trace.means.shape[1] == 1:
        means_after[is_recorded] = trace.means[is_recorded, 0]
    elif learner.started:  # the mean of several components needs their weights, which are known at the end only
        means_after[-1] = learner.weights @ trace.means[-1]
    return concatenate([*traces, trace]), means


def _process_short_runs(fleet: Fleet, runs: Sequence[StreamRun]) -> tuple[Trace, Vector]:
    """Learn short runs in one call; record the estimate at the end of a run that crosses a recording interval."""
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
    """Results of the accepted points of some streams.

    Parameters
    ----------
    runs : list of list of AcceptedPoints
        For each stream its accepted points, in order.
    trace : Trace
        The results of all of them.
    blocks : list of tuple of int and PointBlock
        The points with their results by stream id.
    now : float
        The time of arrival in seconds since 1970.
    """

    runs: list[list[AcceptedPoints]]
    trace: Trace
    blocks: list[tuple[int, PointBlock]]
    now: float

    def iter_alarms(self, first_id: int) -> Iterator[dict[str, Any]]:
        """Yield the alarms as the API has them, numbered from an id; add them to their points and streams."""
        starts = np.cumsum([0, *(len(block) for _, block in self.blocks)])
        raised = zip(self.trace.alarm_index, self.trace.alarms, strict=True)
        for alarm_id, (index, alarm) in enumerate(raised, first_id):
            run_index = int(np.searchsorted(starts, index, side="right")) - 1
            run, (_, block) = self.runs[run_index], self.blocks[run_index]
            stream = run[0].stream
            piece = next(piece for piece in run if alarm.row < piece.first_row + len(piece.values))
            time = to_api_time(block.times[alarm.row - block.first_row])
            names = None if stream.has_unnamed_variables else stream.names
            record = {
                "id": alarm_id,
                **replace(alarm, key=stream.entry.key, time=time).to_dict(names),
                "raised_at": self.now,
                "acknowledged_at": None,
                "note": "",
            }
            yield record
            piece.alarms.append(record)
            stream.add_alarm(record)


def process_group_of_width(models: ModelPool, width: int, pieces: list[AcceptedPoints], now: float) -> GroupResult:
    """Learn accepted points of streams with the same number of variables, and update these streams."""
    arrived = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    by_stream: dict[int, list[AcceptedPoints]] = {}
    for piece in pieces:
        by_stream.setdefault(piece.stream.entry.id, []).append(piece)
    runs = {stream_id: _merge_pieces(stream_pieces) for stream_id, stream_pieces in by_stream.items()}
    order = sorted(runs, key=lambda stream_id: not runs[stream_id].is_long)
    trace, means = models.process(width, [runs[stream_id] for stream_id in order])
    given_times = [time for stream_id in order for piece in by_stream[stream_id] for time in piece.times]
    times = [arrived if time is None else time for time in given_times]
    time_given = np.array([time is not None for time in given_times])
    values = np.concatenate([runs[stream_id].values for stream_id in order])
    merged = PointBlock.from_trace(0, times, time_given, values, trace, means)  # once, for many streams of one point
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
    """Return the accepted points of one stream as one run, and set their first rows."""
    stream = pieces[0].stream
    row = stream.n_points
    for piece in pieces:
        piece.first_row = row
        row += len(piece.values)
    values = pieces[0].values if len(pieces) == 1 else np.concatenate([piece.values for piece in pieces])
    return StreamRun(stream.entry.id, stream.n_points, values)
