"""What learns the streams: a fleet for each number of variables."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import orjson
from sqlalchemy import Connection

from holdfast.errors import BadInputError, CheckpointError
from holdfast.fleet import Fleet, from_bytes
from holdfast.learners import SRA
from holdfast.learners.trace import Trace
from holdfast.scheme.state import Vector
from holdfast.server.store.points import Integers, numbers_of, points_after
from holdfast.streams.saving import settings_of

AT_ONCE = 50_000  # points relearnt at a time


class Fleets:
    """Fleets of one learner's settings, by the number of variables. Streams go by their numbers.

    learner: whose settings all streams have.
    """

    def __init__(self, learner: SRA) -> None:
        self.learner = learner
        self._fleets: dict[int, Fleet] = {}

    def learn(self, width: int, numbers: Integers, values: Vector) -> Trace:
        """Learns points of streams in order."""
        return self._of(width).update(numbers, values)

    def estimates(self, width: int, numbers: Iterable[int]) -> list[str | None]:
        """The mean of each variable, as JSON; None where a stream has not started.

        Of several components it is the mean of all of them together.
        """
        fleet, wanted = self._of(width), list(numbers)
        means, weights = fleet.estimates("means", wanted), fleet.estimates("weights", wanted)
        return [
            None if m is None or w is None else orjson.dumps((w @ m).tolist()).decode()
            for m, w in zip(means, weights, strict=True)
        ]

    def of(self, width: int, number: int) -> SRA | None:
        """The learner of one stream; None if it has learnt nothing."""
        fleet = self._fleets.get(width)
        return None if fleet is None or number not in fleet else fleet[number]  # type: ignore[return-value]

    def drop(self, width: int, number: int) -> None:
        """Forgets a stream."""
        fleet = self._fleets.get(width)
        if fleet is not None and number in fleet:
            fleet.drop(number)

    def forget(self, number: int) -> None:
        """Forgets a stream, however many variables it has."""
        for width in self._fleets:
            self.drop(width, number)

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
            self._fleets[width] = self._told_elsewhere(fleet)

    def counts(self) -> dict[int, tuple[int, int]]:
        """Of each stream, how many points it has seen and dropped."""
        told: dict[int, tuple[int, int]] = {}
        for fleet in self._fleets.values():
            counts = fleet.counts()
            seen, dropped = counts["n_seen"].tolist(), counts["n_dropped"].tolist()
            told |= dict(zip(counts["key"], zip(seen, dropped, strict=True), strict=True))
        return told

    def relearn(self, connection: Connection, number: int, width: int, after: int) -> int:
        """Learns what the store has of a stream after a row; how many points those were."""
        learnt = 0
        while points := points_after(connection, number, after, AT_ONCE):
            if points[0].row != after + 1:
                raise CheckpointError(
                    f"rows {after + 1} to {points[0].row - 1} of stream {number} are not in the store"
                )
            values = numbers_of([point.x for point in points], width)
            self.learn(width, np.full(len(points), number), values)
            after, learnt = points[-1].row, learnt + len(points)
        return learnt

    def _of(self, width: int) -> Fleet:
        if width not in self._fleets:
            self._fleets[width] = self._told_elsewhere(Fleet(self.learner))
        return self._fleets[width]

    @staticmethod
    def _told_elsewhere(fleet: Fleet) -> Fleet:
        fleet._is_told_elsewhere("bad")  # such points are refused before
        return fleet


def require_same_settings(learner: SRA, before: dict[str, object] | None) -> dict[str, object]:
    """The settings of this learner, if the store was made with the same."""
    now = settings_of(learner)
    for name in now if before is not None else ():
        if before is not None and before.get(name) != now[name]:
            raise BadInputError(
                f"the store was made with {name} = {before.get(name)}, now it is {now[name]}: "
                "give the same setting, or another --store"
            )
    return now
