"""The metrics against reference implementations, small cases computed by hand, and invariances."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from limpet.exceptions import InvalidInputError
from limpet.metrics import SegmentMSE, benefit_auc, benefit_roc, match_components, segment_mse

nan, inf = math.nan, math.inf


# --- benefit against false alarms -------------------------------------------------------------------------


def reference_benefit(row, changes, tolerance):
    return max(1 - abs(row - c) / tolerance if abs(row - c) < tolerance else 0.0 for c in changes)


def reference_auc(scores, changes, tolerance, start=0, stop=None):
    """Loop over every threshold: one under all scores, one over all, one between any two."""
    rows = range(start, len(scores) if stop is None else stop)
    levels = sorted({scores[row] for row in rows if not math.isnan(scores[row])})
    if not levels:
        return nan
    between = [(low + high) / 2 for low, high in itertools.pairwise(levels)]
    curve = []
    for threshold in [levels[-1] + 1, *reversed(between), levels[0] - 1]:
        gained, false_alarms = 0.0, 0
        for row in rows:
            if scores[row] > threshold:
                benefit = reference_benefit(row, changes, tolerance)
                gained += benefit
                false_alarms += benefit == 0
        curve.append((false_alarms, gained))
    most_false_alarms, most_gained = max(f for f, _ in curve), max(g for _, g in curve)
    if most_false_alarms == 0 or most_gained == 0:
        return nan
    area = 0.0
    for (f0, g0), (f1, g1) in itertools.pairwise(curve):
        area += (f1 - f0) / most_false_alarms * (g0 + g1) / most_gained / 2
    return area


def auc_by_pairs(scores, changes, tolerance):
    """The same area without a curve: the weighted share of ordered pairs of rows with and without benefit."""
    benefits = [reference_benefit(row, changes, tolerance) for row in range(len(scores))]
    wins = weight = 0.0
    for i, j in itertools.product(range(len(scores)), repeat=2):
        if benefits[i] > 0 and benefits[j] == 0:
            wins += benefits[i] * ((scores[i] > scores[j]) + (scores[i] == scores[j]) / 2)
            weight += benefits[i]
    return wins / weight if weight else nan


levels = st.one_of(st.integers(-3, 3).map(float), st.floats(-50, 50).map(lambda x: round(x, 2)))
score_lists = st.lists(st.one_of(levels, levels, st.just(nan)), min_size=1, max_size=30)


@st.composite
def scored_streams(draw):
    scores = draw(score_lists)
    changes = draw(st.lists(st.integers(-3, len(scores) + 3), min_size=1, max_size=3))
    return scores, changes, draw(st.sampled_from([1, 2, 2.5, 3, 7]))


@settings(max_examples=300, deadline=None)
@given(scored_streams(), st.data())
def test_auc_equals_the_loop_over_thresholds(case, data):
    scores, changes, tolerance = case
    start = data.draw(st.integers(0, len(scores) - 1))
    stop = data.draw(st.integers(start + 1, len(scores)))
    expected = reference_auc(scores, changes, tolerance, start, stop)
    assert benefit_auc(scores, changes, tolerance, start, stop) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@settings(max_examples=100, deadline=None)
@given(st.lists(levels, min_size=2, max_size=30), st.integers(0, 29), st.sampled_from([1, 3]))
def test_auc_is_the_share_of_pairs_in_the_right_order(scores, change, tolerance):
    # at tolerance 1 the benefit is 0 or 1 and this is the ordinary area under the ROC curve
    expected = auc_by_pairs(scores, [change], tolerance)
    assert benefit_auc(scores, change, tolerance) == pytest.approx(expected, abs=1e-12, nan_ok=True)


@settings(max_examples=100, deadline=None)
@given(scored_streams())
def test_auc_depends_on_the_order_of_scores_alone(case):
    scores, changes, tolerance = case
    scores = np.array(scores)
    auc = benefit_auc(scores, changes, tolerance)
    ranks = np.where(np.isnan(scores), nan, np.searchsorted(np.unique(scores[~np.isnan(scores)]), scores))
    for transformed in (3 * scores - 7, scores**3, ranks):
        np.testing.assert_equal(benefit_auc(transformed, changes, tolerance), auc)


@settings(max_examples=100, deadline=None)
@given(scored_streams())
def test_negated_scores_reverse_the_area(case):
    scores, changes, tolerance = case
    auc = benefit_auc(scores, changes, tolerance)
    assume(not math.isnan(auc))
    assert benefit_auc(-np.array(scores), changes, tolerance) == pytest.approx(1 - auc, abs=1e-12)


def test_benefit_roc_of_a_small_example():
    #        benefit:  0    .5   1   .5   0    0   (change at row 2, tolerance 2)
    curve = benefit_roc([5.0, 1.0, 9.0, 5.0, nan, 1.0], 2, 2)
    np.testing.assert_array_equal(curve.thresholds, [9, 5, 1, -inf])
    np.testing.assert_array_equal(curve.recall, [0, 0.5, 0.75, 1])  # the supremum is 2
    np.testing.assert_array_equal(curve.false_alarm_rate, [0, 0, 0.5, 1])  # the NaN row is out of reach
    assert benefit_auc([5.0, 1.0, 9.0, 5.0, nan, 1.0], 2, 2) == (0.5 + 0.75) / 4 + (0.75 + 1) / 4


@settings(max_examples=100, deadline=None)
@given(scored_streams())
def test_each_point_of_the_curve_is_its_threshold_applied(case):
    scores, changes, tolerance = case
    curve = benefit_roc(scores, changes, tolerance)
    benefits = np.array([reference_benefit(row, changes, tolerance) for row in range(len(scores))])
    assert (np.diff(curve.thresholds) < 0).all()
    for rate, weight in ((curve.recall, benefits), (curve.false_alarm_rate, (benefits == 0).astype(float))):
        raised = np.array([weight[np.array(scores) > threshold].sum() for threshold in curve.thresholds])
        if raised[-1] > 0:
            np.testing.assert_allclose(rate, raised / raised[-1], atol=1e-12)
            assert (rate[0], rate[-1]) == (0, 1)
        else:
            assert np.isnan(rate).all()


def test_benefit_window_is_two_sided_and_excludes_the_tolerance():
    for row, expected in ((6, 0.0), (7, 0.25), (10, 1.0), (13, 0.25), (14, 0.0)):
        scores = np.zeros(30)
        scores[row] = 1
        curve = benefit_roc(scores, 10, 4)
        assert curve.recall[1] == expected / 4  # a triangle of width 4 holds a benefit of 4
        assert (curve.false_alarm_rate[1] > 0) == (expected == 0)


def test_overlapping_windows_take_the_larger_benefit():
    curve = benefit_roc([0, 0, 0, 1, 0, 0, 0, 0, 0, 0], [4, 2], 4)  # row 3 is one away from both
    total = 0.25 + 0.5 + 0.75 + 1 + 0.75 + 1 + 0.75 + 0.5 + 0.25 - 0.25  # rows 0..7
    assert total == 5.5
    np.testing.assert_allclose(curve.recall[1], 0.75 / total, rtol=1e-15)


@pytest.mark.parametrize("value", [0.0, -3.5, inf, -inf])
def test_constant_score_has_auc_one_half(value):
    assert benefit_auc(np.full(50, value), 20, 5) == 0.5


def test_infinite_scores_rank_first_and_last():
    scores = np.array([1.0, -inf, 3.0, inf, 2.0, -inf, inf, 0.0])
    finite = np.array([1.0, -9.0, 3.0, 9.0, 2.0, -9.0, 9.0, 0.0])
    assert benefit_auc(scores, 3, 2) == benefit_auc(finite, 3, 2) == pytest.approx(reference_auc(finite, [3], 2))
    assert benefit_roc(scores, 3, 2).thresholds.tolist() == [inf, 3, 2, 1, 0, -inf, -inf]


def test_nan_rows_raise_no_alarm_and_are_excluded_from_the_totals():
    scores = np.array([0.0, 4.0, 0.0, 0.0, 5.0, 1.0, 0.0, 2.0])
    silent = scores.copy()
    silent[[1, 5]] = nan
    assert benefit_auc(silent, 4, 2) == pytest.approx(reference_auc(silent, [4], 2))
    assert benefit_auc(silent, 4, 2) > benefit_auc(scores, 4, 2)  # row 1 was a false alarm
    silenced_change = np.where(np.arange(8) == 4, nan, scores)
    assert math.isnan(benefit_auc(silenced_change, 4, 1))


def test_undefined_auc_is_nan_without_a_warning(recwarn):
    assert math.isnan(benefit_auc([1.0, 2.0, 3.0], 1, 10))  # every row has a benefit
    assert math.isnan(benefit_auc([1.0, 2.0, 3.0], 50, 10))  # none has
    assert math.isnan(benefit_auc([nan, nan], 0, 1))
    assert not recwarn.list


def test_start_and_stop_select_rows_and_keep_outside_changes():
    scores = np.random.default_rng(0).random(40)
    inside = benefit_auc(scores, [9, 30], 6, start=10, stop=25)
    assert inside == pytest.approx(reference_auc(scores, [9, 30], 6, 10, 25))
    assert inside == benefit_auc(scores[10:25], [-1, 20], 6)
    assert inside != pytest.approx(reference_auc(scores, [30], 6, 10, 25))  # the change at row 9 is outside, and counts


def test_perfect_causal_score_has_auc_three_quarters():
    scores = np.zeros(20_000)
    scores[10_000:10_100] = 1.0
    # Σ benefit is 100, of which 50.5 from the change on; the rest is on the diagonal
    assert benefit_auc(scores, 10_000, 100) == pytest.approx(0.505 + 0.495 / 2, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [[1.0], [2.0]]}, r"scores: must have shape \(T,\) with T >= 1, got \(2, 1\)"),
        ({"scores": []}, "scores: must have shape"),
        ({"scores": ["high"]}, "scores: must be"),
        ({"change_points": []}, r"change_points: must be .* got \[\]"),
        ({"change_points": 1.5}, "change_points: must be .* got 1.5"),
        ({"change_points": {"a": [1]}}, "change_points: must be"),
        ({"change_points": [[1], [2, 3]]}, "change_points: must be"),
        ({"tolerance": 0}, "tolerance: must be .* got 0"),
        ({"tolerance": nan}, "tolerance: must be"),
        ({"tolerance": inf}, "tolerance: must be"),
        ({"tolerance": "wide"}, "tolerance: must be .* got 'wide'"),
        ({"start": -1}, "start, stop: must be 0 <= start < stop <= 5, got -1, None"),
        ({"start": 3, "stop": 3}, "start, stop: must be"),
        ({"stop": 6}, "start, stop: must be"),
        ({"start": 0.5}, "start, stop: must be integers"),
    ],
)
def test_invalid_arguments_of_benefit_auc_raise(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        benefit_auc(**({"scores": np.arange(5.0), "change_points": 2, "tolerance": 1} | arguments))


# --- matching of components -------------------------------------------------------------------------------


def reference_match(means, true):
    orders = itertools.permutations(range(means.shape[1]))
    return min(((means[:, order] - true) ** 2).sum() for order in map(list, orders))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_matching_is_the_best_of_all_orders(n_components, dim, n_rows, seed):
    means, true = np.random.default_rng(seed).normal(size=(2, n_rows, n_components, dim))
    order = match_components(means, true)
    assert sorted(order) == list(range(n_components))
    assert ((means[:, order] - true) ** 2).sum() == pytest.approx(reference_match(means, true), rel=1e-12)


def test_matching_twelve_components_finds_the_planted_order():
    rng = np.random.default_rng(0)
    true = np.tile(3.0 * np.arange(12)[:, None], (5, 1, 1))
    planted = rng.permutation(12)
    means = np.empty_like(true)
    means[:, planted] = true + rng.normal(scale=0.3, size=true.shape)
    np.testing.assert_array_equal(match_components(means, true), planted)


def test_matching_is_not_greedy():
    # nearest first pairs 0.9 with 1 and leaves 2.2 to 0: 4.85 in all, against 2.25 for keeping the order
    np.testing.assert_array_equal(match_components([[[0.9], [2.2]]], [[[0.0], [1.0]]]), [0, 1])


def test_matching_ignores_non_finite_rows():
    means = np.array([[[1.0], [0.0]], [[nan], [5.0]], [[inf], [5.0]]])
    true = np.tile([[0.0], [1.0]], (3, 1, 1))
    np.testing.assert_array_equal(match_components(means, true), [1, 0])
    np.testing.assert_array_equal(match_components(means[:, ::-1], true), [0, 1])
    np.testing.assert_array_equal(match_components(means, true[:, ::-1]), [0, 1])
    with pytest.raises(InvalidInputError, match="at least one row that is finite"):
        match_components(means[1:], true[1:])
    np.testing.assert_array_equal(sorted(match_components(means[:1] * 1e200 + 1e200, true[:1])), [0, 1])


# --- segment errors ---------------------------------------------------------------------------------------


def reference_segment_mse(means, true, change_point, tau, tau_start):
    """Eq. def_mse_metrics with the paper's times from 1, and every order tried on the evaluation span."""
    n_rows, n_components, dim = true.shape
    t_star = change_point + 1

    def average(first, last, order):
        total = 0.0
        for t in range(first, last + 1):
            for k, i in itertools.product(range(n_components), range(dim)):
                total += (means[t - 1, order[k], i] - true[t - 1, k, i]) ** 2
        return total / (last - first + 1)

    orders = itertools.permutations(range(n_components))
    order = min(orders, key=lambda order: average(tau_start, tau - 1, order))
    spans = [(tau_start, tau - 1), (tau + 1, t_star - 1), (t_star + 1, n_rows), (tau + 1, n_rows)]
    return SegmentMSE(*(average(first, last, order) for first, last in spans))


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 3), st.integers(1, 2), st.integers(0, 2**32 - 1), st.data())
def test_segment_mse_equals_the_reference(n_components, dim, seed, data):
    n_rows = 12
    times = data.draw(st.lists(st.integers(1, n_rows - 2), min_size=3, max_size=3, unique=True).map(sorted))
    tau_start, tau, change_point = times
    means, true = np.random.default_rng(seed).normal(size=(2, n_rows, n_components, dim))
    expected = reference_segment_mse(means, true, change_point, tau, tau_start)
    assert segment_mse(means, true, change_point, tau, tau_start) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.permutations(range(4)), st.integers(0, 2**32 - 1))
