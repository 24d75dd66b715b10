"""A bucket as the value of Spark's state, and back: a version, a fleet's bytes, the times of its streams."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from limpet.core.algorithm import OUTCOME_ACCEPTED
from limpet.core.state import Vector
from limpet.exceptions import CheckpointError
from limpet.fleet import Fleet
from limpet.fleet._key_index import Flags, Integers, IntKeys, StrKeys
from limpet.fleet.serialization import read_fleet
from limpet.learners.input import LabelledArray
from limpet.learners.results import Trace, concatenate
from limpet.learners.serialization import read_header
from limpet.spark.arrow import (
    ALARMS_COLUMN,
    LATE_COLUMN,
    make_alarm_column,
    output_columns,
    read_key_column,
    read_time_column,
    read_value_columns,
)
from limpet.spark.event_time import NO_TIME, LastSeen, first_after_idle
from limpet.spark.job_spec import SPEC_VERSION, JobSpec, check_param_changes

# The streams of one bucket: a fleet, and when each of its streams was last seen.


@dataclass(eq=False)
class PartitionState:
    """What learns the rows of one bucket, one table after another."""

    spec: JobSpec
    fleet: Fleet
    last_seen: LastSeen = field(default_factory=LastSeen)

    @classmethod
    def empty(cls, spec: JobSpec) -> PartitionState:
        """One that has seen nothing."""
        return cls(spec, Fleet(spec.make_learner()))

    def __post_init__(self) -> None:
        for topic in ("invalid", "locked out"):  # which the columns tell
            self.fleet._suppress_warning(topic)

    def process(self, table: Any, watermark: int = NO_TIME) -> Any:
        """Learns the rows of a table, in the order of their times; the table with what they came to.

        A row that is older than the last one of its key, or than the watermark, is late: nothing is learnt from it. One
        without a time cannot be used.
        """
        spec = self.spec
        keys, points = read_key_column(table[spec.key]), read_value_columns(table, spec.values)
        late = np.zeros(len(points), np.bool_)
        if spec.time is None:
            trace = self._update(keys, points)
        else:
            times = read_time_column(table[spec.time])
            points[times == NO_TIME] = np.nan
            trace, late = self._process_by_time(keys, points, times, watermark)
        return self._append_results(table, trace, late)

    def _process_by_time(
        self, keys: IntKeys | StrKeys, points: Vector, times: Integers, watermark: int
    ) -> tuple[Trace, Flags]:
        """The answers in the order in which the rows came, and which of them were late."""
        self._drop_idle(watermark)
        order = _sort_by_time(times)
        keys, points, times = keys.take(order), points[order], times[order]
        rows = self.fleet.row_indices(keys)
        last_times, has_time = self.last_seen.get(rows), times != NO_TIME
        is_late = has_time & (times < np.maximum(last_times, watermark))
        if watermark != NO_TIME:
            is_late &= _encode_keys(keys) >= 0  # a row without a key cannot be used, early or late
        accepted = np.flatnonzero(~is_late)
        rounds = [np.arange(len(accepted))]
        if self.spec.idle is not None:
            codes, known_time = _encode_keys(keys.take(accepted)), has_time[accepted]
            after_idle = np.zeros(len(accepted), np.bool_)
            after_idle[known_time] = first_after_idle(
                codes[known_time], times[accepted][known_time], last_times[accepted][known_time], self.spec.idle
            )
            rounds = _split_at_idle(codes, after_idle) if after_idle.any() else rounds
        traces: list[Trace] = []
        for part in (accepted[positions] for positions in rounds):
            if traces:
                self._drop_rows(np.unique(self.fleet.row_indices(keys.take(part))))
            traces.append(self._update_and_record(keys.take(part), points[part], times[part]))
        late = np.empty(len(times), np.bool_)
        late[order] = is_late
        return _scatter(concatenate(traces), order[accepted[np.concatenate(rounds)]], len(times)), late

    def _update_and_record(self, keys: IntKeys | StrKeys, points: Vector, times: Integers) -> Trace:
        """Learns points in order, and when they came."""
        trace, has_time = self._update(keys, points), times != NO_TIME
        self.last_seen.record(np.where(has_time, self.fleet.row_indices(keys), -1), times)
        return trace

    def _update(self, keys: IntKeys | StrKeys, points: Vector) -> Trace:
        return self.fleet.update(keys, LabelledArray(points, self.spec.values))

    def _drop_idle(self, watermark: int) -> None:
        """Streams that have been silent for too long by the watermark: whatever may still come begins anew."""
        if self.spec.idle is not None and watermark != NO_TIME and len(self.fleet):
            rows = self.fleet._membership.key_index.rows
            last_times = self.last_seen.get(rows)
            self._drop_rows(rows[(last_times != NO_TIME) & (last_times < watermark - self.spec.idle)])

    def _drop_rows(self, rows: Integers) -> None:
        rows = rows[rows >= 0]
        for row in rows.tolist():
            self.fleet.drop(self.fleet._membership.key_index.get_key(row))
        self.last_seen.forget(rows)

    def _append_results(self, table: Any, trace: Trace, late: Flags) -> Any:
        """The table with the answers as further columns."""
        import pyarrow

        for name in output_columns(self.fleet.is_auto, self.spec.time is not None):
            if name == ALARMS_COLUMN:
                column = make_alarm_column(trace.alarms, trace.alarm_index, len(late))
            else:
                column = pyarrow.array(late if name == LATE_COLUMN else getattr(trace, name))
            table = table.append_column(self.spec.prefix + name, column)
        return table

    def last_times(self) -> Integers:
        """When each stream was last seen, in the order of the fleet's keys."""
        return self.last_seen.get(self.fleet._membership.key_index.rows)


