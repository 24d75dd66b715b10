"""Time per point of one stream (K = 1, d = 1), point by point and as a batch."""

from asv_benchmarks.learners import LEARNERS, stream


class OneStream:
    """A learner that has been initialized, so that its kernels are compiled."""

    params = tuple(LEARNERS)
    param_names = ("learner",)

    def setup(self, name: str) -> None:
        """Initialize the learner."""
        self.learner = LEARNERS[name]()
        self.learner.process(stream(1_000))
        self.points = stream(100_000, seed=1)
        self.floats = self.points[:1_000].tolist()
        self.learner.update(self.floats[0])

    def time_update(self, name: str) -> None:
        """Update with 1,000 floats."""
        update = self.learner.update
        for x in self.floats:
            update(x)

    def time_process(self, name: str) -> None:
        """Process a batch of 100,000 points."""
        self.learner.process(self.points)
