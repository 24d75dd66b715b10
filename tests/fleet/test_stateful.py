"""A fleet under random operations: each stream equals a single learner."""

from __future__ import annotations

import sqlite3
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import limpet as lp
from limpet.exceptions import CheckpointError, LimpetWarning
from limpet.fleet import _backends, _executor
from limpet.fleet._spill import Spill

MODEL = lp.SRA(1, gamma=3.0, rho=0.05, n_init=5, warmup=8)
KEYS = st.lists(st.integers(0, 9) | st.none(), max_size=30)
SEEDS = st.integers(0, 10**6)


class FleetMachine(RuleBasedStateMachine):
    """Updates, drops, members, files and full disks, compared with dicts of the resident learners in
    least-recently-used order and of the spilled ones."""

    @initialize(
        max_keys=st.sampled_from([None, 3, 6]),
        spills=st.booleans(),
        str_keys=st.booleans(),
        chunk_points=st.sampled_from([5, 1 << 20]),
        parallel_points=st.sampled_from([4, 8192]),
    )
    def start(
        self, max_keys: int | None, spills: bool, str_keys: bool, chunk_points: int, parallel_points: int
    ) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.files = 0
        self.spills, self.str_keys = spills and max_keys is not None, str_keys
        self.patches = [
            mock.patch.object(_executor, "SORT_CHUNK_POINTS", chunk_points),
            mock.patch.object(_backends, "SRA_PARALLEL_THRESHOLD_POINTS", parallel_points),
        ]
        for patch in self.patches:
            patch.start()
        self.fleet = lp.Fleet(MODEL, max_keys=max_keys, spill=self.make_spill_path())
        self.present: dict[object, lp.SRA] = {}
        self.spilled: dict[object, lp.SRA] = {}
        self.latest: list[object] = []

    def teardown(self) -> None:
        for patch in getattr(self, "patches", []):
            patch.stop()
        if hasattr(self, "fleet"):
            self.fleet.close()
            self.folder.cleanup()

    def make_spill_path(self) -> Path | None:
        self.files += 1
        return Path(self.folder.name) / f"{self.files}.db" if self.spills else None

    def touch(self, key: object) -> lp.SRA:
        learner = self.present.pop(key, None) or self.spilled.pop(key, None) or MODEL.clone()
        self.present[key] = learner
        if self.fleet.max_keys is not None and len(self.present) > self.fleet.max_keys:
            oldest = next(iter(self.present))
            evicted = self.present.pop(oldest)
            if self.spills:
                self.spilled[oldest] = evicted
        return learner

    @rule(keys=KEYS, seed=SEEDS, array=st.booleans())
    def update_fleet(self, keys: list[int | None], seed: int, array: bool) -> None:
        named: list[object] = [f"key {key}" if self.str_keys and key is not None else key for key in keys]
        self.update_and_compare(named, seed, array and not self.str_keys and None not in keys)

    @precondition(lambda self: self.latest)
    @rule(seed=SEEDS)
    def update_with_the_same_keys(self, seed: int) -> None:
        self.update_and_compare(self.latest, seed, False)

    def update_and_compare(self, keys: list[object], seed: int, array: bool) -> None:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=len(keys)) * np.where(rng.random(len(keys)) < 0.05, 100.0, 1.0)
        X[rng.random(len(keys)) < 0.05] = np.nan
        self.latest = keys
        trace = self.fleet.update(np.array(keys, np.int64) if array else keys, X)
        for i, key in enumerate(keys):
            if key is None:
                assert trace.invalid[i]
                continue
            step = self.touch(key).update(X[i])
            np.testing.assert_array_equal(trace.score[i], step.score)
            assert (trace.rejected[i], trace.invalid[i]) == (step.rejected, step.invalid)

    @precondition(lambda self: self.present)
    @rule(which=st.integers(0), n=st.integers(1, 12))
    def update_a_member(self, which: int, n: int) -> None:
        key = [*self.present, *self.spilled][which % (len(self.present) + len(self.spilled))]
        ours, learner, X = self.fleet[key], self.touch(key), np.linspace(-1.0, 1.0, n)  # type: ignore[index]
        np.testing.assert_array_equal(ours.process(X).score, learner.process(X).score)

    @precondition(lambda self: self.present)
    @rule(which=st.integers(0), n=st.integers(0, 9))
    def drop_key(self, which: int, n: int) -> None:
        key = [*self.present, *self.spilled][which % (len(self.present) + len(self.spilled))]
        member = None
        if key in self.present:
            member = self.fleet[key]  # type: ignore[index]
            self.touch(key)
        self.fleet.drop(key)  # type: ignore[arg-type]
        learner = self.present.pop(key, None) or self.spilled.pop(key)
        if member is not None:  # it keeps a copy
            np.testing.assert_array_equal(member.process(np.ones(n)).score, learner.process(np.ones(n)).score)
        assert key not in self.fleet

    @rule(same=st.booleans())
    def save_and_load(self, same: bool) -> None:
        path = Path(self.folder.name) / "fleet.limpet"
        self.fleet.save(path)
        file = self.fleet._membership.spill.path if self.spills and same else self.make_spill_path()  # type: ignore[union-attr]
        self.fleet.close()
        self.fleet = lp.load(path, spill=file)  # type: ignore[assignment]
        self.latest = []
        if self.spills and (n_free := self.fleet.max_keys - len(self.present)) > 0:  # type: ignore[operator]
            restored = sorted(self.spilled)[-n_free:]  # type: ignore[type-var]
            self.present = {key: self.spilled.pop(key) for key in restored} | self.present

    @precondition(lambda self: self.spills)
    @rule(keys=st.lists(st.integers(20, 40), min_size=8, max_size=12, unique=True))
    def fail_on_a_full_disk(self, keys: list[int]) -> None:
        """A call fails before its first eviction, and nothing changes."""
        named: list[object] = [f"key {key}" if self.str_keys else key for key in keys]
        fresh = self.fleet.max_keys - len(self.present)  # type: ignore[operator]
        full = mock.patch.object(Spill, "_put", side_effect=sqlite3.OperationalError("disk is full"))
        with full, pytest.raises(CheckpointError, match="disk is full"):
            self.fleet.update(named[: max(fresh, 0) + 1], np.zeros(max(fresh, 0) + 1))
        assert not any(key in self.fleet for key in named)

    @invariant()
    def streams_equal_single_learners(self) -> None:
        if not hasattr(self, "fleet"):
            return
        assert set(self.fleet.keys()) == set(self.present)
        assert all(key in self.fleet for key in self.spilled)
        counts = self.fleet.counts()
        for key, n in zip(counts["key"], counts["n_seen"].tolist(), strict=True):
            assert n == self.present[key].n_seen
            row = self.fleet._membership.key_index.get_row(key)
            np.testing.assert_array_equal(self.fleet._learner_at_row(row).state, self.present[key].state)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def ignore_warnings():  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        yield


TestFleetMachine = FleetMachine.TestCase
TestFleetMachine.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
