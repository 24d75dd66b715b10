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

NO_MISSING = np.zeros(0, np.bool_)
INT_KEYS = st.integers(-20, 20) | st.integers(MIN_INT_KEY, MAX_INT_KEY)


@given(st.lists(st.tuples(st.lists(INT_KEYS, max_size=30), st.lists(st.integers(0, 30), max_size=5))))
def test_integer_keys_equal_a_dict(calls: list[tuple[list[int], list[int]]]) -> None:
    table, expected = IntHashTable(), dict[int, int]()
    for keys, removed_indexes in calls:
        lookup = table.look_up(np.array(keys, np.int64), NO_MISSING)
        new = list(dict.fromkeys(key for key in keys if key not in expected))
        assert list(lookup.unknown_keys) == new
        assert [keys.index(key) for key in new] == lookup.first_index.tolist()
        unknown_rows = {key: UNKNOWN_ROW - i for i, key in enumerate(new)}
        assert lookup.rows.tolist() == [expected.get(key, unknown_rows.get(key)) for key in keys]
        rows = np.arange(len(new)) + len(expected) + 1000
        table.put(new, rows)
        expected |= dict(zip(new, rows.tolist(), strict=True))
        removed = [key for i, key in enumerate(expected) if i in removed_indexes]
        table.remove(removed)
        for key in removed:
            del expected[key]
        assert all(table.get_row(key) == row for key, row in expected.items())
        assert all(table.get_row(key) is None for key in removed)


def test_integer_keys_in_large_tables() -> None:
    """A table that has grown often, and keys that collide in their lower or upper bits."""
    table = IntHashTable()
    keys = np.concatenate([np.arange(70_000), np.arange(1, 2000) << 40, np.arange(1, 2000) * -(1 << 20)])
    lookup = table.look_up(keys, NO_MISSING)
    assert (lookup.rows == UNKNOWN_ROW - np.arange(len(keys))).all()
    table.put(lookup.unknown_keys, np.arange(len(keys)))
    shuffled = np.random.default_rng(0).permutation(len(keys))
    again = table.look_up(keys[shuffled], NO_MISSING)
    np.testing.assert_array_equal(again.rows, shuffled)
    assert not len(again.unknown_keys)


def test_missing_integer_key_has_no_row() -> None:
    lookup = IntHashTable().look_up(np.array([0, 0, 1]), np.array([True, False, False]))
    assert lookup.rows.tolist() == [NO_ROW, UNKNOWN_ROW, UNKNOWN_ROW - 1]
    assert IntHashTable().get_row("a") is None
    assert IntHashTable().get_row(True) is None


@given(st.lists(st.lists(st.sampled_from(["a", "b", "", "ü", "long " * 9]) | st.none(), max_size=20)))
def test_string_keys_with_and_without_codes(calls: list[list[str | None]]) -> None:
    plain, coded = StrTable(), StrTable()
    for strings in calls:
        categories = ["unused", *dict.fromkeys(text for text in reversed(strings) if text is not None)]
        codes = np.array([-1 if text is None else categories.index(text) for text in strings], np.int64)
        lookup, other = plain.look_up(strings), coded.look_up_codes(codes, categories)
        assert lookup.rows.tolist() == other.rows.tolist()
        assert list(lookup.unknown_keys) == list(other.unknown_keys)
        assert lookup.first_index.tolist() == other.first_index.tolist()
        for table in (plain, coded):
            table.put(lookup.unknown_keys, range(len(table.rows), len(table.rows) + len(lookup.unknown_keys)))


def test_integer_among_string_keys_raises() -> None:
    with pytest.raises(InvalidTypeError, match="keys: must be strings, as this fleet has, got 3"):
        StrTable().look_up(["a", 3])


@given(st.lists(st.integers(-1, 30), max_size=40))
def test_points_are_sorted_by_stream(rows: list[int]) -> None:
    """Counting sort and comparison sort keep the points of each stream in order."""
    array = np.array(rows, np.int64)
    expected = {row: [i for i, other in enumerate(rows) if other == row] for row in sorted(set(rows) - {-1})}
    for n_rows in (31, 10**4):
        schedule = PointSchedule.from_rows(array, n_rows)
        spans = zip(schedule.streams.tolist(), schedule.starts.tolist(), schedule.counts.tolist(), strict=True)
        assert {row: schedule.order[first : first + n].tolist() for row, first, n in spans} == expected


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8)), max_size=60))
def test_rows_of_dropped_keys_are_reused(operations: list[tuple[bool, int]]) -> None:
    keys, expected = KeyIndex(), dict[int, int]()
    for is_added, key in operations:
        if is_added:
            lookup = keys.look_up(IntKeys(np.array([key]), NO_MISSING))
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


def test_pending_keys_can_be_discarded() -> None:
    keys = KeyIndex()
    lookup = keys.look_up(StrKeys(["a", "b"]))
    keys.add(lookup.unknown_keys[:1])
    keys.discard_pending(lookup.unknown_keys[1:])
    assert (keys.get_row("a"), keys.get_row("b"), len(keys)) == (0, None, 1)