def _sort_by_time(times: Integers) -> Integers:
    """The order of the rows in time, those of equal times as they come; those without one last, as in a fleet."""
    missing = int(np.count_nonzero(times == NO_TIME))
    if not missing and not (times[1:] < times[:-1]).any():
        return np.arange(len(times))
    return np.roll(np.argsort(times, kind="stable"), -missing)


def _encode_keys(keys: IntKeys | StrKeys) -> Integers:
    """A number for each key, negative for a missing one."""
    if isinstance(keys, IntKeys):
        codes = np.unique(keys.values, return_inverse=True)[1]
        return np.where(keys.missing, -1, codes) if len(keys.missing) else codes
    if keys.codes is not None:
        return keys.codes
    code_by_key: dict[str, int] = {}
    return np.array(
        [code_by_key.setdefault(key, len(code_by_key)) if isinstance(key, str) else -1 for key in keys.values], np.int64
    )


def _split_at_idle(codes: Integers, after_idle: Flags) -> list[Integers]:
    """The places of the points before the first gap of their stream, of those between the first and the second, …"""
    order = np.argsort(codes, kind="stable")
    is_first = np.append(True, codes[order][1:] != codes[order][:-1])
    n_idle = np.cumsum(after_idle[order])
    n_idle_before: Integers = (n_idle - after_idle[order])[is_first]
    round_index = np.empty(len(codes), np.int64)
    round_index[order] = n_idle - np.repeat(n_idle_before, np.diff(np.append(np.flatnonzero(is_first), len(codes))))
    by_round = np.argsort(round_index, kind="stable")
    return np.split(by_round, np.searchsorted(round_index[by_round], np.arange(1, int(round_index.max()) + 1)))


def _scatter(trace: Trace, positions: Integers, n: int) -> Trace:
    """The entries of a trace at their places among n; nothing is said of the others."""
    score, outcomes = np.full(n, np.nan), np.full(n, OUTCOME_ACCEPTED, np.int8)
    score[positions], outcomes[positions] = trace.score, trace.outcomes
    auto_scores = None
    if trace.auto_scores is not None:
        auto_scores = np.full(n, np.nan), np.full(n, np.nan)
        for target, values in zip(auto_scores, trace.auto_scores, strict=True):
            target[positions] = values
    alarm_index = positions[np.array(trace.alarm_index, np.int64)].tolist()
    return Trace(score, outcomes, auto_scores=auto_scores, alarms=trace.alarms, explicit_alarm_index=alarm_index)


STATE_SCHEMA = "version int, generation int, buckets int, fleet binary, times binary"
StateValue = tuple[int, int, int, bytes, bytes]


def to_state_value(bucket: PartitionState) -> StateValue:
    """The bucket as Spark keeps it."""
    spec = bucket.spec
    times = b"" if spec.time is None else bucket.last_times().astype("<i8").tobytes()
    return SPEC_VERSION, spec.generation, spec.n_buckets, bucket.fleet.to_bytes(), times


def from_state_value(value: Any, spec: JobSpec) -> PartitionState | None:
    """The bucket that a value is; None if it is of a generation that is no more."""
    version, generation, buckets, fleet, times = value
    if version != SPEC_VERSION:
        raise CheckpointError(f"this state has version {version}; this limpet reads version {SPEC_VERSION}")
    if generation < spec.generation:
        return None
    if generation > spec.generation or buckets != spec.n_buckets:
        raise CheckpointError(
            f"this state is of {buckets} buckets, generation {generation}; the job has {spec.n_buckets}, generation "
            f"{spec.generation}: give the checkpoint to score(…, checkpoint=…), which looks"
        )
    return restore_partition(fleet, times, spec)


def restore_partition(fleet: bytes, times: bytes, spec: JobSpec) -> PartitionState:
    """The bucket of a fleet's bytes and the times of its streams; settings are those of the plan, if they may be."""
    header, body = read_header(bytearray(fleet))
    if header["settings"] != spec.model["settings"] or header["learner"] != spec.model["learner"]:
        check_param_changes(header, spec.model)
        header["settings"] = spec.model["settings"]
    if header["width"] is not None:
        names = header["names"] or spec.values  # which a fleet that was begun with may not have had
        if header["width"] != len(spec.values) or tuple(names) != spec.values:
            variables = ", ".join(header["names"] or ()) or f"{header['width']} variables"
            raise CheckpointError(f"these streams were learnt from {variables}, and not from {', '.join(spec.values)}")
        header["names"] = names
    return PartitionState(spec, read_fleet(header, body, None), LastSeen(np.frombuffer(times, "<i8").astype(np.int64)))
