"""Job specifications, the file of states, columns and durations, without a session of Spark."""

from __future__ import annotations

import datetime as dt
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import limpet as lp
from helpers.spark import SRA_LEARNER, assert_same_streams, make_spec, make_table
from limpet.exceptions import CheckpointError, InvalidInputError, InvalidTypeError
from limpet.learners.input import LabeledArray
from limpet.spark.checkpoint import StatesFile, write_states
from limpet.spark.job_spec import JobSpec, check_param_changes, get_config
from limpet.spark.partition_state import PartitionState, restore_partition
from limpet.spark.schema import get_time_unit, has_string_keys, parse_duration, resolve_value_columns

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")]

# Stored states


def test_states_are_read_bucket_by_bucket(tmp_path) -> None:
    bucket = PartitionState.empty(make_spec())
    bucket.process(make_table(n_keys=3, n=60, seed=0))
    parts = [
        (7, bucket.fleet.to_bytes(), bucket.ordered_clocks().to_bytes()),
        (2, bucket.fleet.to_bytes(), b""),
    ]
    write_states(tmp_path / "states", parts)
    file = StatesFile(tmp_path / "states")
    assert file.list_partitions() == [2, 7]
    assert file.read_partition(1, make_spec()) is None
    assert_same_streams(file.read_partition(7, make_spec()).fleet, bucket.fleet)
    assert np.array_equal(file.read_partition(7, make_spec()).last_times(), bucket.last_times())
    assert (file.read_partition(2, make_spec()).last_times() == np.iinfo(np.int64).min).all()
    (tmp_path / "junk").write_bytes(b"junk")
    with pytest.raises(CheckpointError, match="must be an archive of states"):
        StatesFile(tmp_path / "junk").list_partitions()


def test_fleet_without_names_gets_the_names_of_the_columns(tmp_path) -> None:
    fleet = lp.Fleet(SRA_LEARNER)
    fleet.update(["x"], [[1.0, 2.0]])
    write_states(tmp_path / "states", [(0, fleet.to_bytes(), b"")])
    assert StatesFile(tmp_path / "states").read_partition(0, make_spec()).fleet.feature_names == ("a", "b")


@pytest.mark.parametrize(
    "model",
    [
        SRA_LEARNER,
        lp.Detector(),
        lp.StochasticApproximation(lp.models.PoissonMixture(), lp.core.step_sizes.Constant(0.02)),
        lp.SDEM(2, r=0.1),
    ],
    ids=repr,
)
def test_a_spec_is_the_same_after_a_round_trip(model) -> None:
    spec = make_spec(
        model, idle_timeout=5, watermark="1 microseconds", prefix="é ", generation=3, states_file="x.states"
    )
    assert JobSpec.from_json(spec.to_json()) == spec
    assert repr(spec.make_learner()) == repr(model)
    assert spec.resume_from(spec) == spec
    with pytest.raises(CheckpointError, match="got format 1"):
        JobSpec.from_json(spec.to_json().replace('"version": 2', '"version": 1'))


def test_fields_that_may_change_on_a_checkpoint() -> None:
    before = make_spec(generation=4, states_file="some.states", buckets=16)
    after = make_spec(
        lp.SRA(gamma=3.0, half_life=40, warmup=9), idle_timeout=9, watermark="2 seconds", prefix="p_", buckets=None
    )
    resumed = after.resume_from(before)
    assert (resumed.generation, resumed.states_file, resumed.buckets) == (4, "some.states", 16)
    assert resumed.learner == after.learner
    changes_by_message = {
        "the key must remain 'sensor', got 'k'": {"key": "k"},
        "keys are strings must remain True, got False": {"has_string_keys": False},
        "the values must remain 'a', 'b', got 'b', 'a'": {"values": ("b", "a")},
        "the time must remain 'ts', got None": {"time": None},
        "the unit of times must remain 'us', got ''": {"time_unit": ""},
        "buckets: must be 16, .*, got 8.*repartition": {"buckets": 8},
    }
    for message, change in changes_by_message.items():
        with pytest.raises(CheckpointError, match=message):
            replace(after, **change).resume_from(before)


