"""Each stream of a fleet equals a single learner bit for bit."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limpet as lp
from limpet.exceptions import InvalidInputError, InvalidTypeError, LimpetWarning
from limpet.models import LinearRegression, PoissonMixture

MODEL = lp.SRA(2, gamma=3.0, rho=0.05, warmup=12)


@pytest.fixture(autouse=True)
def ignore_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        yield


def draw_calls(rng: np.random.Generator, n: int) -> list[slice]:
    """Draw successive calls of random sizes."""
    edges = np.unique(np.concatenate([[0, n], rng.integers(0, n + 1, rng.integers(0, 12))])).tolist()
    return [slice(first, last) for first, last in pairwise(edges)]


def run_fleet(
    fleet: lp.Fleet, keys: np.ndarray, X: np.ndarray, calls: list[slice]
) -> tuple[dict[str, np.ndarray], list]:
    """Return the concatenated results and the alarms."""
    traces, alarms = [], []
    for call in calls:
        traces.append(fleet.update(keys[call], X[call]).to_dict())
        alarms += fleet.alarms
    return {name: np.concatenate([trace[name] for trace in traces]) for name in traces[0]}, alarms


def assert_equals_single_learners(fleet: lp.Fleet, keys: np.ndarray, X: np.ndarray, calls: list[slice]) -> None:
    steps, alarms = run_fleet(fleet, keys, X, calls)
    for key in set(keys.tolist()):
        part, learner = keys == key, fleet.learner.clone()
        trace = learner.process(X[part])
        for name, values in trace.to_dict().items():
            np.testing.assert_array_equal(steps[name][part], values, err_msg=f"{name} of {key}")
        raised = [dataclasses.replace(alarm, key=None) for alarm in alarms if alarm.key == key]
        assert sorted(raised, key=lambda a: (a.row, a.kind != "change")) == trace.alarms
        np.testing.assert_array_equal(fleet[key].state, learner.state)


def make_points(rng: np.random.Generator, n: int, width: int, missing_share: float) -> np.ndarray:
    """Make points of two groups with outliers, missing and infinite values."""
    X = rng.normal(rng.choice([-4.0, 4.0], (n, 1)), 1.0, (n, width))
    X[rng.random(n) < 0.03] *= 30.0
    X[rng.random((n, width)) < missing_share] = np.nan
    X[rng.random(n) < missing_share / 4] = np.inf
    return X


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    n_keys=st.sampled_from([1, 2, 3, 5, 9, 40, 150]),
    missing_share=st.sampled_from([0.0, 0.01]),
)
def test_each_stream_equals_a_single_learner(seed: int, n_keys: int, missing_share: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40 * n_keys))
    keys = rng.integers(0, n_keys, n) ** 2 if rng.random() < 0.5 else np.sort(rng.integers(0, n_keys, n))
    assert_equals_single_learners(lp.Fleet(MODEL), keys, make_points(rng, n, 1, missing_share), draw_calls(rng, n))


@settings(max_examples=6)
@given(seed=st.integers(0, 10**6))
def test_several_variables_with_missing_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 12, 500)
    assert_equals_single_learners(
        lp.Fleet(lp.SRA(2, gamma=4.0, rho=0.05)), keys, make_points(rng, 500, 2, 0.02), draw_calls(rng, 500)
    )


@pytest.mark.parametrize(
    "model",
    [
        lp.StochasticApproximation(PoissonMixture(), gamma=5.0),  # has no lanes: sequential
        lp.IEM(2),  # its step size differs by stream
        pytest.param(lp.SRA(2, gamma=3.0, beta=0.1, M=5.0, norm="mean"), marks=pytest.mark.long),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_learners_equal_single_learners(model: lp.StochasticApproximation) -> None:
    rng = np.random.default_rng(5)
    keys, X = rng.integers(0, 20, 1500), rng.poisson(rng.choice([2.0, 30.0], 1500)).astype(float)
    assert_equals_single_learners(lp.Fleet(model), keys, X, draw_calls(rng, 1500))


@pytest.mark.parametrize("memory", ["full", pytest.param("compact", marks=pytest.mark.long)])
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_detectors_equal_single_detectors(memory: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_keys = 4000, 12
    keys = rng.integers(0, n_keys, n)
    X = rng.normal(0.0, 1.0, n) + np.where(np.arange(n) > 2500, rng.choice([0.0, 6.0, 60.0], n_keys)[keys], 0.0)
    X[rng.random(n) < 0.01] = 40.0
    X[rng.random(n) < 0.005] = np.nan
    assert_equals_single_learners(lp.Fleet(lp.Detector(memory=memory)), keys, X, draw_calls(rng, n))


def test_detectors_raise_alarms_with_keys() -> None:
    rng = np.random.default_rng(0)
    fleet = lp.Fleet(lp.Detector())
    keys = np.tile(["a", "b"], 400)
    X = rng.normal(0.0, 1.0, 800)
    X[401::2] += 8.0  # b
    X[300] = 50.0  # a
    fleet.update(keys, X)
    assert {(alarm.key, alarm.kind) for alarm in fleet.alarms} >= {("a", "anomaly"), ("b", "change")}
    (row,) = [alarm.row for alarm in fleet.alarms if alarm.key == "a"]
    assert row == 150
    (onset,) = [alarm.onset for alarm in fleet.alarms if alarm.kind == "change"]
    assert abs(onset - 200) <= 2


def test_member_of_a_fleet_is_a_learner() -> None:
    rng = np.random.default_rng(1)
    fleet = lp.Fleet(MODEL)
    fleet.update([3, 4] * 60, rng.normal(size=120))
    learner = lp.from_bytes(fleet[3].to_bytes())
    member = fleet[3]
    fleet.update(np.arange(100, 5000), rng.normal(size=4900))  # the matrix has to move
    steps = [member.update(0.3), learner.update(0.3)]
    assert steps[0] == steps[1]
    trace = fleet.update([3], [0.1])
    assert trace.score[0] == learner.update(0.1).score
    np.testing.assert_array_equal(member.state, learner.state)
    assert member.n_seen == fleet[3].n_seen == 62
    assert member.score(0.5) == learner.score(0.5)
    new_member = fleet[100]
    for x in rng.normal(size=30):  # it is initialized through the member
        new_member.update(x)
    assert new_member.started
    assert fleet[100].started
    np.testing.assert_array_equal(new_member.means, fleet[100].means)
    assert fleet._membership.state_matrix.n_not_started == 4899


def test_keys_are_added_and_dropped() -> None:
    fleet = lp.Fleet(MODEL)
    fleet.update(["a", "b", "c"], [1.0, 2.0, 3.0])
    assert (len(fleet), sorted(fleet), "b" in fleet, "x" in fleet, 3 in fleet) == (
        3,
        ["a", "b", "c"],
        True,
        False,
        False,
    )
    member = fleet["b"]
    fleet.drop("b")
    del fleet["c"]
    assert fleet.keys() == ["a"]
    for access_dropped_key in (lambda: fleet["b"], lambda: fleet.drop("b")):
        with pytest.raises(KeyError):
            access_dropped_key()
    member.update(7.0)
    assert member.n_seen == 2
    fleet.update(["b", "d"], [5.0, 6.0])  # again, in the free rows
    assert fleet["b"].n_seen == 1
    assert sorted(fleet) == ["a", "b", "d"]
    assert fleet["a"].n_seen == 1


def test_invalid_points_are_counted_and_change_nothing() -> None:
    rng = np.random.default_rng(2)
    fleet, clean = lp.Fleet(MODEL), lp.Fleet(MODEL)
    X = rng.normal(size=200)
    valid_keys = ["a", "b"] * 100
    clean.update(valid_keys, X)
    keys: list[object] = list(valid_keys)
    points = X.tolist()
    for index, key, x in ((190, "a", np.nan), (120, None, 1.0), (60, "b", np.inf), (10, float("nan"), 2.0)):
        keys.insert(index, key)
        points.insert(index, x)
    trace = fleet.update(keys, points)
    assert np.flatnonzero(trace.invalid).tolist() == [10, 61, 122, 193]
    assert fleet.n_missing_keys == 2
    assert dict(zip(*(fleet.counts()[name] for name in ("key", "n_invalid")), strict=True)) == {"a": 1, "b": 1}
    assert fleet.n_invalid == 2
    assert fleet.n_seen == 202
    for key in "ab":
        np.testing.assert_array_equal(fleet[key].means, clean[key].means)


def test_rows_of_another_width_are_invalid() -> None:
    fleet = lp.Fleet(lp.SRA(1, gamma=4.0, rho=0.05))
    trace = fleet.update(["a", "b", "a", "b"], [[1.0, 2.0], [3.0], [1.0, 2.0, 3.0], [4.0, 5.0]])
    assert trace.invalid.tolist() == [False, True, True, False]
    assert fleet.counts()["n_invalid"].tolist() == [1, 1]
    with pytest.raises(InvalidInputError, match=r"\(T, 2\), got \(1, 3\)"):
        fleet.update(["a"], np.zeros((1, 3)))
    assert fleet.n_seen == 4


def test_a_warning_names_the_first_invalid_row() -> None:
    with pytest.warns(LimpetWarning, match="1 of 3 points .* row 1"):
        lp.Fleet(MODEL).update(["a", "a", "b"], [1.0, np.nan, 2.0])


def test_invalid_points_raise_on_request() -> None:
    fleet = lp.Fleet(lp.SRA(1, gamma=3.0, rho=0.1, on_invalid="raise"))
    fleet.update(["a"], [1.0])
    with pytest.raises(InvalidInputError, match="row 1: must be usable"):
        fleet.update(["a", "new"], [1.0, np.nan])
    assert fleet.n_seen == 1
    assert fleet.keys() == ["a"]


def test_invalid_calls_raise() -> None:
    fleet = lp.Fleet(MODEL)
    fleet.update([1, 2], [0.0, 1.0])
    wrong: list[tuple[object, object, type[Exception], str]] = [
        ("abc", [1.0], InvalidTypeError, "keys: must be a list"),
        (["x"], [1.0], InvalidTypeError, "keys: must be integers"),
        ([1.5], [1.0], InvalidTypeError, "fractions"),
        ([True], [1.0], InvalidTypeError, "keys: must be strings or integers"),
        ([[1]], [1.0], InvalidTypeError, "keys: must be strings or integers"),
        ([1, 2], [1.0], InvalidInputError, "X: must have one point per key, got 2 keys"),
        ([1], ["x"], InvalidTypeError, "numbers"),
    ]
    for keys, X, error, message in wrong:
        with pytest.raises(error, match=message):
            fleet.update(keys, X)
    assert fleet.n_seen == 2
    strings = lp.Fleet(MODEL)
    strings.update(["a"], [1.0])
    with pytest.raises(InvalidTypeError, match="keys: must be strings, as this fleet has"):
        strings.update([3], [1.0])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (3, "learner: must be a learner"),
        (lp.SRA(rho=0.01, model=LinearRegression()), "learner: must not need targets"),
        (lp.Detector(n_components="auto"), "n_components: must be an integer"),
    ],
    ids=str,
)
def test_models_that_fleets_do_not_support_raise(model: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        lp.Fleet(model).update(["a"], [1.0])  # type: ignore[arg-type]


def test_updated_learner_raises() -> None:
    learner = MODEL.clone()
    learner.update(1.0)
    with pytest.raises(InvalidInputError, match="learner: must not have been updated"):
        lp.Fleet(learner)


def test_repeated_keys_use_the_cache_correctly() -> None:
    """The cached look-up is correct after keys have changed in place, and after a key was dropped."""
    rng = np.random.default_rng(3)
    keys = np.array([5, 6, 7, 5])
    fleet, other = lp.Fleet(MODEL), lp.Fleet(MODEL)
    for call in range(30):
        X = rng.normal(size=4)
        first = fleet.update(keys, X).score
        np.testing.assert_array_equal(first, other.update(keys.tolist() if call % 2 else keys.copy(), X).score)
        if call == 10:
            keys[3] = 9
        if call == 20:
            fleet.drop(6)
            other.drop(6)
    assert fleet.counts()["n_seen"].sum() == other.counts()["n_seen"].sum()
    np.testing.assert_array_equal(fleet[9].state, other[9].state)


def test_unknown_estimate_raises() -> None:
    """Otherwise the model returns another one."""
    fleet = lp.Fleet(MODEL)
    fleet.update(["a"] * 40, np.random.default_rng(0).normal(size=40))
    for name in ("rate", "coef"):
        with pytest.raises(InvalidInputError, match=r"^name: must be 'weights'"):
            fleet.estimates(name, ["a"])
