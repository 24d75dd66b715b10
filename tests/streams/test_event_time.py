"""Late and duplicate points, compared with a plain loop over the points."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import StrKeys
from limpet.streams.batch import Batch, composite_keys
from limpet.streams.event_time import CLOCK_RESET_AFTER, ClockTable, EventTimeFilter, StreamClock
from limpet.streams.results import to_str_list
from limpet.streams.sources.base import split_batch

Point = tuple[str, float, tuple[float, ...]]


RESET_AFTER = 3  # late points


def check_one_by_one(points: list[Point]) -> tuple[list[int], int, int]:
    """Return the indexes of the accepted points and the numbers of late and duplicate ones."""
    last: dict[str, tuple[float, tuple[float, ...]]] = {}
    runs: dict[str, list[float]] = {}  # of late points
    accepted, late, duplicates = [], 0, 0
    for i, (key, moment, value) in enumerate(points):
        if math.isnan(moment):
            accepted.append(i)
            continue
        if key in last and moment < last[key][0]:
            run = runs.get(key, [])
            runs[key] = [*run, moment] if run and moment >= run[-1] else [moment]
            if len(runs[key]) < RESET_AFTER:
                late += 1
                continue
        runs.pop(key, None)
        if key in last and moment == last[key][0] and str(value) == str(last[key][1]):
            duplicates += 1
        else:
            last[key] = (moment, value)
            accepted.append(i)
    return accepted, late, duplicates


def make_batch(points: list[Point], dates: bool, keyed: str, n: int) -> Batch:
    numbers = [point[1] for point in points]
    times = np.array(numbers, np.float64)
    if dates:
        times = np.array(["NaT" if math.isnan(number) else int(number) for number in numbers], "datetime64[ns]")
    names = [point[0] for point in points]
    keys = StrKeys(names)
    if keyed == "by codes":
        known = ["unused", *dict.fromkeys(reversed(names)), "unused too"]
        keys = StrKeys(known, np.array([known.index(name) for name in names], np.int64))
    values = np.array([point[2] for point in points]).reshape(len(points), 2)
    return Batch(values, keys=None if keyed == "no" else keys, times=times, record_index=np.arange(n, n + len(points)))


POINTS = st.lists(
    st.tuples(
        st.sampled_from("abcde"),
        st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0, 5.0, math.nan]),
        st.tuples(st.sampled_from([0.0, 1.0, math.nan]), st.sampled_from([0.0, math.inf])),
    ),
    max_size=40,
)


@settings(max_examples=300)
@given(
    POINTS, st.lists(st.integers(0, 40), max_size=6), st.booleans(), st.sampled_from(["no", "by codes", "as strings"])
)
def test_filter_equals_a_loop_for_any_batches(points: list[Point], cuts: list[int], dates: bool, keyed: str) -> None:
    points = [("", *point[1:]) for point in points] if keyed == "no" else points
    time_filter, accepted, counts = EventTimeFilter(clock_reset_after=RESET_AFTER), [], [0, 0]
    bounds = sorted({0, len(points), *(cut for cut in cuts if cut < len(points))})
    for begin, end in pairwise(bounds):
        batch, late, duplicates = time_filter.filter(make_batch(points[begin:end], dates, keyed, begin))
        assert batch.record_index is not None
        accepted += batch.record_index.tolist()
        counts = [counts[0] + late, counts[1] + duplicates]
        restored = EventTimeFilter(clock_reset_after=RESET_AFTER)  # a run may be interrupted at any moment
        restored.restore(time_filter.to_bytes())
        assert restored.to_bytes() == time_filter.to_bytes()
        time_filter = restored
    assert (accepted, *counts) == check_one_by_one(points)


def test_accepted_points_keep_keys_and_record_indexes() -> None:
    batch = Batch([1.0, 2.0, 3.0], keys=["a", "b", "a"], times=[5, 1, 4], n_records=9, record_index=np.array([2, 4, 8]))  # type: ignore[arg-type]
    accepted, late, duplicates = EventTimeFilter().filter(batch)
    assert (late, duplicates, accepted.n_records) == (1, 0, 9)
    assert accepted.keys is not None
    assert (to_str_list(accepted.keys), accepted.values.ravel().tolist()) == (["a", "b"], [1.0, 2.0])
    assert accepted.record_index is not None
    assert accepted.record_index.tolist() == [2, 4]


def test_split_variables_are_separate_streams() -> None:
    keys = ["a", "a\0", "b", "a"]  # a zero at the end is part of a key
    batch = split_batch(
        Batch([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [1.0, 9.0]], names=("x", "y"), keys=keys, times=[1, 1, 1, 1])
    )  # type: ignore[arg-type]
    keys_of_points = composite_keys(batch)
    assert keys_of_points is not None
    assert to_str_list(keys_of_points) == ["a / x", "a / y", "a\0 / x", "a\0 / y", "b / x", "b / y", "a / x", "a / y"]
    accepted, late, duplicates = EventTimeFilter().filter(batch)
    assert (late, duplicates, len(accepted)) == (0, 1, 7)
    long = split_batch(Batch([[1.0, 2.0]] * 4000, names=("x", "y"), keys=["k" * 500_000, *["a"] * 3999]))  # type: ignore[arg-type]
    assert len(composite_keys(long) or ()) == 8000  # and does not take 16 GB


def test_times_without_order_accept_all() -> None:
    for times in (None, ["5/1/24", "4/1/24", "5/1/24"]):
        batch = Batch([1.0, 1.0, 1.0], times=times)  # type: ignore[arg-type]
        assert EventTimeFilter().filter(batch)[0] is batch
    late: Any = Batch([1.0, 1.0, 1.0], times=[2, 1, 2])  # type: ignore[arg-type]
    assert EventTimeFilter("learn").filter(late) == (late, 0, 0)
    with pytest.raises(InvalidInputError, match="late:"):
        EventTimeFilter("sometimes")
    time_filter = EventTimeFilter()
    time_filter.filter(late)
    with pytest.raises(InvalidInputError, match="times:"):
        time_filter.filter(Batch([1.0], times=["2024-05-01"]))  # type: ignore[arg-type]


def test_max_streams_forgets_silent_streams() -> None:
    """Streams silent for longest are forgotten; restoring from bytes changes nothing."""
    time_filter, plain = EventTimeFilter(max_streams=16), EventTimeFilter()
    for first in range(0, 400, 10):
        keys = [f"s{k}" for k in range(first, first + 10)]
        batch = Batch(np.arange(11.0), times=np.full(11, first + 100), keys=["always", *keys])
        assert time_filter.filter(batch)[0] is batch
        plain.filter(batch)
        restored = EventTimeFilter(max_streams=16)
        restored.restore(time_filter.to_bytes())
        assert restored.to_bytes() == time_filter.to_bytes()
        time_filter = restored
        assert len(time_filter._rows) == len(time_filter._last_arrival) <= 18
    assert len(plain.to_bytes()) > 10 * len(time_filter.to_bytes())
    late = Batch([1.0, 1.0, 1.0], times=[50, 50, 50], keys=["always", "s399", "s0"])
    assert time_filter.filter(late)[1:] == (2, 0)  # s0 is new again
    assert plain.filter(late)[1:] == (3, 0)
    with pytest.raises(InvalidInputError, match="max_streams:"):
        EventTimeFilter(max_streams=0)


def test_stream_recovers_from_one_wrong_time(caplog: pytest.LogCaptureFixture) -> None:
    times = np.arange(1000.0)
    times[300] = 1e9
    accepted, late, _ = EventTimeFilter().filter(Batch(np.arange(1000.0), times=times))
    assert late == CLOCK_RESET_AFTER - 1
    assert accepted.values[-1, 0] == 999.0
    assert "clock was reset" in caplog.text


def test_descending_times_do_not_reset_the_clock() -> None:
    _, late, _ = EventTimeFilter().filter(Batch(np.arange(1000.0), times=np.arange(1000.0)[::-1]))
    assert late == 999


@settings(max_examples=100)
@given(POINTS, st.integers(1, 40), st.sampled_from([None, RESET_AFTER]))
def test_table_agrees_with_clocks_of_single_streams(points: list[Point], size: int, reset_after: int | None) -> None:
    clocks: dict[int, StreamClock] = {}
    table, rows = ClockTable(reset_after), np.array(["abcde".index(point[0]) for point in points], np.int64)
    times, values = np.array([point[1] for point in points]), np.array([point[2] for point in points]).reshape(-1, 2)
    for start in range(0, len(points), size):
        part = slice(start, start + size)
        streams, codes = np.unique(rows[part], return_inverse=True)
        local = ClockTable.from_bytes(table.take(streams).to_bytes(), reset_after)  # as Spark does per table
        arrivals = local.classify(codes, times[part], values[part])
        table.put(streams, local)
        expected = [
            clocks.setdefault(row, StreamClock()).check(None if math.isnan(time) else time, point, reset_after)
            for row, time, point in zip(rows[part].tolist(), times[part].tolist(), values[part].tolist(), strict=True)
        ]
        assert arrivals.tolist() == expected
    known = [row for row, clock in clocks.items() if clock.latest is not None]
    assert table.latest(np.array(known, np.int64)).tolist() == [clocks[row].latest for row in known]
    table.clear(np.array([-1, 0]))
    assert np.isnan(table.latest(np.array([-1, 0, 99]))).all() or not known
