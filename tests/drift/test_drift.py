"""Drift detectors: equality with river or with the formula of the paper, and their common contract."""

import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import drift
from scipy.stats import ks_2samp

from limpet.drift import ADWIN, KSWIN, PageHinkley, RiverPageHinkley
from limpet.drift.kswin import exact_p_values, make_generator, sample, uses_pool
from limpet.exceptions import InvalidInputError, InvalidTypeError, MissingExtraError

MAKERS = {
    "ADWIN": lambda: ADWIN(0.1),
    "KSWIN": lambda: KSWIN(0.05, 20, 8, seed=3),
    "KSWIN, drawn again": lambda: KSWIN(0.05, 60, 5),
    "PageHinkley": lambda: PageHinkley(0.3),
    "RiverPageHinkley": lambda: RiverPageHinkley(min_instances=5, threshold=8.0),
}
every_detector = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def make_shifting_stream(seed, n=1500, decimals=None):
    """Noise whose level jumps now and then, with a stretch where nothing moves."""
    rng = np.random.default_rng(seed)
    level = np.repeat(rng.normal(0.0, 2.0, 5), n // 5)
    y = rng.normal(level)
    y[n // 2 : n // 2 + 150] = 1.0
    return y if decimals is None else y.round(decimals) + 0.0


def run_river(detector, y, get_statistic):
    """Return a statistic of a detector of river after each point, and whether it has detected a change."""
    results = []
    for value in y.tolist():
        detector.update(value)
        results.append((get_statistic(detector), detector.drift_detected))
    return map(np.array, zip(*results, strict=True))


# KSWIN


@pytest.mark.filterwarnings("ignore:ks_2samp:RuntimeWarning")
@pytest.mark.parametrize("size", [1, 2, 3, 10, 15, 30, 60, 100])
def test_p_values_equal_those_of_the_exact_test(size):
    table, x = exact_p_values(size), np.arange(float(size))
    assert table[0] == 1.0
    assert (np.diff(table) <= 0.0).all()
    for h in range(1, size + 1):
        # Where scipy's sum is a rounding error above 1 it falls back on an approximation: with 15, 30 and 60 points it
        # is off by 2e-12 at most; with 7, at h = 1, by 4e-5.
        assert ks_2samp(x, x + h - 0.5, method="auto").pvalue == pytest.approx(table[h], rel=1e-11, abs=2e-12)


def test_p_values_equal_the_share_among_all_orders():
    """The share of all orders of two samples of four whose distance is at least h."""
    from itertools import combinations

    n = 4
    orders = [np.array([1 if i in chosen else -1 for i in range(2 * n)]) for chosen in combinations(range(2 * n), n)]
    widest = np.array([np.abs(order.cumsum()).max() for order in orders])
    assert exact_p_values(n).tolist() == [np.mean(widest >= h) for h in range(n + 1)]


@given(st.integers(1, 120), st.integers(1, 120), st.integers(0, 2**70))
def test_samples_equal_those_of_the_standard_library(n, k, seed):
    k, rng, generator = min(n, k), random.Random(seed), make_generator(seed)
    left, drawn = np.empty(n, np.int64), np.empty(k, np.int64)
    for _ in range(5):
        sample(generator, n, k, uses_pool(n, k), left, drawn)
        assert drawn.tolist() == rng.sample(range(n), k)


TIED_SETTINGS = [(0.005, 100, 30, 0), (0.2, 40, 3, 2)]  # settings that also run with tied values by default
KSWIN_CASES = [
    pytest.param(*setting, decimals, marks=[] if decimals is None or setting in TIED_SETTINGS else pytest.mark.long)
    for setting in [*TIED_SETTINGS, (0.01, 30, 15, 1), (0.001, 30, 10, 42), (0.05, 20, 10, 7), (0.01, 150, 5, 3)]
    for decimals in (None, 1, 0)
]


@pytest.mark.parametrize(("alpha", "window", "stat", "seed", "decimals"), KSWIN_CASES)
def test_kswin_has_the_p_values_of_river(alpha, window, stat, seed, decimals):
    y = make_shifting_stream(seed, decimals=decimals)
    theirs, detected = run_river(drift.KSWIN(alpha, window, stat, seed=seed), y, lambda d: float(d.p_value))
    scores = KSWIN(alpha, window, stat, seed).process(y)
    window_sizes = np.zeros(len(y), int)  # points in river's window
    for t in range(len(y)):
        window_sizes[t] = min(window, 1 if t == 0 or detected[t - 1] else window_sizes[t - 1] + 1)
    tested = window_sizes == window
    np.testing.assert_array_equal(np.isnan(scores), ~tested)
    np.testing.assert_allclose(1.0 - scores[tested], theirs[tested], rtol=0, atol=2e-12)
    assert detected.any()
    assert (theirs[~tested] == 0.0).all()  # river's value without a test


def test_kswin_with_extreme_alpha():
    y = make_shifting_stream(0, 400)
    assert np.isnan(KSWIN(0.0, 20, 10).process(y)).sum() == 19
    assert np.isnan(KSWIN(1.0, 20, 10).process(y)).sum() > 200


def test_kswin_ignores_significant_but_small_distances():
    """A large sample: significant at a distance that does not count."""
    y = np.concatenate([np.arange(600.0), np.arange(600.0) + 55.0])
    scores = KSWIN(0.5, 1200, 600).process(np.append(y, 0.0))
    theirs, detected = run_river(drift.KSWIN(0.5, 1200, 600, seed=0), np.append(y, 0.0), lambda d: float(d.p_value))
    assert 0.5 < scores[1199] == pytest.approx(1.0 - theirs[1199])
    assert not detected.any()
    assert not np.isnan(scores[1200])


@pytest.mark.parametrize(("window", "stat"), [(10, 10), (20, 15), (29, 15), (30_000, 10_001)])
def test_kswin_raises_for_too_small_windows(window, stat):
    assert not KSWIN.can_run(window, stat)
    with pytest.raises(InvalidInputError, match="at most half of window"):
        KSWIN(window=window, stat=stat)


# Page–Hinkley


@given(st.lists(st.floats(-1e6, 1e6), max_size=60), st.floats(-100, 100))
def test_page_hinkley_equals_the_formula_of_the_paper(y, delta):
    g, G, expected = 0.0, 0.0, []
    for value in y:
        g = g + value - delta
        G = min(g, G)
        expected.append(g - G)
    assert PageHinkley(delta).process(y).tolist() == expected


@pytest.mark.parametrize("mode", ["both", "up", "down"])
@pytest.mark.parametrize(
    ("min_instances", "delta", "threshold", "alpha"),
    [(30, 0.005, 50.0, 0.9999), (1, 0.1, 10.0, 0.99), (0, 0.0, 2.0, 1.0), (100, 0.5, 5.0, 0.9), (30, 0.2, 0.0, 0.0)],
)
def test_river_page_hinkley_equals_river_bit_for_bit(min_instances, delta, threshold, alpha, mode):
    def statistic(detector):
        if detector._x_mean.n < detector.min_instances:
            return math.nan
        rise, fall = detector._sum_increase - detector._min_increase, detector._max_decrease - detector._sum_decrease
        return {"up": rise, "down": fall, "both": max(rise, fall)}[mode]

    for seed in range(3):
        y = make_shifting_stream(seed)
        theirs, detected = run_river(drift.PageHinkley(min_instances, delta, threshold, alpha, mode), y, statistic)
        scores = RiverPageHinkley(min_instances, delta, threshold, alpha, mode).process(y)
        np.testing.assert_array_equal(scores, theirs)
        np.testing.assert_array_equal(scores > threshold, detected)
        assert detected.any()


# ADWIN


@pytest.mark.parametrize("delta", [0.002, 0.1, 0.5, 1.0])
def test_adwin_has_the_widths_of_river(delta):
    y = make_shifting_stream(1, 3000)
    widths, detected = run_river(drift.ADWIN(delta), y, lambda d: d.width)
    scores = ADWIN(delta).process(y)
    np.testing.assert_array_equal(scores, np.concatenate([[0], widths[:-1]]) - widths)
    assert detected.any()
    assert (scores[~(detected | np.roll(detected, 1))] == -1.0).all()


def test_adwin_treats_values_that_corrupt_river_as_invalid():
    y = make_shifting_stream(1)
    y[100], y[150] = 1e200, -1e308
    scores = ADWIN(0.1).process(y)
    assert np.flatnonzero(np.isnan(scores)).tolist() == [100, 150]
    assert (scores > 0.0).any()


def test_adwin_names_the_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "river.drift", None)
    with pytest.raises(MissingExtraError, match=r"limpet\[drift\]"):
        ADWIN()


# The contract of all detectors


@every_detector
@given(data=st.data())
def test_chunks_and_single_points_equal_the_batch_bit_for_bit(make, data):
    y = make_shifting_stream(data.draw(st.integers(0, 99)), 300, data.draw(st.sampled_from([None, 0])))
    y[data.draw(st.lists(st.integers(0, 299), max_size=5))] = data.draw(st.sampled_from([math.nan, math.inf]))
    whole = make().process(y)
    cuts = sorted(data.draw(st.lists(st.integers(0, 300), max_size=4)))
    chunked = make()
    np.testing.assert_array_equal(np.concatenate([chunked.process(part) for part in np.split(y, cuts)]), whole)
    one_by_one = make()
    scores = [one_by_one.update(value) for value in y.tolist()]
    assert all(type(score) is float for score in scores)
    np.testing.assert_array_equal(scores, whole)


@every_detector
def test_variables_are_independent(make):
    Y = np.stack([make_shifting_stream(seed, 400) for seed in range(3)], axis=1)
    Y[50:60, 1] = math.nan
    joint = make().process(Y)
    assert joint.shape == (400, 3)
    for i in range(3):
        np.testing.assert_array_equal(joint[:, i], make().process(Y[:, i]))
    one_by_one = make()
    np.testing.assert_array_equal([one_by_one.update(row) for row in Y], joint)
    assert make().process(Y[:, :1]).shape == (400, 1)


@every_detector
@pytest.mark.parametrize("invalid", [math.nan, math.inf, -math.inf, 1e200])
def test_an_invalid_point_changes_nothing(make, invalid):
    y = make_shifting_stream(4, 300)
    with_invalid = make().process(np.insert(y, [0, 7, 150, 150], invalid))
    rows = [0, 8, 152, 153]  # where they are now
    assert np.isnan(with_invalid[rows]).all()
    np.testing.assert_array_equal(np.delete(with_invalid, rows), make().process(y))


@every_detector
def test_points_of_many_input_types(make):
    pl = pytest.importorskip("polars")
    Y = np.stack([make_shifting_stream(seed, 60, decimals=0) for seed in range(2)], axis=1)
    frozen = Y.copy()
    frozen.flags.writeable = False
    dicts = [{"a": a, "b": b} for a, b in Y.tolist()]
    expected = make().process(Y)
    forms = [frozen, Y.tolist(), Y.astype(int), np.asfortranarray(Y), pl.DataFrame({"a": Y[:, 0], "b": Y[:, 1]}), dicts]
    for form in forms:
        np.testing.assert_array_equal(make().process(form), expected)
    by_name = make()
    np.testing.assert_array_equal([by_name.update(point) for point in dicts], expected)


@every_detector
def test_other_number_of_variables_raises(make):
    detector, two = make(), make()
    detector.update(1.0)
    two.update([1.0, 2.0])
    for fitted, wrong in [(detector, [1.0, 2.0]), (two, 1.0), (two, [1.0, 2.0, 3.0])]:
        with pytest.raises(InvalidInputError, match="x: must be a point of"):
            fitted.update(wrong)
    for fitted, wrong in [
        (detector, np.zeros((5, 2))),
        (two, np.zeros(5)),
        (two, np.zeros((5, 3))),
        (detector, np.zeros((2, 2, 2))),
    ]:
        with pytest.raises(InvalidInputError, match="X: must have shape"):
            fitted.process(wrong)
    for wrong in ["3", None, object(), [1.0, "a"]]:
        with pytest.raises(InvalidTypeError, match="x: must"):
            fitted.update(wrong)


@every_detector
def test_empty_batches_have_empty_results(make):
    detector = make()
    assert detector.process([]).shape == (0,)
    assert detector.process(np.empty((0, 3))).shape == (0, 3)
    assert detector.process(make_shifting_stream(0, 50)).shape == (50,)
    assert detector.process([]).shape == (0,)


@every_detector
def test_clone_has_the_same_parameters_and_no_state(make):
    y, original = make_shifting_stream(5, 300), make()
    first = original.process(y)
    clone = original.clone()
    assert repr(clone) == repr(original) == repr(make())
    assert repr(eval(repr(original))) == repr(original)
    np.testing.assert_array_equal(clone.process(np.column_stack([y, y]))[:, 1], first)


@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (ADWIN, {"delta": 0.0}),
        (ADWIN, {"delta": 1.5}),
        (KSWIN, {"alpha": -0.1}),
        (KSWIN, {"alpha": "a"}),
        (KSWIN, {"window": 30.5}),
        (KSWIN, {"stat": 0}),
        (KSWIN, {"seed": None}),
        (PageHinkley, {"delta": math.nan}),
        (PageHinkley, {"delta": [1.0, 2.0]}),
        (RiverPageHinkley, {"mode": "sideways"}),
        (RiverPageHinkley, {"min_instances": -1}),
        (RiverPageHinkley, {"alpha": 1.1}),
        (RiverPageHinkley, {"threshold": -1.0}),
    ],
)
def test_invalid_parameters_raise(make, settings):
    with pytest.raises(InvalidInputError, match=next(iter(settings))):
        make(**settings)


def test_another_process_compiles_nothing():
    code = """
import numba.core.event as event
with event.install_recorder("numba:compile") as recorder:
    import numpy as np
    from limpet.drift import KSWIN, PageHinkley, RiverPageHinkley
    for detector in (KSWIN(0.05, 20, 8), PageHinkley(), RiverPageHinkley()):
        detector.process(np.zeros(50))
        detector.update(1.0)
print(len(recorder.buffer))
"""
    for make in (KSWIN, PageHinkley, RiverPageHinkley):
        make().process([1.0])
    result = subprocess.run([sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["0"]
