"""A grid of settings as rows of one matrix: what each learner gives alone, to the bit."""

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
from limpet.tuning._batched import process_all, share_kernels

STEPS = (Constant(0.01), Constant(0.3), InverseTime(), PolynomialDecay(0.6, 3.0), PolynomialDecay(1.0, 0.0, 2.0))


def mixed(n: int) -> list[lp.StochasticApproximation]:
    """Learners that differ in numbers only: steps of every power, thresholds, warm-ups, first points."""
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


@pytest.mark.parametrize("spoilt", [None, np.nan, np.inf, 1e200], ids=str)
@pytest.mark.parametrize("n", [1, 3, 70])
def test_each_as_if_alone(n: int, spoilt: float | None) -> None:
    y = make_abrupt(n=400, seed=n).y.copy()
    if spoilt is not None:
        y[250] = spoilt
    learners = mixed(n)
    alone = [learner.clone() for learner in learners]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        traces = process_all(learners, y)
        assert share_kernels(learners)
        for learner, other, trace in zip(learners, alone, traces, strict=True):
            expected = other.process(y)
            np.testing.assert_array_equal(trace.score, expected.score)
            np.testing.assert_array_equal(trace.outcomes, expected.outcomes)
            np.testing.assert_array_equal(learner.state, other.state)


def test_what_differs_in_more_than_numbers_is_run_one_by_one() -> None:
    y = np.random.default_rng(0).poisson(4.0, 60).astype(float)
    kinds = [
        [lp.SRA(1, gamma=3.0, rho=0.1), lp.SRA(2, gamma=3.0, rho=0.1)],
        [lp.StochasticApproximation(PoissonMixture(), gamma=gamma) for gamma in (3.0, 4.0)],
    ]
    for learners in kinds:
        alone = [learner.clone().process(y).score for learner in learners]
        for trace, expected in zip(process_all(learners, y), alone, strict=True):
            np.testing.assert_array_equal(trace.score, expected)
        assert not share_kernels(learners)


# Of `tune`: the same, whichever way it takes


STREAMS = [make_abrupt(n=1500, seed=seed) for seed in range(2)]
GRID = grid(gamma=[1.0, 3.0, 6.0], rho=[0.003, 0.01, 0.03, 0.1] * 6)  # more than are run at once
FEW = grid(gamma=[2.0, 3.0, 4.0], rho=[0.01])
LABELLED = [Stream(stream.y, labels=stream.outliers, change_points=stream.change_points) for stream in STREAMS]


def both_ways(
    monkeypatch: pytest.MonkeyPatch, learner: Any, settings: Any, streams: Any, objective: Any, **how: Any
) -> dict[str, Any]:
    """What `tune` gives or raises one after another and side by side, and what it tells of its progress."""
    found = {}
    for way, worth in (("one by one", 10**9), ("side by side", 0)):
        monkeypatch.setattr(import_module("limpet.tuning.tune"), "WORTH_COMPILING", worth)
        calls: list[tuple[int, int]] = []
        try:
            answer: Any = tune(
                learner, settings, streams, objective, progress=lambda *call, to=calls: to.append(call), **how
            )
        except BaseException as error:
            answer = error
        found[way] = answer, calls
    return found


def assert_same(found: dict[str, Any]) -> TuningResult:
    """Both ways have an answer, and it is the same in everything; returns it."""
    (one, calls), (other, other_calls) = found.values()
    assert isinstance(one, TuningResult), one
    assert isinstance(other, TuningResult), other
    assert (other.setting, other.value) == (one.setting, one.value)
    assert other.sweep.settings == one.sweep.settings
    np.testing.assert_array_equal(other.sweep.values, one.sweep.values)
    assert list(other.sweep.cannot_run.items()) == list(one.sweep.cannot_run.items())
    total = math.prod(one.sweep.values.shape[:3])
    assert other_calls == calls == [(done, total) for done in range(1, total + 1)]
    return one


