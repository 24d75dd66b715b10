"""What a store holds after its server was killed again and again, beside learners that nobody interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from limpet.server.db.points import TIME_GIVEN_BIT, PointBlock

from harness.retrying_client import Client, Rows
from limpet._optional import optional_import
from limpet.learners import Detector
from limpet.server.db import Store
from limpet.server.db.alarms import find_alarms
from limpet.server.db.points import read_points
from limpet.server.db.schema import BUCKETS_TABLE
from limpet.server.ingest.processor import GroupProcessor

with optional_import("this benchmark", "server"):
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
        desk = GroupProcessor(store, Detector(), ALL)
        with store.read_connection() as connection:
            for client in clients:
                _look_at(found, client, desk, connection)
    finally:
        store.close()
    return found


def _look_at(found: Aftermath, client: Client, desk: GroupProcessor, connection: Connection) -> None:
    expected, stream = client.rows(), desk.registry.get(client.key)
    if stream is None:
        found.lost += len(expected)
        return
    number, width, first = stream.entry.id, client.width, stream.first_row
    points = read_points(connection, number, first, ALL, width)
    _count(found, points.values, expected[first:])
    own = select(func.sum(BUCKETS_TABLE.c.n)).where(BUCKETS_TABLE.c.stream == number)
    in_buckets = int(connection.execute(own).scalar() or 0)
    found.lost += max(0, first - in_buckets)
    found.doubled += max(0, in_buckets - first)
    found.hold("points, in order", points.first_row == first and _same(points.values, expected[first:]))

    alone = Detector()
    trace = alone.process(expected)
    untimed = np.zeros(len(expected), bool)
    whole = PointBlock.from_trace(0, [""] * len(expected), untimed, expected, trace)
    found.hold("scores", _came_to(points) == _came_to(whole[first:]))
    ours = desk.models.get(width, number)
    found.hold("states", ours is not None and ours.to_bytes() == alone.to_bytes())
    _, alarms = find_alarms(connection, stream_id=number, is_open=None, before=None, limit=ALL)
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


def _came_to(points: PointBlock) -> bytes:
    """What the points of a block came to."""
    columns = (points.score, points.change_score, points.p_value, points.outcomes & ~TIME_GIVEN_BIT)
    return b"".join(np.ascontiguousarray(column).tobytes() for column in columns)


def _in_short(alarm: dict[str, Any]) -> tuple[str, int, int]:
    return alarm["kind"], alarm["row"], alarm["onset"]
