"""Time per call and memory of a fleet."""

import numpy as np

import limpet as lp
from asv_benchmarks.learners import LEARNERS


class FleetUpdate:
    """A fleet whose streams have all been initialized."""

    params = tuple(LEARNERS)
    param_names = ("learner",)
    n_streams = 10_000

    def setup(self, name: str) -> None:
        """Give each stream more points than its initialization needs."""
        self.fleet, self.keys = lp.Fleet(LEARNERS[name]()), np.arange(self.n_streams)
        self.points = np.random.default_rng(0).normal(20.0, 0.5, (60, self.n_streams))
        for points in self.points:
            self.fleet.update(self.keys, points)

    def time_fleet(self, name: str) -> None:
        """Update every stream with one point."""
        self.fleet.update(self.keys, self.points[0])


class FleetState:
    """A fleet of 100,000 streams: its state exceeds the memory that the imports need."""

    params = tuple(LEARNERS)
    param_names = ("learner",)
    n_streams = 100_000

    def peakmem_state(self, name: str) -> None:
        """Initialize all streams."""
        fleet, keys = lp.Fleet(LEARNERS[name]()), np.arange(self.n_streams)
        rng = np.random.default_rng(0)
        for _ in range(60):
            fleet.update(keys, rng.normal(20.0, 0.5, self.n_streams))
