"""limpet in sktime: change points and anomalies of series, fit, update and predict."""

import numpy as np
import pandas as pd
import pytest

import limpet as lp
from limpet.exceptions import LimpetWarning

pytest.importorskip("sktime")

from sktime.transformations.series.difference import Differencer

from limpet.adapters.sktime import AnomalyDetector, ChangePointDetector


def series(index=None, seed=2):
    """A change of level at row 1000, an outlier at row 600."""
    rng = np.random.default_rng(seed)
    values = np.repeat([20.0, 21.5], 1000) + rng.normal(0.0, 0.5, 2000)
    values[600] = 40.0
    return pd.Series(values, index=index)


DAYS = pd.date_range("2024-01-01", periods=2000, freq="h")


@pytest.mark.parametrize("index", [None, DAYS], ids=["range", "times"])
def test_events_are_those_of_the_learner(index):
    y = series(index)
    alarms = lp.Detector().process(y.to_numpy()).alarms
    changes = ChangePointDetector().fit_predict(y)
    assert changes["ilocs"].tolist() == [alarm.onset for alarm in alarms if alarm.kind == "change"]
    assert abs(changes["ilocs"][0] - 1000) < 5
    assert AnomalyDetector().fit_predict(y)["ilocs"].tolist() == [600]


@pytest.mark.parametrize("kind", [ChangePointDetector, AnomalyDetector])
def test_parts_return_the_results_of_the_whole(kind):
    y = series(DAYS)
    whole = kind().fit(y)
    pieces = kind().fit(y[:300])
    result = []
    for begin in range(300, 2000, 100):
        result += (pieces.update_predict(y[begin : begin + 100])["ilocs"] + begin).tolist()
    assert (pieces.learner_.state == whole.learner_.state).all()
    pd.testing.assert_frame_equal(pieces.predict(y), whole.predict(y))
    pd.testing.assert_frame_equal(pieces.transform_scores(y), whole.transform_scores(y))
    assert result == whole.predict(y)["ilocs"].tolist()


def test_unknown_rows_are_the_continuation_and_are_not_learned():
    y = series(DAYS)
    detector = ChangePointDetector().fit(y[:900])
    before = detector.learner_.state.copy()
    assert (detector.predict(y[900:])["ilocs"] + 900).tolist() == ChangePointDetector().fit_predict(y)["ilocs"].tolist()
    assert detector.predict(y)["ilocs"].tolist() == ChangePointDetector().fit_predict(y)["ilocs"].tolist()
    assert (detector.learner_.state == before).all()


def test_a_part_of_the_learned_rows_counts_from_its_first_row():
    detector = AnomalyDetector().fit(series(DAYS))
    assert detector.predict(series(DAYS)[590:610])["ilocs"].tolist() == [10]
    assert detector.predict(series(DAYS)[:500])["ilocs"].tolist() == []
    scores = detector.transform_scores(series(DAYS)[590:610])
    assert scores["scores"].argmax() == 10
    assert scores.index.equals(DAYS[590:610])


def test_another_series_with_the_same_index_is_not_taken_for_the_learned_one():
    detector = AnomalyDetector().fit(series())
    other = pd.Series(np.full(100, 21.5) + np.random.default_rng(9).normal(0.0, 0.5, 100))
    other[40] = 90.0
    assert detector.predict(other)["ilocs"].tolist() == [40]


def test_a_change_noticed_here_that_began_before_is_at_the_first_row():
    y = series(DAYS)
    alarm = next(alarm for alarm in lp.Detector().process(y.to_numpy()).alarms if alarm.kind == "change")
    assert alarm.row > alarm.onset
    detector = ChangePointDetector().fit(y[: alarm.row])
    assert detector.predict(y[alarm.row :])["ilocs"].tolist() == [0]


def test_several_variables_with_gaps():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(1000, 2)), columns=["a", "b"])
    table.loc[500:, "b"] += 5.0
    table.loc[::7, "a"] = np.nan
    detector = ChangePointDetector().fit(table)
    assert detector.predict(table)["ilocs"].tolist() == [pytest.approx(500, abs=2)]
    assert detector.trace_.alarms[0].variables == ("b",)


def test_learned_rows_are_not_learned_twice():
    y = series(DAYS)
    detector = ChangePointDetector().fit(y[:500])
    detector.update(y[400:600])
    assert detector.learner_.n_seen == 600


def test_behind_a_transformer_and_as_labels():
    y = series().cumsum()
    pipeline = Differencer() * ChangePointDetector()
    assert abs(pipeline.fit_predict(y)["ilocs"][0] - 1000) < 5
    labels = ChangePointDetector().fit_transform(series())["labels"]
    assert np.flatnonzero(labels).tolist() == ChangePointDetector().fit_predict(series())["ilocs"].tolist()
    assert AnomalyDetector().fit_transform(series())["labels"].tolist().count(1) == 1


def test_arrays_come_one_after_another():
    values = series().to_numpy()
    whole, pieces, result = ChangePointDetector().fit(values), ChangePointDetector().fit(values[:500]), []
    for begin in range(500, 2000, 100):
        result += (pieces.update_predict(values[begin : begin + 100])["ilocs"] + begin).tolist()
    assert pieces.learner_.n_seen == 2000
    assert (pieces.learner_.state == whole.learner_.state).all()
    assert result == whole.predict(values)["ilocs"].tolist()


def test_rows_with_a_learned_index_and_other_values_are_a_warning():
    detector = ChangePointDetector().fit(series(DAYS)[:500])
    with pytest.warns(LimpetWarning, match="100 rows are skipped"):
        detector.update(series(DAYS)[400:500] + 1.0)
    assert detector.learner_.n_seen == 500


def test_times_that_repeat_themselves():
    y = series(DAYS.repeat(2)[:2000])
    detector = AnomalyDetector().fit(y)
    assert detector.predict(y)["ilocs"].tolist() == [600]
    assert detector.predict(y[590:610])["ilocs"].tolist() == [10]


def test_what_is_infinite_is_an_anomaly():
    y = series(DAYS)
    y.iloc[700] = np.inf
    assert AnomalyDetector().fit_predict(y)["ilocs"].tolist() == [600, 700]