def test_segment_mse_is_invariant_to_the_order_of_components(order, seed):
    means, true = np.random.default_rng(seed).normal(size=(2, 20, 4, 2))
    assert segment_mse(means[:, order], true, 12, 8, 3) == segment_mse(means, true, 12, 8, 3)


def test_each_row_counts_in_the_segments_of_the_paper():
    # paper: S_eval t=500..999, S_bc t=1001..10000, S_ac t=10002..20000, S_tot t=1001..20000; row = t - 1
    true = np.tile([[1.0], [-1.0]], (20_000, 1, 1))
    expected = {
        498: (0, 0, 0, 0),
        499: (1 / 500, 0, 0, 0),
        998: (1 / 500, 0, 0, 0),
        999: (0, 0, 0, 0),
        1_000: (0, 1 / 9_000, 0, 1 / 19_000),
        9_999: (0, 1 / 9_000, 0, 1 / 19_000),
        10_000: (0, 0, 0, 1 / 19_000),
        10_001: (0, 0, 1 / 9_999, 1 / 19_000),
        19_999: (0, 0, 1 / 9_999, 1 / 19_000),
    }
    for row, errors in expected.items():
        means = true.copy()
        means[row, 0, 0] += 1.0
        assert segment_mse(means, true, 10_000) == pytest.approx(errors, rel=1e-12), row


