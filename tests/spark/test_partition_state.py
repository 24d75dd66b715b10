"""The state of a bucket, without Spark, compared with one learner per stream and idle period."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import limpet as lp
from helpers.spark import (
    ReferencePartition,
    assert_same_alarms,
    assert_same_results,
    assert_same_streams,
    make_spec,
    make_table,
)
from limpet.exceptions import CheckpointError
from limpet.spark.partition_state import PartitionState, concat_clocks, from_state_value, to_state_value
from limpet.spark.udfs import concat_tables, pack_batches
from limpet.streams.event_time import NO_TIME, ClockTable

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]

SRA_LEARNER, DETECTOR = lp.SRA(gamma=4.0, rho=0.05, n_init=3, warmup=5), lp.Detector(memory="compact")


KEYS = {True: st.sampled_from(["", "a", "é", "long " * 9, None]), False: st.sampled_from([0, -1, 2**60 + 1, None])}
ROW = {
    string_keys: st.tuples(
        keys, st.none() | st.integers(-40, 60), st.none() | st.sampled_from([0.0, 1.0, 1.5, 90.0, math.inf])
    )
    for string_keys, keys in KEYS.items()
}
CALLS = st.booleans().flatmap(
    lambda string_keys: st.tuples(
        st.just(string_keys),
        st.lists(st.tuples(st.integers(-30, 20), st.lists(ROW[string_keys], max_size=25)), max_size=5),
    )
)


@given(CALLS, st.sampled_from([None, 1, 5, 30]), st.booleans())
@example((True, [(0, [("a", 40, 1.0)]), (0, [("a", 1, 1.0), (None, 2, 1.0)]), (0, [])]), 5, True)  # all late; no rows
@example((False, [(0, [(None, 1, 1.0)]), (0, [(0, 2, None)]), (50, [(0, None, 1.0)])]), 5, True)
@example(
    (True, [(0, [("a", 4, 1.0), ("a", 4, 1.0)]), (0, [("a", 4, 1.0), ("a", 4, None)]), (0, [("a", 4, None)])]),
    None,
    True,
)
def test_bucket_equals_a_learner_per_idle_period(calls, idle, restored) -> None:
    string_keys, tables = calls
    spec = make_spec(SRA_LEARNER, values=("v",), has_string_keys=string_keys, time_unit="", idle_timeout=idle)
    bucket, reference, watermark = PartitionState.empty(spec), ReferencePartition(SRA_LEARNER, idle), NO_TIME
    for advance, rows in tables:
        watermark = max(watermark, advance)
        kinds = (pa.string() if string_keys else pa.int64(), pa.int64(), pa.float64())
        columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
        got = bucket.process(pa.table(columns, ["sensor", "ts", "v"]), watermark)
        expected = reference.learn([(key, time, [value]) for key, time, value in rows], watermark)
        assert got.select(["sensor", "ts", "v"]).equals(pa.table(columns, ["sensor", "ts", "v"]))
        for name, column in zip(ReferencePartition.fields, zip(*expected, strict=True), strict=False):
            assert np.array_equal(got[name].to_numpy(), np.array(column), equal_nan=True), name
        if restored:
            bucket = from_state_value(to_state_value(bucket), spec)
    keys = bucket.fleet.keys()
    for key in set(keys) & set(reference.last_rows):  # the others have no row with a time, or are idle
        if reference.last_rows[key][0] >= watermark - (idle or math.inf):
            got, expected = bucket.fleet[key], reference.learners[key]
            assert got.n_seen - got.n_invalid == expected.n_seen - expected.n_invalid
            assert got.n_rejected == expected.n_rejected
    assert {key for key, (last, _) in reference.last_rows.items() if last >= watermark - (idle or math.inf)} <= set(
        keys
    )


@pytest.mark.parametrize("model", [SRA_LEARNER, DETECTOR], ids=["SRA", "detector"])
def test_bucket_equals_a_fleet(model) -> None:
    table = make_table(n_keys=9, n=6000, seed=1)
    fleet, bucket = lp.Fleet(model), PartitionState.empty(make_spec(model))
    expected = fleet.process(table, key="sensor", values=["a", "b"], time="ts")
    pieces = [bucket.process(table.slice(begin, 1500)) for begin in range(0, 6000, 1500)]
    got = pa.concat_tables(pieces)
    assert_same_results(got, expected)
    assert_same_streams(bucket.fleet, fleet)
    if model is DETECTOR:
        assert_same_alarms(got, table, model, "ts")
    else:
        assert got["alarms"].null_count == len(got)


@pytest.mark.parametrize("model", [SRA_LEARNER, DETECTOR], ids=["SRA", "detector"])
def test_rows_without_a_time_come_last_as_in_a_fleet(model) -> None:
    table = make_table(n_keys=3, n=3000, seed=2)
    times = pa.array([None if i % 17 == 0 else t for i, t in enumerate(table["ts"].to_pylist())], table["ts"].type)
    table = table.set_column(1, "ts", times).append_column("i", pa.array(range(3000)))
    fleet, bucket = lp.Fleet(model), PartitionState.empty(make_spec(model))
    expected = fleet.process(table, key="sensor", values=["a", "b"], time="ts")
    got = bucket.process(table)
    assert_same_results(got, expected, by="i")
    assert_same_streams(bucket.fleet, fleet)
    messages = [alarm["message"] for row in got["alarms"].to_pylist() for alarm in row or []]
    assert sorted(messages) == sorted(alarm.description for alarm in fleet.alarms)


def test_restored_bucket_equals_an_uninterrupted_one() -> None:
    """While some streams are not initialized yet, and others have been dropped and their rows reused."""
    table = make_table(n_keys=30, n=3000, seed=3)
    spec = make_spec(DETECTOR, idle_timeout=400_000_000)
    uninterrupted, restored = PartitionState.empty(spec), PartitionState.empty(spec)
    for begin in range(0, 3000, 250):
        part = table.slice(begin, 250).filter(
            pa.compute.not_equal(table["sensor"].slice(begin, 250), f"s{begin // 250:03}")
        )
        watermark = begin * 1_000_003 + 1_772_323_200_000_000 - 100_000_000
        restored = from_state_value(to_state_value(restored), spec)
        assert_same_results(restored.process(part, watermark), uninterrupted.process(part, watermark))
        assert_same_streams(restored.fleet, uninterrupted.fleet)
        assert dict(zip(uninterrupted.fleet, uninterrupted.last_times(), strict=True)) == dict(
            zip(restored.fleet, restored.last_times(), strict=True)
        )


def test_state_stores_its_layout_and_parameters() -> None:
    spec = make_spec(SRA_LEARNER, time=None)
    bucket = PartitionState.empty(spec)
    bucket.process(make_table(n_keys=2, n=50, seed=4))
    value = to_state_value(bucket)
    assert_same_streams(from_state_value(value, spec).fleet, bucket.fleet)
    assert from_state_value(value, replace(spec, generation=2)) is None
    with pytest.raises(CheckpointError, match=r"buckets: must be 4, generation 1, .*, got 8, generation 1"):
        from_state_value(value, replace(spec, buckets=8))
    with pytest.raises(CheckpointError, match=r"generation 1, .*, got 4, generation 0"):
        from_state_value(value, replace(spec, generation=0))
    with pytest.raises(CheckpointError, match="got 99"):
        from_state_value((99, *value[1:]), spec)
    with pytest.raises(CheckpointError, match="learner: n_components must remain"):
        from_state_value(value, make_spec(lp.SRA(n_components=2, gamma=4.0, rho=0.05, n_init=3, warmup=5), time=None))


def test_states_continue_with_other_parameters() -> None:
    """Compared with separate learners whose parameters are exchanged."""
    other = lp.SRA(gamma=1.5, rho=0.2, n_init=3, warmup=5)
    table = make_table(n_keys=4, n=400, seed=5)
    bucket, reference = PartitionState.empty(make_spec(SRA_LEARNER)), ReferencePartition(SRA_LEARNER)
    for begin, model in (
        (0, SRA_LEARNER),
        (5, other),
        (200, SRA_LEARNER),
        (300, other),
    ):  # the first while some have not started
        reference.change_params(model)
        bucket = from_state_value(to_state_value(bucket), make_spec(model))
        assert bucket.fleet.learner.gamma == model.gamma
        piece = table.slice(begin, {0: 5, 5: 195}.get(begin, 100))
        times, points = (
            piece["ts"].cast(pa.int64()).to_pylist(),
            np.column_stack([piece[name].fill_null(np.nan).to_numpy() for name in ("a", "b")]),
        )
        expected = reference.learn(list(zip(piece["sensor"].to_pylist(), times, points, strict=True)), NO_TIME)
        got = bucket.process(piece)
        for name, column in zip(ReferencePartition.fields, zip(*expected, strict=True), strict=True):
            assert np.array_equal(got[name].to_numpy(), np.array(column), equal_nan=True), name
    for key, learner in reference.learners.items():
        assert np.array(bucket.fleet[key].state).tobytes() == np.array(learner.state).tobytes()


TIMES = {"date": pa.date32(), "int16": pa.int16(), "int64": pa.int64(), "ntz": pa.timestamp("us"), "none": None}


@pytest.mark.parametrize("kind", list(TIMES))
def test_times_of_any_kind_on_a_stream(kind) -> None:
    """Two tasks per micro-batch, whose values arrive in any order; each is processed twice, as after a failed task."""
    rng = np.random.default_rng(0)
    days = np.sort(rng.integers(-40, 40, 1200)).reshape(4, 300)  # with many ties, also from one micro-batch to the next
    integers = pa.array(rng.permuted(days, axis=1).ravel())
    table = make_table(n_keys=20, n=1200, seed=6).append_column("i", pa.array(range(1200)))
    if kind == "date":
        integers = integers.cast(pa.int32())
    table = table.set_column(1, "ts", integers if kind == "none" else integers.cast(TIMES[kind]))
    time = None if kind == "none" else "ts"
    spec = make_spec(SRA_LEARNER, time=time, time_unit="us" if kind in ("date", "ntz") else "")
    fleet, states, results = lp.Fleet(SRA_LEARNER), {}, []
    expected = fleet.process(table, key="sensor", values=["a", "b"], time=time)
    for begin in range(0, 1200, 300):
        tasks = [table.slice(begin + 150 * task, 150).to_batches(max_chunksize=60) for task in (0, 1)]
        values = [
            row for task in (1, 0) for batch in pack_batches(tasks[task], spec, task) for row in batch.to_pylist()
        ]
        for number in {row["bucket"] for row in values}:
            packed = sorted((row for row in values if row["bucket"] == number), key=lambda row: row["sequence"])
            rows = concat_tables(row["rows"] for row in packed)
            before = states.get(number, to_state_value(PartitionState.empty(spec)))
            for _ in range(2):
                bucket = from_state_value(before, spec)
                scored = bucket.process(rows)
            states[number] = to_state_value(bucket)
            results.append(scored)
    assert_same_results(pa.concat_tables(results), expected, by="i")
    assert len(states) == 4
    for value in states.values():
        restored = from_state_value(value, spec).fleet
        for key in restored:
            assert np.array(restored[key].state).tobytes() == np.array(fleet[key].state).tobytes()


def test_clocks_of_streams_without_times_are_concatenated() -> None:
    with_times, without_times = ClockTable(None), ClockTable(None)
    with_times.classify(np.array([0, 1]), np.array([5, 7]), np.zeros((2, 2)))
    without_times.put(np.array([0, 1, 2]), ClockTable(None).take(np.full(3, -1)))
    for tables, times in (
        ([with_times, without_times], [5, 7, *[NO_TIME] * 3]),
        ([without_times, with_times], [*[NO_TIME] * 3, 5, 7]),
    ):
        assert concat_clocks(tables).latest(np.arange(5)).tolist() == times
