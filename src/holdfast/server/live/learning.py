"""Points of a group are learnt, a number of variables at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from holdfast.learners.trace import Trace
from holdfast.server.live.admission import AcceptedPoints
from holdfast.server.live.fleets import ModelPool, StreamRun
from holdfast.server.store.blocks import PointBlock, to_api_time


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
