"""Everything as the store has it: states from the last checkpoint, and what has come since learnt again.

A stream learns the same however it is cut into calls, to the last bit, so what is relearnt is what was lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from holdfast.server.live.board import SPARK, Board, Known, in_short
from holdfast.server.live.clock import Clock, Moment
from holdfast.server.live.fleets import Fleets
from holdfast.server.store import alarms
from holdfast.server.store.blocks import TIMED, Block, as_time
from holdfast.server.store.points import first_rows, latest_points
from holdfast.server.store.states import newest_checkpoint
from holdfast.server.store.streams import all_streams
from holdfast.streams.times import nanoseconds


@dataclass(frozen=True)
class Recovered:
    """checkpoint: the number of the last one, −1 if there is none. learnt: rows of each stream that are in it."""

    checkpoint: int
    learnt: dict[int, int]
    relearnt: int


def recover(connection: Connection, fleets: Fleets, board: Board) -> Recovered:
    """Fills fleets and board with what the store has. Only reads: a disk that is full does not keep it from that."""
    found = newest_checkpoint(connection)
    checkpoint, bodies, pairs = (-1, {}, ()) if found is None else found
    learnt = {int(number): int(rows) for number, rows in pairs}
    fleets.restore(bodies)
    board.clear()
    widths = {}
    for entry in all_streams(connection):
        board.add(entry)
        widths[entry.number] = entry.width
    for number in [number for number in fleets.counts() if number not in widths]:
        fleets.drop(number)  # it was deleted after the checkpoint
    for number, block in latest_points(connection, SPARK):
        _show(board.of_number(number), block)
    for number, first in first_rows(connection).items():
        stream = board.of_number(number)
        stream.first_row = stream.packed = first
    relearnt = 0
    for known in board.all():
        number = known.entry.number
        if known.n_points > learnt.get(number, 0):
            relearnt += fleets.relearn(connection, number, known.entry.width, learnt.get(number, 0) - 1)
    for number, (_, dropped) in fleets.counts().items():
        board.of_number(number).n_dropped = dropped
    for number, n, n_open, *newest in alarms.counts(connection):
        known = board.of_number(number)
        known.n_alarms, known.open_alarms = n, n_open
        told = [None if one is None else alarms.alarm_of(connection, one) for one in newest]
        known.newest_alarm, known.open_alarm = (None if alarm is None else in_short(alarm) for alarm in told)
    board.n_points = sum(known.n_points for known in board.all())
    board.note(board.all())
    return Recovered(checkpoint, {n: rows for n, rows in learnt.items() if n in widths}, relearnt)


def _show(known: Known, block: Block) -> None:
    """The last points of a stream, as they are shown, and its clock."""
    known.note_block(block)
    known.last_seen = _seconds(block.times[-1])
    timed = np.flatnonzero(block.fates & TIMED)
    if len(timed):
        known.clock = Clock(_moment(block.times[timed[-1]]), block.values[timed[-1]].tolist())


def _moment(text: str) -> Moment | None:
    time = as_time(text)
    return nanoseconds(time) if isinstance(time, str) else float(time)


def _seconds(text: str) -> float | None:
    """Since 1970, of a date; of other times that cannot be told."""
    moment = _moment(text)
    return moment / 1e9 if isinstance(moment, int) else None
