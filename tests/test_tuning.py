"""Sweeps and what is chosen from them."""

import threading

import numpy as np
import pytest

import holdfast as hf
from holdfast.datasets import Stream, make_abrupt, make_gradual
from holdfast.errors import BadInputError
from holdfast.metrics import benefit_auc, segment_mse
from holdfast.tuning import BenefitAUC, CannotRunError, LabelAUC, MeanError, choose, grid, sweep, tune


def auc_of(setting, stream, restart):
    scores = hf.SRA(2, norm="mean", seed=restart, **setting).process(stream.y).change_score
    return benefit_auc(scores, stream.change_points, 100)


def test_a_sweep_is_the_same_for_any_number_of_workers():
    settings = grid(gamma=[1.0, 3.0, 15.0], beta=[0.1, 0.5], M=[5.0])
    streams = [make_abrupt(n=2000, seed=seed) for seed in range(3)]
    alone = sweep(settings, streams, auc_of, restarts=2, workers=1)
    together = sweep(settings, streams, auc_of, restarts=2, workers=4)
    assert alone.values.shape == (6, 3, 2)
    assert np.array_equal(alone.values, together.values)
    assert alone.values[4, 1, 1] == auc_of(settings[4], streams[1], 1)


def test_several_workers_are_really_used():
    meeting = threading.Barrier(2, timeout=20)

    def evaluate(setting, stream, restart):
        meeting.wait()  # nobody passes alone
        return 1.0

    assert sweep([0, 1], [0], evaluate, workers=2).values.sum() == 2.0


def test_progress_is_told_in_order():
    told = []
    sweep([1, 2], [3, 4, 5], lambda *_: 0.0, restarts=2, progress=lambda done, total: told.append((done, total)))
    assert told == [(n, 12) for n in range(1, 13)]


def test_a_setting_that_cannot_run_is_reported_and_never_chosen():
    def evaluate(setting, stream, restart):
        if setting == "b" and stream == 1:
            raise CannotRunError("too short")
        return np.array([1.0 + (setting == "b"), 5.0])

    result = sweep(["a", "b", "c"], [0, 1], evaluate)
    assert result.cannot_run == {1: "too short"}
    assert np.isnan(result.values[1]).all()
    assert np.array_equal(result.values[0, :, 0], [[1.0, 5.0], [1.0, 5.0]])
    assert choose(result.values[..., 0]) == 0


def test_another_error_stops_the_sweep():
    with pytest.raises(ZeroDivisionError):
        sweep([1, 0], [1], lambda setting, stream, restart: stream / setting)


def test_bad_input():
    with pytest.raises(BadInputError, match="at least one setting"):
        sweep([], [1], lambda *_: 0.0)
    with pytest.raises(BadInputError, match="one shape"):
        sweep([1, 2], [1], lambda setting, *_: np.zeros(setting))
    with pytest.raises(BadInputError, match="at least one setting with a value"):
        choose([[np.nan], [np.nan]])
    with pytest.raises(TypeError, match="takes no seed"):
        tune(lambda rho: hf.SRA(rho=rho), [{"rho": 0.1}], [make_abrupt(n=2000)], MeanError(), restarts=2)


def test_warnings_about_the_data_are_silent_in_a_sweep():
    stream = make_abrupt(n=4000, seed=0)
    sweep([{"gamma": 1e-3, "rho": 0.1}], [stream], auc_of)  # drops everything; a warning would be an error here


def test_tune_takes_the_best_by_each_objective():
    streams = [make_gradual(n=4000, seed=seed) for seed in range(2)]
    settings = grid(n_components=[2], norm=["mean"], gamma=[1.0, 3.0, 15.0], rho=[0.01])
    by_error = tune(hf.SRA, settings, streams, MeanError())
    errors = [
        np.mean([segment_mse(hf.SRA(**s).process(t.y, record="means").means, t.means, 2000).S_eval for t in streams])
        for s in settings
    ]
    assert by_error.setting == settings[int(np.argmin(errors))]
    assert by_error.value == pytest.approx(min(errors))
    by_auc = tune(hf.SRA, settings, streams, BenefitAUC(100, stop=3000))
    areas = [
        np.mean([benefit_auc(hf.SRA(**s).process(t.y[:3000]).change_score, 2000, 100) for t in streams])
        for s in settings
    ]
    assert by_auc.value == pytest.approx(max(areas))


def test_labels_and_annotators():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(500, 1))
    labels = np.zeros(500, int)
    labels[[300, 400]] = 1
    y[labels == 1] = 9.0
    best = tune(hf.SRA, [{"rho": 0.01}], [Stream(y, labels=labels)], LabelAUC(start=100))
    assert best.value == 1.0
    with pytest.raises(BadInputError, match="no labels"):
        tune(hf.SRA, [{}], [Stream(y)], LabelAUC())
    with pytest.raises(BadInputError, match="several annotators"):
        tune(hf.SRA, [{}], [Stream(y, change_points={"a": [100]})], BenefitAUC(20))
    with pytest.raises(BadInputError, match="true means"):
        tune(hf.SRA, [{}], [Stream(y)], MeanError())
