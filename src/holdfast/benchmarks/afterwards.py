"""What a store holds after its server was killed again and again, beside learners that nobody interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.benchmarks.stubborn import Client, Rows
from holdfast.extras import needed_for
from holdfast.learners import SRA
from holdfast.server.live.desk import Desk
from holdfast.server.store import Store
from holdfast.server.store.alarms import find_alarms
from holdfast.server.store.blocks import TIMED, Block
from holdfast.server.store.points import points_between
from holdfast.server.store.tables import CONDENSED

with needed_for("this benchmark", "server"):
    from sqlalchemy import Connection, func, select

ALL = 2**53  # more than there are


@dataclass
class Aftermath:
    """lost: points that a client was told are there, and are not. more: points of which no client was told that.

    equal: whether points, what they came to, states and alarms are those of learners that nobody interrupted.
    """

    lost: int = 0
    doubled: int = 0
    more: int = 0
    n_alarms: int = 0
    equal: dict[str, bool] = field(
        default_factory=lambda: dict.fromkeys(("points, in order", "scores", "states", "alarms"), True)
    )

    def hold(self, what: str, is_so: bool) -> None:
        """It has to be so of every stream."""
        self.equal[what] = self.equal[what] and is_so


def look(place: str, clients: Sequence[Client]) -> Aftermath:
    """At a store that no server has open."""
    found, store = Aftermath(), Store(place)
    try:
        desk = Desk(store, SRA(), ALL)
        with store.reading() as connection:
            for client in clients:
                _look_at(found, client, desk, connection)
    finally:
        store.close()
    return found


def _look_at(found: Aftermath, client: Client, desk: Desk, connection: Connection) -> None:
    expected, stream = client.rows(), desk.board.get(client.key)
    if stream is None:
        found.lost += len(expected)
        return
    number, width, first = stream.entry.number, client.width, stream.first_row
    points = points_between(connection, number, first, ALL, width)
    _count(found, points.values, expected[first:])
    own = select(func.sum(CONDENSED.c.n)).where(CONDENSED.c.stream == number)
    in_buckets = int(connection.execute(own).scalar() or 0)
    found.lost += max(0, first - in_buckets)
    found.doubled += max(0, in_buckets - first)
    found.hold("points, in order", points.first == first and _same(points.values, expected[first:]))

    alone = SRA()
    trace = alone.process(expected)
    untimed = np.zeros(len(expected), bool)
    whole = Block.of(0, [""] * len(expected), untimed, expected, trace)
    found.hold("scores", _came_to(points) == _came_to(whole[first:]))
    ours = desk.fleets.of(width, number)
    found.hold("states", ours is not None and ours.to_bytes() == alone.to_bytes())
    _, alarms = find_alarms(connection, stream=number, is_open=None, before=None, limit=ALL)
    raised = [(alarm.kind, alarm.row, alarm.onset) for alarm in trace.alarms]
    found.hold("alarms", [_in_short(alarm) for alarm in reversed(alarms)] == raised)
    found.hold("alarms", {_in_short(alarm) for alarm in client.alarms} <= set(raised))
    found.n_alarms += len(alarms)


def _count(found: Aftermath, there: Rows, expected: Rows) -> None:
    """Points are known by their bits: no two of a client are alike."""
    ours, theirs = [row.tobytes() for row in there], [row.tobytes() for row in expected]
    found.doubled += len(ours) - len(set(ours))
    found.lost += len(set(theirs) - set(ours))
    found.more += len(set(ours) - set(theirs))


def _same(one: Rows, other: Rows) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def _came_to(points: Block) -> bytes:
    """What the points of a block came to."""
    columns = (points.score, points.change_score, points.p_value, points.fates & ~TIMED)
    return b"".join(np.ascontiguousarray(column).tobytes() for column in columns)


def _in_short(alarm: dict[str, Any]) -> tuple[str, int, int]:
    return alarm["kind"], alarm["row"], alarm["onset"]
