"""The change detector: ranks, bets, bit equality, the description of an alarm, and the false-alarm rate."""

import math

import numpy as np
import pytest
from numba import njit

from limpet.core.memory_profile import COMPACT, FULL
from limpet.detection import log_threshold, make_change_detector
from limpet.detection.anomaly_detector import (
    N_ANOMALIES,
    N_COUNTED,
    fenwick_add,
    fenwick_halve,
    fenwick_prefix_sum,
    is_anomaly,
    make_anomaly_detector,
    starts_run,
)
from limpet.detection.bets import CELL_EDGE_PROBABILITIES, betting_table, score_cell
from limpet.detection.change_detector import INFLATION, N_UNCENSORED, TOTAL_EXCESS
from limpet.detection.layout import ABOVE_COUNT, BELOW_COUNT, BLOCKS_OFFSET, N_MISSING, WARMUP_POINTS, channel_layout
from limpet.detection.ranks import draw_uniform, make_histogram
from limpet.exceptions import InvalidInputError

LAYOUT = channel_layout(FULL)
both_profiles = pytest.mark.parametrize("sizes", [FULL, COMPACT], ids=lambda sizes: sizes.name)


def run_detector(rows, far=1e-4, memory=None, whiten=True, lock=True):
    """Return flags, certainties and the memory afterwards."""
    rows = np.ascontiguousarray(rows.reshape(len(rows), -1))
    detector = make_change_detector(rows.shape[1], whiten, lock)
    memory = np.zeros(detector.state_size) if memory is None else memory
    flags, certainties = np.zeros(len(rows)), np.zeros(len(rows))
    detector.run(memory, rows, log_threshold(far), np.zeros(detector.work_size), flags, certainties)
    assert np.isfinite(memory).all()
    assert np.isfinite(certainties).all()
    return flags, certainties, memory


def describe_change_at(rows, alarm, far=1e-4):
    """Return the change of the alarm in this row."""
    flags, _, memory = run_detector(rows[: alarm + 1], far)
    assert flags[alarm]
    return make_change_detector(1 if rows.ndim == 1 else rows.shape[1]).describe_change(memory)


def test_describe_change_requires_an_alarm():
    with pytest.raises(InvalidInputError, match=r"^state:"):
        make_change_detector(1).describe_change(run_detector(make_normal(0, 200))[2])


def make_normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


@both_profiles
def test_ranks_equal_counts(sizes):
    residuals = np.clip(make_normal(0, 500), -4.0, 4.0)
    residuals[::7] = 4.0
    bins, state = make_histogram(sizes), np.zeros(channel_layout(sizes).n_counts, sizes.count_dtype)
    per_unit = sizes.n_rank_bins / 8.0
    for n, r in enumerate(residuals):
        b = bins.bin_index(r)
        seen = np.minimum(((residuals[:n] + 4.0) * per_unit).astype(int), sizes.n_rank_bins - 1)
        for u in (0.0, 0.3):
            expected = ((seen < b).sum() + u * ((seen == b).sum() + 1)) / (n + 1)
            assert bins.rank(state, b, u) == pytest.approx(expected, abs=1e-15)
        bins.add_point(state, b)
        assert bins.count_inliers(state) == n + 1


