"""Keys and rows against a plain dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.exceptions import InvalidTypeError
from limpet.fleet._backends import PointSchedule
from limpet.fleet._key_index import (
    MAX_INT_KEY,
    MIN_INT_KEY,
    NO_ROW,
    UNKNOWN_ROW,
    IntHashTable,
    IntKeys,
    KeyIndex,
    StrKeys,
    StrTable,
)

NONE = np.zeros(0, np.bool_)
WHOLE = st.integers(-20, 20) | st.integers(MIN_INT_KEY, MAX_INT_KEY)


@given(st.lists(st.tuples(st.lists(WHOLE, max_size=30), st.lists(st.integers(0, 30), max_size=5))))
def test_numbers_as_a_dict_would_have_them(calls: list[tuple[list[int], list[int]]]) -> None:
    table, expected = IntHashTable(), dict[int, int]()
    for keys_given, leaving in calls:
        lookup = table.look_up(np.array(keys_given, np.int64), NONE)
        new = list(dict.fromkeys(key for key in keys_given if key not in expected))
        assert list(lookup.unknown_keys) == new
        assert [keys_given.index(key) for key in new] == lookup.first_index.tolist()
        numbers = {key: UNKNOWN_ROW - i for i, key in enumerate(new)}
        assert lookup.rows.tolist() == [expected.get(key, numbers.get(key)) for key in keys_given]
        rows = np.arange(len(new)) + len(expected) + 1000
        table.put(new, rows)
        expected |= dict(zip(new, rows.tolist(), strict=True))
        gone = [key for i, key in enumerate(expected) if i in leaving]
        table.remove(gone)
        for key in gone:
            del expected[key]
        assert all(table.get_row(key) == row for key, row in expected.items())
        assert all(table.get_row(key) is None for key in gone)


def test_numbers_in_large_tables() -> None:
    """Grown many times; keys that collide in their lower or upper bits."""
    table = IntHashTable()
    keys = np.concatenate([np.arange(70_000), np.arange(1, 2000) << 40, np.arange(1, 2000) * -(1 << 20)])
    lookup = table.look_up(keys, NONE)
    assert (lookup.rows == UNKNOWN_ROW - np.arange(len(keys))).all()
    table.put(lookup.unknown_keys, np.arange(len(keys)))
    shuffled = np.random.default_rng(0).permutation(len(keys))
    again = table.look_up(keys[shuffled], NONE)
    np.testing.assert_array_equal(again.rows, shuffled)
    assert not len(again.unknown_keys)


def test_a_missing_number_is_nobodys() -> None:
    lookup = IntHashTable().look_up(np.array([0, 0, 1]), np.array([True, False, False]))
    assert lookup.rows.tolist() == [NO_ROW, UNKNOWN_ROW, UNKNOWN_ROW - 1]
    assert IntHashTable().get_row("a") is None
    assert IntHashTable().get_row(True) is None


@given(st.lists(st.lists(st.sampled_from(["a", "b", "", "ü", "long " * 9]) | st.none(), max_size=20)))
def test_strings_with_and_without_codes(calls: list[list[str | None]]) -> None:
    plain, coded = StrTable(), StrTable()
    for strings in calls:
        kinds = ["unused", *dict.fromkeys(text for text in reversed(strings) if text is not None)]
        codes = np.array([-1 if text is None else kinds.index(text) for text in strings], np.int64)
        lookup, other = plain.look_up(strings), coded.look_up_codes(codes, kinds)
        assert lookup.rows.tolist() == other.rows.tolist()
        assert list(lookup.unknown_keys) == list(other.unknown_keys)
        assert lookup.first_index.tolist() == other.first_index.tolist()
        for table in (plain, coded):
            table.put(lookup.unknown_keys, range(len(table.rows), len(table.rows) + len(lookup.unknown_keys)))


def test_a_number_among_strings_is_an_error() -> None:
    with pytest.raises(InvalidTypeError, match="keys: must be strings, as this fleet has, got 3"):
        StrTable().look_up(["a", 3])


@given(st.lists(st.integers(-1, 30), max_size=40))
def test_points_are_sorted_by_stream(rows: list[int]) -> None:
    """Counted or sorted, each stream has its points in order."""
    array = np.array(rows, np.int64)
    expected = {row: [i for i, other in enumerate(rows) if other == row] for row in sorted(set(rows) - {-1})}
    for n_rows in (31, 10**4):
        rounds = PointSchedule.from_rows(array, n_rows)
        spans = zip(rounds.streams.tolist(), rounds.starts.tolist(), rounds.counts.tolist(), strict=True)
        assert {row: rounds.order[first : first + n].tolist() for row, first, n in spans} == expected


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8)), max_size=60))
def test_rows_are_used_again(moves: list[tuple[bool, int]]) -> None:
    keys, expected = KeyIndex(), dict[int, int]()
    for joins, key in moves:
        if joins:
            lookup = keys.look_up(IntKeys(np.array([key]), NONE))
            assert (lookup.rows[0] >= 0) == (key in expected)
            if key not in expected:
                expected[key] = int(keys.add(lookup.unknown_keys)[0])
        elif key in expected:
            keys.release_row(expected.pop(key))
        assert len(keys) == len(expected)
        assert sorted(keys) == sorted(expected)
        assert {keys.get_key(row): row for row in keys.rows.tolist()} == expected
        assert all(keys.get_row(k) == row for k, row in expected.items())
    assert keys.n_rows <= 9


def test_unknown_keys_can_be_forgotten() -> None:
    keys = KeyIndex()
    lookup = keys.look_up(StrKeys(["a", "b"]))
    keys.add(lookup.unknown_keys[:1])
    keys.discard_pending(lookup.unknown_keys[1:])
    assert (keys.get_row("a"), keys.get_row("b"), len(keys)) == (0, None, 1)
