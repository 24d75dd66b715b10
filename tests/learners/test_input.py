"""What users pass: numbers, sequences, arrays, dicts, dataframes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import limpet as lp
from limpet.exceptions import InvalidInputError, InvalidTypeError, LimpetWarning, MissingExtraError
from limpet.learners.input import read_point
from limpet.models import LinearRegression

RNG = np.random.default_rng(0)
Y = RNG.normal(size=(80, 2))
LINE = RNG.normal(size=80)


def state_after(X):
    learner = lp.SRA(rho=0.01)
    learner.process(X)
    return learner.state


@pytest.mark.parametrize(
    "same",
    [
        LINE.tolist(),
        tuple(LINE),
        LINE.reshape(-1, 1),
        LINE.astype(np.longdouble),
        LINE[::-1][::-1],
        pd.Series(LINE, name="x"),
        pd.Series(LINE),
        pl.Series("x", LINE),
        pd.DataFrame({"x": LINE}),
        pl.DataFrame({"x": LINE}),
        [{"x": value} for value in LINE],
        np.ma.MaskedArray(LINE),
    ],
    ids=lambda X: type(X).__module__ + "." + type(X).__name__,
)
def test_one_variable_in_any_dress(same):
    np.testing.assert_array_equal(state_after(same), state_after(LINE))


@pytest.mark.parametrize(
    "same",
    [
        Y.tolist(),
        np.asfortranarray(Y),
        pd.DataFrame(Y, columns=["a", "b"]),
        pl.DataFrame(Y, schema=["a", "b"]),
        pl.DataFrame(Y, schema=["a", "b"]).to_arrow(),
        [{"a": a, "b": b} for a, b in Y],
        [{"b": b, "a": a} if i else {"a": a, "b": b} for i, (a, b) in enumerate(Y)],
    ],
    ids=lambda X: type(X).__module__ + "." + type(X).__name__,
)
def test_two_variables_in_any_dress(same):
    np.testing.assert_array_equal(state_after(same), state_after(Y))


@pytest.mark.parametrize("point", [1, 1.0, True, np.float32(1.0), np.int64(1), [1], (1.0,), np.array([1.0]), {"x": 1}])
def test_a_number_in_any_dress(point):
    plain, other = lp.Detector(), lp.Detector()
    plain.process(LINE)
    other.process(LINE)
    assert other.update(point) == plain.update(1.0)
    np.testing.assert_array_equal(other.state, plain.state)


def test_names_are_remembered_and_decide_the_order():
    learner = lp.SRA(rho=0.01)
    learner.process(pd.DataFrame(Y, columns=["a", "b"]))
    assert learner.feature_names == ("a", "b")
    before = learner.to_bytes()
    again = lp.from_bytes(before)
    again.process(pd.DataFrame(Y[:, ::-1], columns=["b", "a"]))
    learner.process(Y)
    np.testing.assert_array_equal(again.state, learner.state)
    assert (
        again.update({"b": 1.0}).score == learner.update([np.nan, 1.0]).score
    )  # a variable that is missing is missing
    with pytest.raises(InvalidInputError, match="must have the columns a, b, got a, c"):
        learner.process(pd.DataFrame(Y, columns=["a", "c"]))
    with pytest.raises(InvalidInputError, match="among a, b, got 'z'"):
        learner.update({"a": 1.0, "z": 2.0})


def test_null_is_missing():
    frame = pl.DataFrame({"a": [1.0, None, *Y[2:, 0]], "b": Y[:, 1]})
    rows = Y.copy()
    rows[0, 0], rows[1, 0] = 1.0, np.nan
    np.testing.assert_array_equal(state_after(frame), state_after(rows))
    masked = np.ma.MaskedArray(np.nan_to_num(rows, nan=12345.0), np.isnan(rows))
    np.testing.assert_array_equal(state_after(masked), state_after(rows))


def test_strings_in_a_dataframe_are_refused_by_name():
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
def test_the_wrong_shape_is_named_in_the_error(X, expected):
    learner = lp.SRA(rho=0.01)
    learner.process(Y)
    with pytest.raises(InvalidInputError, match=expected):
        learner.process(X)


def test_no_rows_are_no_rows():
    learner = lp.SRA(rho=0.01)
    assert len(learner.process(np.zeros((0, 2)))) == 0
    assert learner.n_seen == 0
    learner.process(Y)
    before = learner.to_bytes()
    assert len(learner.process(np.zeros((0, 2)), record="means").means) == 0
    assert learner.to_bytes() == before


def test_without_narwhals_a_dataframe_names_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "narwhals.stable.v1", None)
    with pytest.raises(MissingExtraError, match=r"limpet\[dataframes\]"):
        lp.SRA(rho=0.01).process(pd.DataFrame(Y))


def test_pairs():
    X, y = Y, Y @ (1.0, 2.0)
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


def test_what_a_model_does_not_have_is_an_attribute_error():
    learner = lp.SRA(rho=0.01)
    learner.process(LINE)
    with pytest.raises(AttributeError, match="GaussianMixture has no coef; it has weights, means, covariances"):
        _ = learner.coef
    with pytest.raises(AttributeError, match="no predict"):
        learner.predict(1.0)
    with pytest.raises(AttributeError, match="record='means'"):
        _ = learner.process(LINE).means
    with pytest.raises(InvalidInputError, match=r"^record: must be 'means'"):
        learner.process(LINE, record="weights")


def test_a_point_that_cannot_be_written_to_is_compiled_for_no_second_time():
    """Rows of a dataframe or of a buffer are such: Numba would make machine code for these custom."""
    y = np.arange(4.0)
    y.flags.writeable = False
    point, _ = read_point(y, 4, None)
    assert point.flags.writeable
    assert point.flags.c_contiguous
    assert point.tolist() == y.tolist()