def test_errors_sum_over_components_and_coordinates():
    true = np.zeros((10, 2, 3)) + np.array([[5.0, 5, 5], [-5, -5, -5]])
    assert segment_mse(true + 2.0, true, 6, tau=4, tau_start=2) == (24, 24, 24, 24)


def test_components_are_matched_once():
    true = np.tile([[1.0], [-1.0]], (10, 1, 1))
    means = true.copy()
    means[7:] = means[7:, ::-1]  # the names are swapped after the change
    assert segment_mse(means, true, 6, tau=4, tau_start=2) == (0, 0, 8, 4)


def test_nan_affects_its_segments_only():
    true = np.tile([[1.0], [-1.0]], (12, 1, 1))
    for row, spans in ((0, []), (2, [0]), (5, [1, 3]), (7, [3]), (9, [2, 3])):
        means = true[:, ::-1].copy()
        means[row, 0] = nan
        errors = segment_mse(means, true, 7, tau=5, tau_start=2)
        assert np.flatnonzero(np.isnan(errors)).tolist() == spans
        assert all(error == 0 or math.isnan(error) for error in errors)
    means = true.copy()
    means[1:4] = nan
    assert np.isnan(segment_mse(means, true, 7, tau=5, tau_start=2)).all()  # nothing to match on


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"means": np.zeros((20, 2))}, r"means: must be .* \(T, K, d\), got \(20, 2\)"),
        ({"true_means": np.zeros((20, 2))}, r"true_means: must be .* \(T, K, d\), got \(20, 2\)"),
        ({"means": np.zeros((20, 3, 1))}, r"shape of true_means, \(20, 2, 1\), got \(20, 3, 1\)"),
        ({"means": [["a"]]}, "means: must be"),
        ({"change_point": 5}, "tau < change_point < 19 .* change_point=5"),
        ({"change_point": 19}, "change_point=19"),
        ({"change_point": [10]}, "change_point, tau, tau_start: must be integers"),
        ({"tau_start": 0}, "tau_start=0"),
        ({"tau": 3}, "tau=3"),
        ({"tau": 4.5}, "change_point, tau, tau_start: must be integers"),
    ],
)
def test_invalid_arguments_of_segment_mse_raise(arguments, message):
    valid = {"means": np.zeros((20, 2, 1)), "true_means": np.zeros((20, 2, 1)), "change_point": 10}
    with pytest.raises(InvalidInputError, match=message):
        segment_mse(**(valid | {"tau": 5, "tau_start": 3} | arguments))


def test_too_many_components_raise():
    with pytest.raises(InvalidInputError, match="at most 16 components, got 17"):
        match_components(np.zeros((1, 17, 1)), np.zeros((1, 17, 1)))
