"""Input types: numbers, sequences, arrays, dicts, dataframes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import limpet as lp
from limpet.exceptions import InvalidInputError, InvalidTypeError, LimpetWarning, MissingExtraError
from limpet.learners.input import read_point
from limpet.models import LinearRegression

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(80, 2))
VALUES = RNG.normal(size=80)


def learn_state(X):
    learner = lp.SRA(rho=0.01)
    learner.process(X)
    return learner.state


@pytest.mark.parametrize(
    "same",
    [
        VALUES.tolist(),
        tuple(VALUES),
        VALUES.reshape(-1, 1),
        VALUES.astype(np.longdouble),
        VALUES[::-1][::-1],
        pd.Series(VALUES, name="x"),
        pd.Series(VALUES),
        pl.Series("x", VALUES),
        pd.DataFrame({"x": VALUES}),
        pl.DataFrame({"x": VALUES}),
        [{"x": value} for value in VALUES],
        np.ma.MaskedArray(VALUES),
    ],
    ids=lambda X: type(X).__module__ + "." + type(X).__name__,
)
def test_one_variable_of_any_input_type(same):
    np.testing.assert_array_equal(learn_state(same), learn_state(VALUES))


@pytest.mark.parametrize(
    "same",
    [
        POINTS.tolist(),
        np.asfortranarray(POINTS),
        pd.DataFrame(POINTS, columns=["a", "b"]),
        pl.DataFrame(POINTS, schema=["a", "b"]),
        pl.DataFrame(POINTS, schema=["a", "b"]).to_arrow(),
        [{"a": a, "b": b} for a, b in POINTS],
        [{"b": b, "a": a} if i else {"a": a, "b": b} for i, (a, b) in enumerate(POINTS)],
    ],
    ids=lambda X: type(X).__module__ + "." + type(X).__name__,
)
def test_two_variables_of_any_input_type(same):
    np.testing.assert_array_equal(learn_state(same), learn_state(POINTS))


@pytest.mark.parametrize("point", [1, 1.0, True, np.float32(1.0), np.int64(1), [1], (1.0,), np.array([1.0]), {"x": 1}])
def test_number_of_any_type(point):
    plain, other = lp.Detector(), lp.Detector()
    plain.process(VALUES)
    other.process(VALUES)
    assert other.update(point) == plain.update(1.0)
    np.testing.assert_array_equal(other.state, plain.state)


def test_names_are_stored_and_determine_the_order():
    learner = lp.SRA(rho=0.01)
    learner.process(pd.DataFrame(POINTS, columns=["a", "b"]))
    assert learner.feature_names == ("a", "b")
    before = learner.to_bytes()
    again = lp.from_bytes(before)
    again.process(pd.DataFrame(POINTS[:, ::-1], columns=["b", "a"]))
    learner.process(POINTS)
    np.testing.assert_array_equal(again.state, learner.state)
    # A variable without a value is missing.
    assert again.update({"b": 1.0}).score == learner.update([np.nan, 1.0]).score
    with pytest.raises(InvalidInputError, match="must have the columns a, b, got a, c"):
        learner.process(pd.DataFrame(POINTS, columns=["a", "c"]))
    with pytest.raises(InvalidInputError, match="among a, b, got 'z'"):
        learner.update({"a": 1.0, "z": 2.0})


def test_null_is_missing():
    frame = pl.DataFrame({"a": [1.0, None, *POINTS[2:, 0]], "b": POINTS[:, 1]})
    rows = POINTS.copy()
    rows[0, 0], rows[1, 0] = 1.0, np.nan
    np.testing.assert_array_equal(learn_state(frame), learn_state(rows))
    masked = np.ma.MaskedArray(np.nan_to_num(rows, nan=12345.0), np.isnan(rows))
    np.testing.assert_array_equal(learn_state(masked), learn_state(rows))


def test_strings_in_a_dataframe_raise_with_the_column_name():
    with pytest.raises(InvalidTypeError, match="'who'"):
        lp.SRA(rho=0.01).process(pd.DataFrame({"who": ["x", "y"], "a": [1.0, 2.0]}))
    with pytest.raises(InvalidTypeError, match="LazyFrame"):
        lp.SRA(rho=0.01).process(pl.DataFrame({"a": [1.0]}).lazy())


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (np.zeros((4, 3)), r"X: must have shape \(T, 2\), got \(4, 3\)"),
        (np.zeros(4), r"X: must have shape \(T, 2\), got \(4,\)"),
        (np.zeros((2, 2, 2)), r"got \(2, 2, 2\)"),
        (
            pd.DataFrame(np.zeros((3, 3)), columns=list("abc")),
            "X: must be a dataframe of 2 columns, got 3: a, b, c",
        ),
    ],
)
def test_wrong_shape_is_named_in_the_error(X, expected):
    learner = lp.SRA(rho=0.01)
    learner.process(POINTS)
    with pytest.raises(InvalidInputError, match=expected):
        learner.process(X)


def test_empty_batch_changes_nothing():
    learner = lp.SRA(rho=0.01)
    assert len(learner.process(np.zeros((0, 2)))) == 0
    assert learner.n_seen == 0
    learner.process(POINTS)
    before = learner.to_bytes()
    assert len(learner.process(np.zeros((0, 2)), record="means").means) == 0
    assert learner.to_bytes() == before


def test_without_narwhals_a_dataframe_names_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "narwhals.stable.v1", None)
    with pytest.raises(MissingExtraError, match=r"limpet\[dataframes\]"):
        lp.SRA(rho=0.01).process(pd.DataFrame(POINTS))


def test_pairs_of_features_and_target():
    X, y = POINTS, POINTS @ (1.0, 2.0)
    a, b = lp.SRA(rho=0.01, model=LinearRegression()), lp.SRA(rho=0.01, model=LinearRegression())
    a.process(pd.DataFrame(X, columns=["p", "q"]), pd.Series(y))
    for row, target in zip(X, y, strict=True):
        b.update({"p": row[0], "q": row[1]}, target)
    np.testing.assert_array_equal(a.state, b.state)
    np.testing.assert_allclose(a.predict(X), [a.predict(row) for row in X])
    np.testing.assert_allclose(a.predict({"p": 1.0, "q": 0.0}) - a.predict({"p": 0.0, "q": 0.0}), a.coef[0])
    np.testing.assert_allclose(a.predict([0.0, 0.0]), a.intercept)
    with pytest.raises(InvalidInputError, match=r"^y:"):
        a.process(X, y[:-1])
    with pytest.warns(LimpetWarning, match="1 of 80"):
        a.process(X, np.where(np.arange(80) == 5, np.nan, y))


def test_missing_estimate_raises_attribute_error():
    learner = lp.SRA(rho=0.01)
    learner.process(VALUES)
    with pytest.raises(AttributeError, match="GaussianMixture has no coef; it has weights, means, covariances"):
        _ = learner.coef
    with pytest.raises(AttributeError, match="no predict"):
        learner.predict(1.0)
    with pytest.raises(AttributeError, match="record='means'"):
        _ = learner.process(VALUES).means
    with pytest.raises(InvalidInputError, match=r"^record: must be 'means'"):
        learner.process(VALUES, record="weights")


def test_read_only_point_is_copied_to_avoid_a_second_compilation():
    """Rows of a dataframe or of a buffer are read-only; Numba would compile another version for these."""
    y = np.arange(4.0)
    y.flags.writeable = False
    point, _ = read_point(y, 4, None)
    assert point.flags.writeable
    assert point.flags.c_contiguous
    assert point.tolist() == y.tolist()
