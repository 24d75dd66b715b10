"""Parameters of the learners: valid ones, their effects, and errors."""

import copy
import math
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

import limpet as lp
from exponential import Exponential
from limpet import testing
from limpet.core import Constant, InverseTime, kernel
from limpet.exceptions import InvalidInputError, LimpetWarning, NotFittedError
from limpet.learners.results import AUTO_RESULT_FIELDS, RESULT_FIELDS
from limpet.models import ConjugatePrior, GaussianMixture, LinearRegression, PoissonMixture

Y = np.random.default_rng(0).normal(size=300)


def test_parameters_of_the_paper_give_its_step_size():
    learner = lp.SRA(n_components=2, gamma=3.0, beta=0.1, M=5.0, norm="mean")
    assert round(learner.step_size.rho, 5) == 0.01163
    assert lp.SRA(half_life=69).step_size == Constant.from_half_life(69)
    assert lp.SRA(gamma=3.0).step_size == Constant(0.01)


@pytest.mark.parametrize(
    "settings",
    [
        {"rho": 0.1, "half_life": 10},
        {"rho": 0.1, "beta": 0.1, "M": 5.0, "gamma": 3.0},
        {"beta": 0.1, "M": 5.0},
        {"beta": 0.1, "gamma": 3.0},
        {"norm": "mean"},
        {"gamma": 0.0},
        {"gamma": -1.0},
        {"gamma": math.nan},
        {"rho": 0.0},
        {"rho": 2.0},
        {"n_components": 0},
        {"n_components": 1.5},
        {"n_components": True},
        {"covariance": "round"},
        {"n_init": 0},
        {"warmup": -1},
        {"seed": -1},
        {"reject_rate": 0.0},
        {},
        {"on_invalid": "ignore"},
        {"model": GaussianMixture(), "n_components": 2},
        {"model": "GaussianMixture"},
    ],
    ids=str,
)
def test_invalid_parameters_raise(settings):
    name = next(iter(settings), "gamma")
    if not {"gamma", "rho", "beta", "norm"} & set(settings) and settings:
        settings = {"rho": 0.1, **settings}
    with pytest.raises(InvalidInputError, match=f"^({name}|gamma|beta|model)\\b"):
        lp.SRA(**settings)


def test_without_threshold_and_step_the_error_names_the_detector():
    for settings in ({}, {"n_components": 2}, {"patience": 20}):
        with pytest.raises(InvalidInputError, match=r"gamma or rho: .*limpet\.Detector\(\)"):
            lp.SRA(**settings)


@pytest.mark.parametrize(
    "make",
    [
        lambda: lp.StochasticApproximation(step_size=0.1),
        lambda: lp.StochasticApproximation(model=lp.Detector()),
        lambda: lp.StochasticApproximation(norm="huge").process(Y),
        lambda: lp.StochasticApproximation(LinearRegression(), norm="mean").update(1.0, 2.0),
        lambda: LinearRegression(l2=-1.0),
        lambda: ConjugatePrior(weight=-1.0),
        lambda: ConjugatePrior(scale=0.0),
        lambda: PoissonMixture(penalty=ConjugatePrior(mean=0.1)),
        lambda: lp.SRA(rho=0.01, penalty=ConjugatePrior(center=(1.0, 2.0))).process(Y),
        lambda: lp.SDEM(2, alpha=-1.0),
    ],
)
def test_invalid_parameters_of_models_and_other_learners_raise(make):
    with pytest.raises(InvalidInputError):
        make()


def test_without_a_threshold_sra_is_sem():
    sra, sem = lp.SRA(2, gamma=math.inf, rho=0.02), lp.SEM(2, rho=0.02)
    np.testing.assert_array_equal(sra.process(Y).score, sem.process(Y).score)


def test_iem_is_sdem_with_inverse_time_steps():
    iem = lp.IEM(2)
    sdem = lp.StochasticApproximation(GaussianMixture(2, smoothing=1.0), InverseTime())
    np.testing.assert_array_equal(iem.process(Y).score, sdem.process(Y).score)


def test_iem_weights_all_points_equally():
    learner = lp.IEM(1, n_init=20)
    learner.process(Y)
    np.testing.assert_allclose(learner.means.item(), Y.mean(), atol=0.05)
    np.testing.assert_allclose(learner.covariances.item(), Y.var(), atol=0.2)


def test_the_threshold_waits_for_the_warm_up():
    y = Y.copy()
    y[[20, 49, 50, 200]] = 100.0
    assert np.flatnonzero(lp.SRA(rho=0.01, warmup=50).process(y).rejected).tolist() == [50, 200]
    assert lp.SRA(rho=0.01, warmup=0).process(y).rejected[[20, 49, 50, 200]].all()


