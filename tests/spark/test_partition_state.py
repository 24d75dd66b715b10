"""A bucket of streams, without Spark: a fleet with a clock, held to one learner for each stretch of each stream."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import limpet as lp
from helpers.spark import Naive, plan_of, same_alarms, same_answers, same_streams, stream_of
from limpet.exceptions import CheckpointError
from limpet.spark.arrow_ipc import concat_tables, pack_batches
from limpet.spark.event_time import NO_TIME
from limpet.spark.partition_state import PartitionState, from_state_value, to_state_value

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]

PLAIN, WATCHED = lp.SRA(gamma=4.0, rho=0.05, n_init=3, warmup=5), lp.SRA(memory="compact")


KEYS = {True: st.sampled_from(["", "a", "é", "long " * 9, None]), False: st.sampled_from([0, -1, 2**60 + 1, None])}
ROW = {
    texts: st.tuples(
        keys, st.none() | st.integers(-40, 60), st.none() | st.sampled_from([0.0, 1.0, 1.5, 90.0, math.inf])
    )
    for texts, keys in KEYS.items()
}
CALLS = st.booleans().flatmap(
    lambda texts: st.tuples(
        st.just(texts), st.lists(st.tuples(st.integers(-30, 20), st.lists(ROW[texts], max_size=25)), max_size=5)
    )
)


@given(CALLS, st.sampled_from([None, 1, 5, 30]), st.booleans())
@example((True, [(0, [("a", 40, 1.0)]), (0, [("a", 1, 1.0), (None, 2, 1.0)]), (0, [])]), 5, True)  # all late; no rows
@example((False, [(0, [(None, 1, 1.0)]), (0, [(0, 2, None)]), (50, [(0, None, 1.0)])]), 5, True)
def test_a_bucket_is_a_learner_for_each_stretch(calls, idle, restored) -> None:
    texts, tables = calls
    plan = plan_of(PLAIN, values=("v",), texts=texts, unit="", idle=idle)
    bucket, naive, watermark = PartitionState.empty(plan), Naive(PLAIN, idle), NO_TIME
    for advance, rows in tables:
        watermark = max(watermark, advance)
        kinds = (pa.string() if texts else pa.int64(), pa.int64(), pa.float64())
        columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
        got = bucket.process(pa.table(columns, ["sensor", "ts", "v"]), watermark)
        expected = naive.learn([(key, time, [value]) for key, time, value in rows], watermark)
        assert got.select(["sensor", "ts", "v"]).equals(pa.table(columns, ["sensor", "ts", "v"]))
        for name, column in zip(("score", "rejected", "invalid", "late"), zip(*expected, strict=True), strict=False):
            assert np.array_equal(got[name].to_numpy(), np.array(column), equal_nan=True), name
        if restored:
            bucket = from_state_value(to_state_value(bucket), plan)
    here = bucket.fleet.keys()
    for key in set(here) & set(naive.last):  # the others came without a time, or have been idle
        if naive.last[key] >= watermark - (idle or math.inf):
            got, expected = bucket.fleet[key], naive.learners[key]
            assert got.n_seen - got.n_invalid == expected.n_seen - expected.n_invalid
            assert got.n_rejected == expected.n_rejected
    assert {key for key, last in naive.last.items() if last >= watermark - (idle or math.inf)} <= set(here)


@pytest.mark.parametrize("model", [PLAIN, WATCHED], ids=["plain", "autopilot"])
def test_a_bucket_is_a_fleet(model) -> None:
    table = stream_of(n_keys=9, n=6000, seed=1)
    fleet, bucket = lp.Fleet(model), PartitionState.empty(plan_of(model))
    expected = fleet.process(table, key="sensor", values=["a", "b"], time="ts")
    pieces = [bucket.process(table.slice(begin, 1500)) for begin in range(0, 6000, 1500)]
    got = pa.concat_tables(pieces)
    same_answers(got, expected)
    same_streams(bucket.fleet, fleet)
    if model is WATCHED:
        same_alarms(got, table, model, "ts")
    else:
        assert got["alarms"].null_count == len(got)


@pytest.mark.parametrize("model", [PLAIN, WATCHED], ids=["plain", "autopilot"])
def test_rows_without_a_time_come_last_as_in_a_fleet(model) -> None:
    table = stream_of(n_keys=3, n=3000, seed=2)
    times = pa.array([None if i % 17 == 0 else t for i, t in enumerate(table["ts"].to_pylist())], table["ts"].type)
    table = table.set_column(1, "ts", times).append_column("i", pa.array(range(3000)))
    fleet, bucket = lp.Fleet(model), PartitionState.empty(plan_of(model))
    expected = fleet.process(table, key="sensor", values=["a", "b"], time="ts")
    got = bucket.process(table)
    same_answers(got, expected, by="i")
    same_streams(bucket.fleet, fleet)
    told = [alarm["message"] for row in got["alarms"].to_pylist() for alarm in row or []]
    assert sorted(told) == sorted(map(str, fleet.alarms))


def test_restored_in_the_middle_is_uninterrupted() -> None:
    """While some streams wait for their first points, and others have gone and left their rows to new ones."""
    table = stream_of(n_keys=30, n=3000, seed=3)
    plan = plan_of(WATCHED, idle=400_000_000)
    straight, restored = PartitionState.empty(plan), PartitionState.empty(plan)
    for begin in range(0, 3000, 250):
        own = table.slice(begin, 250).filter(
            pa.compute.not_equal(table["sensor"].slice(begin, 250), f"s{begin // 250:03}")
        )
        watermark = begin * 1_000_003 + 1_772_323_200_000_000 - 100_000_000
        restored = from_state_value(to_state_value(restored), plan)
        one, other = straight.process(own, watermark), restored.process(own, watermark)
        same_answers(other, one)
        same_streams(restored.fleet, straight.fleet)
        assert dict(zip(straight.fleet, straight.last_times(), strict=True)) == dict(
            zip(restored.fleet, restored.last_times(), strict=True)
        )


def test_the_state_knows_its_layout_and_settings() -> None:
    plan = plan_of(PLAIN, time=None)
    bucket = PartitionState.empty(plan)
    bucket.process(stream_of(n_keys=2, n=50, seed=4))
    value = to_state_value(bucket)
    same_streams(from_state_value(value, plan).fleet, bucket.fleet)
    assert from_state_value(value, replace(plan, generation=2)) is None
    with pytest.raises(CheckpointError, match="4 buckets, generation 1; the job has 8, generation 1"):
        from_state_value(value, replace(plan, buckets=8))
    with pytest.raises(CheckpointError, match="generation 1; the job has 4, generation 0"):
        from_state_value(value, replace(plan, generation=0))
    with pytest.raises(CheckpointError, match="version 99"):
        from_state_value((99, *value[1:]), plan)
    with pytest.raises(CheckpointError, match="n_components cannot change"):
        from_state_value(value, plan_of(lp.SRA(n_components=2, gamma=4.0, rho=0.05, n_init=3, warmup=5), time=None))


def test_other_settings_go_on_from_the_states() -> None:
    """Held to learners by themselves, whose settings are exchanged."""
    other = lp.SRA(gamma=1.5, rho=0.2, n_init=3, warmup=5)
    table = stream_of(n_keys=4, n=400, seed=5)
    bucket, naive = PartitionState.empty(plan_of(PLAIN)), Naive(PLAIN)
    for begin, model in ((0, PLAIN), (5, other), (200, PLAIN), (300, other)):  # the first while some have not started
        naive.retune(model)
        bucket = from_state_value(to_state_value(bucket), plan_of(model))
        assert bucket.fleet.learner.gamma == model.gamma
        piece = table.slice(begin, {0: 5, 5: 195}.get(begin, 100))
        times, points = (
            piece["ts"].cast(pa.int64()).to_pylist(),
            np.column_stack([piece[name].fill_null(np.nan).to_numpy() for name in ("a", "b")]),
        )
        expected = naive.learn(list(zip(piece["sensor"].to_pylist(), times, points, strict=True)), NO_TIME)
        got = bucket.process(piece)
        for name, column in zip(("score", "rejected", "invalid", "late"), zip(*expected, strict=True), strict=True):
            assert np.array_equal(got[name].to_numpy(), np.array(column), equal_nan=True), name
    for key, learner in naive.learners.items():
        assert np.array(bucket.fleet[key].state).tobytes() == np.array(learner.state).tobytes()


TIMES = {"date": pa.date32(), "int16": pa.int16(), "int64": pa.int64(), "ntz": pa.timestamp("us"), "none": None}


@pytest.mark.parametrize("kind", list(TIMES))
def test_times_of_any_kind_on_a_stream(kind) -> None:
    """Two tasks a micro-batch, whose values come in any order; each is learnt twice, as if the first try had failed."""
    rng = np.random.default_rng(0)
    days = np.sort(rng.integers(-40, 40, 1200)).reshape(4, 300)  # with many ties, also from one micro-batch to the next
    whole = pa.array(rng.permuted(days, axis=1).ravel())
    table = stream_of(n_keys=20, n=1200, seed=6).append_column("i", pa.array(range(1200)))
    if kind == "date":
        whole = whole.cast(pa.int32())
    table = table.set_column(1, "ts", whole if kind == "none" else whole.cast(TIMES[kind]))
    time = None if kind == "none" else "ts"
    plan = plan_of(PLAIN, time=time, unit="us" if kind in ("date", "ntz") else "")
    fleet, states, told = lp.Fleet(PLAIN), {}, []
    expected = fleet.process(table, key="sensor", values=["a", "b"], time=time)
    for begin in range(0, 1200, 300):
        tasks = [table.slice(begin + 150 * task, 150).to_batches(max_chunksize=60) for task in (0, 1)]
        values = [row for task in (1, 0) for one in pack_batches(tasks[task], plan, task) for row in one.to_pylist()]
        for number in {row["bucket"] for row in values}:
            own = sorted((row for row in values if row["bucket"] == number), key=lambda row: row["place"])
            rows, before = (
                concat_tables(row["rows"] for row in own),
                states.get(number, to_state_value(PartitionState.empty(plan))),
            )
            for _ in range(2):
                bucket = from_state_value(before, plan)
                answers = bucket.process(rows)
            states[number] = to_state_value(bucket)
            told.append(answers)
    same_answers(pa.concat_tables(told), expected, by="i")
    assert len(states) == 4
    for value in states.values():
        kept = from_state_value(value, plan).fleet
        for key in kept:
            assert np.array(kept[key].state).tobytes() == np.array(fleet[key].state).tobytes()
