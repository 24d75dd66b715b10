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


def make_points(n, seed=0, d=3, names="abc"):
    rng = np.random.default_rng(seed)
    return [dict(zip(names, row, strict=True)) for row in rng.normal(size=(n, d)).tolist()]


def train(xs, detector=None):
    detector = AnomalyDetector() if detector is None else detector
    for x in xs:
        detector.learn_one(x)
    return detector


# The anomaly detector


@pytest.mark.parametrize("learner", [None, lp.SRA(rho=0.01, gamma=4.0)], ids=["detector", "SRA"])
def test_detector_equals_the_learner_bit_for_bit(learner):
    xs = make_points(400)
    xs[300]["b"] = 40.0
    detector, expected = train(xs, AnomalyDetector(learner)), (learner or lp.Detector()).clone()
    rows = np.array([[x[name] for name in "abc"] for x in xs])
    expected.process(rows)
    assert (detector.current_learner.state == expected.state).all()
    assert detector.current_learner.feature_names == ("a", "b", "c")
    step = expected.score_only(rows[17])
    score = -math.log10(step.p_value) if learner is None else step.score
    assert detector.score_one(xs[17]) == pytest.approx(score, rel=1e-12)


def test_score_one_does_not_learn_and_separates_outliers():
    xs = make_points(500)
    detector = train(xs)
    before = detector.current_learner.state.copy()
    inlier_score, outlier_score = detector.score_one(xs[0]), detector.score_one({"a": 0.0, "b": 9.0, "c": 0.0})
    assert inlier_score < 2.0 < 4.0 < outlier_score
    assert (detector.current_learner.state == before).all()


def test_one_point_in_a_hundred_scores_above_two():
    detector = train(make_points(3000))
    scores = np.array([detector.score_one(x) for x in make_points(4000, seed=1)])
    assert 0.005 < (scores >= 2.0).mean() < 0.02


def test_scores_are_zero_before_initialization():
    detector = AnomalyDetector()
    assert detector.score_one({"a": 1.0}) == 0.0
    assert detector.current_learner is None
    assert train(make_points(20)).score_one({"a": 99.0, "b": 0.0, "c": 0.0}) == 0.0


def test_order_of_features_does_not_matter():
    xs = make_points(300)
    model = train(xs)
    other = train([dict(reversed(list(x.items()))) for x in xs])
    assert (model.current_learner.state == other.current_learner.state).all()


def test_absent_none_and_nan_features_are_missing():
    xs = make_points(300)
    missing, none, nan = ([dict(x) for x in xs] for _ in range(3))
    for i in range(100, 300, 7):
        del missing[i]["b"]
        none[i]["b"], nan[i]["b"] = None, math.nan
    states = [train(each).current_learner.state for each in (missing, none, nan)]
    assert (states[0] == states[1]).all()
    assert (states[0] == states[2]).all()
    detector = train(missing)
    assert detector.score_one({"a": 20.0}) > 3.0
    assert detector.score_one({"b": None}) == 0.0
    assert detector.score_one({}) == 0.0


def test_learner_with_a_new_feature_replaces_the_old_one_once_calibrated():
    detector = train(make_points(800, d=2, names="ab"))
    assert detector.current_learner.feature_names == ("a", "b")
    more = make_points(600, seed=1)
    for i, x in enumerate(more):
        detector.learn_one(x)
        assert detector.current_learner.feature_names == (("a", "b") if i < 499 else ("a", "b", "c"))
    assert detector.score_one({"a": 0.0, "b": 0.0, "c": 9.0}) > 3.0
    assert detector.current_learner.n_seen == 600  # since the new feature appeared
    alone = lp.Detector()
    alone.process(np.array([[x[name] for name in "abc"] for x in more]))
    assert (detector.current_learner.state == alone.state).all()