def test_results_depend_on_the_seed_only():
    y = lp.datasets.make_abrupt(n=500).y
    first, same, other = (lp.SRA(3, rho=0.01, seed=seed).process(y).score for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert (first[10:] != other[10:]).any()


def test_a_penalty_keeps_a_component_alive():
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(0.0, 1.0, 500) + 50.0 * (np.arange(500) % 2), rng.normal(0.0, 1.0, 5000)])
    learner = lp.SEM(2, rho=0.05, penalty=ConjugatePrior(weight=0.05, mean=0.05, covariance=0.05))
    learner.process(y)  # no warning of a lost component, unlike the same without a penalty
    with pytest.warns(LimpetWarning, match="has lost its points"):
        lp.SEM(2, rho=0.05).process(y)


def test_a_change_within_the_threshold_is_followed_and_one_beyond_is_not():
    """Lock-out, as the published algorithm has it: the reason for the detector."""
    rng = np.random.default_rng(0)
    near = np.concatenate([rng.normal(0.0, 1.0, 1000), rng.normal(2.0, 1.0, 1000)])
    far = np.concatenate([rng.normal(0.0, 1.0, 1000), rng.normal(50.0, 1.0, 1000)])
    learner = lp.SRA(rho=0.01)
    learner.process(near)
    np.testing.assert_allclose(learner.means, 2.0, atol=0.3)
    learner = lp.SRA(rho=0.01)
    with pytest.warns(LimpetWarning):
        trace = learner.process(far)
    assert trace.rejected[1000:].all()
    np.testing.assert_allclose(learner.means, 0.0, atol=0.3)


def test_patience_follows_a_change_beyond_the_threshold():
    """Twenty consecutive rejections suspend the threshold for fifty points."""
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(0.0, 1.0, 1000), rng.normal(20.0, 1.0, 1500)])
    y[2400] = 100.0
    locked_out, patient = lp.SRA(rho=0.01), lp.SRA(rho=0.01, patience=20)
    with pytest.warns(LimpetWarning):
        assert locked_out.process(y).rejected[1000:].all()
    np.testing.assert_allclose(locked_out.means, 0.0, atol=0.3)
    trace = patient.process(y)
    assert trace.rejected[1000:1020].all()
    assert not trace.rejected[1020:1070].any()
    np.testing.assert_allclose(patient.means, 20.0, atol=0.5)
    assert trace.rejected[2400]


def test_burst_shorter_than_the_patience_is_rejected():
    y = np.random.default_rng(1).normal(size=2000)
    y[1000:1019] = 20.0
    impatient, patient = lp.SRA(rho=0.01), lp.SRA(rho=0.01, patience=20)
    trace = impatient.process(y)
    assert trace.rejected[1000:1019].all()
    np.testing.assert_array_equal(patient.process(y).score, trace.score)
    np.testing.assert_array_equal(patient.means, impatient.means)
    y[1019:1040] = 20.0
    more = lp.SRA(rho=0.01, patience=20)
    assert not more.process(y).rejected[1020:1040].any()  # points after the twentieth are accepted
    assert more.covariances.item() != impatient.covariances.item()


def test_patience_requires_a_warm_up():
    with pytest.raises(InvalidInputError, match=r"^warmup:"):
        lp.SRA(rho=0.01, warmup=0, patience=20)
    with pytest.raises(InvalidInputError, match="patience"):
        lp.SRA(rho=0.01, patience=-1)


def test_representation_of_steps_and_traces():
    learner = lp.SRA(rho=0.01)
    trace = learner.process(Y)
    assert repr(trace).startswith("Trace(")
    step = learner.update(100.0)
    assert step.rejected
    assert math.isnan(step.change_score)
    assert "rejected=True" in repr(step)
    assert dict(zip(RESULT_FIELDS, step, strict=True)) == step.to_dict()
    assert step.to_dict()["score"] == step.score
    assert learner.update(0.1) != step
    assert lp.Detector().update(1.0).score != lp.Detector().update(1.0).score  # NaN before the start


def test_parameters_are_read_only_after_construction():
    learner = lp.Detector()
    for fitted, names in ((learner, ("n_components", "far", "seed")), (lp.SRA(rho=0.1), ("gamma", "rho", "norm"))):
        for name in names:
            with pytest.raises(InvalidInputError, match=f"^{name}:"):
                setattr(fitted, name, 0.5)
    learner.on_invalid = "raise"
    assert learner.gamma_ is None
    learner.process(Y)
    assert round(learner.gamma_, 2) == 3.89


class CustomSRA(lp.SRA):
    """A subclass of a user, with another parameter."""

    def __init__(self, points=100):
        self.points = points
        super().__init__(2, rho=1.0 / points)


@pytest.mark.parametrize(
    "learner",
    [
        lp.StochasticApproximation(),
        lp.SRA(gamma=4.0, rho=0.01),
        lp.SRA(gamma=4.0, beta=0.1, M=5.0),
        lp.SRA(gamma=4.0, half_life=20),
        lp.SEM(2),
        lp.IEM(2),
        lp.SDEM(2),
        lp.Detector(),
    ],
    ids=repr,
)
def test_every_mutable_parameter_can_change(learner):
    assert set(learner.mutable_params) <= set(learner.get_params())
    for name in learner.mutable_params:
        value = learner.get_params()[name]
        if isinstance(value, float | int) and math.isfinite(value):
            assert learner.with_params(**{name: 2 * value or 2}).get_params()[name] != value


