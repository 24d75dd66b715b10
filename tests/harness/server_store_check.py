"""Compare a database whose server was killed repeatedly with learners that were not interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.retrying_client import Client, Rows
from limpet._optional import optional_import
from limpet.learners import Detector
from limpet.server.db import Store
from limpet.server.db.alarms import find_alarms
from limpet.server.db.points import TIME_GIVEN_BIT, PointBlock, read_points
from limpet.server.db.schema import BUCKETS_TABLE
from limpet.server.ingest.processor import GroupProcessor

with optional_import("this check", "server"):
    from sqlalchemy import Connection, func, select

MAX_ROWS = 2**53


@dataclass
class StoreComparison:
    """The comparison of all clients.

    Attributes
    ----------
    lost, doubled, more : int
        Acknowledged points that are missing, points that are stored twice, points that were not acknowledged.
    n_alarms : int
        Stored alarms.
    equal : dict of str to bool
        Whether points, scores, states and alarms equal those of uninterrupted learners.
    """

    lost: int = 0
    doubled: int = 0
    more: int = 0
    n_alarms: int = 0
    equal: dict[str, bool] = field(
        default_factory=lambda: dict.fromkeys(("points, in order", "scores", "states", "alarms"), True)
    )

    def require(self, name: str, is_equal: bool) -> None:
        """Record a comparison of one stream."""
        self.equal[name] = self.equal[name] and is_equal


def compare_store(location: str, clients: Sequence[Client]) -> StoreComparison:
    """Compare a database that no server has open with the clients' points."""
    result, store = StoreComparison(), Store(location)
    try:
        processor = GroupProcessor(store, Detector(), MAX_ROWS)
        with store.read_connection() as connection:
            for client in clients:
                _check_stream(result, client, processor, connection)
    finally:
        store.close()
    return result


def _check_stream(result: StoreComparison, client: Client, processor: GroupProcessor, connection: Connection) -> None:
    expected, stream = client.rows(), processor.registry.by_key.get(client.key)
    if stream is None:
        result.lost += len(expected)
        return
    number, width, first = stream.entry.id, client.width, stream.first_row
    points = read_points(connection, number, first, MAX_ROWS, width)
    _count_differences(result, points.values, expected[first:])
    in_buckets_query = select(func.sum(BUCKETS_TABLE.c.n)).where(BUCKETS_TABLE.c.stream == number)
    in_buckets = int(connection.execute(in_buckets_query).scalar() or 0)
    result.lost += max(0, first - in_buckets)
    result.doubled += max(0, in_buckets - first)
    result.require("points, in order", points.first_row == first and have_same_bits(points.values, expected[first:]))

    learner = Detector()
    trace = learner.process(expected)
    untimed, no_means = np.zeros(len(expected), bool), np.full(expected.shape, np.nan)
    block = PointBlock.from_trace(0, [""] * len(expected), untimed, expected, trace, no_means)
    result.require("scores", to_bytes(points) == to_bytes(block[first:]))
    ours = processor.learners.get(width, number)
    result.require("states", ours is not None and ours.to_bytes() == learner.to_bytes())
    _, alarms = find_alarms(connection, stream_id=number, is_open=None, before=None, limit=MAX_ROWS)
    raised = [(alarm.kind, alarm.row, alarm.onset) for alarm in trace.alarms]
    result.require("alarms", [to_tuple(alarm) for alarm in reversed(alarms)] == raised)
    result.require("alarms", {to_tuple(alarm) for alarm in client.alarms} <= set(raised))
    result.n_alarms += len(alarms)


def _count_differences(result: StoreComparison, stored: Rows, expected: Rows) -> None:
    """Count lost, doubled and unacknowledged points; all points of a client are distinct."""
    ours, theirs = [row.tobytes() for row in stored], [row.tobytes() for row in expected]
    result.doubled += len(ours) - len(set(ours))
    result.lost += len(set(theirs) - set(ours))
    result.more += len(set(ours) - set(theirs))


def have_same_bits(rows: Rows, other: Rows) -> bool:
    return rows.shape == other.shape and rows.tobytes() == other.tobytes()


def to_bytes(points: PointBlock) -> bytes:
    """Return the results of a block as bytes."""
    columns = (points.score, points.change_score, points.p_value, points.outcomes & ~TIME_GIVEN_BIT)
    return b"".join(np.ascontiguousarray(column).tobytes() for column in columns)


def to_tuple(alarm: dict[str, Any]) -> tuple[str, int, int]:
    return alarm["kind"], alarm["row"], alarm["onset"]