def no_three(gamma: float = 3.0, **setting: Any) -> lp.SRA:
    """Cannot be run with γ = 3."""
    if gamma == 3.0:
        raise CannotRunError("no")
    return lp.SRA(gamma=gamma, **setting)


class Patient(lp.SRA):
    """Has a `process` of its own: without the first rows."""

    def process(self, X: Any, y: Any = None, *, record: str | None = None) -> Any:
        return super().process(np.concatenate([X[:20] + 100.0, X[20:]]), y, record=record)


class Own:
    """A learner that is none of ours."""

    def __init__(self, **setting: Any) -> None:
        self.inner = lp.SRA(**setting)

    def process(self, X: Any) -> Any:
        return self.inner.process(X)


class Worse(BenefitAUC):
    """A subclass that is called in its own way."""

    def __call__(self, learner: Any, stream: Stream) -> float:
        return -super().__call__(learner, stream)


class Dropped(TraceObjective):
    """One of the user's own: the share of points that were dropped."""

    largest = True
    stop = 700

    def judge(self, trace: lp.Trace, stream: Stream) -> float:
        return float(trace.rejected.mean())


class Duck:
    """Has `judge` and `stop`, but is called in its own way."""

    largest, stop = True, None

    def judge(self, trace: lp.Trace, stream: Stream) -> float:
        return 0.0

    def __call__(self, learner: Any, stream: Stream) -> float:
        return float(learner.process(stream.y).dropped.mean())


class Pair(LabelAUC):
    """Two numbers for each learner; of a learner that drops little, it cannot tell."""

    def judge(self, trace: lp.Trace, stream: Stream) -> Any:
        if trace.rejected.mean() < 0.05:
            raise CannotRunError("drops little")
        return [super().evaluate_trace(trace, stream), 1.0]


