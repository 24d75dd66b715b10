"""limpet in river: its detectors in river's own pipelines, filters, evaluations and retraining."""

import copy
import math
import pickle
import random

import numpy as np
import pytest

import limpet as lp
from limpet.exceptions import InvalidInputError, InvalidTypeError, LimpetWarning

pytest.importorskip("river")

from river import anomaly, base, compose, drift, evaluate, forest, metrics, naive_bayes, preprocessing, stream

from limpet.adapters.river import AnomalyDetector, DriftDetector


def points(n, seed=0, d=3, names="abc"):
    rng = np.random.default_rng(seed)
    return [dict(zip(names, row, strict=True)) for row in rng.normal(size=(n, d)).tolist()]


def trained(xs, detector=None):
    detector = AnomalyDetector() if detector is None else detector
    for x in xs:
        detector.learn_one(x)
    return detector


# The anomaly detector


@pytest.mark.parametrize("learner", [None, lp.SRA(rho=0.01, gamma=4.0)], ids=["autopilot", "plain"])
def test_it_is_the_learner_to_the_last_bit(learner):
    xs = points(400)
    xs[300]["b"] = 40.0
    detector, alone = trained(xs, AnomalyDetector(learner)), (learner or lp.Detector()).clone()
    rows = np.array([[x[name] for name in "abc"] for x in xs])
    alone.process(rows)
    assert (detector.model.state == alone.state).all()
    assert detector.model.feature_names == ("a", "b", "c")
    step = alone.score_only(rows[17])
    expected = -math.log10(step.p_value) if learner is None else step.score
    assert detector.score_one(xs[17]) == pytest.approx(expected, rel=1e-12)


def test_scores_learn_nothing_and_know_outliers():
    xs = points(500)
    detector = trained(xs)
    before = detector.model.state.copy()
    usual, odd = detector.score_one(xs[0]), detector.score_one({"a": 0.0, "b": 9.0, "c": 0.0})
    assert usual < 2.0 < 4.0 < odd
    assert (detector.model.state == before).all()


def test_a_score_of_two_is_one_point_in_a_hundred():
    detector = trained(points(3000))
    scores = np.array([detector.score_one(x) for x in points(4000, seed=1)])
    assert 0.005 < (scores >= 2.0).mean() < 0.02


def test_nothing_is_rare_before_the_start():
    detector = AnomalyDetector()
    assert detector.score_one({"a": 1.0}) == 0.0
    assert detector.model is None
    assert trained(points(20)).score_one({"a": 99.0, "b": 0.0, "c": 0.0}) == 0.0


def test_the_order_of_features_makes_no_difference():
    xs = points(300)
    model = trained(xs)
    other = trained([dict(reversed(list(x.items()))) for x in xs])
    assert (model.model.state == other.model.state).all()


def test_missing_features_are_those_that_are_absent_none_or_nan():
    xs = points(300)
    missing, none, nan = ([dict(x) for x in xs] for _ in range(3))
    for i in range(100, 300, 7):
        del missing[i]["b"]
        none[i]["b"], nan[i]["b"] = None, math.nan
    states = [trained(each).model.state for each in (missing, none, nan)]
    assert (states[0] == states[1]).all()
    assert (states[0] == states[2]).all()
    detector = trained(missing)
    assert detector.score_one({"a": 20.0}) > 3.0
    assert detector.score_one({"b": None}) == 0.0
    assert detector.score_one({}) == 0.0


def test_a_model_with_a_new_feature_replaces_the_first_when_calibrated():
    detector = trained(points(800, d=2, names="ab"))
    assert detector.model.feature_names == ("a", "b")
    more = points(600, seed=1)
    for i, x in enumerate(more):
        detector.learn_one(x)
        assert detector.model.feature_names == (("a", "b") if i < 499 else ("a", "b", "c"))
    assert detector.score_one({"a": 0.0, "b": 0.0, "c": 9.0}) > 3.0
    assert detector.model.n_seen == 600  # those since it came
    alone = lp.Detector()
    alone.process(np.array([[x[name] for name in "abc"] for x in more]))
    assert (detector.model.state == alone.state).all()


