"""Long dataframes of any library, whole and in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import limpet as lp
from limpet.exceptions import InvalidInputError, InvalidTypeError, LimpetWarning

MODEL = lp.SRA(2, gamma=3.0, rho=0.05, warmup=12)
LIBRARIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "pandas with categories": lambda frame: (
        frame.astype({"sensor": "category"}) if frame.sensor.dtype.kind == "O" else frame
    ),
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
}

pytestmark = pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")


def make_long_frame(n: int = 1200, numbers: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(6)
    keys = rng.integers(0, 25, n)
    names = keys if numbers else np.array(["pump " + "ä" * int(key) for key in keys], object)
    x = rng.normal(rng.choice([-4.0, 4.0], n), 1.0)
    return pd.DataFrame({"sensor": names, "x": x, "when": pd.date_range("2026-01-01", periods=n, freq="min")})


def get_column(frame: Any, name: str) -> np.ndarray:
    return np.asarray(frame[name])


@pytest.mark.parametrize("numbers", [False, True], ids=["strings", "numbers"])
@pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES)
def test_dataframes_of_any_library(make: Callable[[pd.DataFrame], Any], numbers: bool) -> None:
    frame = make_long_frame(numbers=numbers)
    fleet = lp.Fleet(MODEL)
    native = make(frame)
    result = fleet.process(native, key="sensor", values=["x"])
    assert type(result) is type(native)
    for name in ("x", "score", "rejected", "invalid"):
        assert len(get_column(result, name)) == len(frame)
    for key in frame.sensor.unique()[:5]:
        part, learner = (frame.sensor == key).to_numpy(), MODEL.clone()
        trace = learner.process(frame.x[part].to_numpy())
        np.testing.assert_array_equal(get_column(result, "score")[part], trace.score)
        np.testing.assert_array_equal(get_column(result, "rejected")[part], trace.rejected)
        np.testing.assert_array_equal(fleet[key].state, learner.state)
    assert fleet.feature_names == ("x",)


def test_batches_of_a_frame() -> None:
    frame = make_long_frame()
    whole = lp.Fleet(MODEL).process(frame, key="sensor", values="x")
    pieces = lp.Fleet(MODEL).process((frame[i : i + 170] for i in range(0, len(frame), 170)), key="sensor", values="x")
    pd.testing.assert_frame_equal(pd.concat(pieces), whole)
    reader = pa.Table.from_pandas(frame).to_reader(max_chunksize=333)
    batches = list(lp.Fleet(MODEL).process(reader, key="sensor", values="x"))
    np.testing.assert_array_equal(np.concatenate([get_column(batch, "score") for batch in batches]), whole.score)


@pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES)
def test_rows_are_processed_in_time_order(make: Callable[[pd.DataFrame], Any]) -> None:
    frame = make_long_frame()
    expected = lp.Fleet(MODEL).process(frame, key="sensor", time="when")
    shuffled = frame.sample(frac=1.0, random_state=0)
    result = lp.Fleet(MODEL).process(make(shuffled), key="sensor", time="when")
    np.testing.assert_array_equal(get_column(result, "score"), expected.score[shuffled.index])


def test_rows_without_key_time_or_value_are_invalid() -> None:
    frame = make_long_frame(400)
    clean = lp.Fleet(MODEL)
    clean.process(frame, key="sensor", time="when")
    extra = frame.iloc[[5, 80, 200]].copy()
    extra["when"] += pd.Timedelta("1s")
    with_invalid = pd.concat([frame, extra], ignore_index=True)
    with_invalid.loc[400, "sensor"], with_invalid.loc[401, "when"], with_invalid.loc[402, "x"] = None, pd.NaT, np.nan
    for make in (LIBRARIES["pandas"], LIBRARIES["polars"], LIBRARIES["pyarrow"]):
        fleet = lp.Fleet(MODEL)
        result = fleet.process(make(with_invalid), key="sensor", values="x", time="when")
        assert np.flatnonzero(get_column(result, "invalid")).tolist() == [400, 401, 402]
        assert (fleet.n_missing_keys, fleet.n_invalid) == (1, 2)
        for key in clean:
            np.testing.assert_array_equal(fleet[key].means, clean[key].means)


def test_integer_keys_with_nulls_as_floats() -> None:
    frame = pd.DataFrame({"id": [1.0, np.nan, 2.0], "x": [1.0, 2.0, 3.0]})
    fleet = lp.Fleet(MODEL)
    fleet.process(frame, key="id")
    assert (sorted(fleet), fleet.n_missing_keys) == ([1, 2], 1)


def test_result_columns_of_a_detector() -> None:
    fleet = lp.Fleet(lp.Detector())
    result = fleet.process(pl.from_pandas(make_long_frame(300)), key="sensor", values=["x"], prefix="lp_")
    expected = ["score", "p_value", "change_score", "rejected", "anomaly", "change", "invalid"]
    assert result.columns == ["sensor", "x", "when", *(f"lp_{name}" for name in expected)]
    assert fleet.is_auto


def test_invalid_frames_raise() -> None:
    frame = make_long_frame(60)
    fleet = lp.Fleet(MODEL)
    wrong: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (frame, {"key": "unknown"}, InvalidInputError, "'unknown' not found. The frame has sensor, x, when"),
        (frame, {"key": "sensor", "values": ["x", "y"]}, InvalidInputError, "columns: 'y' not found"),
        (frame, {"key": "sensor", "values": ["when"]}, InvalidTypeError, "column 'when': must be numeric"),
        (
            frame,
            {"key": "when", "values": ["x"]},
            InvalidTypeError,
            "keys: must be strings or integers, got .* in the column 'when'",
        ),
        (
            frame.assign(score=1.0),
            {"key": "sensor", "values": "x"},
            InvalidInputError,
            "prefix: must not lead to existing columns",
        ),
        (
            frame[["sensor", "when"]],
            {"key": "sensor"},
            InvalidInputError,
            "values: must be one or more numeric columns",
        ),
        (pl.from_pandas(frame).lazy(), {"key": "sensor"}, InvalidTypeError, "frame: must be an eager dataframe"),
        ({"sensor": ["a"]}, {"key": "sensor"}, InvalidTypeError, "frame: must be an eager dataframe"),
        (np.zeros(3), {"key": "sensor"}, InvalidTypeError, "frame: must be an eager dataframe"),
        (frame, {"key": "sensor", "values": 3}, InvalidInputError, "columns: 3 not found"),
        (frame, {"key": "sensor", "values": []}, InvalidInputError, "values: must be one or more numeric columns"),
        (frame, {"key": "sensor", "values": ["x", "x"]}, InvalidInputError, "each once, got x, x"),
        (
            frame,
            {"key": "sensor", "values": "x", "prefix": None},
            InvalidTypeError,
            "prefix: must be a string, got None",
        ),
        (
            frame.set_axis(["sensor", "x", "x"], axis=1),
            {"key": "sensor"},
            InvalidInputError,
            "frame: must have distinct column names",
        ),
        (
            frame.set_axis([0, 1, 2], axis=1),
            {"key": "sensor"},
            InvalidInputError,
            "'sensor' not found. The frame has 0, 1, 2",
        ),
    ]
    for data, arguments, error, message in wrong:
        with pytest.raises(error, match=message):
            fleet.process(data, **arguments)
    assert len(fleet) == 0
    fleet.process(frame, key="sensor", values="x")
    with pytest.raises(InvalidInputError, match=r"values: must be x, .* got y"):
        fleet.process(frame.rename(columns={"x": "y"}), key="sensor", values="y")


def test_warning_counts_invalid_rows() -> None:
    frame = make_long_frame(50)
    frame.loc[7, "sensor"] = None
    with pytest.warns(LimpetWarning, match="1 of 50 points .* row 7"):
        lp.Fleet(MODEL).process(frame, key="sensor", values="x")


@pytest.mark.parametrize("names", [(0, 1), (("a", "key"), ("a", "x"))], ids=["numbers", "tuples"])
def test_columns_not_named_by_strings(names: tuple[Any, Any]) -> None:
    frame = pd.DataFrame({names[0]: ["a", "b"], names[1]: [1.0, 2.0]})
    for values in (None, names[1], [names[1]], pd.Index([names[1]], tupleize_cols=False)):
        fleet = lp.Fleet(MODEL)
        result = fleet.process(frame, key=names[0], values=values)
        assert (fleet.feature_names, sorted(fleet)) == ((str(names[1]),), ["a", "b"])
        assert list(result.columns) == [*frame.columns, "score", "rejected", "invalid"]
        restored = lp.from_bytes(fleet.to_bytes())
        assert isinstance(restored, lp.Fleet)
        restored.process(frame, key=names[0], values=values)


@pytest.mark.parametrize("width", [1, 2])
def test_frame_of_another_width_raises(width: int) -> None:
    """A frame must have the width of earlier points without names, or compiled code would read past the point."""
    frame = pd.DataFrame({"key": ["a", "b"], "x": [1.0, 2.0], "y": [3.0, 4.0]})
    fleet = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01))
    fleet.update(["a", "b"], np.ones((2, width)))
    with pytest.raises(InvalidInputError, match=f"values: must be {width} columns?, .* got {3 - width}: x"):
        fleet.process(frame, key="key", values=["x", "y"][: 3 - width])
    fleet.process(frame, key="key", values=["x", "y"][:width])
    assert fleet.feature_names == ("x", "y")[:width]


TIMES = [2**60 + 3, 2**60 + 1, None, 2**60 + 2]


@pytest.mark.parametrize(
    "times",
    [
        pl.Series(TIMES),
        pd.Series(TIMES, dtype="Int64"),
        pd.Series(TIMES, dtype=object),
        pa.array(TIMES),
        pl.Series(TIMES, dtype=pl.Int128),
        pl.Series(["c", "a", None, "b"]),
    ],
    ids=["polars", "pandas", "objects", "pyarrow", "128 bits", "strings"],
)
def test_times_are_exact(times: Any) -> None:
    columns = {"key": ["a"] * 4, "x": [3.0, 1.0, 9.0, 2.0], "when": times}
    make: Any = {"polars": pl.DataFrame, "pandas": pd.DataFrame, "pyarrow": pa.table}[
        type(times).__module__.split(".")[0]
    ]
    model = lp.SRA(1, gamma=3.0, rho=0.05, n_init=2)
    fleet, learner = lp.Fleet(model), model.clone()
    result = fleet.process(make(columns), key="key", values="x", time="when")
    trace = learner.process([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(get_column(result, "score")[[1, 3, 0]], trace.score)
    assert get_column(result, "invalid").tolist() == [False, False, True, False]
    np.testing.assert_array_equal(fleet["a"].means, learner.means)


@pytest.mark.parametrize(
    "times",
    [
        pd.Series([1, "a"], dtype=object),
        pd.Series([None, 2, "a"], dtype=object),
        pl.Series([[1, 2], [3, 4]]),
        pl.Series([{"a": 1}, {"a": 2}]),
    ],
    ids=["mixed", "mixed and missing", "lists", "structs"],
)
def test_times_without_an_order_raise(times: Any) -> None:
    columns = {"key": ["a"] * len(times), "x": np.ones(len(times)), "when": times}
    frame = pd.DataFrame(columns) if isinstance(times, pd.Series) else pl.DataFrame(columns)
    with pytest.raises(InvalidTypeError, match="time: column 'when' must have an order"):
        lp.Fleet(MODEL).process(frame, key="key", values="x", time="when")


def test_messages_name_the_rows_of_the_frame() -> None:
    """The rows of the input, not of the order in time."""
    frame = pd.DataFrame({"key": ["a"] * 4, "x": [1.0, np.inf, 2.0, 3.0], "when": [4, 3, 2, 1]})
    arguments = {"key": "key", "values": "x", "time": "when"}
    with pytest.raises(InvalidInputError, match="row 1: must be usable"):
        lp.Fleet(lp.SRA(gamma=4.0, rho=0.01, on_invalid="raise")).process(frame, **arguments)
    with pytest.warns(LimpetWarning, match="first row 1"):
        lp.Fleet(lp.SRA(gamma=4.0, rho=0.01)).process(frame, **arguments)
    keyless = frame.assign(x=1.0, key=["a", None, "a", "a"])
    with pytest.raises(InvalidInputError, match="keys: must not be missing, got none in row 1"):
        lp.Fleet(lp.SRA(gamma=4.0, rho=0.01, on_invalid="raise")).process(keyless, **arguments)