@pytest.mark.parametrize(
    ("old", "new", "fixed"),
    [
        (SRA_LEARNER, lp.SRA(gamma=9.0, half_life=20, norm="mean", warmup=0, reject_rate=0.01), ""),
        (SRA_LEARNER, lp.SRA(gamma=4.0, beta=0.1, M=5.0), ""),
        (lp.Detector(), lp.Detector(far=0.01), ""),
        (lp.SEM(2, rho=0.1), lp.SEM(2, rho=0.2), ""),
        (lp.SDEM(1, r=0.1), lp.SDEM(1, r=0.2), ""),
        (SRA_LEARNER, lp.SRA(n_components=2, gamma=4.0, rho=0.01), "n_components"),
        (SRA_LEARNER, lp.SRA(gamma=4.0, rho=0.01, covariance="diagonal"), "covariance"),
        (SRA_LEARNER, lp.SRA(gamma=4.0, rho=0.01, seed=1), "seed"),
        (SRA_LEARNER, lp.SRA(gamma=4.0, rho=0.01, n_init=5), "n_init"),
        (lp.Detector(), lp.Detector(memory="compact"), "memory"),
        (lp.Detector(), lp.Detector(lags=2), "lags"),
        (lp.SDEM(1, alpha=0.1), lp.SDEM(1, alpha=0.2), "alpha"),
        (lp.IEM(1, alpha=0.1), lp.IEM(1, alpha=0.2), "alpha"),
    ],
    ids=repr,
)
def test_which_parameters_may_change(old, new, fixed) -> None:
    with pytest.raises(CheckpointError, match=f"learner: {fixed} must remain") if fixed else nullcontext():
        check_param_changes(get_config(old), get_config(new))


def test_change_of_the_learner_raises() -> None:
    for old, new in ((SRA_LEARNER, lp.SEM()), (SRA_LEARNER, lp.Detector()), (lp.Detector(), SRA_LEARNER)):
        with pytest.raises(CheckpointError, match=f"got {type(new).__name__}"):
            check_param_changes(get_config(old), get_config(new))


# Columns

TYPES = {"k": "string", "t": "timestamp", "x": "double", "n": "decimal(10,2)", "flag": "boolean", "s": "array<int>"}


def test_columns_are_validated() -> None:
    assert resolve_value_columns(TYPES, None, ["k", "t"]) == ("x", "n")  # as a fleet does: booleans only on request
    assert resolve_value_columns(TYPES, "flag", ["k", "t"]) == ("flag",)
    for columns, others, message in (
        (["x", "y"], ["k"], "values: must be a column of the DataFrame .'k', 't', .*, got 'y'"),
        (["s"], ["k"], "values: .*, got 's' of array<int>"),
        ([], ["k"], "values: .* different .*, got none"),
        (["x", "x"], ["k"], "values: .* different .*, got 'x', 'x'"),
        (["x"], ["x", "t"], "values: must not contain the key or the time, got 'x'"),
    ):
        with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
            resolve_value_columns(TYPES, columns, others)
    assert has_string_keys(TYPES, "k")
    for name in ("x", "n", "t", "flag", "s"):
        with pytest.raises(InvalidTypeError, match="key: must be a column of strings or integers"):
            has_string_keys(TYPES, name)
    assert (get_time_unit(TYPES, "t"), get_time_unit(TYPES, None), get_time_unit({"i": "smallint"}, "i")) == (
        "us",
        "",
        "",
    )
    for name in ("x", "k", "flag"):
        with pytest.raises(InvalidTypeError, match="time: must be a column of timestamps, dates or integers"):
            get_time_unit(TYPES, name)


def test_durations() -> None:
    durations = {
        "5 ms": 5e3,
        "7us": 7,
        "90 S": 9e7,
        "10 min": 6e8,
        "1.5 hours": 5.4e9,
        "2 d": 1.728e11,
        " 1 weeks ": 6.048e11,
    }
    assert {text: parse_duration("idle", text, "us") for text in durations} == durations
    assert parse_duration("idle", dt.timedelta(milliseconds=1), "us") == 1000
    assert parse_duration("watermark", "0 seconds", "us", minimum=0) == 0
    for text, unit in (
        ("0 s", "us"),
        ("-1 s", "us"),
        ("1 month", "us"),
        ("5", "us"),
        (5, "us"),
        (0, ""),
        (True, ""),
        ("5 s", ""),
    ):
        with pytest.raises(InvalidInputError, match="idle: must be a"):
            parse_duration("idle", text, unit)


def test_parameters_added_in_later_versions_are_no_change() -> None:
    config = get_config(lp.Detector())
    before = {**config, "settings": {name: value for name, value in config["settings"].items() if name != "memory"}}
    check_param_changes(before, config)


def test_states_of_other_columns_raise() -> None:
    spec = make_spec()
    fleet = lp.Fleet(spec.make_learner())
    fleet.update(["x"] * 3, LabeledArray(np.zeros((3, 2)), ("b", "a")))
    with pytest.raises(CheckpointError, match=r"values: must be b, a, .*, got a, b"):
        restore_partition(fleet.to_bytes(), b"", spec)