def test_features_that_emerge_one_by_one_at_the_beginning_share_one_start():
    xs = points(60)
    for i, x in enumerate(xs[:20]):
        for name in "bc"[: 2 - i // 7]:
            x.pop(name, None)
    assert trained(xs).model.n_seen == 60
    assert trained(xs).model.feature_names == ("a", "b", "c")


@pytest.mark.parametrize("at", [0, 300], ids=["at first", "later"])
def test_a_feature_that_is_seen_once_is_not_waited_for(at):
    xs = points(600)
    xs[at]["typo"] = 1.0
    detector = trained(xs)
    assert detector.model.feature_names == ("a", "b", "c")
    assert detector.model.n_seen == 600
    assert not detector._collected_points  # points take the short way again
    assert detector.score_one({"a": 50.0, "b": 0.0, "c": 0.0}) > 4.0


def test_a_feature_that_has_gone_is_forgotten_when_another_comes():
    detector = trained(points(600))
    trained([{"a": x["a"], "b": x["b"], "d": x["c"]} for x in points(600, seed=1)], detector)
    assert detector.model.feature_names == ("a", "b", "d")


def test_unknown_features_are_left_out_of_a_score():
    detector = trained(points(200))
    x = {"a": 0.1, "b": 0.2, "c": 0.3}
    assert detector.score_one(x | {"new": 1e9}) == detector.score_one(x)


def test_too_many_features_are_passed_over_with_a_warning():
    detector = AnomalyDetector(max_features=3)
    with pytest.warns(LimpetWarning, match="only the 3 most frequent of 5 features"):
        trained(points(100, d=5, names="edcba"), detector)
    assert detector.model.feature_names == ("a", "b", "c")


def test_names_need_not_be_text():
    xs = [{1: x["a"], "1": x["b"], (2, 3): x["c"]} for x in points(100)]
    detector = trained(xs)
    assert sorted(detector.model.feature_names) == ["'1'", "(2, 3)", "1"]
    assert detector.score_one(xs[0]) >= 0.0


def test_infinite_values_are_rare_and_not_learned():
    xs = points(200)
    detector, other = trained(xs), trained(xs)
    score = detector.score_one({"a": math.inf, "b": 0.0, "c": 0.0})
    assert 4.0 < score < math.inf
    detector.learn_one({"a": math.inf, "b": 0.0, "c": 10**400})
    assert detector.model.n_invalid == 1
    x = points(1, seed=5)[0]
    assert detector.score_one(x) == other.score_one(x)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        ({"a": "warm", "b": 0.0, "c": 0.0}, InvalidTypeError, "feature 'a': must be a number, got 'warm'"),
        ({"a": [1.0], "b": 0.0, "c": 0.0}, InvalidTypeError, "feature 'a': must be a number, got list"),
        ([1.0, 2.0, 3.0], InvalidTypeError, "x: must be a dict of features, got list"),
        (None, InvalidTypeError, "x: must be a dict of features, got NoneType"),
    ],
)
def test_an_invalid_point_is_an_error_and_changes_nothing(x, error, message):
    detector = trained(points(100))
    before = detector.model.state.copy()
    for call in (detector.learn_one, detector.score_one):
        with pytest.raises(error, match=message):
            call(x)
    assert (detector.model.state == before).all()


@pytest.mark.parametrize("learner", ["SRA", lp.SRA, lp.SRA(rho=0.01, model=lp.models.LinearRegression())])
def test_a_learner_that_is_none_of_points_is_refused(learner):
    with pytest.raises(InvalidInputError, match="learner: must be a learner of points"):
        AnomalyDetector(learner)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))], ids=["deepcopy", "pickle"])
def test_a_copy_continues(copied):
    xs, more = points(150), points(150, seed=1)
    detector = trained(xs)
    detector.learn_one(more[0] | {"d": 1.0})  # a new feature is on its way
    other = copied(detector)
    for each in (detector, other):
        trained([x | {"d": 0.1 * i} for i, x in enumerate(4 * more)], each)
    assert (detector.model.state == other.model.state).all()
    assert len(other.model.feature_names) == 4


def test_in_a_pipeline_with_a_quantile_filter_it_follows_a_shift():
    rng = random.Random(0)
    model = compose.Pipeline(
        preprocessing.StandardScaler(),
        anomaly.QuantileFilter(AnomalyDetector(), q=0.99, protect_anomaly_detector=False),
    )
    called = []
    for i in range(3000):
        x = {"a": rng.gauss(0.0 if i < 1500 else 50.0, 1.0), "b": rng.gauss(3.0, 2.0)}
        called.append(model["QuantileFilter"].classify(model.score_one(x)))
        model.learn_one(x)
    assert np.mean(called[500:1500]) < 0.03
    assert np.mean(called[2500:]) < 0.05  # the new level is usual by now


