"""What learns the streams: a fleet for each number of variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from holdfast.errors import BadInputError, CheckpointError
from holdfast.fleet import Fleet, from_bytes
from holdfast.learners import SRA
from holdfast.learners.trace import Trace, in_turn
from holdfast.scheme.state import Vector
from holdfast.server.store.points import points_after
from holdfast.streams.saving import settings_of

AT_ONCE = 50_000  # points relearnt at a time
LONG = 64  # points
EVERY = 8  # rows: how often the means are kept


@dataclass(frozen=True, eq=False)
class Run:
    """Points of one stream, one after another. first: the row of the first."""

    number: int
    first: int
    values: Vector

    @property
    def is_long(self) -> bool:
        """Whether it pays to learn it by itself."""
        return len(self.values) >= LONG


class Fleets:
    """Fleets of one learner's settings, by the number of variables. Streams go by their numbers.

    learner: whose settings all streams have.
    """

    def __init__(self, learner: SRA) -> None:
        self.learner = Fleet(learner).model  # which refuses what cannot learn many streams
        self._fleets: dict[int, Fleet] = {}

    def learn(self, width: int, runs: Sequence[Run]) -> tuple[Trace, Vector]:
        """Learns points of some streams, each of which comes once, long runs before short ones.

        Returns what they came to, one run after another, and the mean of each variable after some of them, (n, d).
        Streams with many points are learnt by themselves, which tells the means on the way; the others in one call.
        """
        fleet, short = self._of(width), [run for run in runs if not run.is_long]
        learnt = [_learn_alone(fleet, run) for run in runs[: len(runs) - len(short)]]
        learnt += [_learn_together(fleet, short)] if short else []
        return in_turn([trace for trace, _ in learnt]), np.concatenate([means for _, means in learnt])

    def warm_up(self) -> None:
        """Has what streams of one variable need compiled before the first of them comes."""
        spare, values = Fleet(self.learner), np.random.default_rng(0).normal(size=(4 * LONG, 1))
        _learn_alone(spare, Run(0, 0, values))
        _learn_together(spare, [Run(1, 0, values[: LONG - 1])])

    def of(self, width: int, number: int) -> SRA | None:
        """The learner of one stream; None if it has learnt nothing."""
        fleet = self._fleets.get(width)
        return None if fleet is None or number not in fleet else fleet[number]  # type: ignore[return-value]

    def drop(self, number: int) -> None:
        """Forgets a stream."""
        for fleet in self._fleets.values():
            if number in fleet:
                fleet.drop(number)

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
        while len(points := points_after(connection, number, after, AT_ONCE, width)):
            if points.first != after + 1:
                raise CheckpointError(f"rows {after + 1} to {points.first - 1} of stream {number} are not in the store")
            self._of(width).update(np.full(len(points), number), points.values)
            after, learnt = points.first + len(points) - 1, learnt + len(points)
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


def _learn_alone(fleet: Fleet, run: Run) -> tuple[Trace, Vector]:
    """Learns a run by the learner of its stream; the means after every few rows, after changes, and after the last."""
    traces, values, means = [], run.values, np.full(run.values.shape, np.nan)
    if run.number not in fleet:
        traces.append(fleet.update(np.array([run.number]), values[:1]))  # so that there is a learner
        values = values[1:]
    learner = fleet[run.number]
    trace = learner.process(values, record="means")
    after, rows = means[-len(trace) :], np.arange(run.first, run.first + len(means))[-len(trace) :]
    wanted = (rows % EVERY == EVERY - 1) | trace.change
    wanted[1:] |= trace.change[:-1]
    wanted[-1] = True
    if trace.means.shape[1] == 1:
        after[wanted] = trace.means[wanted, 0]
    elif learner.started:  # of several components there is a mean of all where their weights are known: at the end
        after[-1] = learner.weights @ trace.means[-1]
    return in_turn([*traces, trace]), means


def _learn_together(fleet: Fleet, runs: Sequence[Run]) -> tuple[Trace, Vector]:
    """Learns short runs in one call; the means of those that have reached another few rows, after their last points."""
    counts = [len(run.values) for run in runs]
    values = np.concatenate([run.values for run in runs])
    trace = fleet.update(np.repeat([run.number for run in runs], counts), values)
    means, ends = np.full(values.shape, np.nan), np.cumsum(counts).tolist()
    reached = [
        (run.number, end - 1)
        for run, end in zip(runs, ends, strict=True)
        if (run.first + len(run.values)) // EVERY > run.first // EVERY
    ]
    numbers = [number for number, _ in reached]
    estimates = (fleet.estimates(name, numbers) for name in ("means", "weights"))
    for (_, place), own, weights in zip(reached, *estimates, strict=True):
        if own is not None and weights is not None:
            means[place] = weights @ own
    return trace, means
