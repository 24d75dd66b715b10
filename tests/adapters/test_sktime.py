"""limpet in sktime: change points and anomalies of series, fit, update and predict."""

import numpy as np
import pandas as pd
import pytest

import limpet as lp
from limpet.exceptions import LimpetWarning

pytest.importorskip("sktime")

from sktime.transformations.series.difference import Differencer

from limpet.adapters.sktime import AnomalyDetector, ChangePointDetector


def make_series(index=None, seed=2):
    """A change of level at row 1000, an outlier at row 600."""
    rng = np.random.default_rng(seed)
    values = np.repeat([20.0, 21.5], 1000) + rng.normal(0.0, 0.5, 2000)
    values[600] = 40.0
    return pd.Series(values, index=index)


DAYS = pd.date_range("2024-01-01", periods=2000, freq="h")


@pytest.mark.parametrize("index", [None, DAYS], ids=["range", "times"])
def test_events_equal_the_alarms_of_the_learner(index):
    y = make_series(index)
    alarms = lp.Detector().process(y.to_numpy()).alarms
    changes = ChangePointDetector().fit_predict(y)
    assert changes["ilocs"].tolist() == [alarm.onset for alarm in alarms if alarm.kind == "change"]
    assert abs(changes["ilocs"][0] - 1000) < 5
    assert AnomalyDetector().fit_predict(y)["ilocs"].tolist() == [600]


@pytest.mark.parametrize("kind", [ChangePointDetector, AnomalyDetector])
def test_update_predict_in_parts_equals_predict_of_the_whole(kind):
    y = make_series(DAYS)
    whole = kind().fit(y)
    pieces = kind().fit(y[:300])
    result = []
    for begin in range(300, 2000, 100):
        result += (pieces.update_predict(y[begin : begin + 100])["ilocs"] + begin).tolist()
    assert (pieces.learner_.state == whole.learner_.state).all()
    pd.testing.assert_frame_equal(pieces.predict(y), whole.predict(y))
    pd.testing.assert_frame_equal(pieces.transform_scores(y), whole.transform_scores(y))
    assert result == whole.predict(y)["ilocs"].tolist()


def test_predict_scores_new_rows_without_learning():
    y = make_series(DAYS)
    detector = ChangePointDetector().fit(y[:900])
    before = detector.learner_.state.copy()
    assert (detector.predict(y[900:])["ilocs"] + 900).tolist() == ChangePointDetector().fit_predict(y)["ilocs"].tolist()
    assert detector.predict(y)["ilocs"].tolist() == ChangePointDetector().fit_predict(y)["ilocs"].tolist()
    assert (detector.learner_.state == before).all()


def test_predict_of_a_slice_counts_from_its_first_row():
    detector = AnomalyDetector().fit(make_series(DAYS))
    assert detector.predict(make_series(DAYS)[590:610])["ilocs"].tolist() == [10]
    assert detector.predict(make_series(DAYS)[:500])["ilocs"].tolist() == []
    scores = detector.transform_scores(make_series(DAYS)[590:610])
    assert scores["scores"].argmax() == 10
    assert scores.index.equals(DAYS[590:610])


def test_other_series_with_the_same_index_is_scored_as_new():
    detector = AnomalyDetector().fit(make_series())
    other = pd.Series(np.full(100, 21.5) + np.random.default_rng(9).normal(0.0, 0.5, 100))
    other[40] = 90.0
    assert detector.predict(other)["ilocs"].tolist() == [40]


def test_change_with_an_earlier_onset_is_at_the_first_row():
    y = make_series(DAYS)
    alarm = next(alarm for alarm in lp.Detector().process(y.to_numpy()).alarms if alarm.kind == "change")
    assert alarm.row > alarm.onset
    detector = ChangePointDetector().fit(y[: alarm.row])
    assert detector.predict(y[alarm.row :])["ilocs"].tolist() == [0]


def test_several_variables_with_missing_values():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(1000, 2)), columns=["a", "b"])
    table.loc[500:, "b"] += 5.0
    table.loc[::7, "a"] = np.nan
    detector = ChangePointDetector().fit(table)
    assert detector.predict(table)["ilocs"].tolist() == [pytest.approx(500, abs=2)]
    assert detector.trace_.alarms[0].variables == ("b",)


def test_learned_rows_are_not_learned_twice():
    y = make_series(DAYS)
    detector = ChangePointDetector().fit(y[:500])
    detector.update(y[400:600])
    assert detector.learner_.n_seen == 600


def test_pipeline_and_labels():
    y = make_series().cumsum()
    pipeline = Differencer() * ChangePointDetector()
    assert abs(pipeline.fit_predict(y)["ilocs"][0] - 1000) < 5
    labels = ChangePointDetector().fit_transform(make_series())["labels"]
    assert np.flatnonzero(labels).tolist() == ChangePointDetector().fit_predict(make_series())["ilocs"].tolist()
    assert AnomalyDetector().fit_transform(make_series())["labels"].tolist().count(1) == 1


def test_arrays_are_appended():
    values = make_series().to_numpy()
    whole, pieces, result = ChangePointDetector().fit(values), ChangePointDetector().fit(values[:500]), []
    for begin in range(500, 2000, 100):
        result += (pieces.update_predict(values[begin : begin + 100])["ilocs"] + begin).tolist()
    assert pieces.learner_.n_seen == 2000
    assert (pieces.learner_.state == whole.learner_.state).all()
    assert result == whole.predict(values)["ilocs"].tolist()


def test_other_values_at_a_learned_index_warn():
    detector = ChangePointDetector().fit(make_series(DAYS)[:500])
    with pytest.warns(LimpetWarning, match="100 rows are skipped"):
        detector.update(make_series(DAYS)[400:500] + 1.0)
    assert detector.learner_.n_seen == 500


def test_duplicate_index_values():
    y = make_series(DAYS.repeat(2)[:2000])
    detector = AnomalyDetector().fit(y)
    assert detector.predict(y)["ilocs"].tolist() == [600]
    assert detector.predict(y[590:610])["ilocs"].tolist() == [10]


def test_infinite_values_are_anomalies():
    y = make_series(DAYS)
    y.iloc[700] = np.inf
    assert AnomalyDetector().fit_predict(y)["ilocs"].tolist() == [600, 700]
