"""A grid of settings as rows of one matrix: results equal single learners bit for bit."""

from __future__ import annotations

import math
import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import limpet as lp
from limpet.core import Constant, InverseTime, PolynomialDecay
from limpet.datasets import Stream, make_abrupt
from limpet.exceptions import InvalidInputError, LimpetWarning
from limpet.models import GaussianMixture, LinearRegression, PoissonMixture
from limpet.tuning import BenefitAUC, CannotRunError, LabelAUC, TraceObjective, TuningResult, grid, tune
from limpet.tuning.tune import run_batched, share_kernels

STEPS = (Constant(0.01), Constant(0.3), InverseTime(), PolynomialDecay(0.6, 3.0), PolynomialDecay(1.0, 0.0, 2.0))


def make_learners(n: int) -> list[lp.StochasticApproximation]:
    """Make learners that differ in numbers only: powers of step sizes, thresholds, warm-ups, n_init."""
    rng = np.random.default_rng(n)
    return [
        lp.StochasticApproximation(
            GaussianMixture(2),
            STEPS[i % len(STEPS)],
            gamma=float(rng.uniform(1.0, 6.0)),
            n_init=int(rng.integers(6, 20)),
            warmup=int(rng.integers(0, 60)),
        )
        for i in range(n)
    ]


@pytest.mark.parametrize("invalid", [None, np.nan, np.inf, 1e200], ids=str)
@pytest.mark.parametrize("n", [1, 3, 70])
def test_batched_learners_equal_single_learners(n: int, invalid: float | None) -> None:
    y = make_abrupt(n=400, seed=n).y.copy()
    if invalid is not None:
        y[250] = invalid
    learners = make_learners(n)
    single_learners = [learner.clone() for learner in learners]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        traces = run_batched(learners, y)
        assert share_kernels(learners)
        for learner, single_learner, trace in zip(learners, single_learners, traces, strict=True):
            expected = single_learner.process(y)
            np.testing.assert_array_equal(trace.score, expected.score)
            np.testing.assert_array_equal(trace.outcomes, expected.outcomes)
            np.testing.assert_array_equal(learner.state, single_learner.state)


def test_learners_with_other_kernels_run_sequentially() -> None:
    y = np.random.default_rng(0).poisson(4.0, 60).astype(float)
    kinds = [
        [lp.SRA(1, gamma=3.0, rho=0.1), lp.SRA(2, gamma=3.0, rho=0.1)],
        [lp.StochasticApproximation(PoissonMixture(), gamma=gamma) for gamma in (3.0, 4.0)],
    ]
    for learners in kinds:
        single_scores = [learner.clone().process(y).score for learner in learners]
        for trace, expected in zip(run_batched(learners, y), single_scores, strict=True):
            np.testing.assert_array_equal(trace.score, expected)
        assert not share_kernels(learners)


# `tune`: equal results, sequentially and batched


STREAMS = [make_abrupt(n=1500, seed=seed) for seed in range(2)]
GRID = grid(gamma=[1.0, 3.0, 6.0], rho=[0.003, 0.01, 0.03, 0.1] * 6)  # more than one batch
SHORT_GRID = grid(gamma=[2.0, 3.0, 4.0], rho=[0.01])
LABELLED = [Stream(stream.y, labels=stream.outliers, change_points=stream.change_points) for stream in STREAMS]


def tune_both_ways(
    monkeypatch: pytest.MonkeyPatch, learner: Any, settings: Any, streams: Any, objective: Any, **options: Any
) -> dict[str, Any]:
    """Return results or errors and the calls of `progress`, sequentially and batched."""
    outcomes = {}
    for path, threshold in (("one by one", 10**9), ("batched", 0)):
        monkeypatch.setattr(import_module("limpet.tuning.tune"), "BATCH_THRESHOLD_POINTS", threshold)
        calls: list[tuple[int, int]] = []
        try:
            outcome: Any = tune(
                learner, settings, streams, objective, progress=lambda *call, to=calls: to.append(call), **options
            )
        except BaseException as error:
            outcome = error
        outcomes[path] = outcome, calls
    return outcomes


