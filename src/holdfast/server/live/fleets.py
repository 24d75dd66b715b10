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
from holdfast.server.store.points import numbers_of, points_after, texts_of
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
        self.learner = learner
        self._fleets: dict[int, Fleet] = {}

    def learn(self, width: int, runs: Sequence[Run]) -> tuple[Trace, dict[int, str]]:
        """Learns points of some streams, each of which comes once, long runs before short ones.

        Returns what they came to, one run after another, and the mean of each variable as JSON after some of the
        points, by their places. Streams with many points are learnt by themselves, which tells the means on the way;
        the others in one call.
        """
        fleet, traces, means, begin = self._of(width), list[Trace](), dict[int, str](), 0
        short = [run for run in runs if not run.is_long]
        for run in runs[: len(runs) - len(short)]:
            trace, own = _learn_alone(fleet, run)
            traces.append(trace)
            means |= {begin + place: text for place, text in own.items()}
            begin += len(trace)
        if short:
            numbers = np.repeat([run.number for run in short], [len(run.values) for run in short])
            traces.append(fleet.update(numbers, np.concatenate([run.values for run in short])))
            means |= _means_after(fleet, short, begin)
        return in_turn(traces), means

    def warm_up(self) -> None:
        """Has what streams of one variable need compiled before the first of them comes."""
        spare, values = Fleet(self.learner), np.random.default_rng(0).normal(size=(4 * LONG, 1))
        for run in (Run(0, 0, values), Run(1, 0, values[: LONG - 1])):
            if run.is_long:
                _learn_alone(spare, run)
            else:
                spare.update(np.full(len(run.values), run.number), run.values)
                _means_after(spare, [run], 0)

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
            self._of(width).update(np.full(len(points), number), numbers_of([point.x for point in points], width))
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


def _learn_alone(fleet: Fleet, run: Run) -> tuple[Trace, dict[int, str]]:
    """Learns a run by the learner of its stream; the means after every few rows, and after the last."""
    traces, values = [], run.values
    if run.number not in fleet:
        traces.append(fleet.update(np.array([run.number]), values[:1]))  # so that there is a learner
        values = values[1:]
    trace = fleet[run.number].process(values, record="means")
    places = np.arange(len(run.values) - len(trace), len(run.values))
    wanted = ((run.first + places + 1) % EVERY == 0) | (places == len(run.values) - 1)
    if trace.means.shape[1] == 1:
        means = trace.means[:, 0]
    else:  # of several components there is a mean of all of them at the end only, where their weights are known
        wanted[:-1] = False
        means = np.einsum("k,tkd->td", fleet[run.number].weights, trace.means)
    kept = [place for place in np.flatnonzero(wanted).tolist() if not np.isnan(means[place]).any()]
    return in_turn([*traces, trace]), dict(zip(places[kept].tolist(), texts_of(means[kept]), strict=True))


def _means_after(fleet: Fleet, runs: Sequence[Run], begin: int) -> dict[int, str]:
    """The means after the last points of short runs that have reached another few rows, by their places."""
    kept, wanted = {}, []
    for run in runs:
        begin += len(run.values)
        if (run.first + len(run.values)) // EVERY > run.first // EVERY:
            wanted.append((run.number, begin - 1))
    numbers = [number for number, _ in wanted]
    means, weights = fleet.estimates("means", numbers), fleet.estimates("weights", numbers)
    for (_, place), mean, weight in zip(wanted, means, weights, strict=True):
        if mean is not None and weight is not None:
            kept[place] = texts_of((weight @ mean)[None])[0]
    return kept