@both_profiles
def test_halving_the_counts_keeps_the_ranks(sizes):
    bins, layout = make_histogram(sizes), channel_layout(sizes)
    counts = np.zeros(layout.n_counts, sizes.count_dtype)
    for r in np.clip(1.3 * make_normal(0, 3000), -4.0, 4.0):
        bins.add_point(counts, bins.bin_index(r))
    counts *= sizes.max_count // 3001
    counts[[ABOVE_COUNT, BELOW_COUNT]] = 7, 0
    before = [bins.rank(counts, b, u) for b in range(sizes.n_rank_bins) for u in (0.0, 0.999)]
    n = bins.count_inliers(counts)
    bins.halve(counts)
    assert bins.count_inliers(counts) == n // 2
    assert tuple(counts[[ABOVE_COUNT, BELOW_COUNT]]) == (4, 0)
    after = [bins.rank(counts, b, u) for b in range(sizes.n_rank_bins) for u in (0.0, 0.999)]
    assert after == pytest.approx(before, abs=4.0 / n)
    last = [BLOCKS_OFFSET + sizes.n_rank_bins // 8 - 1, layout.n_counts - 1]
    counts[last] += sizes.max_count - 1 - bins.count_inliers(counts)
    assert is_finite(counts)
    bins.add_point(counts, sizes.n_rank_bins - 1)
    assert bins.count_inliers(counts) == sizes.max_count
    bins.halve(counts)
    assert bins.count_inliers(counts) == sizes.max_count // 2


@both_profiles
def test_detector_continues_after_its_counts_are_halved(sizes):
    detector, layout = make_change_detector(1, profile=sizes), channel_layout(sizes)
    memory, work = np.zeros(detector.state_size, sizes.dtype), np.zeros(detector.work_size)
    rows, flags = make_normal(0, 5000, 1), np.zeros(5000)
    detector.run(memory, rows, log_threshold(1e-4), work, flags, np.zeros(0))
    counts = memory[layout.header_size + layout.counts_offset : layout.header_size + layout.ring_offset].view(
        sizes.count_dtype
    )
    n = make_histogram(sizes).count_inliers(counts)
    counts *= (sizes.max_count - 100) // n
    before, n = counts.copy(), make_histogram(sizes).count_inliers(counts)
    detector.run(memory, rows[: sizes.max_count - n], log_threshold(1e-4), work, flags, np.zeros(0))
    shares = counts / counts.max() - before / before.max()
    assert make_histogram(sizes).count_inliers(counts) < 0.6 * sizes.max_count
    assert np.abs(shares[BLOCKS_OFFSET:]).max() < 0.05
    assert (
        np.isfinite(memory.view(np.float64)[: len(memory) // 2]).all()
        if sizes.is_float32
        else np.isfinite(memory).all()
    )


def is_finite(counts):
    """Return whether the bits of the counts are never those of a NaN, for any neighbors."""
    return all(np.isfinite(np.full(4, count, counts.dtype).view(np.float64)).all() for count in counts)


def test_random_numbers_are_those_of_splitmix():
    draw = njit(lambda memory: draw_uniform(memory, 0, False))
    memory = np.zeros(1)
    drawn = np.array([draw(memory) for _ in range(20_000)])
    state, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
    assert drawn[0] == ((mixed ^ (mixed >> 31)) >> 11) / 2**53
    assert memory[0] == 20_000
    short, memory = njit(lambda memory: draw_uniform(memory, 0, True)), np.array([2**24 - 3], np.float32)
    again = [short(memory) for _ in range(4)]  # 32 bits count up to here, and then from the beginning
    assert again[-2:] == drawn[:2].tolist()
    counts = np.histogram(drawn, 20, (0.0, 1.0))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 50
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.03


@both_profiles
def test_every_bet_is_fair(sizes):
    edges, bets = np.concatenate(([0.0], CELL_EDGE_PROBABILITIES, [1.0])), betting_table(sizes)
    cells = np.diff(edges)
    inside = cells @ bets.inlier_pay
    assert inside == pytest.approx(bets.inlier_probabilities, abs=1e-9)
    for above, below in ((0.01, 0.002), (0.2, 0.3)):  # rates of far-out points
        far = above * (bets.extreme_probabilities[0] / above + bets.inlier_probabilities) + below * (
            bets.extreme_probabilities[1] / below + bets.inlier_probabilities
        )
        assert (1.0 - above - below) * inside + far == pytest.approx(1.0, abs=1e-9)
    assert bets.weights.sum(axis=1) == pytest.approx(1.0)
    assert [score_cell(v) for v in (0.0, *CELL_EDGE_PROBABILITIES, 1.0)] == [0, *range(1, 64), 63]
    middles = (edges[1:] + edges[:-1]) / 2
    assert [score_cell(v) for v in middles] == list(range(64))
    anywhere = np.concatenate(
        [np.nextafter(CELL_EDGE_PROBABILITIES, 0.0), np.arange(2049) / 2048, np.geomspace(1e-6, 0.5, 500)]
    )
    anywhere = np.concatenate([anywhere, 1.0 - anywhere])
    assert [score_cell(v) for v in anywhere] == np.searchsorted(
        CELL_EDGE_PROBABILITIES, anywhere, side="right"
    ).tolist()


@pytest.mark.parametrize("d", [1, 3])
def test_chunks_equal_the_batch_bit_for_bit(d):
    rows = make_normal(1, 3000, d)
    rows[1000:2000] += 1.0
    rows[np.random.default_rng(2).random(rows.shape) < 0.02] *= 20.0
    if d > 1:
        rows[np.random.default_rng(3).random(rows.shape) < 0.01] = np.nan
    flags, certainties, memory = run_detector(rows)
    state, pieces = None, []
    for start in range(0, 3000, 7):
        chunk_flags, chunk_certainties, state = run_detector(
            rows[start : start + 7], memory=None if state is None else state.copy()
        )
        pieces.append((chunk_flags, chunk_certainties))
    assert flags.sum() >= 2
    assert np.array_equal(state, memory)
    assert np.array_equal(np.concatenate([chunk_flags for chunk_flags, _ in pieces]), flags)
    assert np.array_equal(np.concatenate([chunk_certainties for _, chunk_certainties in pieces]), certainties)


def test_units_do_not_matter():
    rows = make_normal(3, 4000, 3)
    rows[2000:, 1] += 2.0
    flags, certainties, _ = run_detector(rows)
    alarm = flags.argmax()
    for power in (-400, 300):
        same = run_detector(rows * 2.0**power)
        assert np.array_equal(same[0], flags)
        assert np.array_equal(same[1], certainties)
    shift = describe_change_at(rows, alarm)
    for moved in (rows * 0.3 + 1e9, rows * 1e150 / 10.0):
        assert np.array_equal(run_detector(moved)[0], flags)
        assert describe_change_at(moved, alarm).shift_sd == pytest.approx(shift.shift_sd, rel=1e-6)


def drop_time_fields(memory):
    """Return the channels without the fields that count points."""
    channels = memory[LAYOUT.header_size :].reshape(-1, LAYOUT.channel_size).copy()
    channels[:, N_MISSING] = 0.0
    channels[:, LAYOUT.aged_wealth_offset :] = 0.0
    return channels


def test_missing_coordinate_does_not_change_its_channel():
    rows = make_normal(4, 2000, 3)
    rows_with_missing = np.sort(np.random.default_rng(5).choice(np.arange(300, 2000), 400, replace=False))
    missing = np.insert(rows, rows_with_missing, np.full(3, np.nan), axis=0)
    whole, with_missing = (drop_time_fields(run_detector(each)[2]) for each in (rows, missing))
    assert np.array_equal(whole, with_missing)
    missing = rows.copy()
    missing[:, 1] = np.nan  # never seen: the other one is still watched
    missing[1000:, 0] += 3.0
    alarms = np.flatnonzero(run_detector(missing)[0])
    assert len(alarms) == 1
    assert 1000 <= alarms[0] < 1010
    assert describe_change_at(missing, alarms[0]).variable == 0
    run_detector(np.where(np.isnan(missing), np.inf, missing))


def test_constant_streams_and_changes_after_them():
    for constant in (0.0, 7.0, -1e150):
        flags, _, _ = run_detector(np.full(20_000, constant), far=1e-2)
        assert not flags.any()
    rng = np.random.default_rng(6)
    for moving in (rng.standard_normal(100), np.full(100, 5.0), rng.standard_normal(100) * 1e-8):
        rows = np.concatenate((np.zeros(500), moving))
        alarm = run_detector(rows)[0].argmax()
        assert 500 <= alarm < 525
        change = describe_change_at(rows, alarm)
        assert math.inf in (abs(change.shift_sd), change.spread_ratio)
    mostly = (rng.random(50_000) < 0.1).astype(float)  # 90 % zeros
    assert run_detector(mostly, far=1e-3)[0].sum() < 75


@pytest.mark.parametrize(
    ("shift", "direction"), [(1.0, "up"), (-1.0, "down"), (3.0, "up"), (-8.0, "down"), (1e6, "up")]
)
@pytest.mark.parametrize("d", [1, 3])
def test_a_shift_is_one_alarm_with_a_correct_description(shift, direction, d):
    onsets, sizes = [], []
    for seed in range(9):
        rows = make_normal(400 + seed, 1250, d) * 5.0
        rows[1000:, d - 1] += shift * 5.0
        alarms = np.flatnonzero(run_detector(rows, far=1e-5)[0])
        assert len(alarms) == 1
        change = describe_change_at(rows, alarms[0], far=1e-5)
        assert change.direction == direction
        assert change.variable == d - 1
        sizes.append((change.shift_sd / shift, change.shift / (5.0 * shift)))
        assert sum(change.evidence_shares) == pytest.approx(1.0)
        assert change.evidence_shares[d - 1] > 0.8
        onsets.append(alarms[0] - change.delay - 1000)
    assert np.median(sizes, axis=0) == pytest.approx(1.0, rel=0.35)
    assert abs(np.median(onsets)) <= (3 if abs(shift) < 2 else 1)


def test_a_change_during_the_warm_up_does_not_raise_the_threshold():
    """Pairs of points across it resemble autocorrelation, and its two levels a wide spread."""
    n_quick = 0
    for seed in range(10):
        rows = make_normal(500 + seed, 1500)
        rows[1000:1040] += 5.0  # the alarm, and then a change before the new standardization
        rows[1400:] += 3.0
        flags = run_detector(rows)[0]
        assert flags[1000:1012].any()
        n_quick += flags[1400:1412].any()
    assert n_quick >= 9


@pytest.mark.parametrize(("factor", "direction"), [(3.0, "wider"), (0.3, "narrower")])
def test_change_of_spread_is_described(factor, direction):
    n_correct, ratios = 0, []
    for seed in range(10):
        rows = make_normal(200 + seed, 2600)
        rows[2000:] *= factor
        flags = run_detector(rows, far=1e-5)[0]
        assert flags[2000:2100].sum() == 1
        change = describe_change_at(rows, 2000 + flags[2000:].argmax(), far=1e-5)
        n_correct += change.direction == direction
        ratios.append(change.spread_ratio)
    assert n_correct >= 7  # a wide distribution may fall on one side for a while
    assert np.median(ratios) == pytest.approx(factor, rel=0.35)


def test_false_alarm_rate_of_an_autocorrelated_stream():
    rows = make_normal(7, 200_000)
    for t in range(1, len(rows)):
        rows[t] += 0.6 * rows[t - 1]
    assert run_detector(rows, far=1e-3)[0].sum() < 300
    assert run_detector(rows, far=1e-3, whiten=False, lock=False)[0].sum() > 600  # pre-whitening prevents this


def test_threshold_inflation_reduces_alarms_of_a_season_and_stays_off_on_a_stable_stream():
    season = np.sin(2 * np.pi / 288 * np.arange(100_000)) + make_normal(10, 100_000)
    assert run_detector(season, whiten=False, lock=False)[0].sum() > 500
    assert run_detector(season)[0].sum() < 40
    memory = run_detector(make_normal(11, 100_000), far=1e-3)[2]
    assert memory[N_UNCENSORED] > 300
    assert memory[TOTAL_EXCESS] / memory[N_UNCENSORED] == pytest.approx(1.0, abs=0.2)
    assert memory[INFLATION] == 0.0
    # Real changes do not inflate the threshold.
    rows = make_normal(12, 60_000) + np.repeat(np.arange(60) % 2, 1000) * 4.0
    flags, _, memory = run_detector(rows)
    assert all(flags[start : start + 10].sum() == 1 for start in range(1000, 60_000, 1000))


def test_bursts_of_outliers_are_no_change():
    alarms = 0
    for seed in range(100):
        rows = make_normal(300 + seed, 760)
        rows[700:704] = np.random.default_rng(seed).uniform(-20.0, 20.0, 4)
        alarms += run_detector(rows)[0][700:].any()
    assert alarms <= 4


@pytest.mark.parametrize("d", [1, 3])
def test_false_alarm_rate(d):
    far = 1e-3
    for rows in (make_normal(8, 200_000, d), np.exp(make_normal(9, 200_000, d))):
        rate = run_detector(rows, far)[0].mean()
        assert 0.4 * far < rate < 1.4 * far


def test_the_threshold_is_a_logarithm():
    assert log_threshold(1e-4) == pytest.approx(math.log(4600.0))
    with pytest.raises(ValueError, match="far"):
        log_threshold(0.0)
    assert WARMUP_POINTS == 100


@pytest.mark.parametrize(
    ("p", "squared_distance", "expected"),
    [(0.01, 4.1, True), (0.008, 4.1, True), (0.0101, 4.1, False), (0.01, 4.0, False), (0.0, 0.0, False)],
)
def test_an_anomaly_is_rare_and_far_from_the_estimate(p, squared_distance, expected):
    assert is_anomaly(p, squared_distance, 0.01, 4.0) == expected


def test_the_first_of_consecutive_anomalies_starts_a_run():
    theta, anomalous = np.zeros(3), [False, True, True, False, True]
    assert [starts_run(theta, 1, flag) for flag in anomalous] == [False, True, False, False, True]


@both_profiles
def test_fenwick_tree_is_halved_before_counts_overflow(sizes):
    n, functions = sizes.n_surprise_bins, make_anomaly_detector(sizes)
    count_surprise, p_value = functions.count_surprise, functions.p_value
    bins, tree, tally = (
        np.random.default_rng(0).integers(0, 9, n),
        np.zeros(n, sizes.count_dtype),
        np.zeros(2, np.int32),
    )
    for up in (0, 1):
        tree[:] = 0
        for index in np.repeat(np.arange(n), bins):
            fenwick_add(tree, n, index)
        fenwick_halve(tree, n, up)
        from_each_on = [(bins[index:].sum() + up) // 2 for index in range(n)]
        assert [fenwick_prefix_sum(tree, n) - fenwick_prefix_sum(tree, index) for index in range(n)] == from_each_on
    tree *= (sizes.max_count - 1) // fenwick_prefix_sum(tree, n)
    for _ in range(sizes.max_count - 1 - fenwick_prefix_sum(tree, n)) if sizes is COMPACT else []:
        fenwick_add(tree, n, 0)
    if sizes is FULL:
        tree[[2**i - 1 for i in range(8)]] += sizes.max_count - 1 - fenwick_prefix_sum(tree, n)  # into the first bin
    tally[:] = sizes.max_count - 1, 100
    assert is_finite(tree)
    keep_small = functions.halve_if_full
    count = njit(lambda tally, tree: (count_surprise(tally, tree, 0.0, 1.0, 0.0, 0.0), keep_small(tally, tree))[0])
    p_value_of = njit(lambda tally, tree, surprise: p_value(tally, tree, surprise, 1e-4))
    before = [p_value_of(tally, tree, surprise) for surprise in (0.1, 1.0, 5.0, 7.0, 30.0)]
    count(tally, tree)
    assert fenwick_prefix_sum(tree, n) == sizes.max_count // 2
    assert tally.tolist() == ([2**29, 50] if sizes is FULL else [sizes.max_count, 100])
    after = [p_value_of(tally, tree, surprise) for surprise in (0.1, 1.0, 5.0, 7.0, 30.0)]
    assert after == pytest.approx(before, rel=1e-6 if sizes is FULL else 0.02)
    tally[[N_COUNTED, N_ANOMALIES]] = 2**30 - 1, 100
    count(tally, tree)
    assert tally.tolist() == [2**29, 50]