def assert_same(outcomes: dict[str, Any]) -> TuningResult:
    """Check that both results are equal in everything, and return the first."""
    (first, calls), (second, second_calls) = outcomes.values()
    assert isinstance(first, TuningResult), first
    assert isinstance(second, TuningResult), second
    assert (second.setting, second.value) == (first.setting, first.value)
    assert second.sweep.settings == first.sweep.settings
    np.testing.assert_array_equal(second.sweep.values, first.sweep.values)
    assert list(second.sweep.cannot_run.items()) == list(first.sweep.cannot_run.items())
    total = math.prod(first.sweep.values.shape[:3])
    assert second_calls == calls == [(done, total) for done in range(1, total + 1)]
    return first


def raise_for_gamma_3(gamma: float = 3.0, **setting: Any) -> lp.SRA:
    """Raise CannotRunError for γ = 3."""
    if gamma == 3.0:
        raise CannotRunError("no")
    return lp.SRA(gamma=gamma, **setting)


class ShiftsFirstPoints(lp.SRA):
    """Overrides `process`."""

    def process(self, X: Any, y: Any = None, *, record: str | None = None) -> Any:
        return super().process(np.concatenate([X[:20] + 100.0, X[20:]]), y, record=record)


class WrappedLearner:
    """A learner that is no class of limpet."""

    def __init__(self, **setting: Any) -> None:
        self.inner = lp.SRA(**setting)

    def process(self, X: Any) -> Any:
        return self.inner.process(X)


class NegatedBenefitAUC(BenefitAUC):
    """A subclass that overrides `__call__`."""

    def __call__(self, learner: Any, stream: Stream) -> float:
        return -super().__call__(learner, stream)


class RejectedShare(TraceObjective):
    """A custom objective: the share of rejected points."""

    maximize = True
    stop = 700

    def evaluate_trace(self, trace: lp.Trace, stream: Stream) -> float:
        return float(trace.rejected.mean())


class CallableObjective:
    """An objective with `evaluate_trace` and `stop` that is no TraceObjective, with another `__call__`."""

    maximize, stop = True, None

    def evaluate_trace(self, trace: lp.Trace, stream: Stream) -> float:
        return 0.0

    def __call__(self, learner: Any, stream: Stream) -> float:
        return float(learner.process(stream.y).rejected.mean())


class TwoLabelAUCs(LabelAUC):
    """Two numbers for each learner; raises an error for a learner that rejects little."""

    def evaluate_trace(self, trace: lp.Trace, stream: Stream) -> Any:
        if trace.rejected.mean() < 0.05:
            raise CannotRunError("drops little")
        return [super().evaluate_trace(trace, stream), 1.0]


