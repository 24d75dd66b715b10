"""Sweeps and the selection of settings."""

import math
import threading
from functools import partial

import numpy as np
import pandas as pd
import pytest

import limpet as lp
from limpet.datasets import Stream, make_abrupt, make_gradual
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.metrics import benefit_auc, segment_mse
from limpet.tuning import BenefitAUC, CannotRunError, LabelAUC, MeanError, grid, select_best, sweep, tune


def compute_auc(setting, stream, restart):
    scores = lp.SRA(2, norm="mean", seed=restart, **setting).process(stream.y).change_score
    return benefit_auc(scores, stream.change_points, 100)


def test_a_sweep_is_the_same_for_any_number_of_workers():
    settings = grid(gamma=[1.0, 3.0, 15.0], beta=[0.1, 0.5], M=[5.0])
    streams = [make_abrupt(n=2000, seed=seed) for seed in range(3)]
    sequential = sweep(settings, streams, compute_auc, restarts=2, workers=1)
    parallel = sweep(settings, streams, compute_auc, restarts=2, workers=4)
    assert sequential.values.shape == (6, 3, 2)
    assert np.array_equal(sequential.values, parallel.values)
    assert sequential.values[4, 1, 1] == compute_auc(settings[4], streams[1], 1)


def test_workers_run_in_parallel():
    barrier = threading.Barrier(2, timeout=20)

    def evaluate(setting, stream, restart):
        barrier.wait()  # blocks a single thread
        return 1.0

    assert sweep([0, 1], [0], evaluate, workers=2).values.sum() == 2.0


def test_progress_is_reported_in_order():
    calls = []
    sweep([1, 2], [3, 4, 5], lambda *_: 0.0, restarts=2, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(n, 12) for n in range(1, 13)]


def test_setting_that_cannot_run_is_reported_and_not_selected():
    def evaluate(setting, stream, restart):
        if setting == "b" and stream == 1:
            raise CannotRunError("too short")
        return np.array([1.0 + (setting == "b"), 5.0])

    result = sweep(["a", "b", "c"], [0, 1], evaluate)
    assert result.cannot_run == {1: "too short"}
    assert np.isnan(result.values[1]).all()
    assert np.array_equal(result.values[0, :, 0], [[1.0, 5.0], [1.0, 5.0]])
    assert select_best(result.values[..., 0]) == 0


def test_another_error_stops_the_sweep():
    with pytest.raises(ZeroDivisionError):
        sweep([1, 0], [1], lambda setting, stream, restart: stream / setting)


def test_invalid_input_raises():
    with pytest.raises(InvalidInputError, match="at least one setting"):
        sweep([], [1], lambda *_: 0.0)
    with pytest.raises(InvalidInputError, match="evaluate: must always return the same shape"):
        sweep([1, 2], [1], lambda setting, *_: np.zeros(setting))
    with pytest.raises(InvalidInputError, match="values: must have a setting"):
        select_best([[np.nan], [np.nan]])
    with pytest.raises(TypeError, match="learner: must accept seed="):
        tune(lambda rho: lp.SRA(rho=rho), [{"rho": 0.1}], [make_abrupt(n=2000)], MeanError(), restarts=2)


def test_warnings_about_the_data_are_silent_in_a_sweep():
    stream = make_abrupt(n=4000, seed=0)
    sweep([{"gamma": 1e-3, "rho": 0.1}], [stream], compute_auc)  # rejects all points; a warning would be an error here


def test_tune_selects_the_best_by_each_objective():
    streams = [make_gradual(n=4000, seed=seed) for seed in range(2)]
    settings = grid(n_components=[2], norm=["mean"], gamma=[1.0, 3.0, 15.0], rho=[0.01])
    by_error = tune(lp.SRA, settings, streams, MeanError())
    errors = [
        np.mean([segment_mse(lp.SRA(**s).process(t.y, record="means").means, t.means, 2000).S_eval for t in streams])
        for s in settings
    ]
    assert by_error.setting == settings[int(np.argmin(errors))]
    assert by_error.value == pytest.approx(min(errors))
    by_auc = tune(lp.SRA, settings, streams, BenefitAUC(100, stop=3000))
    areas = [
        np.mean([benefit_auc(lp.SRA(**s).process(t.y[:3000]).change_score, 2000, 100) for t in streams])
        for s in settings
    ]
    assert by_auc.value == pytest.approx(max(areas))


