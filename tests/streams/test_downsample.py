"""The sketch of a stream: the same for any cuts, exact while short, bounded however long."""

import numpy as np
import pytest

from limpet.core.algorithm import OUTCOME_ACCEPTED, OUTCOME_ANOMALY, OUTCOME_BUFFERED, OUTCOME_INVALID, OUTCOME_REJECTED
from limpet.exceptions import InvalidInputError
from limpet.learners import Trace
from limpet.streams.downsample import REDUCTIONS, MinMaxSummary

N, D = 5000, 2


def a_stream(n=N, seed=0, watched=True):
    """Values with gaps, infinities and far points, what became of them, estimates and times."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, D))
    values[rng.random((n, D)) < 0.1] = np.nan
    fates = rng.choice(
        np.array([OUTCOME_ACCEPTED, OUTCOME_REJECTED, OUTCOME_INVALID, OUTCOME_REJECTED | OUTCOME_ANOMALY], np.int8),
        n,
        p=(0.8, 0.1, 0.05, 0.05),
    )
    values[fates == OUTCOME_REJECTED] *= 1e6
    values[fates == OUTCOME_INVALID] = np.inf
    fates[:20] = OUTCOME_BUFFERED
    score = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    trace = Trace(score, fates, {}, (rng.random(n), rng.random(n)) if watched else None)
    means = np.where(rng.random((n, D)) < 0.3, np.nan, rng.normal(size=(n, D)))
    times = np.datetime64("2024-01-01", "ns") + np.sort(rng.integers(0, 10**15, n)).astype("timedelta64[ns]")
    return values, trace, means, times


def part_of(trace, rows):
    watched = None if trace.watched is None else tuple(each[rows] for each in trace.watched)
    return Trace(trace.score[rows], trace.fates[rows], {}, watched)


def sketched(stream, cuts=(), most=64):
    values, trace, means, times = stream
    sketch = MinMaxSummary(("a", "b"), most)
    for begin, end in zip([0, *cuts], [*cuts, len(values)], strict=True):
        rows = slice(begin, end)
        sketch.add(values[rows], part_of(trace, rows), None if means is None else means[rows], times[rows])
    return sketch


def everything(sketch):
    return {
        name: getattr(sketch, name)
        for name in (*REDUCTIONS, "times", "rows", "last_time", "n_rows", "width", "watched")
    }


def assert_same(one, other):
    for (name, ours), theirs in zip(everything(one).items(), everything(other).values(), strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=name)


@pytest.mark.parametrize("watched", [True, False])
def test_cuts_do_not_matter(watched):
    stream, rng = a_stream(watched=watched), np.random.default_rng(1)
    whole = sketched(stream)
    assert_same(whole, sketched(stream, range(1, N)))
    for _ in range(20):
        assert_same(whole, sketched(stream, np.sort(rng.integers(0, N + 1, rng.integers(1, 40))).tolist()))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 127, 128, 129, 4999])
def test_a_bucket_tells_of_its_rows(n):
    values, trace, means, times = a_stream(n)
    sketch = sketched((values, trace, means, times), [n // 3, n // 2])
    assert sketch.n_rows == n
    assert len(sketch) <= 64
    assert sketch.is_exact == (n <= 64)
    assert n <= 64 or len(sketch) > 32
    kept = ~(trace.rejected | trace.invalid)
    for bucket in range(len(sketch)):
        rows = np.arange(bucket * sketch.width, min((bucket + 1) * sketch.width, n))
        assert sketch.rows[bucket] == rows[0]
        assert sketch.times[bucket] == times[rows[0]]
        counts = [sketch.n_rejected[bucket], sketch.n_invalid[bucket], sketch.n_anomalies[bucket]]
        assert counts == [trace.rejected[rows].sum(), trace.invalid[rows].sum(), trace.anomaly[rows].sum()]
        for variable in range(D):
            column = values[rows, variable]
            for which, low, high in (
                (kept, sketch.minimum, sketch.maximum),
                (trace.rejected, sketch.rejected_minimum, sketch.rejected_maximum),
            ):
                found = column[which[rows] & np.isfinite(column)]
                ends = [found.min(), found.max()] if len(found) else [np.nan, np.nan]
                np.testing.assert_array_equal([low[variable, bucket], high[variable, bucket]], ends)
            known = means[rows, variable][~np.isnan(means[rows, variable])]
            np.testing.assert_array_equal(sketch.estimate[variable, bucket], known[-1] if len(known) else np.nan)
        for ours, theirs in ((sketch.score, trace.score), (sketch.change_score, trace.change_score)):
            known = theirs[rows][~np.isnan(theirs[rows])]
            np.testing.assert_array_equal(ours[bucket], known.max() if len(known) else np.nan)
    assert sketch.last_time == times[-1]


def test_it_stays_small():
    sketch, n = MinMaxSummary(("a",)), 300_000
    trace = Trace(np.zeros(n), np.zeros(n, np.int8))
    for _ in range(10):
        sketch.add(np.ones((n, 1)), trace)
        assert len(sketch) <= 4096
        assert all(kept.size <= 4096 for kept in sketch._columns.values())
    assert sketch.n_rows == 10 * n
    assert len(sketch) > 2048
    assert sketch.maximum.max() == 1.0
    short = MinMaxSummary(("a",))
    short.add(np.ones((3, 1)), Trace(np.zeros(3), np.zeros(3, np.int8)))
    assert sum(kept.nbytes for kept in short._columns.values()) < 10_000  # many streams are short


def test_a_batch_of_many_streams_is_taken_apart():
    values, trace, means, times = a_stream(300)
    mine = np.arange(0, 300, 3)
    sketch = MinMaxSummary(("a", "b"), 64)
    for rows in (mine[:10], mine[10:10], mine[10:]):
        sketch.add(values, trace, means, times, selection=rows)
    assert_same(sketch, sketched((values[mine], part_of(trace, mine), means[mine], times[mine])))


def test_without_estimates_and_with_times_that_stop():
    values, trace, means, times = a_stream(100)
    assert np.isnan(sketched((values, trace, None, times)).estimate).all()
    sketch = sketched((values, trace, means, times))
    sketch.add(values, trace)
    assert sketch.times is None
    sketch.add(values, trace, None, times)
    assert sketch.times is None
    assert sketch.last_time is None


def test_texts_as_times():
    values, trace, means, _ = a_stream(100)
    sketch = sketched((values, trace, means, np.array([f"day {i}" for i in range(100)], object)))
    assert sketch.times[1] == "day 2"


def test_bad_input_is_named():
    values, trace, means, times = a_stream(10)
    for call in (
        lambda: MinMaxSummary(()),
        lambda: MinMaxSummary(("a",), 7),
        lambda: MinMaxSummary(("a",)).add(values, trace),
        lambda: MinMaxSummary(("a", "b")).add(values[1:], trace),
        lambda: MinMaxSummary(("a", "b")).add(values, trace, means[:, :1], times),
    ):
        with pytest.raises(InvalidInputError, match="got"):
            call()
