"""What users pass as keys and points of many streams."""

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


def keys_of(expected_keys: Any) -> list[str | int | None]:
    """What was read, one by one."""
    read = read_keys(expected_keys)
    if isinstance(read, IntKeys):
        missing = read.missing.tolist() if len(read.missing) else [False] * len(read)
        return [None if gone else key for key, gone in zip(read.values.tolist(), missing, strict=True)]
    strings = [text if isinstance(text, str) else None for text in read.values]
    return strings if read.codes is None else [strings[code] if code >= 0 else None for code in read.codes]


def test_a_list_of_strings_is_not_copied() -> None:
    """An array would pad all strings to the length of the longest."""
    strings = [f"sensor {i}" for i in range(2000)] + ["long" * 5000]
    tracemalloc.start()
    read = read_keys(strings)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read.values is strings
    assert peak < 100_000


class Kind(str, enum.Enum):  # noqa: UP042  (shows itself as Kind.A, and is "a")
    A = "a"


class Number(enum.IntEnum):
    THREE = 3


LARGE = 2**60 + 1  # no float64
READ: list[tuple[Any, list[str | int | None]]] = [
    ([LARGE, None], [LARGE, None]),
    ([LARGE, 1.0, float("nan")], [LARGE, 1, None]),
    ([-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    ([np.int16(3), np.uint8(4), np.uint64(5), None], [3, 4, 5, None]),
    ([np.float32(3), None], [3, None]),
    ([pd.NA, 1], [None, 1]),
    ([pd.NA, "a", np.nan, pd.NaT, None], [None, "a", None, None, None]),
    ([Number.THREE, 4], [3, 4]),
    (range(3), [0, 1, 2]),
    (np.array(["a", None], object), ["a", None]),
    (np.ma.array([7, 2], mask=[True, False]), [None, 2]),
    (np.ma.array([1.5, 2.0], mask=[True, False]), [None, 2]),
    (np.ma.array(["a", "b"], mask=[True, False]), [None, "b"]),
    (pd.Series([1, LARGE, None], dtype=object), [1, LARGE, None]),
    (pd.Series(["a", pd.NA, None], dtype=object), ["a", None, None]),
    (pd.Series([1, 2, None, 1], dtype="category"), [1, 2, None, 1]),
    (pd.Index(["a", "b"]), ["a", "b"]),
    (pd.Index([1, 2]), [1, 2]),
    (pd.Categorical(["b", None, "a"]), ["b", None, "a"]),
    (pd.array(["a", None]), ["a", None]),
    (pd.array([LARGE, None]), [LARGE, None]),
    (pd.Series(["a", None], dtype=pd.ArrowDtype(pa.string_view())), ["a", None]),
    (pa.array(["a", None]), ["a", None]),
    (pa.array([LARGE, None]), [LARGE, None]),
    (pa.chunked_array([["a"], ["b", None]]), ["a", "b", None]),
    (pa.chunked_array([["a"], ["b", None]], pa.string_view()), ["a", "b", None]),
    (pa.array([5, None, 5]).dictionary_encode(), [5, None, 5]),
    (pl.Series([1, None], dtype=pl.Object), [1, None]),
    (pl.Series([LARGE, None], dtype=pl.Int128), [LARGE, None]),
]


@pytest.mark.parametrize(("keys", "expected"), READ, ids=lambda value: type(value).__name__)
def test_keys_of_many_containers(keys: Any, expected: list[str | int | None]) -> None:
    assert keys_of(keys) == expected


def test_a_kind_of_text_is_the_text_that_it_is() -> None:
    lookup = StrTable().look_up([Kind.A, "a", "b"])
    assert (lookup.unknown_keys, [type(key) for key in lookup.unknown_keys]) == (["a", "b"], [str, str])


REFUSED: list[tuple[Any, str]] = [
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


@pytest.mark.parametrize(("keys", "message"), REFUSED, ids=lambda value: type(value).__name__)
def test_what_cannot_be_keys_is_refused_in_words(keys: Any, message: str) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        read_keys(keys)


NOBODIES: list[Any] = [
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


@pytest.mark.parametrize("keys", NOBODIES, ids=lambda keys: type(keys).__name__)
def test_keys_that_are_all_missing_are_of_no_kind(keys: Any) -> None:
    read = read_keys(keys)
    assert isinstance(read, StrKeys)
    assert read.codes is not None
    assert (len(read.values), read.codes.tolist()) == (0, [NO_ROW])


def test_halves_of_characters_are_refused() -> None:
    """They could not be written to a file, and a call with one of them is an error."""
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
    assert keys_of(["\U0001f600", None]) == ["\U0001f600", None]


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
@pytest.mark.parametrize("keys", NOBODIES, ids=lambda keys: type(keys).__name__)
def test_missing_keys_fit_every_fleet(keys: Any) -> None:
    for others in (["a"], [1]):
        for first, then in ((keys, others), (others, keys)):
            fleet = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01))
            fleet.update(first, [1.0])
            fleet.update(then, [1.0])
            assert (fleet.keys(), fleet.n_missing_keys, fleet.n_seen) == (others, 1, 1)


@pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")
def test_missing_keys_are_not_taken_for_those_of_the_call_before() -> None:
    fleet = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01))
    for keys in ([pd.NA, "b"], ["a", "b"], [pd.NA, "b"], np.array([pd.NA, "b"], object), np.array(["a", "b"], object)):
        fleet.update(keys, [1.0, 2.0])
    for mask in ([True, False], [False, True], [False, False]):
        fleet.update(np.ma.array(["a", "b"], mask=mask), [1.0, 2.0])
    assert dict(zip(fleet.keys(), fleet.counts()["n_seen"], strict=True)) == {"a": 4, "b": 7}
    assert fleet.n_missing_keys == 5


def test_half_a_character_is_nobodys_key(tmp_path: Any) -> None:
    fleet = lp.Fleet(lp.SRA(gamma=4.0, rho=0.01), max_keys=1, spill=tmp_path / "spill")
    fleet.update(["a", "b"], [1.0, 2.0])
    assert "\udcff" not in fleet
    assert Kind.A in fleet
    with pytest.raises(KeyError):
        fleet["\udcff"]
