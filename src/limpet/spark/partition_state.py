"""The state of a bucket: a fleet and the clocks of its streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from limpet.core.algorithm import OUTCOME_ACCEPTED
from limpet.core.state import Vector
from limpet.exceptions import CheckpointError
from limpet.fleet import Fleet
from limpet.fleet._key_index import Flags, Integers, IntKeys, Key, StrKeys
from limpet.fleet.fleet import read_fleet
from limpet.learners.input import LabeledArray
from limpet.learners.results import Trace, concatenate
from limpet.learners.serialization import read_header
from limpet.spark.arrow import (
    ALARMS_COLUMN,
    DUPLICATE_COLUMN,
    LATE_COLUMN,
    make_alarm_column,
    output_columns,
    read_key_column,
    read_time_column,
    read_value_columns,
)
from limpet.spark.job_spec import SPEC_VERSION, JobSpec, check_param_changes
from limpet.streams.event_time import DUPLICATE, LATE, NO_TIME, ClockTable

Arrivals = np.ndarray[Any, np.dtype[np.int8]]


def new_clocks() -> ClockTable:
    """Return clocks that are never reset."""
    return ClockTable(reset_after=None)  # rows are sorted by time: successive late rows are always in order


def concat_clocks(tables: Sequence[ClockTable]) -> ClockTable:
    """Concatenate tables of clocks."""
    result, n = new_clocks(), 0
    for table in tables:
        result.put(np.arange(n, n + len(table)), table)
        n += len(table)
    return result


@dataclass(eq=False)
class PartitionState:
    """A fleet with the streams of one bucket, and their clocks by row."""

    spec: JobSpec
    fleet: Fleet
    clocks: ClockTable = field(default_factory=new_clocks)

    @classmethod
    def empty(cls, spec: JobSpec) -> PartitionState:
        """Return a state without streams."""
        return cls(spec, Fleet(spec.make_learner()))

    def __post_init__(self) -> None:
        for code in ("invalid", "locked_out"):  # the result columns have them
            self.fleet.suppress_warning(code)

    def process(self, table: Any, watermark: int = NO_TIME) -> Any:
        """Learn the rows of an Arrow table by time; return it with the result columns.

        A row older than the last one of its key in an earlier table, or than the watermark (in microseconds), is late;
        a row with time and values of the last one is a duplicate. Both are skipped. A row without a time is invalid.
        """
        spec = self.spec
        keys, points = read_key_column(table[spec.key]), read_value_columns(table, spec.values)
        arrivals = np.zeros(len(points), np.int8)
        if spec.time is None:
            trace = self._update(keys, points)
        else:
            times = read_time_column(table[spec.time])
            points[times == NO_TIME] = np.nan
            trace, arrivals = self._process_by_time(keys, points, times, watermark)
        return self._append_results(table, trace, arrivals)

    def _process_by_time(
        self, keys: IntKeys | StrKeys, points: Vector, times: Integers, watermark: int
    ) -> tuple[Trace, Arrivals]:
        """Return the results and the arrivals, both in the order of the rows."""
        self._drop_idle(watermark)
        order = _sort_by_time(times)
        keys, points, times = keys.take(order), points[order], times[order]
        streams, stream_keys, stream_rows = self._group_by_key(keys)
        has_key, clocks = streams >= 0, self.clocks.take(stream_rows)
        last_times = np.append(clocks.latest(np.arange(len(clocks))), NO_TIME)  # by stream; of no stream, −1, the last
        arrivals = np.zeros(len(times), np.int8)
        before_watermark = has_key & (times != NO_TIME) & (times < watermark)
        arrivals[before_watermark] = LATE
        checked = has_key & ~before_watermark
        arrivals[checked] = clocks.classify(streams[checked], times[checked], points[checked])
        accepted = np.flatnonzero(arrivals < LATE)
        rounds = [np.arange(len(accepted))]
        if (timeout := self.spec.idle_timeout) is not None:
            after_idle, has_time = np.zeros(len(accepted), np.bool_), times[accepted] != NO_TIME
            timed = accepted[has_time]
            after_idle[has_time] = first_after_idle(streams[timed], times[timed], last_times[streams[timed]], timeout)
            rounds = _split_at_idle(streams[accepted], after_idle) if after_idle.any() else rounds
        traces: list[Trace] = []
        for part in (accepted[positions] for positions in rounds):
            if traces:
                self._drop_streams(_to_list(self._group_by_key(keys.take(part))[1]))
            traces.append(self._update(keys.take(part), points[part]))
        self.clocks.put(self.fleet.row_indices(stream_keys), clocks)
        in_order = np.empty(len(times), np.int8)
        in_order[order] = arrivals
        return _scatter(concatenate(traces), order[accepted[np.concatenate(rounds)]], len(times)), in_order

    def _group_by_key(self, keys: IntKeys | StrKeys) -> tuple[Integers, IntKeys | StrKeys, Integers]:
        """Return each row's key by index or −1, the keys, and their rows in the fleet."""
        rows = self.fleet.row_indices(keys)
        codes, unknown = rows.copy(), np.flatnonzero(rows < 0)
        if len(unknown):
            new_codes = _encode_keys(keys.take(unknown))
            codes[unknown] = np.where(new_codes >= 0, new_codes + rows.max(initial=-1) + 1, -1)
        present = np.flatnonzero(codes >= 0)[::-1]
        first = np.full(codes.max(initial=-1) + 2, -1)  # the last entry is that of no key, of code −1
        first[codes[present]] = present  # reversed: the first row of a code is assigned last
        used = first >= 0
        streams = np.where(used, np.cumsum(used) - 1, -1)[codes]
        return streams, keys.take(first[used]), rows[first[used]]

    def _update(self, keys: IntKeys | StrKeys, points: Vector) -> Trace:
        return self.fleet.update(keys, LabeledArray(points, self.spec.values))

    def _drop_idle(self, watermark: int) -> None:
        """Drop the streams without a row since the watermark minus the timeout."""
        if self.spec.idle_timeout is not None and watermark != NO_TIME and len(self.fleet):
            keys, last_times = self.fleet.keys(), self.last_times()
            is_idle = (last_times != NO_TIME) & (last_times < watermark - self.spec.idle_timeout)
            self._drop_streams([keys[i] for i in np.flatnonzero(is_idle).tolist()])

    def _drop_streams(self, keys: Sequence[Key]) -> None:
        keys = [key for key in keys if key in self.fleet]
        if keys:
            self.clocks.clear(self.fleet.row_indices(keys))
        for key in keys:
            self.fleet.drop(key)

    def _append_results(self, table: Any, trace: Trace, arrivals: Arrivals) -> Any:
        import pyarrow

        skipped = {LATE_COLUMN: arrivals == LATE, DUPLICATE_COLUMN: arrivals == DUPLICATE}
        for name in output_columns(self.fleet.is_auto, self.spec.time is not None):
            if name == ALARMS_COLUMN:
                column = make_alarm_column(trace.alarms, trace.alarm_index, len(arrivals))
            else:
                column = pyarrow.array(skipped[name] if name in skipped else getattr(trace, name))
            table = table.append_column(self.spec.prefix + name, column)
        return table

    def ordered_clocks(self) -> ClockTable:
        """Return the clocks of the streams, in the order of the keys of the fleet."""
        keys = self.fleet.keys()
        return self.clocks.take(self.fleet.row_indices(keys)) if keys else new_clocks()

    def last_times(self) -> Integers:
        """Return the time of the last row of each stream, in the order of the keys."""
        clocks = self.ordered_clocks()
        return np.asarray(clocks.latest(np.arange(len(clocks))), np.int64)


