"""The contract of `limpet.testing`, for every learner and model, on streams and cuts that hypothesis chooses."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import limpet as lp
from contract.cases import CASES
from limpet import testing
from limpet.learners.base import Learner
from limpet.testing import assert_same_bits

# Warnings of copied components or many rejections depend on the stream drawn.
pytestmark = pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")

N_ROWS = 160
IN_REINIT = 3 * N_ROWS // 4 + 7  # the streams of the detector have jumped, and it has not yet been re-initialized
SLOW_TO_COMPILE = ("detector, d=3, diagonal",)
QUICK_TO_COMPILE = ("detector", "SRA", "SRA, patience", "SRA, d=3, gaps", "linear")


def parametrize_cases(cases, is_long):
    params = [pytest.param(case, marks=[pytest.mark.long] if is_long(str(case)) else []) for case in cases]
    return pytest.mark.parametrize("case", params, ids=[str(case) for case in cases])


every_case = parametrize_cases(CASES, lambda name: name in SLOW_TO_COMPILE)
quick_cases = parametrize_cases(CASES, lambda name: name not in QUICK_TO_COMPILE)  # each compiles an entry point
auto_cases = parametrize_cases([case for case in CASES if case.learner().is_auto], lambda name: name in SLOW_TO_COMPILE)
seeds = st.integers(0, 2**32 - 1)
cuts = st.lists(st.integers(0, N_ROWS), max_size=5).map(lambda c: [0, *sorted(c), N_ROWS])


def make_stream(case, seed=0, n=N_ROWS):
    return case.stream(np.random.default_rng(seed), n)


@every_case
@given(seed=seeds, cuts=cuts)
@example(seed=0, cuts=[0, IN_REINIT, N_ROWS])
def test_batch_is_loop(case, seed, cuts):
    testing.check_batch_is_loop(case.learner, make_stream(case, seed), cuts)


@every_case
@given(seed=seeds, row=st.integers(0, N_ROWS - 1))
@example(seed=0, row=IN_REINIT)
def test_restored_is_continued(case, seed, row):
    testing.check_restored_is_continued(case.learner, make_stream(case, seed), row)


@quick_cases
def test_score_only(case):
    testing.check_score_only(case.learner, make_stream(case), [60, IN_REINIT, IN_REINIT + 3])


@quick_cases
def test_fast_path(case):
    testing.check_fast_path(case.learner, make_stream(case), 70)


@every_case
def test_saved_is_loaded(case):
    testing.check_saved_is_loaded(case.learner, make_stream(case))


@every_case
@given(
    seed=seeds,
    rows=st.lists(st.integers(0, N_ROWS), min_size=1, max_size=8),
    value=st.sampled_from([np.nan, np.inf]),
)
def test_invalid_points(case, seed, rows, value):
    testing.check_invalid_points(case.learner, make_stream(case, seed), rows, value)


@every_case
def test_invalid_points_raise(case):
    testing.check_invalid_points_raise(case.learner, make_stream(case))


@every_case
@given(seed=seeds)
def test_estimates(case, seed):
    testing.check_estimates(case.learner, make_stream(case, seed))


@every_case
def test_score(case):
    testing.check_score(case.learner, make_stream(case), 100)


@every_case
@pytest.mark.parametrize("wrong", testing.WRONG_INPUTS, ids=repr)
def test_wrong_input(case, wrong):
    testing.check_wrong_input(case.learner, make_stream(case), wrong)


@every_case
def test_clone(case):
    testing.check_clone(case.learner, make_stream(case))


@auto_cases
def test_streams_of_the_detector_exercise_everything(case):
    """Otherwise the checks would cover little."""
    learner = case.learner()
    trace = learner.process(*make_stream(case))
    assert trace.rejected[IN_REINIT - 5 : IN_REINIT].all()  # locked out for a few rows …
    assert not trace.rejected[-5:].all()  # … and no longer
    kinds = {alarm.kind for alarm in trace.alarms}
    assert kinds == ({"anomaly"} if learner.season else {"anomaly", "change"})  # the profile is still being learned
    assert (learner.means > 30.0).all()


@every_case
def test_rejected_point_changes_only_its_count(case):
    learner = case.learner()
    stream = make_stream(case, n=2000)
    trace = learner.process(*stream)
    if not np.isfinite(learner.gamma_):
        assert not trace.rejected.any()
        return
    assert trace.rejected.any(), "the stream of a case with a threshold has outliers"
    row = int(np.flatnonzero(trace.rejected)[-1])
    before, after = case.learner(), case.learner()
    before.process(*(part[:row] for part in stream))
    after.process(*(part[: row + 1] for part in stream))
    assert after.n_rejected == before.n_rejected + 1
    for name in case.learner().model.estimates:
        assert_same_bits(before.estimate(name), after.estimate(name))
    if not learner.is_auto:  # the detector also observes it
        assert_same_bits(before._engine.buffer.theta, after._engine.buffer.theta)


# check_learner itself


def test_check_learner_passes_for_the_learners():
    testing.check_learner(lp.Detector)
    testing.check_learner(lambda: lp.SRA(gamma=4.0, rho=0.01))


class LosesState(lp.SRA):
    """Its bytes have no learned state."""

    def to_bytes(self):
        return lp.SRA(gamma=4.0, rho=0.01).to_bytes()


class ProcessesTwice(lp.SRA):
    """Processes each batch twice."""

    def process(self, X, y=None, *, record=None):
        super().process(X, y)
        return super().process(X, y, record=record)


@pytest.mark.parametrize(
    ("learner", "message"),
    [(LosesState, "restored|parameters"), (ProcessesTwice, "state after")],
    ids=["bytes", "batch"],
)
def test_check_learner_fails_for_broken_learners(learner, message):
    try:
        with pytest.raises(AssertionError, match=message):
            testing.check_learner(lambda: learner(gamma=4.0, rho=0.01))
    finally:
        for key in [key for key, cls in Learner.registry.classes.items() if cls is learner]:
            del Learner.registry.classes[key]
