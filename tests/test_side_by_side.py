"""A grid of settings as rows of one matrix: what each learner gives alone, to the bit."""

from __future__ import annotations

import warnings
from importlib import import_module

import numpy as np
import pytest

import holdfast as hf
from holdfast.datasets import make_abrupt
from holdfast.errors import BadInputError, HoldfastWarning
from holdfast.models import GaussianMixture, PoissonMixture
from holdfast.scheme import Constant, OneOverT, Power
from holdfast.tuning import BenefitAUC, grid, tune
from holdfast.tuning.side_by_side import of_one_kind, process_all

STEPS = (Constant(0.01), Constant(0.3), OneOverT(), Power(0.6, 3.0), Power(1.0, 0.0, 2.0))


def mixed(n: int) -> list[hf.StochasticApproximation]:
    """Learners that differ in numbers only: steps of every power, thresholds, warm-ups, first points."""
    rng = np.random.default_rng(n)
    return [
        hf.StochasticApproximation(
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
        warnings.simplefilter("ignore", HoldfastWarning)
        traces = process_all(learners, y)
        assert of_one_kind(learners)
        for learner, other, trace in zip(learners, alone, traces, strict=True):
            expected = other.process(y)
            np.testing.assert_array_equal(trace.score, expected.score)
            np.testing.assert_array_equal(trace.fates, expected.fates)
            np.testing.assert_array_equal(learner.state, other.state)


def test_what_differs_in_more_than_numbers_is_run_one_by_one() -> None:
    y = np.random.default_rng(0).poisson(4.0, 60).astype(float)
    kinds = [
        [hf.SRA(1, gamma=3.0, rho=0.1), hf.SRA(2, gamma=3.0, rho=0.1)],
        [hf.StochasticApproximation(PoissonMixture(), gamma=gamma) for gamma in (3.0, 4.0)],
    ]
    for learners in kinds:
        alone = [learner.clone().process(y).score for learner in learners]
        for trace, expected in zip(process_all(learners, y), alone, strict=True):
            np.testing.assert_array_equal(trace.score, expected)
        assert not of_one_kind(learners)


def test_tune_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = grid(n_components=[2], gamma=[1.0, 3.0, 6.0], rho=[0.003, 0.01, 0.03, 0.1] * 6)
    streams = [make_abrupt(n=1500, seed=seed) for seed in range(2)]
    one_by_one = tune(hf.SRA, settings, streams, BenefitAUC(100), restarts=2)
    monkeypatch.setattr(import_module("holdfast.tuning.tune"), "WORTH_COMPILING", 0)
    side_by_side = tune(hf.SRA, settings, streams, BenefitAUC(100), restarts=2)
    assert side_by_side.setting == one_by_one.setting
    np.testing.assert_array_equal(side_by_side.sweep.values, one_by_one.sweep.values)
    assert side_by_side.sweep.values.shape == (72, 2, 2)


def test_an_error_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("holdfast.tuning.tune"), "WORTH_COMPILING", 0)
    with pytest.raises(BadInputError) as caught:
        tune(hf.SRA, [{"gamma": 3.0}, {"gamma": -1.0}], make_abrupt(n=500, seed=0), BenefitAUC(100))
    assert any("-1.0" in note for note in caught.value.__notes__)
