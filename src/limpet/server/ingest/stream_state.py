"""All streams in memory: their summaries for the list, and their learners."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

import numpy as np
from sqlalchemy import Connection

from limpet.core.state import Vector
from limpet.exceptions import CheckpointError
from limpet.fleet import Fleet, from_bytes
from limpet.learners import SRA, Detector
from limpet.learners.results import Trace, concatenate
from limpet.server.db.points import PointBlock, StreamRow, format_unix_time, nan_to_none, read_points_after, to_api_time
from limpet.server.responses import ApiError
from limpet.streams.event_time import StreamClock

SPARKLINE_POINTS = 60
REPLAY_CHUNK_POINTS = 50_000
LONG_RUN_THRESHOLD = 64  # points, from which on a run is learned by its own learner
MEANS_INTERVAL_ROWS = 8  # how often the estimate is recorded


def summarize_alarm(alarm: dict[str, Any]) -> dict[str, Any]:
    """Return the summary of an alarm for the list of streams."""
    return {name: alarm[name] for name in ("id", "kind", "row", "time", "message")}


@dataclass(eq=False, slots=True)
class StreamInfo:
    """One stream: its latest point, counts and alarms."""

    entry: StreamRow
    n_points: int = 0
    n_rejected: int = 0
    n_alarms: int = 0
    open_alarms: int = 0
    seq: int = 0  # of the group that changed it last
    first_row: int = 0  # that is stored in full
    merged_until: int = 0  # the row up to which short blocks are merged
    n_loose_blocks: int = 0  # short blocks since
    open_alarm: dict[str, Any] | None = None  # the summary of the newest one
    newest_alarm: dict[str, Any] | None = None  # open or acknowledged
    last_time: str | float | int | None = None
    last_seen: float | None = None
    last: list[float | None] = field(default_factory=list)
    p_value: float | None = None
    sparkline: deque[tuple[float | None, bool]] = field(default_factory=lambda: deque(maxlen=SPARKLINE_POINTS))
    clock: StreamClock = field(default_factory=StreamClock)

    @property
    def names(self) -> list[str]:
        """Names of the variables; without names, "value" for one, indices for several."""
        width = self.entry.width
        return list(self.entry.names or (["value"] if width == 1 else map(str, range(width))))

    def add_block(self, block: PointBlock) -> None:
        """Add points to the counts and the sparkline."""
        rejected = block.rejected
        self.n_points = block.first_row + len(block)
        self.n_rejected += int(np.count_nonzero(rejected))
        self.last, self.p_value = nan_to_none(block.values[-1]), nan_to_none(block.p_value[-1:])[0]
        self.last_time = to_api_time(block.times[-1])
        latest = nan_to_none(block.values[-SPARKLINE_POINTS:, 0])
        self.sparkline.extend(zip(latest, rejected[-SPARKLINE_POINTS:].tolist(), strict=True))

    def add_alarm(self, alarm: dict[str, Any]) -> None:
        """Add a new alarm."""
        self.n_alarms += 1
        self.open_alarms += 1
        self.open_alarm = self.newest_alarm = summarize_alarm(alarm)

    def to_api(self, n_warmup_points: int) -> dict[str, Any]:
        """Return the stream for the API; some alarms need more than `n_warmup_points`."""
        return {
            "key": self.entry.key,
            "variables": self.names,
            "n_points": self.n_points,
            "n_rejected": self.n_rejected,
            "n_alarms": self.n_alarms,
            "open_alarms": self.open_alarms,
            "state": "alarming" if self.open_alarms else "learning" if self.n_points <= n_warmup_points else "quiet",
            "last_time": self.last_time,
            "last_seen": self.last_seen,
            "last": self.last,
            "p_value": self.p_value,
            "last_alarm": self.open_alarm if self.open_alarms else self.newest_alarm,
            "sparkline": [value for value, _ in self.sparkline],
            "sparkline_rejected": [index for index, (_, is_rejected) in enumerate(self.sparkline) if is_rejected],
        }


class StreamRegistry:
    """All streams by key and id. The writer thread changes it, any thread may read.

    After `n_warmup_points` points of a stream every kind of alarm is possible.
    """

    def __init__(self, n_warmup_points: int) -> None:
        self.lock = threading.RLock()
        self.n_warmup_points, self.seq, self.n_points = n_warmup_points, 0, 0
        self.by_id: OrderedDict[int, StreamInfo] = OrderedDict()  # those that changed last are at the end
        self.by_key: dict[str, StreamInfo] = {}
        self._sorted_streams: dict[str, list[StreamInfo]] = {}

    def require(self, key: str) -> StreamInfo:
        """Return the stream with this key, or raise."""
        if (stream := self.by_key.get(key)) is None:
            raise ApiError("unknown_stream", f"stream: {key!r:.80} does not exist.")
        return stream

    def streams(self) -> list[StreamInfo]:
        """Return all streams, those that changed last at the end."""
        return list(self.by_id.values())

    def clear(self) -> None:
        """Remove all streams."""
        self.by_key.clear()
        self.by_id.clear()
        self._sorted_streams.clear()

    def add(self, entry: StreamRow) -> StreamInfo:
        """Add a new stream."""
        stream = self.by_key[entry.key] = self.by_id[entry.id] = StreamInfo(entry)
        self._sorted_streams.clear()
        return stream

    def remove(self, stream: StreamInfo) -> None:
        """Remove a stream."""
        del self.by_key[stream.entry.key], self.by_id[stream.entry.id]
        self.seq += 1
        self._sorted_streams.clear()

    def touch(self, changed: Iterable[StreamInfo], *, has_new_order: bool) -> None:
        """Mark streams as changed by a group; raised or acknowledged alarms reorder them."""
        self.seq += 1
        for stream in changed:
            stream.seq = self.seq
            self.by_id.move_to_end(stream.entry.id)
        if has_new_order:
            self._sorted_streams.clear()

    def totals(self) -> dict[str, Any]:
        """Return counts over all streams."""
        open_alarms = [*takewhile(bool, (stream.open_alarms for stream in self._get_sorted("alarming")))]
        counts = {"n_streams": len(self.by_key), "n_alarming": len(open_alarms), "open_alarms": sum(open_alarms)}
        return counts | {"n_points": self.n_points, "seq": self.seq}

    def list_streams(self, search: str, sort: str, offset: int, limit: int) -> dict[str, Any]:
        """Return a page of matching streams for the API, their number and the totals."""
        with self.lock:
            matches, part = self._get_sorted(sort), search.casefold()
            if part:
                matches = [stream for stream in matches if part in stream.entry.key.casefold()]
            streams = [stream.to_api(self.n_warmup_points) for stream in matches[offset : offset + limit]]
            return {"total": len(matches), **self.totals(), "streams": streams}

    def changed_since(self, seq: int, max_streams: int) -> dict[str, Any]:
        """Return streams changed since a group; if too many, those with newest alarms."""
        with self.lock:
            changed = list(takewhile(lambda stream: stream.seq > seq, reversed(self.by_id.values())))
            is_truncated = len(changed) > max_streams
            if is_truncated:
                changed.sort(key=_alarm_sort_key)
            streams = [stream.to_api(self.n_warmup_points) for stream in changed[:max_streams]]
            return {**self.totals(), "streams": streams, "is_truncated": is_truncated}

    def _get_sorted(self, sort: str) -> list[StreamInfo]:
        if sort == "recent":  # changes with every point
            return sorted(self.by_key.values(), key=lambda stream: -(stream.last_seen or 0.0))
        if sort not in self._sorted_streams:
            sort_key = _alarm_sort_key if sort == "alarming" else _name_sort_key
            self._sorted_streams[sort] = sorted(self.by_key.values(), key=sort_key)
        return self._sorted_streams[sort]


def _name_sort_key(stream: StreamInfo) -> tuple[str, str]:
    return stream.entry.key.casefold(), stream.entry.key


def _alarm_sort_key(stream: StreamInfo) -> tuple[int, str, str]:
    """Sort streams with open alarms first, the newest alarm first."""
    newest = stream.open_alarm["id"] if stream.open_alarms and stream.open_alarm else 0
    return -newest, *_name_sort_key(stream)


# The learners of the streams


@dataclass(eq=False)
class AcceptedPoints:
    """Points of one stream and request that are to be learned."""

    stream: StreamInfo
    values: Vector  # in the order of its variables
    times: list[str | None]  # as they were sent
    skipped: dict[str, int]  # the number of skipped points by reason
    first_row: int = -1
    alarms: list[dict[str, Any]] = field(default_factory=list)

    def to_api(self) -> dict[str, Any]:
        """Return the response to the sender."""
        n = len(self.values)
        first_row, last_row = (self.first_row, self.first_row + n - 1) if n else (None, None)
        rows = {"stream": self.stream.entry.key, "accepted": n, "first_row": first_row, "last_row": last_row}
        return rows | {"skipped": self.skipped, "alarms": self.alarms}


@dataclass(frozen=True, eq=False)
class StreamRun:
    """Consecutive points of one stream, from `first_row` on."""

    stream_id: int
    first_row: int
    values: Vector

    @property
    def is_long(self) -> bool:
        """Whether the learner of the stream learns the run, not a call to the fleet."""
        return len(self.values) >= LONG_RUN_THRESHOLD


class LearnerPool:
    """Learners of all streams: a fleet by stream id for each number of variables."""

    def __init__(self, learner: Detector | SRA) -> None:
        self.learner = Fleet(learner).learner  # raises for learners that a fleet cannot have
        self._fleets: dict[int, Fleet] = {}

    def process(self, width: int, runs: Sequence[StreamRun]) -> tuple[Trace, Vector]:
        """Learn a run of each of some streams; long runs, with estimates, must be first.

        Return the results, run by run, and the estimates after some of the points, NaN after the others.
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
                raise CheckpointError("database: the checkpoint must hold a fleet, got a learner.")
            self._add_fleet(width, fleet)

    def counts(self) -> dict[int, tuple[int, int]]:
        """Return the numbers of seen and rejected points by stream id."""
        result: dict[int, tuple[int, int]] = {}
        for counts in (fleet.counts() for fleet in self._fleets.values()):
            n_seen, n_rejected = counts["n_seen"].tolist(), counts["n_rejected"].tolist()
            result |= dict(zip(counts["key"], zip(n_seen, n_rejected, strict=True), strict=True))
        return result

    def replay(self, connection: Connection, stream_id: int, width: int, first_row: int) -> int:
        """Learn the stored points of a stream from a row on; return their number."""
        row = first_row
        while len(points := read_points_after(connection, stream_id, row - 1, REPLAY_CHUNK_POINTS, width)):
            if (end := points.first_row) != row:
                raise CheckpointError(f"database: rows {row} to {end - 1} of stream {stream_id} are missing.")
            self._get_fleet(width).update(np.full(len(points), stream_id), points.values)
            row += len(points)
        return row - first_row

    def _get_fleet(self, width: int) -> Fleet:
        return self._fleets[width] if width in self._fleets else self._add_fleet(width, Fleet(self.learner))

    def _add_fleet(self, width: int, fleet: Fleet) -> Fleet:
        fleet.suppress_warning("invalid")  # the API refuses such points
        self._fleets[width] = fleet
        return fleet