def test_discount_of_sdem_changes_on_the_same_state():
    sdem, reference = lp.SDEM(1, r=0.1), lp.SDEM(1, r=0.2)
    sdem.process(Y[:300])
    reference._restore({"width": 1, "names": None}, sdem.state)
    np.testing.assert_array_equal(sdem.with_params(r=0.2).process(Y[300:]).score, reference.process(Y[300:]).score)


@pytest.mark.parametrize(
    ("learner", "settings"),
    [
        (lp.SDEM(2), {"gamma": 5.0}),
        (lp.SDEM(2), {"alpha": 0.5}),
        (lp.IEM(2), {"r": 0.1}),
        (lp.SRA(rho=0.01), {"n_components": 2}),
        (lp.Detector(), {"gamma": 5.0}),
    ],
    ids=repr,
)
def test_other_parameters_cannot_change(learner, settings):
    (name,) = settings
    with pytest.raises(InvalidInputError, match=f"^{name}: cannot change.*{learner.mutable_params[0]}"):
        learner.with_params(**settings)


def test_subclass_is_serialized():
    learner = CustomSRA(50)
    learner.process(Y)
    again = lp.from_bytes(learner.to_bytes())
    assert type(again) is CustomSRA
    assert again.points == 50
    np.testing.assert_array_equal(again.process(Y).score, learner.process(Y).score)
    assert learner.clone().points == 50


def test_a_subclass_cannot_replace_a_class_of_limpet():
    class Detector(lp.Detector):
        pass

    assert type(lp.from_bytes(lp.Detector().to_bytes())) is lp.Detector
    assert type(lp.from_bytes(Detector().to_bytes())) is Detector


def test_steps_can_be_pickled():
    learner = lp.Detector()
    learner.process(Y)
    for step in (learner.update(0.1), learner.update(100.0), learner.update(math.nan)):
        restored = pickle.loads(pickle.dumps(step))
        assert restored == step
        assert copy.copy(step).invalid == step.invalid
    assert learner.update(math.nan).invalid


def test_trace_converts_to_a_dataframe():
    trace = lp.Detector().process(Y)
    frame = pd.DataFrame(trace.to_dict())
    assert tuple(frame.columns) == AUTO_RESULT_FIELDS
    assert tuple(lp.SRA(rho=0.01).process(Y).to_dict()) == RESULT_FIELDS
    assert len(frame) == len(Y)


def test_update_respects_masks():
    rows = np.random.default_rng(0).normal(size=(100, 2))
    point = np.ma.MaskedArray([1e3, 1.0], [True, False])
    a, b = lp.SRA(rho=0.01), lp.SRA(rho=0.01)
    a.process(rows)
    b.process(rows)
    a.update(point)
    b.process(point.reshape(1, 2))
    np.testing.assert_array_equal(a.state, b.state)


def test_read_only_array_compiles_no_second_version():
    rows = np.random.default_rng(0).normal(size=(100, 2))
    learner = lp.SRA(rho=0.01)
    learner.process(rows)
    rows.flags.writeable = False
    learner.process(rows)
    assert len(learner._engine.kernels.run.signatures) == 1


@kernel
def evaluate_with_nan(theta, y, hyper, work, missing):
    """Score with NaN for values between 1 and 2."""
    work[0] = theta[0] - y[0]
    return math.nan if 1.0 < y[0] < 2.0 else y[0]


@dataclass(frozen=True)
class NanBetweenOneAndTwo(Exponential):
    def kernels(self, width):
        return replace(super().kernels(width), evaluate=evaluate_with_nan)


def test_point_with_nan_score_is_counted_once():
    learner = lp.StochasticApproximation(NanBetweenOneAndTwo())
    for x in np.linspace(0.5, 2.5, 200).tolist():
        learner.update(x)
    assert learner.n_seen == 200
    assert learner.n_invalid == 0


def test_gamma_with_an_overflowing_square_raises():
    with pytest.raises(InvalidInputError, match=r"^gamma:"):
        lp.SRA(gamma=1e200)


@dataclass(frozen=True)
class ExponentialWithRate(Exponential):
    """A model with an estimate that the built-in ones do not have."""

    estimates = ("means", "rate")

    def estimate(self, name, theta, width):
        return 1.0 / theta[0] if name == "rate" else super().estimate(name, theta, width)


def test_an_estimate_of_a_custom_model_is_read_by_name():
    learner = lp.SRA(model=ExponentialWithRate(), gamma=20.0)
    with pytest.raises(NotFittedError):
        learner.estimate("rate")
    learner.process(np.random.default_rng(0).exponential(2.0, 500))
    for copied in (learner, copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert copied.estimate("rate") == 1.0 / learner.means[0, 0]
    with pytest.raises(InvalidInputError, match="name: must be 'means' or 'rate', got 'rates'"):
        learner.estimate("rates")
    assert not hasattr(learner, "coef")
    testing.check_learner(lambda: lp.SRA(model=ExponentialWithRate(), gamma=20.0), make_exponential_points)


def make_exponential_points(rng, n):
    return (rng.exponential(2.0, size=n),)
