"""limpet in scikit-learn: in pipelines and searches, with dataframes, pickled and cloned."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest

import limpet as lp
from limpet.exceptions import InvalidInputError, LimpetWarning

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler

from limpet.adapters.sklearn import (
    OnlineGaussianMixture,
    OutlierDetector,
    RobustClassifier,
    RobustRegressor,
    StreamScores,
)

NAMES = ["load", "power", "heat"]


def make_rows(n=600, seed=0, d=3):
    return np.random.default_rng(seed).normal((5.0, 900.0, 60.0)[:d], (1.0, 40.0, 2.0)[:d], (n, d))


def make_regression(n=3000, seed=0, corrupted=0.05):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * (1.0, 100.0)
    clean = X @ (2.0, 0.05) + 3.0
    y = clean + rng.normal(0.0, 0.5, n)
    y[rng.random(n) < corrupted] += 200.0
    return X, y, clean


def make_classes(n=3000, seed=0, flipped=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=n) > 0.0
    return X, np.where(y ^ (rng.random(n) < flipped), "up", "down")


ESTIMATORS = [
    (OutlierDetector(), (make_rows(),)),
    (StreamScores(), (make_rows(),)),
    (OnlineGaussianMixture(2), (make_rows(d=1),)),
    (RobustRegressor(), make_regression(500)[:2]),
    (RobustClassifier(), make_classes(500)),
]
every_estimator = pytest.mark.parametrize(
    ("estimator", "data"), ESTIMATORS, ids=[type(estimator_).__name__ for estimator_, _ in ESTIMATORS]
)


def get_outputs(estimator, X):
    names = ("predict", "transform", "score_samples", "decision_function", "predict_proba")
    return [getattr(estimator, name)(X[:50]) for name in names if hasattr(estimator, name)]


# The contract of all estimators


@every_estimator
def test_partial_fit_in_pieces_equals_fit(estimator, data):
    whole, pieces = clone(estimator), clone(estimator)
    if isinstance(estimator, RobustRegressor | RobustClassifier):
        whole.set_params(max_iter=1)
    whole.fit(*data)
    for cut in np.array_split(np.arange(len(data[0])), 7):
        extra = {"classes": np.unique(data[1])} if isinstance(estimator, RobustClassifier) else {}
        pieces.partial_fit(*(part[cut] for part in data), **extra)
    for ours, theirs in zip(get_outputs(whole, data[0]), get_outputs(pieces, data[0]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@every_estimator
def test_a_pickled_estimator_continues(estimator, data):
    fitted = clone(estimator).fit(*data)
    other = pickle.loads(pickle.dumps(fitted))
    for each in (fitted, other):
        each.partial_fit(*data)
    for ours, theirs in zip(get_outputs(fitted, data[0]), get_outputs(other, data[0]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@every_estimator
def test_a_clone_has_the_parameters_and_no_state(estimator, data):
    fitted = clone(estimator).fit(*data)
    again = clone(fitted)
    assert again.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        get_outputs(again, data[0])


@every_estimator
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_feature_names_are_stored_and_checked(estimator, data, frame):
    X, rest = data[0], data[1:]
    names = NAMES[: X.shape[1]]
    fitted = clone(estimator).fit(frame(X, columns=names) if frame is pd.DataFrame else frame(X, schema=names), *rest)
    assert list(fitted.feature_names_in_) == names
    plain = clone(estimator).fit(X, *rest)
    table = pd.DataFrame(X, columns=names)
    for ours, theirs in zip(get_outputs(fitted, table), get_outputs(plain, X), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    if len(names) > 1:
        with pytest.raises(ValueError, match="feature names"):
            get_outputs(fitted, table[names[::-1]])


@every_estimator
def test_invalid_input_raises_and_leaves_the_estimator_unchanged(estimator, data):
    fitted = clone(estimator).fit(*data)
    before = get_outputs(fitted, data[0])
    X = np.array(data[0][:20])
    X[3, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        fitted.partial_fit(X, *(part[:20] for part in data[1:]))
    with pytest.raises(ValueError, match="features"):
        fitted.partial_fit(np.ones((20, 9)), *(part[:20] for part in data[1:]))
    for expected, actual in zip(before, get_outputs(fitted, data[0]), strict=True):
        np.testing.assert_array_equal(expected, actual)


# Outliers


def test_outliers_are_the_anomalies_of_the_learner():
    X = make_rows(2000)
    detector, learner = OutlierDetector(far=1e-3).fit(X), lp.Detector()
    learner.process(X)
    fresh = make_rows(500, seed=1)
    fresh[::50] += (0.0, 900.0, 0.0)
    np.testing.assert_array_equal(detector.predict(fresh) == -1, learner.score_only(fresh, far=1e-3).anomaly)
    flagged = np.flatnonzero(detector.predict(fresh) == -1)
    assert set(range(0, 500, 50)) <= set(flagged)
    assert len(flagged) < 15


@pytest.mark.parametrize("far", [0.01, 0.05])
def test_share_of_normal_rows_predicted_as_outliers_is_far(far):
    detector = OutlierDetector(far=far).fit(make_rows(5000))
    assert 0.5 * far < (detector.predict(make_rows(5000, seed=1)) == -1).mean() < 1.5 * far


def test_contamination_is_the_share_of_outliers():
    X = make_rows(1000)
    detector = OutlierDetector(contamination=0.1).fit(X)
    assert (detector.predict(X) == -1).sum() == 100
    with pytest.raises(InvalidInputError, match="contamination: must be"):
        OutlierDetector(contamination=0.9).fit(X)


def test_a_shift_is_followed_and_raises_an_alarm():
    X = pd.DataFrame(make_rows(1000), columns=NAMES)
    detector = OutlierDetector(far=1e-3).fit(X)
    shifted = X + np.array([0.0, 0.0, 40.0])
    assert (detector.predict(shifted) == -1).all()
    detector.partial_fit(shifted)
    assert (detector.predict(shifted) == -1).mean() < 0.05
    change = next(alarm for alarm in detector.alarms_ if alarm.kind == "change")
    assert change.variables == ("heat",)
    assert abs(change.onset - 1000) < 3


def test_missing_values_are_ignored_and_an_empty_row_is_no_outlier():
    detector = OutlierDetector().fit(make_rows(1000))
    missing = np.array([[np.nan] * 3, [5.0, np.nan, np.nan], [np.nan, 3000.0, np.nan]])
    np.testing.assert_array_equal(detector.predict(missing), [1, 1, -1])


def test_grid_search_over_a_pipeline():
    rng = np.random.default_rng(0)
    X, y = make_rows(400, d=2), np.ones(400, int)
    outliers = rng.choice(400, 20, replace=False)
    X[outliers] += (8.0, 0.0)
    y[outliers] = -1
    pipeline = make_pipeline(StandardScaler(), OutlierDetector())
    search = GridSearchCV(pipeline, {"outlierdetector__far": [1e-3, 0.06]}, scoring="f1", cv=TimeSeriesSplit(2))
    search.fit(X, y)
    assert search.best_params_ == {"outlierdetector__far": 0.06}
    assert search.best_score_ > 0.9


@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_scores_as_a_dataframe(form):
    frame = StreamScores().set_output(transform=form).fit(make_rows()).transform(make_rows(10))
    assert list(frame.columns) == ["score", "p_value", "rejected", "anomaly"]
    assert isinstance(frame, pd.DataFrame if form == "pandas" else pl.DataFrame)


def test_scores_are_features_of_a_classifier():
    rng = np.random.default_rng(0)
    y = rng.random(1000) < 0.3
    X = rng.normal(size=(1000, 2)) * np.where(y, 6.0, 1.0)[:, None]  # the same mean: not linearly separable
    with_scores = make_union(StandardScaler(), StreamScores())
    plain = cross_val_score(make_pipeline(StandardScaler(), LogisticRegression()), X, y, cv=3).mean()
    ours = cross_val_score(make_pipeline(with_scores, LogisticRegression()), X, y, cv=3).mean()
    assert ours > plain + 0.1


# The mixture


def test_mixture_equals_that_of_sklearn_except_for_outliers():
    rng = np.random.default_rng(0)
    X = rng.normal(rng.choice([-4.0, 4.0], (4000, 1)), 1.0, (4000, 2))
    theirs = GaussianMixture(2, random_state=0).fit(X)
    corrupted = X.copy()
    corrupted[::40] = 500.0
    ours, corrupted_theirs = OnlineGaussianMixture(2).fit(corrupted), GaussianMixture(2, random_state=0).fit(corrupted)
    assert ours.score(X) > theirs.score(X) - 0.1
    assert ours.score(X) > corrupted_theirs.score(X) + 0.3
    assert (ours.predict(X) == (ours.means_[:, 0].argmax() == (X[:, 0] > 0.0))).mean() > 0.99


def test_density_equals_the_formula_of_sklearn():
    mixture = OnlineGaussianMixture(2, rho=0.02).fit(make_rows(500, d=2))
    other = GaussianMixture(2)
    other.weights_, other.means_, other.covariances_ = mixture.weights_, mixture.means_, mixture.covariances_
    other.precisions_cholesky_ = np.array([np.linalg.inv(np.linalg.cholesky(c)).T for c in mixture.covariances_])
    X = make_rows(100, seed=2, d=2)
    np.testing.assert_allclose(mixture.score_samples(X), other.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(mixture.predict_proba(X), other.predict_proba(X), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(mixture.score_samples(X), -mixture.learner_.score(X), rtol=1e-9)


def test_missing_values_are_integrated_out():
    mixture = OnlineGaussianMixture(2, rho=0.02).fit(make_rows(500, d=2))
    missing = np.array([[5.0, np.nan], [np.nan, 900.0], [np.nan, np.nan]])
    np.testing.assert_allclose(mixture.score_samples(missing)[:2], -mixture.learner_.score(missing[:2]), rtol=1e-9)
    assert mixture.score_samples(missing)[2] == pytest.approx(0.0, abs=1e-12)


def test_samples_come_from_the_estimate():
    mixture = OnlineGaussianMixture().fit(make_rows(3000))
    drawn, labels = mixture.sample(20_000, random_state=0)
    assert set(labels) == {0}
    np.testing.assert_allclose(drawn.mean(axis=0), mixture.means_[0], rtol=0.01)
    np.testing.assert_allclose(np.cov(drawn.T), mixture.covariances_[0], rtol=0.1, atol=3.0)


# Regression and classification


def test_corrupted_targets_are_rejected():
    X, y, clean = make_regression()
    model = RobustRegressor().fit(X, y)
    assert np.mean((model.predict(X) - clean) ** 2) < 0.02
    np.testing.assert_allclose(model.coef_, (2.0, 0.05), rtol=0.05)
    assert model.intercept_ == pytest.approx(3.0, abs=0.15)
    assert 0.04 < model.learner_.n_rejected / model.learner_.n_seen < 0.06


@pytest.mark.filterwarnings("ignore:.*rows were rejected")
def test_regressor_with_patience_follows_any_change():
    X, y, clean = make_regression()
    impatient, patient = RobustRegressor(patience=0).fit(X, y), RobustRegressor().fit(X, y)
    with pytest.warns(LimpetWarning, match="were all rejected"):
        impatient.partial_fit(X, y + 1000.0)
    patient.partial_fit(X, y + 1000.0)
    assert patient.patience == 50
    assert np.abs(impatient.predict(X) - clean - 1000.0).mean() > 900.0
    assert np.abs(patient.predict(X) - clean - 1000.0).mean() < 1.0


def test_fit_makes_more_passes_over_few_rows():
    X, y, _ = make_regression(100, corrupted=0.0)
    assert RobustRegressor().fit(X, y).n_iter_ > 10
    assert RobustRegressor(max_iter=3).fit(X, y).n_iter_ == 3
    assert RobustRegressor().fit(X, y).score(X, y) > 0.98
    with pytest.raises(InvalidInputError, match="max_iter: must be"):
        RobustRegressor(max_iter=0).fit(X, y)


@pytest.mark.parametrize("labels", [["down", "up"], ["a", "b", "c"]], ids=["two classes", "three"])
def test_the_classifier_separates_classes(labels):
    rng = np.random.default_rng(0)
    truth = rng.integers(len(labels), size=3000)
    X = rng.normal(size=(3000, 2)) + 4.0 * np.array([(0, 0), (1, 1), (2, -1)])[truth]
    y = np.array(labels)[truth]
    model = RobustClassifier().fit(X, y)
    assert model.score(X, y) > 0.9
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[chances.argmax(axis=1)], model.predict(X))
    assert model.decision_function(X).shape == ((3000,) if len(labels) == 2 else (3000, 3))
    assert model.coef_.shape == (1 if len(labels) == 2 else 3, 2)


def test_implausible_labels_are_rejected():
    X, y = make_classes()
    wrong = np.where(np.abs(X[:, 0] - X[:, 1]) > 2.5, np.where(X[:, 0] > X[:, 1], "down", "up"), y)
    unbounded, robust = RobustClassifier(gamma=np.inf).fit(X, y), RobustClassifier().fit(X, y)
    for model in (unbounded, robust):
        model.partial_fit(X, wrong)
    assert log_loss(y, robust.predict_proba(X)) < log_loss(y, unbounded.predict_proba(X)) - 0.02


def test_first_partial_fit_requires_all_classes():
    X, y = make_classes(200)
    with pytest.raises(InvalidInputError, match="classes: required"):
        RobustClassifier().partial_fit(X, y)
    model = RobustClassifier().partial_fit(X, y, classes=["up", "down"])
    with pytest.raises(InvalidInputError, match="got 'sideways'"):
        model.partial_fit(X, np.where(y == "up", "sideways", y))
    with pytest.raises(InvalidInputError, match="classes: must be"):
        model.partial_fit(X, y, classes=["up", "down", "sideways"])


def test_grid_search_over_a_regressor():
    X, y, _ = make_regression(1000)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), RobustRegressor()),
        {"robustregressor__gamma": [3.0, np.inf], "robustregressor__rho": [0.01]},
        scoring="neg_median_absolute_error",
        cv=TimeSeriesSplit(2),
    ).fit(X, y)
    assert search.best_params_["robustregressor__gamma"] == 3.0


def test_dependent_rows_are_scored_independently():
    rng = np.random.default_rng(0)
    noise, values = rng.normal(size=6000), np.zeros(6000)
    for t in range(1, 6000):
        values[t] = 0.9 * values[t - 1] + noise[t]
    X = values[:, None]
    detector = OutlierDetector(far=0.05).fit(X[:3000])
    assert 0.02 < (detector.predict(X[3000:]) == -1).mean() < 0.08
    learner = lp.Detector(lags=2)
    learner.process(X)
    with pytest.raises(InvalidInputError, match=r"^independent:"):
        learner.score_only(X[:5], independent=True)


def test_huge_values_are_outliers():
    detector = OutlierDetector().fit(make_rows(500, d=1))
    np.testing.assert_array_equal(detector.predict([[1e10], [1e149], [1e160], [-1e300]]), -1)


def test_mutable_parameters_change_and_others_raise():
    X, y, _ = make_regression(1000)
    model = RobustRegressor().fit(X, y)
    seen = model.learner_.n_seen
    model.set_params(rho=0.02, gamma=5.0).partial_fit(X, y)
    assert (model.learner_.rho, model.learner_.gamma, model.learner_.n_seen) == (0.02, 5.0, seen + 1000)
    with pytest.raises(InvalidInputError, match="model: cannot change"):
        model.set_params(l2=0.1).partial_fit(X, y)
    assert model.learner_.n_seen == seen + 1000
    with pytest.raises(InvalidInputError, match="rho: must be"):
        model.set_params(l2=0.0, rho=-5.0).partial_fit(X, y)
    mixture = OnlineGaussianMixture(1).fit(make_rows(200))
    with pytest.raises(InvalidInputError, match="n_components: cannot change"):
        mixture.set_params(n_components=2).partial_fit(make_rows(200))


def test_failed_call_leaves_the_estimator_unchanged():
    X, y = make_classes(200)
    model = RobustClassifier()
    with pytest.raises(InvalidInputError, match="y: must be one of the classes"):
        model.partial_fit(X, y, classes=["up", "left"])
    assert model.partial_fit(X, y, classes=["up", "down"]).score(X, y) > 0.5
    detector = OutlierDetector().fit(make_rows(500))
    for wrong in ({"far": 0.9}, {"far": 0.02, "contamination": 3.0}):
        with pytest.raises(InvalidInputError, match="must be"):
            detector.set_params(**wrong).fit(make_rows(100))
    assert detector.learner_.n_seen == 500


def test_concurrent_predictions():
    X = make_rows(20_000)
    detector = OutlierDetector().fit(X)
    expected = detector.score_samples(X)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(lambda _: detector.score_samples(X), range(12)):
            np.testing.assert_array_equal(scores, expected)


def test_rare_classes_are_predicted():
    rng = np.random.default_rng(0)
    y = rng.random(10_000) < 0.02
    X = rng.normal(size=(10_000, 3)) + np.where(y, 3.0, 0.0)[:, None]
    model = RobustClassifier().fit(X, y)
    assert model.predict(X)[y].mean() > 0.85
    assert y[model.predict(X)].mean() > 0.9
