"""What a learner tells its user unasked, each thing once."""

from __future__ import annotations

import warnings

import numpy as np

from limpet.core.start_buffer import MAX_WAIT_FACTOR
from limpet.core.state import CONSECUTIVE_REJECTIONS, N_INVALID, N_SEEN
from limpet.exceptions import LimpetWarning
from limpet.learners._engine import Engine
from limpet.learners.results import Trace

LOCK_OUT_POINTS = 200  # points dropped in a row after which the model is taken to be locked out
MANY_REJECTED_SHARE = 0.2  # share of a batch


class WarningOnce:
    """Remembers what has been told."""

    def __init__(self) -> None:
        self.issued_topics: set[str] = set()

    def warn_once(self, topic: str, message: str, depth: int = 4) -> None:
        """A warning, unless one on this topic has been given; placed at the line that called the learner."""
        if topic not in self.issued_topics:
            self.issued_topics.add(topic)
            warnings.warn(message, LimpetWarning, stacklevel=depth)

    def check_state(self, engine: Engine, depth: int = 4) -> None:
        """What there is to say about the state."""
        problem = engine.health_message()
        if problem:
            self.warn_once(problem, problem, depth)
        self.check_lock_out(engine, depth + 1)
        self.check_unobserved(engine, depth + 1)

    def check_lock_out(self, engine: Engine, depth: int = 4) -> None:
        """Whether points have been dropped in a row for long."""
        if engine.buffer.header[CONSECUTIVE_REJECTIONS] >= LOCK_OUT_POINTS and not engine.self_recovering:
            self.warn_once(
                "locked out",
                f"the last {LOCK_OUT_POINTS} points were all dropped: the stream has moved beyond the threshold, and the "
                "model no longer learns. patience=20 lets it follow, a larger gamma may, gamma=math.inf always does.",
                depth,
            )

    def check_unobserved(self, engine: Engine, depth: int = 4) -> None:
        """Whether the start has been waiting for a variable for long."""
        n_usable = engine.buffer.header[N_SEEN] - engine.buffer.header[N_INVALID]
        if not engine.started and n_usable >= MAX_WAIT_FACTOR * engine.n_init:
            unobserved = ", ".join(map(str, engine.unobserved_variables()))
            self.warn_once(
                "silent", f"variable {unobserved} has not shown a value yet; the model starts once it has", depth
            )

    def check_batch(self, engine: Engine, trace: Trace) -> None:
        """What there is to say after a batch."""
        n_invalid, n_rejected = int(np.count_nonzero(trace.invalid)), int(np.count_nonzero(trace.rejected))
        if n_invalid:
            first = int(np.flatnonzero(trace.invalid)[0])
            self.warn_once(
                "invalid",
                f"{n_invalid} of {len(trace)} rows could not be used and were skipped, the first of them row {first} "
                f"({engine.model.support_description}); further ones are only counted, in n_invalid",
            )
        self.check_state(engine, depth=5)
        if (
            len(trace) >= LOCK_OUT_POINTS
            and n_rejected > MANY_REJECTED_SHARE * len(trace)
            and not engine.self_recovering
        ):
            self.warn_once(
                "many dropped",
                f"{100 * n_rejected // len(trace)} % of {len(trace)} rows were dropped: that many are no outliers. "
                "A larger gamma or more components may fit the stream better.",
            )
