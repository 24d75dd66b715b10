"""The summary of a stream: independent of batches, exact while short, bounded in size."""

import numpy as np
import pytest

from limpet.core.algorithm import OUTCOME_ACCEPTED, OUTCOME_ANOMALY, OUTCOME_BUFFERED, OUTCOME_INVALID, OUTCOME_REJECTED
from limpet.exceptions import InvalidInputError
from limpet.learners import Trace
from limpet.streams.downsample import REDUCTIONS, MinMaxSummary

N, D = 5000, 2


def make_stream(n=N, seed=0, auto=True):
    """Make values with missing, infinite and far ones, results, estimates and times."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, D))
    values[rng.random((n, D)) < 0.1] = np.nan
    outcomes = rng.choice(
        np.array([OUTCOME_ACCEPTED, OUTCOME_REJECTED, OUTCOME_INVALID, OUTCOME_REJECTED | OUTCOME_ANOMALY], np.int8),
        n,
        p=(0.8, 0.1, 0.05, 0.05),
    )
    values[outcomes == OUTCOME_REJECTED] *= 1e6
    values[outcomes == OUTCOME_INVALID] = np.inf
    outcomes[:20] = OUTCOME_BUFFERED
    score = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    trace = Trace(score, outcomes, {}, (rng.random(n), rng.random(n)) if auto else None)
    means = np.where(rng.random((n, D)) < 0.3, np.nan, rng.normal(size=(n, D)))
    times = np.datetime64("2024-01-01", "ns") + np.sort(rng.integers(0, 10**15, n)).astype("timedelta64[ns]")
    return values, trace, means, times


def slice_trace(trace, rows):
    auto_scores = None if trace.auto_scores is None else tuple(each[rows] for each in trace.auto_scores)
    return Trace(trace.score[rows], trace.outcomes[rows], {}, auto_scores)


def summarize(stream, cuts=(), max_buckets=64):
    values, trace, means, times = stream
    summary = MinMaxSummary(("a", "b"), max_buckets)
    for start, end in zip([0, *cuts], [*cuts, len(values)], strict=True):
        rows = slice(start, end)
        summary.add(values[rows], slice_trace(trace, rows), None if means is None else means[rows], times[rows])
    return summary


def to_dict(summary):
    return {
        name: getattr(summary, name)
        for name in (*REDUCTIONS, "times", "rows", "last_time", "n_rows", "width", "is_auto")
    }


def assert_same(summary, other):
    for (name, actual), expected in zip(to_dict(summary).items(), to_dict(other).values(), strict=True):
        np.testing.assert_array_equal(actual, expected, err_msg=name)


@pytest.mark.parametrize("auto", [True, False])
def test_summary_does_not_depend_on_batches(auto):
    stream, rng = make_stream(auto=auto), np.random.default_rng(1)
    whole = summarize(stream)
    assert_same(whole, summarize(stream, range(1, N)))
    for _ in range(20):
        assert_same(whole, summarize(stream, np.sort(rng.integers(0, N + 1, rng.integers(1, 40))).tolist()))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 127, 128, 129, 4999])
def test_a_bucket_summarizes_its_rows(n):
    values, trace, means, times = make_stream(n)
    summary = summarize((values, trace, means, times), [n // 3, n // 2])
    assert summary.n_rows == n
    assert len(summary) <= 64
    assert summary.is_exact == (n <= 64)
    assert n <= 64 or len(summary) > 32
    accepted = ~(trace.rejected | trace.invalid)
    for bucket in range(len(summary)):
        rows = np.arange(bucket * summary.width, min((bucket + 1) * summary.width, n))
        assert summary.rows[bucket] == rows[0]
        assert summary.times[bucket] == times[rows[0]]
        counts = [summary.n_rejected[bucket], summary.n_invalid[bucket], summary.n_anomalies[bucket]]
        assert counts == [trace.rejected[rows].sum(), trace.invalid[rows].sum(), trace.anomaly[rows].sum()]
        for variable in range(D):
            column = values[rows, variable]
            for selection, low, high in (
                (accepted, summary.minimum, summary.maximum),
                (trace.rejected, summary.rejected_minimum, summary.rejected_maximum),
            ):
                present = column[selection[rows] & np.isfinite(column)]
                ends = [present.min(), present.max()] if len(present) else [np.nan, np.nan]
                np.testing.assert_array_equal([low[variable, bucket], high[variable, bucket]], ends)
            known = means[rows, variable][~np.isnan(means[rows, variable])]
            np.testing.assert_array_equal(summary.estimate[variable, bucket], known[-1] if len(known) else np.nan)
        for actual, expected in ((summary.score, trace.score), (summary.change_score, trace.change_score)):
            known = expected[rows][~np.isnan(expected[rows])]
            np.testing.assert_array_equal(actual[bucket], known.max() if len(known) else np.nan)
    assert summary.last_time == times[-1]


def test_size_is_bounded():
    summary, n = MinMaxSummary(("a",)), 300_000
    trace = Trace(np.zeros(n), np.zeros(n, np.int8))
    for _ in range(10):
        summary.add(np.ones((n, 1)), trace)
        assert len(summary) <= 4096
        assert all(column.size <= 4096 for column in summary._columns.values())
    assert summary.n_rows == 10 * n
    assert len(summary) > 2048
    assert summary.maximum.max() == 1.0
    short = MinMaxSummary(("a",))
    short.add(np.ones((3, 1)), Trace(np.zeros(3), np.zeros(3, np.int8)))
    assert sum(column.nbytes for column in short._columns.values()) < 10_000  # many streams are short


def test_a_batch_of_several_streams():
    values, trace, means, times = make_stream(300)
    selected = np.arange(0, 300, 3)
    summary = MinMaxSummary(("a", "b"), 64)
    for rows in (selected[:10], selected[10:10], selected[10:]):
        summary.add(values, trace, means, times, selection=rows)
    assert_same(summary, summarize((values[selected], slice_trace(trace, selected), means[selected], times[selected])))


def test_missing_estimates_and_missing_times():
    values, trace, means, times = make_stream(100)
    assert np.isnan(summarize((values, trace, None, times)).estimate).all()
    summary = summarize((values, trace, means, times))
    summary.add(values, trace)
    assert summary.times is None
    summary.add(values, trace, None, times)
    assert summary.times is None
    assert summary.last_time is None


def test_times_as_strings():
    values, trace, means, _ = make_stream(100)
    summary = summarize((values, trace, means, np.array([f"day {i}" for i in range(100)], object)))
    assert summary.times[1] == "day 2"


def test_invalid_input_raises():
    values, trace, means, times = make_stream(10)
    for call in (
        lambda: MinMaxSummary(()),
        lambda: MinMaxSummary(("a",), 7),
        lambda: MinMaxSummary(("a",)).add(values, trace),
        lambda: MinMaxSummary(("a", "b")).add(values[1:], trace),
        lambda: MinMaxSummary(("a", "b")).add(values, trace, means[:, :1], times),
    ):
        with pytest.raises(InvalidInputError, match="got"):
            call()