def test_labels_and_annotators():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(500, 1))
    labels = np.zeros(500, int)
    labels[[300, 400]] = 1
    y[labels == 1] = 9.0
    best = tune(lp.SRA, [{"rho": 0.01}], [Stream(y, labels=labels)], LabelAUC(start=100))
    assert best.value == 1.0
    with pytest.raises(InvalidInputError, match="no labels"):
        tune(lp.SRA, [{"rho": 0.01}], [Stream(y)], LabelAUC())
    with pytest.raises(InvalidInputError, match="change_points by several annotators"):
        tune(lp.SRA, [{"rho": 0.01}], [Stream(y, change_points={"a": [100]})], BenefitAUC(20))
    with pytest.raises(InvalidInputError, match="true means"):
        tune(lp.SRA, [{"rho": 0.01}], [Stream(y)], MeanError())


VALUES = np.random.default_rng(0).normal(size=500)
SHORT_STREAM = Stream(VALUES, change_points=300, name="flow")
SETTING = {"rho": 0.01}
TWO_SETTINGS = [{"rho": 0.01}, {"rho": 0.1}]


def tune_with_defaults(**overrides):
    arguments = {
        "learner": lp.SRA,
        "settings": [SETTING],
        "streams": [SHORT_STREAM],
        "objective": BenefitAUC(20),
    } | overrides
    return tune(**arguments)


def sweep_with_defaults(**overrides):
    return sweep(**({"settings": [1], "streams": [2], "evaluate": lambda *_: 0.0} | overrides))


@pytest.mark.parametrize("collect", [list, tuple, iter, lambda items: (item for item in items), np.array])
def test_settings_and_streams_may_be_any_iterable(collect):
    result = sweep(collect([2.0, 3.0]), collect([10.0, 20.0]), lambda setting, stream, _: setting * stream)
    assert result.values[:, :, 0].tolist() == [[20.0, 40.0], [30.0, 60.0]]
    assert result.settings[1] == 3.0
    expected = tune_with_defaults(settings=TWO_SETTINGS, streams=[SHORT_STREAM, SHORT_STREAM])
    tuned = tune_with_defaults(settings=collect(TWO_SETTINGS), streams=collect([SHORT_STREAM, SHORT_STREAM]))
    assert tuned.setting == expected.setting
    assert np.array_equal(tuned.sweep.values, expected.sweep.values)


def test_single_stream_needs_no_list():
    assert tune_with_defaults(streams=SHORT_STREAM).value == tune_with_defaults(streams=[SHORT_STREAM]).value
    assert sweep([1], SHORT_STREAM, lambda setting, stream, _: len(stream)).values.item() == 500


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"streams": VALUES}, r"streams: .*got ndarray\. .*Stream\(y, change_points=\[…\]\)"),
        ({"streams": [VALUES]}, r"got ndarray at index 0\. .*Stream\(y, change_points"),
        ({"streams": [SHORT_STREAM, None]}, "got NoneType at index 1"),
        ({"streams": pd.DataFrame({"a": VALUES})}, r"got DataFrame\. .*Stream"),
        ({"streams": [pd.DataFrame({"a": VALUES})]}, "got DataFrame at index 0"),
        ({"streams": {"flow": SHORT_STREAM}}, r"got dict\. .*Stream"),
        ({"streams": "flow.csv"}, r"got str\. .*Stream"),
        ({"streams": 3}, r"got int\. .*Stream"),
        ({"streams": []}, "at least one stream"),
        ({"settings": SETTING}, r"settings: .* got the dict {'rho': 0.01}. Write grid\(…\) or \[setting\]"),
        ({"settings": [SETTING, 0.1]}, "settings: must be dicts, got 0.1 at index 1"),
        ({"settings": "rho"}, "settings: must be a list, got 'rho'"),
        ({"settings": None}, "settings: must be a list, got None"),
        ({"settings": iter(())}, "at least one setting"),
        ({"objective": MeanError}, r"objective: .*the class MeanError\. Write MeanError\(…\)"),
        ({"objective": "auc"}, "objective: must be .*`maximize`.* got 'auc'"),
        ({"objective": lambda learner, stream: 0.0}, "objective: must be .*`maximize`.* got <function"),
        ({"learner": lp.SRA(rho=0.1)}, r"learner: must be a class .* got the learner SRA\(rho=0.1\). Pass SRA,"),
        ({"learner": "SRA"}, "learner: must be a class .* got 'SRA'"),
        ({"restarts": "2"}, "restarts: must be"),
        ({"restarts": 2, "settings": [{"seed": 1}]}, "settings: .*seed"),
        ({"workers": 0}, "workers: must be"),
        ({"progress": "bar"}, "progress: must be a function"),
    ],
)
def test_invalid_arguments_of_tune_raise(overrides, message):
    with pytest.raises(InvalidInputError, match=message):
        tune_with_defaults(**overrides)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        *[({"workers": wrong}, "workers: must be") for wrong in (0, -1, 2.5, "2", True)],
        *[({"restarts": wrong}, "restarts: must be") for wrong in (0, -1, 2.5, "2", None)],
        ({"progress": 3}, r"progress: must be a function \(done, total\), got 3"),
        ({"evaluate": None}, r"evaluate: must be a function \(setting, stream, restart\) → number, got None"),
        ({"settings": {"rho": 1}}, r"settings: must be a list, got {'rho': 1}. .*\[setting\]"),
        ({"settings": 3}, "settings: must be a list, got 3"),
        ({"streams": "ab"}, "streams: must be a list, got 'ab'"),
        ({"streams": np.zeros(0)}, "at least one stream"),
    ],
)
def test_invalid_arguments_of_sweep_raise(overrides, message):
    with pytest.raises(InvalidInputError, match=message):
        sweep_with_defaults(**overrides)