def _process_run(fleet: Fleet, run: StreamRun) -> tuple[Trace, Vector]:
    """Learn a run; record estimates regularly, around changes and at the end."""
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
    """Learn short runs in one call; record estimates where one crosses an interval."""
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


def process_group_of_width(
    learners: LearnerPool, width: int, pieces: list[AcceptedPoints], now: float, first_alarm_id: int
) -> tuple[list[tuple[int, PointBlock]], list[tuple[int, dict[str, Any]]]]:
    """Learn accepted points of streams of equal width, and update these streams.

    Return points with their results, and alarms as the API has them, both with the ids of their streams.
    """
    by_stream: dict[int, list[AcceptedPoints]] = {}
    for piece in pieces:
        by_stream.setdefault(piece.stream.entry.id, []).append(piece)
    runs = sorted(map(_merge_pieces, by_stream.values()), key=lambda run: not run.is_long)
    trace, means = learners.process(width, runs)
    given_times = [time for run in runs for piece in by_stream[run.stream_id] for time in piece.times]
    arrived = format_unix_time(now)
    times = [arrived if time is None else time for time in given_times]
    time_given = np.array([time is not None for time in given_times])
    values = np.concatenate([run.values for run in runs])
    merged = PointBlock.from_trace(0, times, time_given, values, trace, means)  # once, for many streams of one point
    ends, blocks = np.cumsum([len(run.values) for run in runs]), []
    for run, end in zip(runs, ends.tolist(), strict=True):
        stream = by_stream[run.stream_id][0].stream
        block = merged[end - len(run.values) : end]
        block.first_row = run.first_row
        stream.add_block(block)
        stream.last_seen, stream.n_loose_blocks = now, stream.n_loose_blocks + 1
        blocks.append((run.stream_id, block))
    alarms = []
    for alarm_id, (index, alarm) in enumerate(zip(trace.alarm_index, trace.alarms, strict=True), first_alarm_id):
        stream_id, block = blocks[int(np.searchsorted(ends, index, side="right"))]
        piece = next(piece for piece in by_stream[stream_id] if alarm.row < piece.first_row + len(piece.values))
        stream, time = piece.stream, to_api_time(block.times[alarm.row - block.first_row])
        names = stream.names if stream.entry.names or width == 1 else None
        fields = replace(alarm, key=stream.entry.key, time=time).to_dict(names)
        record = {"id": alarm_id, **fields, "raised_at": now, "acknowledged_at": None, "note": ""}
        piece.alarms.append(record)
        stream.add_alarm(record)
        alarms.append((stream_id, record))
    return blocks, alarms


def _merge_pieces(pieces: list[AcceptedPoints]) -> StreamRun:
    """Return the accepted points of one stream as one run, and set their first rows."""
    stream, n = pieces[0].stream, 0
    for piece in pieces:
        piece.first_row = stream.n_points + n
        n += len(piece.values)
    values = pieces[0].values if len(pieces) == 1 else np.concatenate([piece.values for piece in pieces])
    return StreamRun(stream.entry.id, stream.n_points, values)