def test_a_threshold_filter_keeps_what_is_rare_from_the_model_behind_it():
    from river import linear_model

    rng = random.Random(1)
    model = anomaly.ThresholdFilter(AnomalyDetector(), threshold=4.0) | linear_model.LinearRegression()
    for _ in range(1000):
        x = rng.gauss(0.0, 1.0)
        model.learn_one({"x": x}, 2.0 * x)
    weight = model["LinearRegression"].weights["x"]
    model.learn_one({"x": 1e6}, -1e6)
    assert model["LinearRegression"].weights["x"] == weight


def test_progressive_validation_ranks_anomalies_first():
    rng = np.random.default_rng(3)
    labels = rng.random(2000) < 0.02
    rows = rng.normal(size=(2000, 2)) + 8.0 * labels[:, None]
    dataset = list(stream.iter_array(rows, labels.astype(int), feature_names=["a", "b"]))
    auc = evaluate.progressive_val_score(dataset, AnomalyDetector(), metrics.RollingROCAUC(window_size=2000))
    assert auc.get() > 0.95


# The drift detector


def numbers(n, mean, seed=0, spread=1.0):
    return np.random.default_rng(seed).normal(mean, spread, n).tolist()


def drifts(detector, values):
    rows_found = []
    for i, value in enumerate(values):
        detector.update(value)
        if detector.drift_detected:
            rows_found.append(i)
    return rows_found


def test_a_drift_is_reported_once_when_the_learner_raises_its_alarm():
    values = numbers(1000, 0.0, seed=2) + numbers(1000, 2.0, seed=1)
    values[500] = 50.0  # an outlier is none
    trace = lp.Detector().process(np.array(values))
    changes = [alarm for alarm in trace.alarms if alarm.kind == "change"]
    detector = DriftDetector()
    assert drifts(detector, values) == [alarm.row for alarm in changes]
    assert detector.alarm == changes[-1]
    assert abs(detector.alarm.onset - 1000) < 10


def test_the_drift_detector_has_the_base_class_of_river():
    detector = DriftDetector()
    assert isinstance(detector, base.DriftAndWarningDetector)
    assert detector.update(1.0) is None
    assert detector.drift_detected is False
    assert detector.warning_detected is False


def test_warnings_come_before_drifts_and_end_with_them():
    values = numbers(1000, 0.0, seed=2) + numbers(60, 1.2, seed=1)
    detector, warned = DriftDetector(), []
    for i, value in enumerate(values):
        detector.update(value)
        if detector.warning_detected and i >= 1000:
            warned.append(i)
        if detector.drift_detected:
            assert not detector.warning_detected
            break
    assert detector.drift_detected
    assert warned
    assert warned[-1] < i


def test_only_drifts_of_the_requested_direction_are_reported():
    values = numbers(800, 0.0) + numbers(800, 3.0, seed=1) + numbers(800, 0.0, seed=2)
    both, up, down = (drifts(DriftDetector(direction=each), values) for each in ("both", "up", "down"))
    assert len(both) == 2
    assert up == both[:1]
    assert down == both[1:]


def test_the_promise_is_kept_on_errors_of_a_classifier():
    rng = np.random.default_rng(5)
    calm = (rng.random(40_000) < 0.2).astype(int).tolist()
    detector = DriftDetector(far=1e-3)
    assert len(drifts(detector, calm)) <= 2.0 * 40


@pytest.mark.parametrize(("before", "after"), [(0.05, 0.2), (0.2, 0.35)])
def test_a_moderate_rise_of_an_error_is_found(before, after):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        errors = [*(rng.random(2000) < before).astype(int).tolist(), *(rng.random(1000) < after).astype(int).tolist()]
        detector = DriftDetector(direction="up")
        rows_found = drifts(detector, errors)
        assert rows_found
        assert 2000 <= rows_found[0] < 2400
        assert detector.alarm.row == rows_found[-1]


def test_blocks_have_the_requested_size():
    values = numbers(1200, 0.0, seed=2) + numbers(300, 3.0, seed=1)
    detector = DriftDetector(block=5)
    (rows_found,) = drifts(detector, values)
    assert detector._model.n_seen == 300
    assert rows_found % 5 == 4
    assert detector.alarm.row == rows_found
    with pytest.raises(InvalidInputError, match="block: must be an integer"):
        DriftDetector(block=0)


