"""Late and repeated points, against what one would do point by point."""

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
from limpet.streams import event_time
from limpet.streams.batch import Batch
from limpet.streams.event_time import EventTimeFilter
from limpet.streams.results import to_str_list
from limpet.streams.split_columns import composite_keys, split_batch

Point = tuple[str, float, tuple[float, ...]]


def one_by_one(points: list[Point]) -> tuple[list[int], int, int]:
    """Which points are taken; how many are late, and how many repeated."""
    last: dict[str, tuple[float, tuple[float, ...]]] = {}
    runs: dict[str, list[float]] = {}  # of late points
    taken, late, repeated = [], 0, 0
    for i, (key, moment, value) in enumerate(points):
        if math.isnan(moment):
            taken.append(i)
            continue
        if key in last and moment < last[key][0]:
            run = runs.get(key, [])
            runs[key] = [*run, moment] if run and moment >= run[-1] else [moment]
            if len(runs[key]) < event_time.CLOCK_RESET_AFTER:
                late += 1
                continue
        runs.pop(key, None)
        if key in last and moment == last[key][0] and str(value) == str(last[key][1]):
            repeated += 1
        else:
            last[key] = (moment, value)
            taken.append(i)
    return taken, late, repeated


def batch_of(points: list[Point], whole: bool, keyed: str, n: int) -> Batch:
    moments = [one[1] for one in points]
    times = np.array(moments, np.float64)
    if whole:
        times = np.array(["NaT" if math.isnan(one) else int(one) for one in moments], "datetime64[ns]")
    names = [one[0] for one in points]
    keys = StrKeys(names)
    if keyed == "by codes":
        known = ["unused", *dict.fromkeys(reversed(names)), "unused too"]
        keys = StrKeys(known, np.array([known.index(name) for name in names], np.int64))
    values = np.array([one[2] for one in points]).reshape(len(points), 2)
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
@given(POINTS, st.lists(st.integers(0, 40), max_size=6), st.booleans(), st.sampled_from(["no", "by codes", "as texts"]))
def test_any_points_in_any_cuts(points: list[Point], cuts: list[int], whole: bool, keyed: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_time, "NEW_CLOCK", 3)
        held_to_one_by_one(points, cuts, whole, keyed)


def held_to_one_by_one(points: list[Point], cuts: list[int], whole: bool, keyed: str) -> None:
    points = [("", *one[1:]) for one in points] if keyed == "no" else points
    sieve, got, counts = EventTimeFilter(), [], [0, 0]
    bounds = sorted({0, len(points), *(cut for cut in cuts if cut < len(points))})
    for begin, end in pairwise(bounds):
        batch, late, repeated = sieve.filter(batch_of(points[begin:end], whole, keyed, begin))
        assert batch.record_index is not None
        got += batch.record_index.tolist()
        counts = [counts[0] + late, counts[1] + repeated]
        again = EventTimeFilter()  # it may be interrupted at any moment
        again.restore(sieve.to_bytes())
        assert again.to_bytes() == sieve.to_bytes()
        sieve = again
    assert (got, *counts) == one_by_one(points)


def test_points_that_are_taken_keep_what_is_theirs() -> None:
    batch = Batch([1.0, 2.0, 3.0], keys=["a", "b", "a"], times=[5, 1, 4], n_records=9, record_index=np.array([2, 4, 8]))  # type: ignore[arg-type]
    taken, late, repeated = EventTimeFilter().filter(batch)
    assert (late, repeated, taken.n_records) == (1, 0, 9)
    assert taken.keys is not None
    assert (to_str_list(taken.keys), taken.values.ravel().tolist()) == (["a", "b"], [1.0, 2.0])
    assert taken.record_index is not None
    assert taken.record_index.tolist() == [2, 4]


def test_variables_apart_are_streams_of_their_own() -> None:
    keys = ["a", "a\0", "b", "a"]  # a zero at the end is part of a key
    batch = split_batch(
        Batch([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [1.0, 9.0]], names=("x", "y"), keys=keys, times=[1, 1, 1, 1])
    )  # type: ignore[arg-type]
    found = composite_keys(batch)
    assert found is not None
    assert to_str_list(found) == ["a / x", "a / y", "a\0 / x", "a\0 / y", "b / x", "b / y", "a / x", "a / y"]
    taken, late, repeated = EventTimeFilter().filter(batch)
    assert (late, repeated, len(taken)) == (0, 1, 7)
    long = split_batch(Batch([[1.0, 2.0]] * 4000, names=("x", "y"), keys=["k" * 500_000, *["a"] * 3999]))  # type: ignore[arg-type]
    assert len(composite_keys(long) or ()) == 8000  # and does not take 16 GB


def test_without_an_order_all_are_taken() -> None:
    for times in (None, ["5/1/24", "4/1/24", "5/1/24"]):
        batch = Batch([1.0, 1.0, 1.0], times=times)  # type: ignore[arg-type]
        assert EventTimeFilter().filter(batch)[0] is batch
    late: Any = Batch([1.0, 1.0, 1.0], times=[2, 1, 2])  # type: ignore[arg-type]
    assert EventTimeFilter("learn").filter(late) == (late, 0, 0)
    with pytest.raises(InvalidInputError, match="expected one of skip, learn, got 'sometimes'"):
        EventTimeFilter("sometimes")
    sieve = EventTimeFilter()
    sieve.filter(late)
    with pytest.raises(InvalidInputError, match="as numbers and as dates in turn"):
        sieve.filter(Batch([1.0], times=["2024-05-01"]))  # type: ignore[arg-type]


def test_only_so_many_streams_are_remembered() -> None:
    """Those that came longest ago leave; it is the same after an interruption."""
    sieve, plain = EventTimeFilter(max_streams=16), EventTimeFilter()
    for first in range(0, 400, 10):
        keys = [f"s{k}" for k in range(first, first + 10)]
        batch = Batch(np.arange(11.0), times=np.full(11, first + 100), keys=["always", *keys])
        assert sieve.filter(batch)[0] is batch
        plain.filter(batch)
        again = EventTimeFilter(max_streams=16)
        again.restore(sieve.to_bytes())
        assert again.to_bytes() == sieve.to_bytes()
        sieve = again
        assert len(sieve._rows) == len(sieve._times) == len(sieve._last_arrival) <= 18
    assert len(plain.to_bytes()) > 10 * len(sieve.to_bytes())
    late = Batch([1.0, 1.0, 1.0], times=[50, 50, 50], keys=["always", "s399", "s0"])
    assert sieve.filter(late)[1:] == (2, 0)  # s0 is new again
    assert plain.filter(late)[1:] == (3, 0)
    with pytest.raises(InvalidInputError, match="at least one"):
        EventTimeFilter(max_streams=0)


def test_one_wrong_time_does_not_make_a_stream_deaf(caplog: pytest.LogCaptureFixture) -> None:
    times = np.arange(1000.0)
    times[300] = 1e9
    taken, late, _ = EventTimeFilter().filter(Batch(np.arange(1000.0), times=times))
    assert late == event_time.CLOCK_RESET_AFTER - 1
    assert taken.values[-1, 0] == 999.0
    assert "its clock was set back" in caplog.text


def test_the_newest_first_is_no_new_clock() -> None:
    _, late, _ = EventTimeFilter().filter(Batch(np.arange(1000.0), times=np.arange(1000.0)[::-1]))
    assert late == 999
