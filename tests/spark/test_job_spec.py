"""What the Spark engine keeps and what it refuses, without Spark: plans, the file of states, columns, durations."""

from __future__ import annotations

import datetime as dt
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import limpet as lp
from helpers.spark import PLAIN, plan_of, same_streams, stream_of
from limpet.exceptions import CheckpointError, InvalidInputError, InvalidTypeError
from limpet.learners.input import LabelledArray
from limpet.spark.checkpoint import StatesFile, write_states
from limpet.spark.job_spec import JobSpec, check_param_changes
from limpet.spark.partition_state import PartitionState, restore_partition
from limpet.spark.schema import get_time_unit, key_is_text, parse_duration, resolve_value_columns

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]

# What is kept


def test_states_are_read_bucket_by_bucket(tmp_path) -> None:
    bucket = PartitionState.empty(plan_of())
    bucket.process(stream_of(n_keys=3, n=60, seed=0))
    parts = [
        (7, bucket.fleet.to_bytes(), bucket.last_times().astype("<i8").tobytes()),
        (2, bucket.fleet.to_bytes(), b""),
    ]
    write_states(tmp_path / "states", parts)
    file = StatesFile(tmp_path / "states")
    assert file.list_partitions() == [2, 7]
    assert file.read_partition(1, plan_of()) is None
    same_streams(file.read_partition(7, plan_of()).fleet, bucket.fleet)
    assert np.array_equal(file.read_partition(7, plan_of()).last_times(), bucket.last_times())
    assert (file.read_partition(2, plan_of()).last_times() == np.iinfo(np.int64).min).all()
    (tmp_path / "junk").write_bytes(b"junk")
    with pytest.raises(CheckpointError, match="holds no states"):
        StatesFile(tmp_path / "junk").list_partitions()


def test_a_fleet_without_names_gets_those_of_the_columns(tmp_path) -> None:
    fleet = lp.Fleet(PLAIN)
    fleet.update(["x"], [[1.0, 2.0]])
    write_states(tmp_path / "states", [(0, fleet.to_bytes(), b"")])
    assert StatesFile(tmp_path / "states").read_partition(0, plan_of()).fleet.feature_names == ("a", "b")


@pytest.mark.parametrize(
    "model",
    [
        PLAIN,
        lp.SRA(),
        lp.StochasticApproximation(lp.models.PoissonMixture(), lp.core.step_sizes.Constant(0.02)),
        lp.SDEM(2, r=0.1),
    ],
    ids=repr,
)
def test_a_plan_is_the_same_after_a_round_trip(model) -> None:
    plan = plan_of(model, idle=5, watermark="1 microseconds", prefix="é ", generation=3, states="x.states")
    assert JobSpec.from_json(plan.to_json()) == plan
    assert repr(plan.make_learner()) == repr(model)
    assert plan.resume_from(plan) == plan
    with pytest.raises(CheckpointError, match="version 2 of the state"):
        JobSpec.from_json(plan.to_json().replace('"version": 1', '"version": 2'))


def test_what_may_change_on_a_checkpoint() -> None:
    before = plan_of(generation=4, states="some.states", buckets=16)
    after = plan_of(lp.SRA(gamma=3.0, half_life=40, warmup=9), idle=9, watermark="2 seconds", prefix="p_", buckets=None)
    going_on = after.resume_from(before)
    assert (going_on.generation, going_on.states, going_on.buckets) == (4, "some.states", 16)
    assert going_on.model == after.model
    refused = {
        "the key 'sensor', got 'k'": {"key": "k"},
        "keys that are texts: True, got False": {"texts": False},
        "the values 'a', 'b', got 'b', 'a'": {"values": ("b", "a")},
        "the time 'ts', got None": {"time": None},
        "times of the unit 'us', got ''": {"unit": ""},
        "16 buckets, got 8.*rebucket": {"buckets": 8},
    }
    for message, change in refused.items():
        with pytest.raises(CheckpointError, match=message):
            replace(after, **change).resume_from(before)


