"""Fleets in files, and streams that are evicted and return."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limpet as lp
from limpet.exceptions import CheckpointError, InvalidInputError

MODEL = lp.SRA(2, gamma=3.0, rho=0.05, warmup=12)


def make_fleet_and_points(
    n: int = 900, n_keys: int = 30, str_keys: bool = True, **settings: object
) -> tuple[lp.Fleet, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    keys = rng.integers(0, n_keys, n)
    fleet = lp.Fleet(MODEL, **settings)  # type: ignore[arg-type]
    names = np.array([f"sensor {key} é" for key in keys], object) if str_keys else keys
    return fleet, names, rng.normal(rng.choice([-4.0, 4.0], n), 1.0)


@pytest.mark.parametrize("str_keys", [True, False], ids=["strings", "numbers"])
def test_a_restored_fleet_continues(tmp_path: Path, str_keys: bool) -> None:
    fleet, keys, X = make_fleet_and_points(str_keys=str_keys)
    fleet.update(keys[:500], X[:500])
    fleet.drop(keys[3])
    fleet.save(tmp_path / "fleet.limpet")
    others = (lp.load(tmp_path / "fleet.limpet"), lp.from_bytes(fleet.to_bytes()), pickle.loads(pickle.dumps(fleet)))
    expected = fleet.update(keys[500:], X[500:]).score
    for other in others:
        assert isinstance(other, lp.Fleet)
        np.testing.assert_array_equal(other.update(keys[500:], X[500:]).score, expected)
        assert sorted(map(str, other)) == sorted(map(str, fleet))
        for key in fleet:
            np.testing.assert_array_equal(other[key].state, fleet[key].state)


def test_an_empty_fleet_can_be_saved(tmp_path: Path) -> None:
    lp.Fleet(MODEL, max_keys=7).save(tmp_path / "empty.limpet")
    fleet = lp.load(tmp_path / "empty.limpet")
    assert isinstance(fleet, lp.Fleet)
    assert (len(fleet), fleet.max_keys) == (0, 7)
    fleet.update(["a"], [1.0])


def test_load_also_reads_single_learners(tmp_path: Path) -> None:
    learner = MODEL.clone()
    learner.process(np.arange(30.0))
    learner.save(tmp_path / "learner.limpet")
    again = lp.load(tmp_path / "learner.limpet")
    assert isinstance(again, lp.SRA)
    assert again.n_seen == 30
    with pytest.raises(InvalidInputError, match="spill: must be None for a learner"):
        lp.load(tmp_path / "learner.limpet", spill=tmp_path / "x.db")


def test_corrupted_bytes_raise(tmp_path: Path) -> None:
    fleet, keys, X = make_fleet_and_points()
    fleet.update(keys, X)
    data = bytearray(fleet.to_bytes())
    data[len(data) // 2] ^= 1
    for altered in (bytes(data), fleet.to_bytes()[:-100], b"something else"):
        with pytest.raises(CheckpointError):
            lp.from_bytes(altered)
    with pytest.raises(CheckpointError, match="must be a learner, got a fleet"):
        lp.learners.from_bytes(fleet.to_bytes())


def get_scores(fleet: lp.Fleet, keys: np.ndarray, X: np.ndarray, sizes: object) -> np.ndarray:
    start, scores = 0, []
    for size in sizes:  # type: ignore[attr-defined]
        scores.append(fleet.update(keys[start : start + size], X[start : start + size]).score)
        start += size
        if start >= len(X):
            break
    return np.concatenate(scores)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), max_keys=st.sampled_from([1, 2, 7, 25]))
def test_least_recently_used_stream_is_evicted(seed: int, max_keys: int) -> None:
    """Any chunking evicts the same streams; the others equal a dict of learners in least-recently-used order."""
    rng = np.random.default_rng(seed)
    n = 400
    keys, X = rng.zipf(1.4, n) % 40, rng.normal(size=n)
    fleets = [lp.Fleet(MODEL, max_keys=max_keys) for _ in range(3)]
    sizes = ([n], itertools.repeat(1), rng.integers(1, 90, n).tolist())
    whole, *others = (get_scores(fleet, keys, X, size) for fleet, size in zip(fleets, sizes, strict=True))
    for other in others:
        np.testing.assert_array_equal(whole, other)
    present: dict[int, lp.SRA] = {}
    for i, key in enumerate(keys.tolist()):
        learner = present.pop(key, None) or MODEL.clone()
        present[key] = learner
        if len(present) > max_keys:
            del present[next(iter(present))]
        np.testing.assert_array_equal(learner.update(float(X[i])).score, whole[i])
    for fleet in fleets:
        assert sorted(fleet) == sorted(present)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_spilled_streams_are_restored_on_use(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """A small fleet with a spill equals a large fleet."""
    rng = np.random.default_rng(seed)
    keys, X = rng.zipf(1.4, 500) % 50, rng.normal(size=500)
    file = tmp_path_factory.mktemp("spill") / "streams.db"
    small, large = lp.Fleet(MODEL, max_keys=9, spill=file), lp.Fleet(MODEL)
    np.testing.assert_array_equal(
        get_scores(small, keys, X, rng.integers(1, 90, 500).tolist()), large.update(keys, X).score
    )
    assert len(small) == 9
    assert all(key in small for key in large)
    resident = small.keys()
    for key in (resident[0], next(key for key in large if key not in resident)):
        np.testing.assert_array_equal(small[key].state, large[key].state)


def test_save_includes_spilled_streams(tmp_path: Path) -> None:
    fleet, keys, X = make_fleet_and_points(max_keys=10, spill=tmp_path / "one.db")
    whole = lp.Fleet(MODEL)
    fleet.update(keys[:600], X[:600])
    whole.update(keys[:600], X[:600])
    fleet.save(tmp_path / "fleet.limpet")
    with pytest.raises(InvalidInputError, match="spill: required"):
        lp.load(tmp_path / "fleet.limpet")
    other = lp.load(tmp_path / "fleet.limpet", spill=tmp_path / "two.db")
    assert isinstance(other, lp.Fleet)
    np.testing.assert_array_equal(other.update(keys[600:], X[600:]).score, whole.update(keys[600:], X[600:]).score)


def test_spill_of_another_fleet_raises(tmp_path: Path) -> None:
    lp.Fleet(MODEL, max_keys=2, spill=tmp_path / "one.db").close()
    with pytest.raises(CheckpointError, match="spill: must be a file of this fleet"):
        lp.Fleet(lp.SRA(1, gamma=3.0, rho=0.1), max_keys=2, spill=tmp_path / "one.db")
    (tmp_path / "no.db").write_text("this is not a database, and long enough for the header" * 10)
    with pytest.raises(CheckpointError, match="not a database"):
        lp.Fleet(MODEL, max_keys=2, spill=tmp_path / "no.db")
    with pytest.raises(InvalidInputError, match="spill: requires max_keys"):
        lp.Fleet(MODEL, spill=tmp_path / "one.db")
    with pytest.raises(InvalidInputError, match="spill: must be in an existing folder"):
        lp.Fleet(MODEL, max_keys=2, spill=tmp_path / "nowhere" / "one.db")