def test_numpy_integers_are_accepted():
    assert sweep_with_defaults(workers=np.int64(2), restarts=np.int32(3)).values.shape == (1, 1, 3)


@pytest.mark.parametrize("result", [None, "0.5", [1.0, None], [[1.0], [1.0, 2.0]], 1j, object()])
def test_evaluation_without_a_number_raises(result):
    with pytest.raises(InvalidInputError, match="evaluate: must return a number") as caught:
        sweep([{"rho": 0.1}], [SHORT_STREAM], lambda *_: result)
    assert "settings[0] = {'rho': 0.1}" in caught.value.__notes__[0]


@pytest.mark.parametrize("result", [True, np.float32(1.0), 1, np.array(1), pd.Series([1.0, 1.0])])
def test_evaluation_may_return_numbers_of_any_type(result):
    assert (sweep_with_defaults(evaluate=lambda *_: result).values == 1.0).all()


@pytest.mark.parametrize(("invalid", "kind"), [({"gamma": -1.0}, InvalidInputError), ({"gama": 1.0}, TypeError)])
def test_error_keeps_its_type_and_has_a_note_of_its_setting(invalid, kind):
    with pytest.raises(kind) as caught:
        tune_with_defaults(settings=[SETTING, invalid], streams=[SHORT_STREAM, SHORT_STREAM], workers=1)
    assert caught.value.__notes__ == [f"settings[1] = {invalid}, streams[0] 'flow', restart 0"]


def test_error_of_progress_has_no_note():
    with pytest.raises(ZeroDivisionError) as caught:
        sweep_with_defaults(progress=lambda done, total: 1 / 0)
    assert not hasattr(caught.value, "__notes__")


def seeded_by_keyword(**setting):
    return lp.SRA(**setting)


def seeded_by_position(rho, seed, /):
    return lp.SRA(rho=rho, seed=seed)


def test_learners_that_accept_a_seed():
    two = [{"rho": 0.01, "n_components": 2}]
    learners = (lp.SRA, seeded_by_keyword, partial(lp.SRA, seed=7))
    values = [tune_with_defaults(learner=item, settings=two, restarts=3).sweep.values for item in learners]
    assert all(np.array_equal(item, values[0]) for item in values)
    assert len(np.unique(values[0])) > 1
    for item in (lambda rho: lp.SRA(rho=rho), seeded_by_position):
        with pytest.raises(InvalidTypeError, match="learner: must accept seed="):
            tune_with_defaults(learner=item, restarts=2)
    with pytest.raises(TypeError, match="1 or 3 arguments"):  # it shows no signature; the call reports it
        tune_with_defaults(learner=type, restarts=2)


@pytest.mark.parametrize("item", [3.0, "mean", None, math.inf, np.array(3.0), {"a": 1, "b": 2}, lp.SRA])
def test_value_that_is_no_list_is_one_choice(item):
    assert grid(gamma=[1.0, 2.0], other=item) == [{"gamma": 1.0, "other": item}, {"gamma": 2.0, "other": item}]


@pytest.mark.parametrize("choices", [(1, 2), range(1, 3), np.array([1, 2]), (n for n in (1, 2)), {1: 0, 2: 0}.keys()])
def test_iterable_is_several_choices(choices):
    assert grid(n_components=choices) == [{"n_components": 1}, {"n_components": 2}]