def test_features_that_appear_during_initialization_share_one_learner():
    xs = make_points(60)
    for i, x in enumerate(xs[:20]):
        for name in "bc"[: 2 - i // 7]:
            x.pop(name, None)
    assert train(xs).current_learner.n_seen == 60
    assert train(xs).current_learner.feature_names == ("a", "b", "c")


@pytest.mark.parametrize("at", [0, 300], ids=["at first", "later"])
def test_feature_seen_only_once_is_ignored(at):
    xs = make_points(600)
    xs[at]["typo"] = 1.0
    detector = train(xs)
    assert detector.current_learner.feature_names == ("a", "b", "c")
    assert detector.current_learner.n_seen == 600
    assert not detector._collected_points  # points take the fast path again
    assert detector.score_one({"a": 50.0, "b": 0.0, "c": 0.0}) > 4.0


def test_vanished_feature_is_dropped_when_a_new_one_appears():
    detector = train(make_points(600))
    train([{"a": x["a"], "b": x["b"], "d": x["c"]} for x in make_points(600, seed=1)], detector)
    assert detector.current_learner.feature_names == ("a", "b", "d")


def test_unknown_features_do_not_change_the_score():
    detector = train(make_points(200))
    x = {"a": 0.1, "b": 0.2, "c": 0.3}
    assert detector.score_one(x | {"new": 1e9}) == detector.score_one(x)


def test_features_beyond_the_maximum_are_ignored_with_a_warning():
    detector = AnomalyDetector(max_features=3)
    with pytest.warns(LimpetWarning, match="only the 3 most frequent of 5 features"):
        train(make_points(100, d=5, names="edcba"), detector)
    assert detector.current_learner.feature_names == ("a", "b", "c")


def test_feature_names_need_not_be_strings():
    xs = [{1: x["a"], "1": x["b"], (2, 3): x["c"]} for x in make_points(100)]
    detector = train(xs)
    assert sorted(detector.current_learner.feature_names) == ["'1'", "(2, 3)", "1"]
    assert detector.score_one(xs[0]) >= 0.0


def test_infinite_values_score_high_and_are_not_learned():
    xs = make_points(200)
    detector, other = train(xs), train(xs)
    score = detector.score_one({"a": math.inf, "b": 0.0, "c": 0.0})
    assert 4.0 < score < math.inf
    detector.learn_one({"a": math.inf, "b": 0.0, "c": 10**400})
    assert detector.current_learner.n_invalid == 1
    x = make_points(1, seed=5)[0]
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
def test_input_of_wrong_type_raises_and_leaves_the_state_unchanged(x, error, message):
    detector = train(make_points(100))
    before = detector.current_learner.state.copy()
    for call in (detector.learn_one, detector.score_one):
        with pytest.raises(error, match=message):
            call(x)
    assert (detector.current_learner.state == before).all()


@pytest.mark.parametrize("learner", ["SRA", lp.SRA, lp.SRA(rho=0.01, model=lp.models.LinearRegression())])
def test_learner_that_is_not_for_points_raises(learner):
    with pytest.raises(InvalidInputError, match="learner: must be a learner of points"):
        AnomalyDetector(learner)


@pytest.mark.parametrize(
    "make_copy", [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))], ids=["deepcopy", "pickle"]
)
def test_copy_continues_bit_for_bit(make_copy):
    xs, more = make_points(150), make_points(150, seed=1)
    detector = train(xs)
    detector.learn_one(more[0] | {"d": 1.0})  # a new feature is on its way
    other = make_copy(detector)
    for each in (detector, other):
        train([x | {"d": 0.1 * i} for i, x in enumerate(4 * more)], each)
    assert (detector.current_learner.state == other.current_learner.state).all()
    assert len(other.current_learner.feature_names) == 4


def test_pipeline_with_a_quantile_filter_follows_a_shift():
    rng = random.Random(0)
    model = compose.Pipeline(
        preprocessing.StandardScaler(),
        anomaly.QuantileFilter(AnomalyDetector(), q=0.99, protect_anomaly_detector=False),
    )
    flagged = []
    for i in range(3000):
        x = {"a": rng.gauss(0.0 if i < 1500 else 50.0, 1.0), "b": rng.gauss(3.0, 2.0)}
        flagged.append(model["QuantileFilter"].classify(model.score_one(x)))
        model.learn_one(x)
    assert np.mean(flagged[500:1500]) < 0.03
    assert np.mean(flagged[2500:]) < 0.05  # the new level is normal by now


def test_threshold_filter_keeps_anomalies_from_the_next_model():
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


def make_values(n, mean, seed=0, spread=1.0):
    return np.random.default_rng(seed).normal(mean, spread, n).tolist()


def find_drifts(detector, values):
    rows_found = []
    for i, value in enumerate(values):
        detector.update(value)
        if detector.drift_detected:
            rows_found.append(i)
    return rows_found


def test_drift_is_reported_once_in_the_row_of_the_alarm():
    values = make_values(1000, 0.0, seed=2) + make_values(1000, 2.0, seed=1)
    values[500] = 50.0  # an outlier is none
    trace = lp.Detector().process(np.array(values))
    changes = [alarm for alarm in trace.alarms if alarm.kind == "change"]
    detector = DriftDetector()
    assert find_drifts(detector, values) == [alarm.row for alarm in changes]
    assert detector.alarm == changes[-1]
    assert abs(detector.alarm.onset - 1000) < 10


def test_the_drift_detector_has_the_base_class_of_river():
    detector = DriftDetector()
    assert isinstance(detector, base.DriftAndWarningDetector)
    assert detector.update(1.0) is None
    assert detector.drift_detected is False
    assert detector.warning_detected is False


def test_warnings_precede_drifts_and_end_with_them():
    values = make_values(1000, 0.0, seed=2) + make_values(60, 1.2, seed=1)
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
    values = make_values(800, 0.0) + make_values(800, 3.0, seed=1) + make_values(800, 0.0, seed=2)
    both, up, down = (find_drifts(DriftDetector(direction=each), values) for each in ("both", "up", "down"))
    assert len(both) == 2
    assert up == both[:1]
    assert down == both[1:]


def test_false_alarm_rate_holds_on_errors_of_a_classifier():
    rng = np.random.default_rng(5)
    calm = (rng.random(40_000) < 0.2).astype(int).tolist()
    detector = DriftDetector(far=1e-3)
    assert len(find_drifts(detector, calm)) <= 2.0 * 40


