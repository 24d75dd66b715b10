"""The whole life of a fleet, under random operations: each stream equals a single learner."""

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


class Life(RuleBasedStateMachine):
    """Calls, drops, learners of single streams, files and disks that are full; beside it a dict of learners in the
    order in which they were seen, and those that had to leave."""

    @initialize(
        max_keys=st.sampled_from([None, 3, 6]),
        spills=st.booleans(),
        str_keys=st.booleans(),
        chunk_points=st.sampled_from([5, 1 << 20]),
        parallel_points=st.sampled_from([4, 8192]),
    )
    def begin(
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
        self.fleet = lp.Fleet(MODEL, max_keys=max_keys, spill=self.new_file())
        self.present: dict[object, lp.SRA] = {}
        self.spilled: dict[object, lp.SRA] = {}
        self.latest: list[object] = []

    def teardown(self) -> None:
        for patch in getattr(self, "patches", []):
            patch.stop()
        if hasattr(self, "fleet"):
            self.fleet.close()
            self.folder.cleanup()

    def new_file(self) -> Path | None:
        self.files += 1
        return Path(self.folder.name) / f"{self.files}.db" if self.spills else None

    def seen(self, key: object) -> lp.SRA:
        learner = self.present.pop(key, None) or self.spilled.pop(key, None) or MODEL.clone()
        self.present[key] = learner
        if self.fleet.max_keys is not None and len(self.present) > self.fleet.max_keys:
            oldest = next(iter(self.present))
            gone = self.present.pop(oldest)
            if self.spills:
                self.spilled[oldest] = gone
        return learner

    @rule(keys=KEYS, seed=SEEDS, array=st.booleans())
    def call(self, keys: list[int | None], seed: int, array: bool) -> None:
        named: list[object] = [f"key {key}" if self.str_keys and key is not None else key for key in keys]
        self.learn(named, seed, array and not self.str_keys and None not in keys)

    @precondition(lambda self: self.latest)
    @rule(seed=SEEDS)
    def the_same_keys_again(self, seed: int) -> None:
        self.learn(self.latest, seed, False)

    def learn(self, keys: list[object], seed: int, array: bool) -> None:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=len(keys)) * np.where(rng.random(len(keys)) < 0.05, 100.0, 1.0)
        X[rng.random(len(keys)) < 0.05] = np.nan
        self.latest = keys
        trace = self.fleet.update(np.array(keys, np.int64) if array else keys, X)
        for i, key in enumerate(keys):
            if key is None:
                assert trace.invalid[i]
                continue
            step = self.seen(key).update(X[i])
            np.testing.assert_array_equal(trace.score[i], step.score)
            assert (trace.rejected[i], trace.invalid[i]) == (step.rejected, step.invalid)

    @precondition(lambda self: self.present)
    @rule(which=st.integers(0), n=st.integers(1, 12))
    def a_learner_of_one_stream(self, which: int, n: int) -> None:
        key = [*self.present, *self.spilled][which % (len(self.present) + len(self.spilled))]
        ours, alone, X = self.fleet[key], self.seen(key), np.linspace(-1.0, 1.0, n)  # type: ignore[index]
        np.testing.assert_array_equal(ours.process(X).score, alone.process(X).score)

    @precondition(lambda self: self.present)
    @rule(which=st.integers(0), n=st.integers(0, 9))
    def drop(self, which: int, n: int) -> None:
        key = [*self.present, *self.spilled][which % (len(self.present) + len(self.spilled))]
        held = None
        if key in self.present:
            held = self.fleet[key]  # type: ignore[index]
            self.seen(key)
        self.fleet.drop(key)  # type: ignore[arg-type]
        alone = self.present.pop(key, None) or self.spilled.pop(key)
        if held is not None:  # it keeps a copy
            np.testing.assert_array_equal(held.process(np.ones(n)).score, alone.process(np.ones(n)).score)
        assert key not in self.fleet

    @rule(same=st.booleans())
    def to_a_file_and_back(self, same: bool) -> None:
        path = Path(self.folder.name) / "fleet.limpet"
        self.fleet.save(path)
        file = self.fleet._membership.spill.path if self.spills and same else self.new_file()  # type: ignore[union-attr]
        self.fleet.close()
        self.fleet = lp.load(path, spill=file)  # type: ignore[assignment]
        self.latest = []
        if self.spills and (n_free := self.fleet.max_keys - len(self.present)) > 0:  # type: ignore[operator]
            restored = sorted(self.spilled)[-n_free:]  # type: ignore[type-var]
            self.present = {key: self.spilled.pop(key) for key in restored} | self.present

    @precondition(lambda self: self.spills)
    @rule(keys=st.lists(st.integers(20, 40), min_size=8, max_size=12, unique=True))
    def a_full_disk(self, keys: list[int]) -> None:
        """A call fails before its first eviction, and nothing changes."""
        named: list[object] = [f"key {key}" if self.str_keys else key for key in keys]
        fresh = self.fleet.max_keys - len(self.present)  # type: ignore[operator]
        full = mock.patch.object(Spill, "_put", side_effect=sqlite3.OperationalError("disk is full"))
        with full, pytest.raises(CheckpointError, match="disk is full"):
            self.fleet.update(named[: max(fresh, 0) + 1], np.zeros(max(fresh, 0) + 1))
        assert not any(key in self.fleet for key in named)

    @invariant()
    def all_as_alone(self) -> None:
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
def quiet():  # type: ignore[no-untyped-def]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)
        yield


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