@pytest.mark.parametrize(
    ("learner", "settings", "objective", "how"),
    [
        (lp.SRA, GRID, BenefitAUC(100), {"restarts": 2}),
        (lp.SRA, GRID, LabelAUC(stop=8), {"workers": 1}),
        (lp.SRA, GRID, LabelAUC(start=20, stop=900), {"workers": 3}),
        (no_three, FEW, BenefitAUC(100), {}),
        (no_three, GRID, BenefitAUC(100), {"restarts": 2}),
        (lp.SRA, GRID, Pair(), {}),
        (lp.SRA, FEW, Worse(100), {}),
        (lp.SRA, FEW, Dropped(), {}),
        (lp.SRA, FEW, Duck(), {}),
        (Patient, FEW, BenefitAUC(100), {}),
        (Own, FEW, BenefitAUC(100), {}),
        (lp.SRA, grid(n_components=[1, 2], gamma=3.0, rho=[0.01, 0.1]), BenefitAUC(100), {}),
        (lp.SRA, [*FEW, {"gamma": 3.0, "rho": 0.01, "on_invalid": "raise"}], BenefitAUC(100), {}),
    ],
    ids=lambda given: getattr(given, "__name__", type(given).__name__),
)
def test_tune_finds_the_same_both_ways(
    learner: Any, settings: Any, objective: Any, how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = both_ways(monkeypatch, learner, settings, LABELLED, objective, **how)
    if isinstance(objective, LabelAUC) and objective.stop == 8:  # nothing has started by then: NaN, and that is told
        (one, calls), (other, other_calls) = found.values()
        assert isinstance(one, InvalidInputError)
        assert (type(other), str(other), other_calls) == (type(one), str(one), calls)
        return
    best = assert_same(found)
    assert best.sweep.values.shape[:3] == (len(settings), 2, how.get("restarts", 1))
    if learner is no_three:
        three = [place for place, setting in enumerate(settings) if setting["gamma"] == 3.0]
        assert best.sweep.cannot_run == dict.fromkeys(three, "no")
        assert np.flatnonzero(np.isnan(best.sweep.values).all(axis=(1, 2))).tolist() == three


class Fussy(BenefitAUC):
    """Fails on the second stream with one kind of learner, on the first one with another."""

    def judge(self, trace: lp.Trace, stream: Stream) -> float:
        little = trace.rejected.mean() < 0.05
        if little and stream is LABELLED[1]:
            raise ZeroDivisionError("little")
        if not little and stream is LABELLED[0]:
            raise KeyError("much")
        return super().evaluate_trace(trace, stream)


def interrupted(gamma: float, **setting: Any) -> lp.SRA:
    """Ctrl-C at γ = 3."""
    if gamma == 3.0:
        raise KeyboardInterrupt
    return lp.SRA(gamma=gamma, **setting)


HOLED = Stream(np.where(np.arange(1500) == 700, np.nan, STREAMS[0].y[:, 0]), change_points=500)
SETTING = {"gamma": 3.0, "rho": 0.01}


@pytest.mark.parametrize(
    ("learner", "settings", "streams", "objective", "how"),
    [
        (lp.SRA, [SETTING, {"gamma": -1.0}, {"gamma": -2.0}], STREAMS, BenefitAUC(100), {}),
        (lp.SRA, [*GRID, {"gama": 1.0}], STREAMS, BenefitAUC(100), {"restarts": 2}),
        (lp.SRA, grid(gamma=[6.0, 1.0], rho=[0.01]), LABELLED, Fussy(100), {}),
        (lp.SRA, grid(gamma=[1.0, 6.0], rho=[0.01]), LABELLED, Fussy(100), {}),
        (lp.SRA, FEW, STREAMS, LabelAUC(), {}),
        (lp.SRA, FEW, Stream(STREAMS[0].y, change_points={"a": [9]}), BenefitAUC(100, stop=9000), {}),
        (lp.SRA, [SETTING, SETTING | {"on_invalid": "raise"}], HOLED, BenefitAUC(100), {}),
        (lp.SRA, [SETTING, {"model": LinearRegression()}], STREAMS, BenefitAUC(100), {}),
        (interrupted, FEW, STREAMS, BenefitAUC(100), {}),
        (no_three, [{}, {"rho": 0.1}], STREAMS, BenefitAUC(100), {}),
        (lp.SRA, FEW, STREAMS, BenefitAUC(100), {"workers": 0}),
        (lp.SRA, FEW, STREAMS, BenefitAUC(100), {"restarts": 0}),
    ],
)
def test_tune_fails_the_same_both_ways(
    learner: Any, settings: Any, streams: Any, objective: Any, how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one, _), (other, _) = both_ways(monkeypatch, learner, settings, streams, objective, **how).values()
    assert isinstance(one, BaseException)
    assert (type(other), str(other)) == (type(one), str(one))
    assert getattr(other, "__notes__", []) == getattr(one, "__notes__", [])


@pytest.mark.parametrize("worth", [0, 10**9])
def test_an_error_of_progress_ends_it(worth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("limpet.tuning.tune"), "WORTH_COMPILING", worth)
    calls = []

    def stop(done: int, total: int) -> None:
        calls.append(done)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        tune(lp.SRA, FEW, STREAMS, BenefitAUC(100), progress=stop)
    assert calls == [1, 2]
    assert not hasattr(caught.value, "__notes__")


def test_what_comes_after_an_error_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("limpet.tuning.tune"), "WORTH_COMPILING", 0)
    made = []

    def make(gamma: float) -> lp.SRA:
        made.append(gamma)
        return lp.SRA(gamma=gamma, rho=0.01)

    with pytest.raises(InvalidInputError):
        tune(make, grid(gamma=[3.0, -1.0, *range(4, 23)]), STREAMS * 10, BenefitAUC(100), workers=1)
    assert made.count(3.0) == 20  # an error of the first setting would go before the one that is there
    assert made.count(22) < 20