@pytest.mark.parametrize(("before", "after"), [(0.05, 0.2), (0.2, 0.35)])
def test_moderate_rise_of_an_error_rate_is_detected(before, after):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        errors = [*(rng.random(2000) < before).astype(int).tolist(), *(rng.random(1000) < after).astype(int).tolist()]
        detector = DriftDetector(direction="up")
        rows_found = find_drifts(detector, errors)
        assert rows_found
        assert 2000 <= rows_found[0] < 2400
        assert detector.alarm.row == rows_found[-1]


def test_blocks_have_the_requested_size():
    values = make_values(1200, 0.0, seed=2) + make_values(300, 3.0, seed=1)
    detector = DriftDetector(block=5)
    (rows_found,) = find_drifts(detector, values)
    assert detector._learner.n_seen == 300
    assert rows_found % 5 == 4
    assert detector.alarm.row == rows_found
    with pytest.raises(InvalidInputError, match="block: must be an integer"):
        DriftDetector(block=0)


def test_block_with_a_missing_value_is_invalid():
    detector = DriftDetector(block=10)
    find_drifts(detector, [*make_values(600, 0.0), math.nan, *make_values(9, 0.0), *make_values(100, 0.0, seed=3)])
    assert detector._learner.n_invalid == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_non_finite_values_are_invalid_and_change_nothing(value):
    values = make_values(300, 0.0)
    model, other = DriftDetector(), DriftDetector()
    assert find_drifts(model, [*values[:200], value, *values[200:]]) == []
    assert find_drifts(other, values) == []
    assert model._learner.n_invalid == 1


@pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")
@pytest.mark.parametrize("n", [10, 200], ids=["before the start", "after it"])
def test_non_numeric_value_raises(n):
    detector = DriftDetector()
    find_drifts(detector, make_values(n, 0.0))
    for value in ("warm", None, [1.0, 2.0]):
        with pytest.raises(InvalidTypeError, match="x: must be a number"):
            detector.update(value)
    assert (len(detector._probe_values) if detector._learner is None else detector._learner.n_seen) == n


def test_numbers_of_any_type_are_accepted():
    from decimal import Decimal

    detector = DriftDetector()
    find_drifts(detector, make_values(200, 0.0))
    for value in (np.bool_(True), True, np.float32(0.5), Decimal("1.5"), 10**400):
        detector.update(value)
    assert detector._learner.n_seen == 205
    assert detector._learner.n_invalid == 1


def test_outliers_do_not_reverse_the_direction():
    values = make_values(1000, 0.0, seed=2) + make_values(300, 3.0, seed=1)
    values[500], values[990] = 1e9, -1e12
    assert find_drifts(DriftDetector(direction="up"), values)
    assert not find_drifts(DriftDetector(direction="down"), values)


def test_change_of_spread_is_rarely_reported_as_a_direction():
    reported = 0
    for seed in range(10):
        values = make_values(600, 0.0, seed=seed) + make_values(200, 0.0, seed=100 + seed, spread=4.0)
        reported += bool([i for i in find_drifts(DriftDetector(direction="up"), values) if i >= 600])
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
def test_invalid_parameters_of_the_drift_detector_raise(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        DriftDetector(**settings)


def test_a_pickled_drift_detector_continues():
    values = make_values(600, 0.0) + make_values(200, 3.0, seed=1)
    model = DriftDetector()
    find_drifts(model, values[:590])
    other = pickle.loads(pickle.dumps(model))
    assert find_drifts(model, values[590:]) == find_drifts(other, values[590:]) != []


def make_concept_drift(n=4000, seed=0):
    """Yield two features and a label, which is inverted from the middle of the stream on."""
    rng = random.Random(seed)
    for i in range(n):
        x = {"a": rng.gauss(0.0, 1.0), "b": rng.gauss(0.0, 1.0)}
        yield x, (x["a"] + x["b"] > 0.0) != (i >= n // 2)


@pytest.mark.parametrize("in_background", [True, False])
def test_retraining_at_drifts_improves_accuracy(in_background):
    static, retrained = metrics.Accuracy(), metrics.Accuracy()
    evaluate.progressive_val_score(make_concept_drift(), naive_bayes.GaussianNB(), static)
    model = drift.DriftRetrainingClassifier(
        naive_bayes.GaussianNB(), DriftDetector(direction="up"), train_in_background=in_background
    )
    evaluate.progressive_val_score(make_concept_drift(), model, retrained)
    assert retrained.get() > static.get() + 0.1


def test_adaptive_random_forest_accepts_the_drift_detector():
    model = forest.ARFClassifier(
        n_models=2, seed=1, drift_detector=DriftDetector(), warning_detector=DriftDetector(far=1e-2)
    )
    accuracy = evaluate.progressive_val_score(make_concept_drift(1200), model, metrics.Accuracy())
    assert accuracy.get() > 0.6


@pytest.mark.parametrize("max_features", [0, -1, 2.5, "x", None])
def test_invalid_max_features_raises(max_features):
    with pytest.raises(InvalidInputError, match="max_features: must be an integer"):
        AnomalyDetector(max_features=max_features)