@pytest.mark.parametrize("empty", [[], (), np.zeros(0), iter(())])
def test_empty_list_of_choices_raises(empty):
    with pytest.raises(InvalidInputError, match="gamma: must be at least one value"):
        grid(rho=[0.1], gamma=empty)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *[
            (partial(BenefitAUC, wrong), "tolerance: must be")
            for wrong in (0, -1, math.inf, math.nan, "100", True, None)
        ],
        *[(partial(LabelAUC, start=wrong), "start: must be") for wrong in (-1, 0.5)],
        (partial(BenefitAUC, 5, start=-1), "start: must be"),
        *[(partial(LabelAUC, stop=wrong), "stop: must be") for wrong in (-1, 2.0, "9", True)],
        (partial(BenefitAUC, 5, stop=-1), "stop: must be"),
        (partial(BenefitAUC, 5, 9, 9), "start, stop: must be start < stop, got 9, 9"),
        (partial(LabelAUC, 9, 3), "start, stop: must be start < stop, got 9, 3"),
        (partial(LabelAUC, stop=0), "start, stop: must be start < stop, got None, 0"),
        (partial(BenefitAUC, 5, change_points=[]), "change_points: must be"),
        (partial(BenefitAUC, 5, change_points=[1.5]), "change_points: must be"),
        (partial(BenefitAUC, 5, change_points={"a": [1]}), "change_points: must be"),
        (partial(MeanError, "S_all"), "segment: must be S_eval, S_bc, S_ac or S_tot, got 'S_all'"),
        (partial(MeanError, None), "segment: must be"),
    ],
)
def test_objective_is_validated_on_construction(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def make_stream_with_means(n, K=1, changes=1200):
    return Stream(np.resize(VALUES, n), np.zeros((n, K, 1)), change_points=changes, name="flow")


@pytest.mark.parametrize(
    ("objective", "stream", "message"),
    [
        (MeanError(), make_stream_with_means(900, changes=600), "flow: .* after row 1000 .* got .*600.* in 900 rows"),
        (MeanError(), make_stream_with_means(1500, changes=1000), "flow: .* after row 1000"),
        (MeanError(), make_stream_with_means(1500, changes=1499), "flow: .* and two rows from it on"),
        (MeanError(), make_stream_with_means(1500, changes=[]), "flow: .* got change_points \\[\\]"),
        (MeanError(), make_stream_with_means(1500, changes={"a": 1200}), "flow: .* got change_points {'a'"),
        (MeanError(), make_stream_with_means(1500, K=2), "n_components: must be 2, as flow has .* got 1"),
        (MeanError(), SHORT_STREAM, "flow: MeanError requires the true means"),
        (BenefitAUC(20), Stream(VALUES, name="flow"), r"flow: no change points. Use Stream\(y, change_points"),
        (BenefitAUC(20, stop=501), SHORT_STREAM, "must be within the 500 rows of flow, got start=None, stop=501"),
        (BenefitAUC(20, start=500), SHORT_STREAM, "start, stop: .* rows of flow"),
        (LabelAUC(start=500), Stream(VALUES, labels=VALUES > 2, name="flow"), "start, stop: .* rows of flow"),
        (LabelAUC(), SHORT_STREAM, "flow: no labels"),
    ],
)
def test_unsuitable_stream_raises(objective, stream, message):
    with pytest.raises(InvalidInputError, match=message):
        tune_with_defaults(streams=stream, objective=objective)


def test_the_shortest_stream_for_the_mean_error():
    assert np.isfinite(
        tune_with_defaults(streams=make_stream_with_means(1003, changes=1001), objective=MeanError("S_ac")).value
    )


def test_change_points_of_the_objective_override_those_of_the_stream():
    plain = Stream(VALUES, name="flow")
    for changes in (300, [300], np.array([300])):
        assert (
            tune_with_defaults(streams=plain, objective=BenefitAUC(20, change_points=changes)).value
            == tune_with_defaults().value
        )


def fail_to_run(**setting):
    raise CannotRunError("too short")


def test_errors_if_no_setting_can_be_selected():
    with pytest.raises(InvalidInputError, match="NaN in each of 2 settings, in 3 of 4 values"):
        select_best([[np.nan, np.nan], [np.nan, 1.0]])
    without_labels = Stream(VALUES, labels=np.zeros(500, int), name="quiet")
    with_labels = Stream(VALUES, labels=VALUES > 2, name="loud")
    with pytest.raises(InvalidInputError, match=r"NaN in each of 2 .* on 1 of 2 streams, such as streams\[1\] 'quiet'"):
        tune_with_defaults(settings=TWO_SETTINGS, streams=[with_labels, without_labels], objective=LabelAUC())
    with pytest.raises(InvalidInputError, match=r"2 cannot run, such as {'rho': 0.01}: too short"):
        tune_with_defaults(learner=fail_to_run, settings=TWO_SETTINGS)
    values = iter([1.0, np.nan, np.nan, 1.0])

    class NanOnAlternateStreams:
        maximize = True

        def __call__(self, learner, stream):
            return next(values)

    with pytest.raises(InvalidInputError, match="lacks a value on another stream"):
        tune_with_defaults(
            settings=TWO_SETTINGS, streams=[SHORT_STREAM, SHORT_STREAM], objective=NanOnAlternateStreams(), workers=1
        )


@pytest.mark.parametrize("values", [["a"], [[1.0], [1.0, 2.0]], sweep_with_defaults(), 3.0, []])
def test_select_best_requires_numbers(values):
    with pytest.raises(InvalidInputError, match="values: must"):
        select_best(values)
    with pytest.raises(InvalidInputError, match="maximize: must be"):
        select_best([1.0], "least")
