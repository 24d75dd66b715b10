"""A fleet that is split and concatenated has the same streams: not started, spilled, with string or integer keys."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limpet as lp
from helpers.spark import assert_same_streams
from limpet.exceptions import InvalidInputError
from limpet.fleet.partition import all_keys, concat, split

pytestmark = pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")
MODEL = lp.SRA(gamma=4.0, rho=0.05, n_init=3, warmup=5)


def make_fleet(keys: list, **options) -> lp.Fleet:
    fleet = lp.Fleet(MODEL, **options)
    fleet.update(keys, np.random.default_rng(0).normal(size=len(keys)))
    return fleet


@given(st.lists(st.none() | st.integers(-3, 3), min_size=1, max_size=40), st.booleans(), st.integers(1, 4))
def test_split_and_concatenated_fleet_is_equal(keys, str_keys, n_owners) -> None:
    keys = [None if key is None else f"k{key}" if str_keys else key for key in keys]
    fleet = make_fleet(keys)
    owners = np.arange(len(fleet)) * 7 % n_owners
    parts = split(fleet, owners)
    assert sorted(parts) == sorted(set(owners.tolist()))
    for owner, part in parts.items():
        assert part.keys() == [key for key, part in zip(all_keys(fleet), owners.tolist(), strict=True) if part == owner]
    if not parts:
        return
    whole = concat([lp.from_bytes(part.to_bytes()) for part in parts.values()])
    assert whole.n_missing_keys == fleet.n_missing_keys
    more = np.random.default_rng(1).normal(size=len(keys))
    assert np.array_equal(whole.update(keys, more).score, fleet.update(keys, more).score, equal_nan=True)
    assert_same_streams(whole, fleet)


def test_spilled_streams_are_split_too(tmp_path) -> None:
    keys = [f"k{i % 9}" for i in range(40)] + ["young"]
    fleet, without_spill = make_fleet(keys, max_keys=4, spill=tmp_path / "spill"), make_fleet(keys)
    assert len(fleet) == 4
    whole = concat(list(split(fleet, np.arange(10) % 3).values()))
    assert sorted(all_keys(fleet)) == sorted(without_spill.keys())
    assert_same_streams(whole, without_spill)
    fleet.close()


def test_empty_and_incompatible_parts() -> None:
    empty = lp.Fleet(MODEL)
    assert split(empty, np.zeros(0, np.int64)) == {}
    assert len(concat([empty, empty])) == 0
    assert_same_streams(concat([empty, make_fleet(["a", "b"])]), make_fleet(["a", "b"]))
    with pytest.raises(InvalidInputError, match="fleets: must have distinct keys"):
        concat([make_fleet(["a"]), make_fleet(["a"])])
    other = lp.Fleet(lp.SRA(gamma=5.0, rho=0.05))
    other.update(["b"], [1.0])
    with pytest.raises(InvalidInputError, match="fleets: must have equal learners"):
        concat([make_fleet(["a"]), other])