@pytest.mark.parametrize(
    ("old", "new", "fixed"),
    [
        (PLAIN, lp.SRA(gamma=9.0, half_life=20, norm="mean", warmup=0, far=0.01), ""),
        (PLAIN, lp.SRA(gamma=4.0, beta=0.1, M=5.0), ""),
        (lp.SRA(), lp.SRA(far=0.01), ""),
        (lp.SEM(2, rho=0.1), lp.SEM(2, rho=0.2), ""),
        (PLAIN, lp.SRA(n_components=2, gamma=4.0, rho=0.01), "n_components"),
        (PLAIN, lp.SRA(gamma=4.0, rho=0.01, covariance="diagonal"), "covariance"),
        (PLAIN, lp.SRA(gamma=4.0, rho=0.01, seed=1), "seed"),
        (PLAIN, lp.SRA(gamma=4.0, rho=0.01, n_init=5), "n_init"),
        (PLAIN, lp.SRA(), "gamma, rho"),
        (lp.SRA(), PLAIN, "gamma, rho"),
        (lp.SRA(), lp.SRA(memory="compact"), "memory"),
        (lp.SRA(), lp.SRA(lags=2), "lags"),
        (lp.SDEM(1, r=0.1), lp.SDEM(1, r=0.2), "r"),
    ],
    ids=repr,
)
def test_which_settings_a_state_can_go_on_with(old, new, fixed) -> None:
    tell = (old._config(None, None), new._config(None, None))
    with pytest.raises(CheckpointError, match=f"go on with them: {fixed} cannot change") if fixed else nullcontext():
        check_param_changes(*tell)


def test_another_learner_cannot_go_on() -> None:
    with pytest.raises(CheckpointError, match="SRA, which SEM cannot go on with"):
        check_param_changes(PLAIN._config(None, None), lp.SEM()._config(None, None))


# What columns may be

TYPES = {"k": "string", "t": "timestamp", "x": "double", "n": "decimal(10,2)", "flag": "boolean", "s": "array<int>"}


def test_columns_are_looked_at() -> None:
    assert resolve_value_columns(TYPES, None, ["k", "t"]) == ("x", "n")  # as a fleet does: booleans only if asked for
    assert resolve_value_columns(TYPES, "flag", ["k", "t"]) == ("flag",)
    for given, others, message in (
        (["x", "y"], ["k"], "no column 'y'; there are 'k', 't'"),
        (["s"], ["k"], "'s' holds array<int>, not numbers"),
        ([], ["k"], "each once, got none"),
        (["x", "x"], ["k"], "each once, got 'x', 'x'"),
        (["x"], ["x", "t"], "'x' is the key or the time"),
    ):
        with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
            resolve_value_columns(TYPES, given, others)
    assert key_is_text(TYPES, "k")
    for name in ("x", "n", "t", "flag", "s"):
        with pytest.raises(InvalidTypeError, match="keys are texts or whole numbers; cast it to string"):
            key_is_text(TYPES, name)
    assert (get_time_unit(TYPES, "t"), get_time_unit(TYPES, None), get_time_unit({"i": "smallint"}, "i")) == (
        "us",
        "",
        "",
    )
    for name in ("x", "k", "flag"):
        with pytest.raises(InvalidTypeError, match="times are timestamps, dates or whole numbers"):
            get_time_unit(TYPES, name)


def test_durations() -> None:
    told = {
        "5 ms": 5e3,
        "7us": 7,
        "90 S": 9e7,
        "10 min": 6e8,
        "1.5 hours": 5.4e9,
        "2 d": 1.728e11,
        " 1 weeks ": 6.048e11,
    }
    assert {given: parse_duration("idle", given, "us") for given in told} == told
    assert parse_duration("idle", dt.timedelta(milliseconds=1), "us") == 1000
    assert parse_duration("watermark", "0 seconds", "us", minimum=0) == 0
    for given, unit in (
        ("0 s", "us"),
        ("-1 s", "us"),
        ("1 month", "us"),
        ("5", "us"),
        (5, "us"),
        (0, ""),
        (True, ""),
        ("5 s", ""),
    ):
        with pytest.raises(InvalidInputError, match="idle: expected a"):
            parse_duration("idle", given, unit)


def test_settings_that_came_later_are_no_change() -> None:
    told = lp.SRA()._config(None, None)
    before = {**told, "settings": {name: value for name, value in told["settings"].items() if name != "memory"}}
    check_param_changes(before, told)


def test_streams_of_other_columns_are_refused() -> None:
    plan = plan_of()
    fleet = lp.Fleet(plan.make_learner())
    fleet.update(["x"] * 3, LabelledArray(np.zeros((3, 2)), ("b", "a")))
    with pytest.raises(CheckpointError, match="learnt from b, a, and not from a, b"):
        restore_partition(fleet.to_bytes(), b"", plan)
