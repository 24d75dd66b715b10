"""Failing calls, and the state of a fleet after them."""

from __future__ import annotations

import copy
import gc
import sqlite3
import threading
import weakref
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import limpet as lp
from limpet.exceptions import CheckpointError, InvalidInputError, InvalidTypeError, LimpetWarning
from limpet.fleet._backends import SRABackend

MODEL = lp.SRA(1, gamma=4.0, rho=0.01)


def run_single(X: np.ndarray) -> lp.SRA:
    learner = MODEL.clone()
    learner.process(X)
    return learner


# The first call


@pytest.mark.parametrize(
    ("keys", "points"),
    [
        (["a", 3], [[1.0, 2.0], [3.0, 4.0]]),
        (["a"], [1.0, 2.0]),
        ([1.5], [1.0]),
    ],
    ids=["kinds mixed", "lengths", "a fraction"],
)
def test_failed_first_call_fixes_neither_width_nor_key_type(keys: list, points: list) -> None:
    fleet = lp.Fleet(MODEL)
    with pytest.raises((InvalidTypeError, InvalidInputError)):
        fleet.update(keys, points)
    assert (len(fleet), fleet.feature_names, fleet.n_seen) == (0, None, 0)
    fleet.update([1, 2], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert fleet.keys() == [1, 2]


@pytest.mark.filterwarnings("ignore:.*have no key:limpet.exceptions.LimpetWarning")
def test_call_without_keys_fixes_neither_width_nor_key_type() -> None:
    fleet = lp.Fleet(MODEL)
    fleet.update([], [])
    assert fleet.update([None, None], [1.0, 2.0]).invalid.all()
    assert fleet.n_missing_keys == 2
    fleet.update(["a"], [[1.0, 2.0]])
    fleet.update([None], [[1.0, 2.0]])
    assert fleet.n_missing_keys == 3
    again = lp.from_bytes(fleet.to_bytes())
    assert isinstance(again, lp.Fleet)
    assert again.n_missing_keys == 3


def test_other_width_raises() -> None:
    """Compiled code would read beyond the point."""
    for width, other in ((1, 2), (2, 1)):
        fleet = lp.Fleet(MODEL)
        fleet.update(["a", "b"], np.ones((2, width)))
        before = fleet.to_bytes()
        frame = pd.DataFrame({"key": ["a", "b"], **{f"x{i}": [1.0, 2.0] for i in range(other)}})
        with pytest.raises(InvalidInputError, match="variable"):
            fleet.process(frame, key="key")
        assert fleet.to_bytes() == before


# Keys


def test_keys_changed_in_place_are_looked_up_again() -> None:
    column = pd.Series(["a", "b"])
    fleet = lp.Fleet(MODEL)
    fleet.update(column, [1.0, 2.0])
    column.iloc[0] = "z"
    fleet.update(column, [1.0, 2.0])
    assert dict(zip(fleet.keys(), fleet.counts()["n_seen"], strict=True)) == {"a": 1, "b": 2, "z": 1}
    numbers = lp.Fleet(MODEL)
    numbers.update([1, 2], [1.0, 2.0])
    with pytest.raises(InvalidTypeError):
        numbers.update([True, 2], [1.0, 2.0])


def test_a_key_may_be_of_any_equal_type(tmp_path: Path) -> None:
    fleet = lp.Fleet(MODEL, max_keys=1, spill=tmp_path / "s.db")
    fleet.update([1, 2], [1.0, 2.0])  # 1 is spilled
    for key in (1, np.int64(1), np.uint8(1)):
        assert key in fleet
    for key in (True, 2**70, 1.0, None, "1"):
        assert key not in fleet
        with pytest.raises(KeyError):
            fleet[key]  # type: ignore[index]
        with pytest.raises(KeyError):
            fleet.drop(key)  # type: ignore[arg-type]
    fleet.drop(np.int64(1))  # type: ignore[arg-type]
    assert 1 not in fleet


def test_missing_key_raises_if_invalid_points_raise() -> None:
    fleet = lp.Fleet(lp.SRA(1, gamma=4.0, rho=0.01, on_invalid="raise"))
    for keys in (["a", None], [1, None], np.array([1.0, np.nan])):
        with pytest.raises(InvalidInputError, match="keys: must not be missing, got none in row 1"):
            fleet.update(keys, [1.0, 2.0])
        assert len(fleet) == 0


# Streams that leave


def test_stream_dropped_before_initialization_is_removed_completely() -> None:
    rng = np.random.default_rng(0)
    fleet = lp.Fleet(MODEL)
    fleet.update(["a", "b", "a", "a"], [1.0, 0.0, 2.0, 3.0])
    member = fleet["a"]
    fleet.drop("a")
    fleet.update(["c"], [5.0])
    np.testing.assert_array_equal(fleet["c"].state, run_single(np.array([5.0])).state)
    member.process(rng.normal(size=12))  # it starts without the fleet
    X = rng.normal(size=30)
    for x in X:
        fleet.update(["c", "d"], [x, 1000.0 + x])
    np.testing.assert_array_equal(fleet["c"].state, run_single(np.append(5.0, X)).state)
    np.testing.assert_array_equal(fleet["d"].state, run_single(1000.0 + X).state)


def test_start_buffers_shrink_once_most_have_started() -> None:
    fleet = lp.Fleet(MODEL)
    fleet.update(np.repeat(np.arange(500), 12), np.random.default_rng(0).normal(size=6000))
    fleet.update([1000], [1.0])
    fleet.update([1000, *range(400)], np.arange(401.0))
    assert len(fleet._membership.state_matrix.start_buffers) < 10
    fleet.update(np.full(20, 1000), np.arange(20.0))
    np.testing.assert_array_equal(fleet[1000].state, run_single(np.array([1.0, 0.0, *range(20)])).state)


def test_a_fleet_without_streams_can_be_restored(tmp_path: Path) -> None:
    fleet = lp.Fleet(MODEL)
    assert fleet.counts() == {"key": [], **{name: pytest.approx([]) for name in list(fleet.counts())[1:]}}
    fleet.update(["a"], [1.0])
    fleet.drop("a")
    again = lp.from_bytes(fleet.to_bytes())
    assert len(again) == 0  # type: ignore[arg-type]
    spilling = lp.Fleet(MODEL, max_keys=1, spill=tmp_path / "one.db")
    spilling.update(["a", "b"], [1.0, 2.0])
    spilling.drop("b")
    spilling.save(tmp_path / "fleet.limpet")
    loaded = lp.load(tmp_path / "fleet.limpet", spill=tmp_path / "two.db")
    assert isinstance(loaded, lp.Fleet)
    assert loaded["a"].n_seen == 1


def test_streams_of_an_interrupted_call_can_be_evicted() -> None:
    fleet = lp.Fleet(MODEL, max_keys=2)
    with (
        mock.patch.object(SRABackend, "buffer_points", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        fleet.update(["a", "b"], [1.0, 2.0])
    assert len(fleet._membership._lru_clock.oldest(2)) == 2  # otherwise the next call would never find one to evict
    fleet.update(["c"], [3.0])
    assert sorted(map(str, fleet)) == ["b", "c"]


# Spills


def test_checkpoint_overrides_the_spill_after_a_crash(tmp_path: Path) -> None:
    fleet = lp.Fleet(MODEL, max_keys=3, spill=tmp_path / "s.db")
    for i in range(20):
        fleet.update(["a"], [1.0 + 0.1 * i])
    fleet.save(tmp_path / "fleet.limpet")
    fleet.update(["b", "c", "d"], [2.0, 3.0, 4.0])  # a is spilled
    fleet.close()
    again = lp.load(tmp_path / "fleet.limpet", spill=tmp_path / "s.db")
    assert isinstance(again, lp.Fleet)
    assert again.keys() == ["a"]
    assert "b" not in again
    again.update(["a"], [5.0])
    again.drop("a")
    assert "a" not in again
    again.close()


def test_an_existing_spill_file_is_used(tmp_path: Path) -> None:
    fleet = lp.Fleet(MODEL, max_keys=2, spill=tmp_path / "s.db")
    fleet.update([1, 2, 3, 4] * 20, np.arange(80.0))
    with pytest.raises(CheckpointError, match="another fleet has it open"):
        lp.Fleet(MODEL, max_keys=2, spill=tmp_path / "s.db")
    state = fleet[1].state  # 3 is evicted
    fleet.update([3, 4], [0.0, 0.0])
    fleet.close()
    again = lp.Fleet(MODEL, max_keys=2, spill=tmp_path / "s.db")
    np.testing.assert_array_equal(again[1].state, state)
    with pytest.raises(InvalidInputError, match="X: must have shape"):
        again.update([2], np.ones((1, 2)))
    again.close()
    with pytest.raises(CheckpointError, match="spill: must be a file of this fleet"):
        lp.Fleet(lp.SRA(2, gamma=4.0), max_keys=2, spill=tmp_path / "s.db")


def test_corrupted_spill_raises(tmp_path: Path) -> None:
    fleet = lp.Fleet(MODEL, max_keys=1, spill=tmp_path / "s.db")
    fleet.update([1, 2], [1.0, 2.0])
    fleet.close()
    with sqlite3.connect(tmp_path / "s.db") as database:
        database.execute("update streams set state = zeroblob(length(state))")
    database.close()
    again = lp.Fleet(MODEL, max_keys=1, spill=tmp_path / "s.db")
    with pytest.raises(CheckpointError, match=r"state of 1 in .* is corrupted"):
        again.update([1], [1.0])
    assert len(again) == 0
    again.update([5], [1.0])
    again.close()


def test_invalid_spill_path_raises(tmp_path: Path) -> None:
    for spill in (tmp_path, 3, tmp_path / "no" / "s.db"):
        with pytest.raises(InvalidInputError, match="spill"):
            lp.Fleet(MODEL, max_keys=1, spill=spill)  # type: ignore[arg-type]


def test_fleet_with_a_spill_cannot_be_copied(tmp_path: Path) -> None:
    fleet = lp.Fleet(MODEL, max_keys=2, spill=tmp_path / "s.db")
    with pytest.raises(InvalidInputError, match=r"spill: .* cannot be copied"):
        copy.deepcopy(fleet)
    fleet.update(["a"], [1.0])
    fleet.save(tmp_path / "fleet.limpet")
    with pytest.raises(InvalidInputError, match="spill: required"):
        lp.load(tmp_path / "fleet.limpet")


# Other


def test_a_locked_out_stream_is_reported_once() -> None:
    rng = np.random.default_rng(0)
    fleet = lp.Fleet(MODEL)
    fleet.update(np.tile(["calm", "moved"], 100), rng.normal(size=200))
    keys, X = np.tile(["calm", "moved"], 250), rng.normal(size=500)
    X[1::2] += 100.0
    with pytest.warns(LimpetWarning, match="1 of 2 streams, such as 'moved', rejected") as caught:
        fleet.update(keys, X)
    fleet.update(keys, X)
    assert len(caught) == 1
    assert Path(caught[0].filename) == Path(__file__)
    counts = fleet.counts()
    assert counts["consecutive_rejections"][counts["key"].index("moved")] == 500


def test_calls_of_threads_are_serialized() -> None:
    fleet, keys = lp.Fleet(MODEL), np.arange(300)
    rng = np.random.default_rng(0)

    def learn(X: np.ndarray) -> None:
        for row in X:
            fleet.update(keys, row)

    threads = [threading.Thread(target=learn, args=(rng.normal(size=(40, 300)),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (fleet.counts()["n_seen"] == 120).all()


def test_alarms_keep_no_reference_to_the_state_matrix() -> None:
    rng = np.random.default_rng(0)
    fleet = lp.Fleet(lp.Detector())
    fleet.update(np.zeros(600, np.int64), np.concatenate([rng.normal(size=400), rng.normal(30.0, 1.0, 200)]))
    assert [alarm.kind for alarm in fleet.alarms if alarm.kind == "change"]
    matrix_ref = weakref.ref(fleet._membership.state_matrix.states)
    fleet.update(np.arange(1, 5000), np.ones(4999))
    gc.collect()
    assert matrix_ref() is None
