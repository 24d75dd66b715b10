"""Points of a group are learnt, a number of variables at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from holdfast.learners.trace import Trace
from holdfast.server.live.admission import Admitted
from holdfast.server.live.fleets import Fleets, Run
from holdfast.server.store.blocks import Block, as_time


@dataclass(eq=False)
class Learnt:
    """What the pieces of some streams came to, in the order of `runs`: pieces of each stream one after another."""

    runs: list[list[Admitted]]
    trace: Trace
    blocks: list[tuple[int, Block]]
    """By the numbers of streams."""

    now: float

    def alarms(self, first: int) -> Iterator[dict[str, Any]]:
        """What was raised, as the API tells it, numbered from this number on; pieces and streams know it as well."""
        begins = np.cumsum([0, *(len(block) for _, block in self.blocks)])
        raised = zip(self.trace.raised_at, self.trace.alarms, strict=True)
        for number, (at, alarm) in enumerate(raised, first):
            place = int(np.searchsorted(begins, at, side="right")) - 1
            run, (_, block) = self.runs[place], self.blocks[place]
            stream, piece = (
                run[0].known,
                next(piece for piece in run if alarm.row < piece.first_row + len(piece.values)),
            )
            variables = [stream.names[int(variable)] for variable in alarm.variables]
            shown = {
                "id": number,
                "stream": stream.entry.key,
                "kind": alarm.kind,
                "row": alarm.row,
                "onset": alarm.onset,
                "size": alarm.size if math.isfinite(alarm.size) else None,
                "direction": alarm.direction,
                "variables": variables,
                "p_value": alarm.p_value,
                "time": as_time(block.times[alarm.row - block.first]),
                "message": alarm.with_names(None if stream.has_numbers else variables).what,
                "raised_at": self.now,
                "acknowledged_at": None,
                "note": "",
            }
            yield shown
            piece.alarms.append(shown)
            stream.note_alarm(shown)


def learn_pieces(fleets: Fleets, width: int, pieces: list[Admitted], now: float) -> Learnt:
    """Learns pieces of streams of one width; what is known of the streams follows."""
    arrived = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    by_stream: dict[int, list[Admitted]] = {}
    for piece in pieces:
        by_stream.setdefault(piece.known.entry.number, []).append(piece)
    runs = {number: _run_of(own) for number, own in by_stream.items()}
    order = sorted(runs, key=lambda number: not runs[number].is_long)  # long runs come first
    trace, means = fleets.learn(width, [runs[number] for number in order])
    given = [time for number in order for piece in by_stream[number] for time in piece.times]
    times, timed = [arrived if time is None else time for time in given], np.array([t is not None for t in given])
    values = np.concatenate([runs[number].values for number in order])
    together = Block.of(0, times, timed, values, trace, means)  # many streams of a point each are quicker so
    end, blocks = 0, []
    for number in order:
        run, stream = runs[number], by_stream[number][0].known
        begin, end = end, end + len(run.values)
        block = together[begin:end]
        block.first = run.first
        stream.note_block(block)
        stream.last_seen, stream.loose = now, stream.loose + 1
        blocks.append((number, block))
    return Learnt([by_stream[number] for number in order], trace, blocks, now)


def _run_of(pieces: list[Admitted]) -> Run:
    """The pieces of one stream together; each is told its first row."""
    stream = pieces[0].known
    row = stream.n_points
    for piece in pieces:
        piece.first_row = row
        row += len(piece.values)
    values = pieces[0].values if len(pieces) == 1 else np.concatenate([piece.values for piece in pieces])
    return Run(stream.entry.number, stream.n_points, values)