def _sort_by_time(times: Integers) -> Integers:
    """Return the stable order of rows by time; rows without a time are last."""
    missing = int(np.count_nonzero(times == NO_TIME))
    if not missing and not (times[1:] < times[:-1]).any():
        return np.arange(len(times))
    return np.roll(np.argsort(times, kind="stable"), -missing)


def _encode_keys(keys: IntKeys | StrKeys) -> Integers:
    """Return a code for each key, negative for a missing one."""
    if isinstance(keys, IntKeys):
        codes = np.unique(keys.values, return_inverse=True)[1]
        return np.where(keys.missing, -1, codes) if len(keys.missing) else codes
    if keys.codes is not None:
        return keys.codes
    code_by_key: dict[str, int] = {}
    return np.array(
        [code_by_key.setdefault(key, len(code_by_key)) if isinstance(key, str) else -1 for key in keys.values], np.int64
    )


def _to_list(keys: IntKeys | StrKeys) -> list[Key]:
    if isinstance(keys, IntKeys):
        return list(keys.values.tolist())
    return list(keys.values) if keys.codes is None else [keys.values[code] for code in keys.codes.tolist()]


def first_after_idle(streams: Integers, times: Integers, last_times: Integers, idle_timeout: int) -> Flags:
    """Return which rows follow the previous one of their stream after a timeout.

    `times` increase; stream −1 is none. `last_times` are those of the streams before these rows, or `NO_TIME`.

    >>> streams, times = np.array([0, 1, 0, 0]), np.array([10, 11, 12, 30])
    >>> first_after_idle(streams, times, np.array([9, NO_TIME, 9, 9]), 5)
    array([False, False, False,  True])
    """
    after_idle = np.zeros(len(streams), np.bool_)
    if not len(streams):
        return after_idle
    earliest = min(times.min(), last_times[last_times != NO_TIME].min(initial=times.min()))
    if int(times.max()) - int(earliest) <= idle_timeout:
        return after_idle
    order = np.argsort(streams, kind="stable")
    streams, times = streams[order], times[order]
    is_same_stream = np.append(False, streams[1:] == streams[:-1])
    previous = np.where(is_same_stream, np.append(0, times[:-1]), last_times[order])
    has_previous = (previous != NO_TIME) & (streams >= 0)
    after_idle[order] = times - np.where(has_previous, previous, times) > idle_timeout
    return after_idle