def test_a_block_with_a_value_that_is_missing_is_skipped():
    detector = DriftDetector(block=10)
    drifts(detector, [*numbers(600, 0.0), math.nan, *numbers(9, 0.0), *numbers(100, 0.0, seed=3)])
    assert detector._model.n_invalid == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_skipped(value):
    values = numbers(300, 0.0)
    model, other = DriftDetector(), DriftDetector()
    assert drifts(model, [*values[:200], value, *values[200:]]) == []
    assert drifts(other, values) == []
    assert model._model.n_invalid == 1


@pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")
@pytest.mark.parametrize("n", [10, 200], ids=["before the start", "after it"])
def test_a_value_that_is_not_a_number_is_an_error(n):
    detector = DriftDetector()
    drifts(detector, numbers(n, 0.0))
    for value in ("warm", None, [1.0, 2.0]):
        with pytest.raises(InvalidTypeError, match="x: must be a number"):
            detector.update(value)
    assert (len(detector._probe_values) if detector._model is None else detector._model.n_seen) == n


def test_any_kind_of_number_is_one():
    from decimal import Decimal

    detector = DriftDetector()
    drifts(detector, numbers(200, 0.0))
    for value in (np.bool_(True), True, np.float32(0.5), Decimal("1.5"), 10**400):
        detector.update(value)
    assert detector._model.n_seen == 205
    assert detector._model.n_invalid == 1


def test_outliers_do_not_reverse_the_direction():
    values = numbers(1000, 0.0, seed=2) + numbers(300, 3.0, seed=1)
    values[500], values[990] = 1e9, -1e12
    assert drifts(DriftDetector(direction="up"), values)
    assert not drifts(DriftDetector(direction="down"), values)


def test_a_change_of_spread_alone_has_hardly_ever_a_direction():
    reported = 0
    for seed in range(10):
        values = numbers(600, 0.0, seed=seed) + numbers(200, 0.0, seed=100 + seed, spread=4.0)
        reported += bool([i for i in drifts(DriftDetector(direction="up"), values) if i >= 600])
    assert reported <= 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"far": 0.0}, "far: must be"),
        ({"far": 0.5}, "far: must be"),
        ({"warning_far": 1e-6}, "warning_far: must be at least far"),
        ({"direction": "left"}, "direction: must be"),
    ],
)
def test_settings_of_the_drift_detector_are_checked(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        DriftDetector(**settings)


def test_a_pickled_drift_detector_continues():
    values = numbers(600, 0.0) + numbers(200, 3.0, seed=1)
    model = DriftDetector()
    drifts(model, values[:590])
    other = pickle.loads(pickle.dumps(model))
    assert drifts(model, values[590:]) == drifts(other, values[590:]) != []


def concept(n=4000, seed=0):
    """Two features, a label, and the other way round from half of the stream on."""
    rng = random.Random(seed)
    for i in range(n):
        x = {"a": rng.gauss(0.0, 1.0), "b": rng.gauss(0.0, 1.0)}
        yield x, (x["a"] + x["b"] > 0.0) != (i >= n // 2)


@pytest.mark.parametrize("in_background", [True, False])
def test_retraining_by_its_drifts_helps(in_background):
    stubborn, retrained = metrics.Accuracy(), metrics.Accuracy()
    evaluate.progressive_val_score(concept(), naive_bayes.GaussianNB(), stubborn)
    model = drift.DriftRetrainingClassifier(
        naive_bayes.GaussianNB(), DriftDetector(direction="up"), train_in_background=in_background
    )
    evaluate.progressive_val_score(concept(), model, retrained)
    assert retrained.get() > stubborn.get() + 0.1


def test_a_forest_takes_it_for_its_drifts_and_warnings():
    model = forest.ARFClassifier(
        n_models=2, seed=1, drift_detector=DriftDetector(), warning_detector=DriftDetector(far=1e-2)
    )
    accuracy = evaluate.progressive_val_score(concept(1200), model, metrics.Accuracy())
    assert accuracy.get() > 0.6


@pytest.mark.parametrize("most", [0, -1, 2.5, "x", None])
def test_the_number_of_features_is_checked(most):
    with pytest.raises(InvalidInputError, match="max_features: must be an integer"):
        AnomalyDetector(max_features=most)
