"""The streams of one bucket: a fleet, and when each of its streams was last seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.engines.spark.clock import NEVER, Clock, first_after_gap
from holdfast.engines.spark.columns import ALARMS, LATE, alarm_column, answer_names, keys_of, times_of, values_of
from holdfast.engines.spark.plan import Plan
from holdfast.fleet import Fleet
from holdfast.fleet.found import Flags, Integers
from holdfast.fleet.keys import Numbers, Texts
from holdfast.learners.reading import NamedRows
from holdfast.learners.trace import Trace, in_turn
from holdfast.scheme.algorithm import LEARNT
from holdfast.scheme.state import Vector


@dataclass(eq=False)
class Bucket:
    """What learns the rows of one bucket, one table after another."""

    plan: Plan
    fleet: Fleet
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def empty(cls, plan: Plan) -> Bucket:
        """One that has seen nothing."""
        return cls(plan, Fleet(plan.learner()))

    def __post_init__(self) -> None:
        for topic in ("bad", "locked out"):  # which the columns tell
            self.fleet._is_told_elsewhere(topic)

    def learn(self, table: Any, watermark: int = NEVER) -> Any:
        """Learns the rows of a table, in the order of their times; the table with what they came to.

        A row that is older than the last one of its key, or than the watermark, is late: nothing is learnt from it. One
        without a time cannot be used.
        """
        plan = self.plan
        keys, points = keys_of(table[plan.key]), values_of(table, plan.values)
        late = np.zeros(len(points), np.bool_)
        if plan.time is None:
            trace = self._update(keys, points)
        else:
            times = times_of(table[plan.time])
            points[times == NEVER] = np.nan
            trace, late = self._learn_in_time(keys, points, times, watermark)
        return self._told(table, trace, late)

    def _learn_in_time(
        self, keys: Numbers | Texts, points: Vector, times: Integers, watermark: int
    ) -> tuple[Trace, Flags]:
        """The answers in the order in which the rows came, and which of them were late."""
        self._forget_idle(watermark)
        order = _in_time(times)
        keys, points, times = keys.take(order), points[order], times[order]
        rows = self.fleet._rows_of(keys)
        last, timed = self.clock.of(rows), times != NEVER
        is_late = timed & (times < np.maximum(last, watermark))
        if watermark != NEVER:
            is_late &= _codes(keys) >= 0  # a row without a key cannot be used, early or late
        taken = np.flatnonzero(~is_late)
        rounds = [np.arange(len(taken))]
        if self.plan.idle is not None:
            codes, known = _codes(keys.take(taken)), timed[taken]
            gaps = np.zeros(len(taken), np.bool_)
            gaps[known] = first_after_gap(codes[known], times[taken][known], last[taken][known], self.plan.idle)
            rounds = _rounds(codes, gaps) if gaps.any() else rounds
        traces: list[Trace] = []
        for own in (taken[places] for places in rounds):
            if traces:
                self._forget(np.unique(self.fleet._rows_of(keys.take(own))))
            traces.append(self._noted(keys.take(own), points[own], times[own]))
        late = np.empty(len(times), np.bool_)
        late[order] = is_late
        return _spread(in_turn(traces), order[taken[np.concatenate(rounds)]], len(times)), late

    def _noted(self, keys: Numbers | Texts, points: Vector, times: Integers) -> Trace:
        """Learns points in order, and when they came."""
        trace, timed = self._update(keys, points), times != NEVER
        self.clock.note(np.where(timed, self.fleet._rows_of(keys), -1), times)
        return trace

    def _update(self, keys: Numbers | Texts, points: Vector) -> Trace:
        return self.fleet.update(keys, NamedRows(points, self.plan.values))

    def _forget_idle(self, watermark: int) -> None:
        """Streams that have been silent for too long by the watermark: whatever may still come begins anew."""
        if self.plan.idle is not None and watermark != NEVER and len(self.fleet):
            rows = self.fleet._roster.keys.rows
            last = self.clock.of(rows)
            self._forget(rows[(last != NEVER) & (last < watermark - self.plan.idle)])

    def _forget(self, rows: Integers) -> None:
        rows = rows[rows >= 0]
        for row in rows.tolist():
            self.fleet.drop(self.fleet._roster.keys.of_row(row))
        self.clock.forget(rows)

    def _told(self, table: Any, trace: Trace, late: Flags) -> Any:
        """The table with the answers as further columns."""
        import pyarrow

        for name in answer_names(self.fleet.on_autopilot, self.plan.time is not None):
            if name == ALARMS:
                column = alarm_column(trace.alarms, trace.raised_at, len(late))
            else:
                column = pyarrow.array(late if name == LATE else getattr(trace, name))
            table = table.append_column(self.plan.prefix + name, column)
        return table

    def last_times(self) -> Integers:
        """When each stream was last seen, in the order of the fleet's keys."""
        return self.clock.of(self.fleet._roster.keys.rows)


def _in_time(times: Integers) -> Integers:
    """The order of the rows in time, those of equal times as they come; those without one last, as in a fleet."""
    missing = int(np.count_nonzero(times == NEVER))
    if not missing and not (times[1:] < times[:-1]).any():
        return np.arange(len(times))
    return np.roll(np.argsort(times, kind="stable"), -missing)


def _codes(keys: Numbers | Texts) -> Integers:
    """A number for each key, negative for a missing one."""
    if isinstance(keys, Numbers):
        codes = np.unique(keys.values, return_inverse=True)[1]
        return np.where(keys.missing, -1, codes) if len(keys.missing) else codes
    if keys.codes is not None:
        return keys.codes
    numbers: dict[str, int] = {}
    return np.array(
        [numbers.setdefault(one, len(numbers)) if isinstance(one, str) else -1 for one in keys.values], np.int64
    )


def _rounds(codes: Integers, gaps: Flags) -> list[Integers]:
    """The places of the points before the first gap of their stream, of those between the first and the second, …"""
    order = np.argsort(codes, kind="stable")
    begins = np.append(True, codes[order][1:] != codes[order][:-1])
    so_far = np.cumsum(gaps[order])
    at_begin: Integers = (so_far - gaps[order])[begins]
    nth = np.empty(len(codes), np.int64)
    nth[order] = so_far - np.repeat(at_begin, np.diff(np.append(np.flatnonzero(begins), len(codes))))
    by_round = np.argsort(nth, kind="stable")
    return np.split(by_round, np.searchsorted(nth[by_round], np.arange(1, int(nth.max()) + 1)))


def _spread(trace: Trace, places: Integers, n: int) -> Trace:
    """The entries of a trace at their places among n; nothing is said of the others."""
    score, fates = np.full(n, np.nan), np.full(n, LEARNT, np.int8)
    score[places], fates[places] = trace.score, trace.fates
    watched = None
    if trace.watched is not None:
        watched = np.full(n, np.nan), np.full(n, np.nan)
        for told, own in zip(watched, trace.watched, strict=True):
            told[places] = own
    raised_at = places[np.array(trace.raised_at, np.int64)].tolist()
    return Trace(score, fates, watched=watched, alarms=trace.alarms, points_of_alarms=raised_at)