@pytest.mark.parametrize(
    ("learner", "settings", "objective", "options"),
    [
        (lp.SRA, GRID, BenefitAUC(100), {"restarts": 2}),
        (lp.SRA, GRID, LabelAUC(stop=8), {"workers": 1}),
        (lp.SRA, GRID, LabelAUC(start=20, stop=900), {"workers": 3}),
        (raise_for_gamma_3, SHORT_GRID, BenefitAUC(100), {}),
        (raise_for_gamma_3, GRID, BenefitAUC(100), {"restarts": 2}),
        (lp.SRA, GRID, TwoLabelAUCs(), {}),
        (lp.SRA, SHORT_GRID, NegatedBenefitAUC(100), {}),
        (lp.SRA, SHORT_GRID, RejectedShare(), {}),
        (lp.SRA, SHORT_GRID, CallableObjective(), {}),
        (ShiftsFirstPoints, SHORT_GRID, BenefitAUC(100), {}),
        (WrappedLearner, SHORT_GRID, BenefitAUC(100), {}),
        (lp.SRA, grid(n_components=[1, 2], gamma=3.0, rho=[0.01, 0.1]), BenefitAUC(100), {}),
        (lp.SRA, [*SHORT_GRID, {"gamma": 3.0, "rho": 0.01, "on_invalid": "raise"}], BenefitAUC(100), {}),
    ],
    ids=lambda given: getattr(given, "__name__", type(given).__name__),
)
def test_tune_gives_equal_results_both_ways(
    learner: Any, settings: Any, objective: Any, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = tune_both_ways(monkeypatch, learner, settings, LABELLED, objective, **options)
    if isinstance(objective, LabelAUC) and objective.stop == 8:  # nothing has started by then: NaN, which is an error
        (first, calls), (second, second_calls) = outcomes.values()
        assert isinstance(first, InvalidInputError)
        assert (type(second), str(second), second_calls) == (type(first), str(first), calls)
        return
    best = assert_same(outcomes)
    assert best.sweep.values.shape[:3] == (len(settings), 2, options.get("restarts", 1))
    if learner is raise_for_gamma_3:
        indexes = [index for index, setting in enumerate(settings) if setting["gamma"] == 3.0]
        assert best.sweep.cannot_run == dict.fromkeys(indexes, "no")
        assert np.flatnonzero(np.isnan(best.sweep.values).all(axis=(1, 2))).tolist() == indexes


class RaisesOnOneStream(BenefitAUC):
    """Raises on the second stream if a learner rejects little, and on the first one otherwise."""

    def evaluate_trace(self, trace: lp.Trace, stream: Stream) -> float:
        rejects_little = trace.rejected.mean() < 0.05
        if rejects_little and stream is LABELLED[1]:
            raise ZeroDivisionError("little")
        if not rejects_little and stream is LABELLED[0]:
            raise KeyError("much")
        return super().evaluate_trace(trace, stream)


def interrupt_at_gamma_3(gamma: float, **setting: Any) -> lp.SRA:
    """Raise KeyboardInterrupt for γ = 3."""
    if gamma == 3.0:
        raise KeyboardInterrupt
    return lp.SRA(gamma=gamma, **setting)


STREAM_WITH_NAN = Stream(np.where(np.arange(1500) == 700, np.nan, STREAMS[0].y[:, 0]), change_points=500)
SETTING = {"gamma": 3.0, "rho": 0.01}


@pytest.mark.parametrize(
    ("learner", "settings", "streams", "objective", "options"),
    [
        (lp.SRA, [SETTING, {"gamma": -1.0}, {"gamma": -2.0}], STREAMS, BenefitAUC(100), {}),
        (lp.SRA, [*GRID, {"gama": 1.0}], STREAMS, BenefitAUC(100), {"restarts": 2}),
        (lp.SRA, grid(gamma=[6.0, 1.0], rho=[0.01]), LABELLED, RaisesOnOneStream(100), {}),
        (lp.SRA, grid(gamma=[1.0, 6.0], rho=[0.01]), LABELLED, RaisesOnOneStream(100), {}),
        (lp.SRA, SHORT_GRID, STREAMS, LabelAUC(), {}),
        (lp.SRA, SHORT_GRID, Stream(STREAMS[0].y, change_points={"a": [9]}), BenefitAUC(100, stop=9000), {}),
        (lp.SRA, [SETTING, SETTING | {"on_invalid": "raise"}], STREAM_WITH_NAN, BenefitAUC(100), {}),
        (lp.SRA, [SETTING, {"model": LinearRegression()}], STREAMS, BenefitAUC(100), {}),
        (interrupt_at_gamma_3, SHORT_GRID, STREAMS, BenefitAUC(100), {}),
        (raise_for_gamma_3, [{}, {"rho": 0.1}], STREAMS, BenefitAUC(100), {}),
        (lp.SRA, SHORT_GRID, STREAMS, BenefitAUC(100), {"workers": 0}),
        (lp.SRA, SHORT_GRID, STREAMS, BenefitAUC(100), {"restarts": 0}),
    ],
)
def test_tune_raises_equal_errors_both_ways(
    learner: Any, settings: Any, streams: Any, objective: Any, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, _), (second, _) = tune_both_ways(monkeypatch, learner, settings, streams, objective, **options).values()
    assert isinstance(first, BaseException)
    assert (type(second), str(second)) == (type(first), str(first))
    assert getattr(second, "__notes__", []) == getattr(first, "__notes__", [])


@pytest.mark.parametrize("threshold", [0, 10**9])
def test_error_of_progress_stops_tune(threshold: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("limpet.tuning.tune"), "BATCH_THRESHOLD_POINTS", threshold)
    calls = []

    def stop(done: int, total: int) -> None:
        calls.append(done)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        tune(lp.SRA, SHORT_GRID, STREAMS, BenefitAUC(100), progress=stop)
    assert calls == [1, 2]
    assert not hasattr(caught.value, "__notes__")


def test_error_cancels_later_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("limpet.tuning.tune"), "BATCH_THRESHOLD_POINTS", 0)
    made = []

    def make(gamma: float) -> lp.SRA:
        made.append(gamma)
        return lp.SRA(gamma=gamma, rho=0.01)

    with pytest.raises(InvalidInputError):
        tune(make, grid(gamma=[3.0, -1.0, *range(4, 23)]), STREAMS * 10, BenefitAUC(100), workers=1)
    assert made.count(3.0) == 20  # an error of the first setting would be raised instead
    assert made.count(22) < 20
