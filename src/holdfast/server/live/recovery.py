"""Everything as the store has it: states from the last checkpoint, and what has come since learnt again.

A stream learns the same however it is cut into calls, to the last bit, so what is relearnt is what was lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import orjson
from sqlalchemy import Connection, Row

from holdfast.server.live.board import SPARK, Board, Known, in_short
from holdfast.server.live.clock import Clock, Moment
from holdfast.server.live.fleets import Fleets
from holdfast.server.store import alarms
from holdfast.server.store.points import DROPPED, TIMED, as_time, first_rows, latest_points
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
        fleets.forget(number)  # it was deleted after the checkpoint
    for number, points in groupby(latest_points(connection, SPARK), lambda point: int(point.stream)):
        _show(board.of_number(number), list(points))
    for number, first in first_rows(connection).items():
        board.of_number(number).first_row = first
    relearnt = 0
    for known in board.all():
        number = known.entry.number
        if known.n_points > learnt.get(number, 0):
            relearnt += fleets.relearn(connection, number, known.entry.width, learnt.get(number, 0) - 1)
    for number, (_, dropped) in fleets.counts().items():
        board.of_number(number).n_dropped = dropped
    for number, n, n_open, newest in alarms.counts(connection):
        known, last = board.of_number(number), alarms.alarm_of(connection, newest)
        known.n_alarms, known.open_alarms, known.last_alarm = n, n_open, None if last is None else in_short(last)
    board.n_points = sum(known.n_points for known in board.all())
    board.note(board.all())
    return Recovered(checkpoint, {n: rows for n, rows in learnt.items() if n in widths}, relearnt)


def _show(known: Known, points: list[Row[Any]]) -> None:
    """The last points of a stream, as they are shown, and its clock."""
    values = [orjson.loads(point.x) for point in points]
    last = points[-1]
    known.note_points(values, [bool(point.fate & DROPPED) for point in points], last.p_value)
    known.n_points = last.row + 1
    known.last_time = as_time(last.time)
    known.last_seen = _seconds(last.time)
    for point, numbers in zip(reversed(points), reversed(values), strict=True):
        if point.fate & TIMED:
            known.clock = Clock(_moment(point.time), [math.nan if number is None else number for number in numbers])
            break


def _moment(text: str) -> Moment | None:
    time = as_time(text)
    return nanoseconds(time) if isinstance(time, str) else float(time)


def _seconds(text: str) -> float | None:
    """Since 1970, of a date; of other times that cannot be told."""
    moment = _moment(text)
    return moment / 1e9 if isinstance(moment, int) else None