def _split_at_idle(codes: Integers, after_idle: Flags) -> list[Integers]:
    """Return the positions by the number of idle periods before in their stream."""
    order = np.argsort(codes, kind="stable")
    is_first = np.append(True, codes[order][1:] != codes[order][:-1])
    n_idle = np.cumsum(after_idle[order])
    n_idle_before: Integers = (n_idle - after_idle[order])[is_first]
    round_index = np.empty(len(codes), np.int64)
    round_index[order] = n_idle - np.repeat(n_idle_before, np.diff(np.append(np.flatnonzero(is_first), len(codes))))
    by_round = np.argsort(round_index, kind="stable")
    return np.split(by_round, np.searchsorted(round_index[by_round], np.arange(1, int(round_index.max()) + 1)))


def _scatter(trace: Trace, positions: Integers, n: int) -> Trace:
    """Return a trace of n rows that has the entries of another at some positions."""
    score, outcomes = np.full(n, np.nan), np.full(n, OUTCOME_ACCEPTED, np.int8)
    score[positions], outcomes[positions] = trace.score, trace.outcomes
    auto_scores = None
    if trace.auto_scores is not None:
        auto_scores = np.full(n, np.nan), np.full(n, np.nan)
        for target, values in zip(auto_scores, trace.auto_scores, strict=True):
            target[positions] = values
    alarm_index = positions[np.array(trace.alarm_index, np.int64)].tolist()
    return Trace(score, outcomes, auto_scores=auto_scores, alarms=trace.alarms, explicit_alarm_index=alarm_index)


STATE_SCHEMA = "version int, generation int, buckets int, fleet binary, clocks binary"
StateValue = tuple[int, int, int, bytes, bytes]


def to_state_value(state: PartitionState) -> StateValue:
    """Return a state as a value of Spark's state."""
    spec = state.spec
    clocks = b"" if spec.time is None else state.ordered_clocks().to_bytes()
    return SPEC_VERSION, spec.generation, spec.n_buckets, state.fleet.to_bytes(), clocks


def from_state_value(value: Any, spec: JobSpec) -> PartitionState | None:
    """Restore a state; None if it is of an earlier generation."""
    version, generation, buckets, fleet, clocks = value
    if version != SPEC_VERSION:
        raise CheckpointError(f"state: must be of format {SPEC_VERSION}, got {version}. Start a new checkpoint.")
    if generation < spec.generation:
        return None
    if generation > spec.generation or buckets != spec.n_buckets:
        raise CheckpointError(
            f"buckets: must be {buckets}, generation {generation}, as in the states, got {spec.n_buckets}, generation "
            f"{spec.generation}. Give the checkpoint to score(…, checkpoint=…)."
        )
    return restore_partition(fleet, clocks, spec)


def restore_partition(fleet: bytes, clocks: bytes, spec: JobSpec) -> PartitionState:
    """Restore a state from its bytes, with the parameters of the job."""
    header, body = read_header(bytearray(fleet))
    if header["settings"] != spec.learner["settings"] or header["learner"] != spec.learner["learner"]:
        check_param_changes(header, spec.learner)
        header["settings"] = spec.learner["settings"]
    check_variables(header, spec)
    table = ClockTable.from_bytes(clocks, reset_after=None) if clocks else new_clocks()
    return PartitionState(spec, read_fleet(header, body, None), table)


def check_variables(header: dict[str, Any], spec: JobSpec) -> None:
    """Check the variables in the header of a fleet; without names it gets the job's."""
    if header["width"] is not None:
        names = header["names"] or spec.values
        if header["width"] != len(spec.values) or tuple(names) != spec.values:
            variables = ", ".join(header["names"] or ()) or f"{header['width']} variables"
            raise CheckpointError(f"values: must be {variables}, as in the states, got {', '.join(spec.values)}.")
        header["names"] = names
