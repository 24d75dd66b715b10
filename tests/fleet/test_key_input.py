"""Input types of keys and points of fleets."""

from __future__ import annotations

import enum
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import limpet as lp
from limpet.exceptions import InvalidInputError, InvalidTypeError
from limpet.fleet._key_index import NO_ROW, IntKeys, StrKeys, StrTable
from limpet.fleet._key_input import read_keys


def read_key_list(keys: Any) -> list[str | int | None]:
    """Return the keys that were read."""
    result = read_keys(keys)
    if isinstance(result, IntKeys):
        missing = result.missing.tolist() if len(result.missing) else [False] * len(result)
        return [None if is_missing else key for key, is_missing in zip(result.values.tolist(), missing, strict=True)]
    strings = [text if isinstance(text, str) else None for text in result.values]
    return strings if result.codes is None else [strings[code] if code >= 0 else None for code in result.codes]


def test_a_list_of_strings_is_not_copied() -> None:
    """A copy to an array would pad all strings to the longest."""
    strings = [f"sensor {i}" for i in range(2000)] + ["long" * 5000]
    tracemalloc.start()
    result = read_keys(strings)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.values is strings
    assert peak < 100_000


class StringEnum(str, enum.Enum):  # noqa: UP042  (its str is "StringEnum.A", and it equals "a")
    A = "a"


class IntegerEnum(enum.IntEnum):
    THREE = 3


LARGE_INT = 2**60 + 1  # no float64
VALID_KEYS: list[tuple[Any, list[str | int | None]]] = [
    ([LARGE_INT, None], [LARGE_INT, None]),
    ([LARGE_INT, 1.0, float("nan")], [LARGE_INT, 1, None]),
    ([-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    ([np.int16(3), np.uint8(4), np.uint64(5), None], [3, 4, 5, None]),
    ([np.float32(3), None], [3, None]),
    ([pd.NA, 1], [None, 1]),
    ([pd.NA, "a", np.nan, pd.NaT, None], [None, "a", None, None, None]),
    ([IntegerEnum.THREE, 4], [3, 4]),
    (range(3), [0, 1, 2]),
    (np.array(["a", None], object), ["a", None]),
    (np.ma.array([7, 2], mask=[True, False]), [None, 2]),
    (np.ma.array([1.5, 2.0], mask=[True, False]), [None, 2]),
    (np.ma.array(["a", "b"], mask=[True, False]), [None, "b"]),
    (pd.Series([1, LARGE_INT, None], dtype=object), [1, LARGE_INT, None]),
    (pd.Series(["a", pd.NA, None], dtype=object), ["a", None, None]),
    (pd.Series([1, 2, None, 1], dtype="category"), [1, 2, None, 1]),
    (pd.Index(["a", "b"]), ["a", "b"]),
    (pd.Index([1, 2]), [1, 2]),
    (pd.Categorical(["b", None, "a"]), ["b", None, "a"]),
    (pd.array(["a", None]), ["a", None]),
    (pd.array([LARGE_INT, None]), [LARGE_INT, None]),
    (pd.Series(["a", None], dtype=pd.ArrowDtype(pa.string_view())), ["a", None]),
    (pa.array(["a", None]), ["a", None]),
    (pa.array([LARGE_INT, None]), [LARGE_INT, None]),
    (pa.chunked_array([["a"], ["b", None]]), ["a", "b", None]),
    (pa.chunked_array([["a"], ["b", None]], pa.string_view()), ["a", "b", None]),
    (pa.array([5, None, 5]).dictionary_encode(), [5, None, 5]),
    (pl.Series([1, None], dtype=pl.Object), [1, None]),
    (pl.Series([LARGE_INT, None], dtype=pl.Int128), [LARGE_INT, None]),
]


@pytest.mark.parametrize(("keys", "expected"), VALID_KEYS, ids=lambda value: type(value).__name__)
def test_keys_of_many_input_types(keys: Any, expected: list[str | int | None]) -> None:
    assert read_key_list(keys) == expected


def test_string_subclass_is_converted_to_str() -> None:
    lookup = StrTable().look_up([StringEnum.A, "a", "b"])
    assert (lookup.unknown_keys, [type(key) for key in lookup.unknown_keys]) == (["a", "b"], [str, str])


WRONG_KEYS: list[tuple[Any, str]] = [
    ([2**70, 1], "fit in 64 bits, got 1180591620717411303424"),
    ([2**63, -1], "fit in 64 bits"),
    ([2**63, None], "fit in 64 bits"),
    ([-(2**63) - 1], "fit in 64 bits"),
    ([np.uint64(2**63), 1], "fit in 64 bits"),
    (np.array([2**70, 1], object), "fit in 64 bits"),
    ([1, True], r"got True \(bool\)"),
    ([np.True_], "got np.True_"),
    (np.array([True]), "an array of bool"),
    ([1.5, None], "fractions"),
    ([1.5, 1], "fractions"),
    (["a", 3], r"all of one type, got strings and 3 \(int\)"),
    ([None, 3.0, "a"], r"all of one type, got strings and 3.0 \(float\)"),
    (["a", ["b"]], r"got \['b'\] \(list\)"),
    ([["a"], "a"], r"got \['a'\] \(list\)"),
    ([b"a"], r"got b'a' \(bytes\)"),
    (pd.Series(["a"] * 200 + [1], dtype=object), "all of one type"),
    (pd.Series([["a"], "b"], dtype=object), r"\(list\)"),
    (pd.Series([True, False]), "Boolean"),
    (pd.MultiIndex.from_tuples([("a", 1)]), "got MultiIndex"),
    (pd.DataFrame({"a": [1]}), "got DataFrame"),
    (pl.Series([1, "a"], dtype=pl.Object), "all of one type"),
    ((key for key in "a"), "got generator"),
    ({"a"}, "got set"),
    (3, "got int"),
    ("a", "got str"),
]


@pytest.mark.parametrize(("keys", "message"), WRONG_KEYS, ids=lambda value: type(value).__name__)
def test_wrong_keys_raise(keys: Any, message: str) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        read_keys(keys)


MISSING_KEYS: list[Any] = [
    [None],
    [pd.NA],
    [float("nan")],
    np.array([np.nan]),
    np.array([None]),
    np.ma.array([1], mask=[True]),
    pd.Series([np.nan]),
    pd.Series([None], dtype=object),
    pd.Series([None], dtype="str"),
    pd.Series([None], dtype="Int64"),
    pd.Series([pd.NaT]),
    pd.Categorical([None], categories=["a"]),
    pl.Series([None]),
    pl.Series([None], dtype=pl.String),
    pl.Series([None], dtype=pl.Categorical),
    pl.Series([None], dtype=pl.Int64),
    pa.nulls(1),
    pa.array([None], pa.string()),
    pa.DictionaryArray.from_arrays(pa.array([None], pa.int32()), pa.array(["a"])),
]


@pytest.mark.parametrize("keys", MISSING_KEYS, ids=lambda keys: type(keys).__name__)
def test_missing_keys_have_no_type(keys: Any) -> None:
    result = read_keys(keys)
    assert isinstance(result, StrKeys)
    assert result.codes is not None
    assert (len(result.values), result.codes.tolist()) == (0, [NO_ROW])


def test_surrogates_in_keys_raise() -> None:
    """Surrogates cannot be written to a file."""
    long = [*(f"ä{i}" for i in range(20_000)), "b\udcff"]
    for keys in (
        ["a", None, "b\udcff"],
        ["b", "\ud83d", "\ude00"],
        long,
        np.array(["b\udcff"]),
        pd.Series(long, dtype=object),
    ):
        with pytest.raises(InvalidInputError, match=r"'(b\\udcff|\\ud83d)' with half a character"):
            read_keys(keys)
    assert read_key_list(["\U0001f600", None]) == ["\U0001f600", None]


STRING_VALUES: list[Any] = [
    ["10", "20"],
    ["1", "2"],
    [None, "1"],
    [b"10", b"20"],
    [1.0, "2"],
    [["1"], ["2"]],
    [[None], ["2"]],
    [[1, "2"], [1, 2]],
    np.array([None, "1"], object),
]


@pytest.mark.parametrize("values", STRING_VALUES, ids=str)
def test_strings_are_not_values(values: Any) -> None:
    fleet = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01))
    fleet.update(["a", "b"], [1.0, 2.0])
    with pytest.raises(InvalidTypeError, match="numbers, got"):
        fleet.update(["a", "b"], values)
    assert fleet.n_seen == 2


@pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")
@pytest.mark.parametrize("keys", MISSING_KEYS, ids=lambda keys: type(keys).__name__)
def test_missing_keys_are_accepted_by_every_fleet(keys: Any) -> None:
    for others in (["a"], [1]):
        for first, then in ((keys, others), (others, keys)):
            fleet = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01))
            fleet.update(first, [1.0])
            fleet.update(then, [1.0])
            assert (fleet.keys(), fleet.n_missing_keys, fleet.n_seen) == (others, 1, 1)


@pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")
def test_missing_keys_do_not_match_the_cached_keys() -> None:
    fleet = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01))
    for keys in ([pd.NA, "b"], ["a", "b"], [pd.NA, "b"], np.array([pd.NA, "b"], object), np.array(["a", "b"], object)):
        fleet.update(keys, [1.0, 2.0])
    for mask in ([True, False], [False, True], [False, False]):
        fleet.update(np.ma.array(["a", "b"], mask=mask), [1.0, 2.0])
    assert dict(zip(fleet.keys(), fleet.counts()["n_seen"], strict=True)) == {"a": 4, "b": 7}
    assert fleet.n_missing_keys == 5


def test_surrogate_is_not_a_key(tmp_path: Any) -> None:
    fleet = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01), max_keys=1, spill=tmp_path / "spill")
    fleet.update(["a", "b"], [1.0, 2.0])
    assert "\udcff" not in fleet
    assert StringEnum.A in fleet
    with pytest.raises(KeyError):
        fleet["\udcff"]
