"""What a learner tells its user unasked, each thing once."""

from __future__ import annotations

import warnings

import numpy as np

from holdfast.errors import HoldfastWarning
from holdfast.learners.engine import Engine
from holdfast.learners.trace import Trace
from holdfast.scheme.holding import PATIENCE
from holdfast.scheme.state import BAD, RUN, SEEN

LOCKED_OUT = 200  # points dropped in a row after which the model is taken to be locked out
MANY = 0.2  # share of a batch


class Teller:
    """Remembers what has been told."""

    def __init__(self) -> None:
        self.told: set[str] = set()

    def tell(self, topic: str, message: str, depth: int = 4) -> None:
        """A warning, unless one on this topic has been given; placed at the line that called the learner."""
        if topic not in self.told:
            self.told.add(topic)
            warnings.warn(message, HoldfastWarning, stacklevel=depth)

    def look_at(self, engine: Engine, depth: int = 4) -> None:
        """What there is to say about the state."""
        trouble = engine.trouble()
        if trouble:
            self.tell(trouble, trouble, depth)
        self.look_for_lock_out(engine, depth + 1)
        self.look_for_silence(engine, depth + 1)

    def look_for_lock_out(self, engine: Engine, depth: int = 4) -> None:
        """Whether points have been dropped in a row for long."""
        if engine.cell.header[RUN] >= LOCKED_OUT and not engine.rescues:
            self.tell(
                "locked out",
                f"the last {LOCKED_OUT} points were all dropped: the stream has moved beyond the threshold, and the "
                "model no longer learns. patience=20 lets it follow, a larger gamma may, gamma=math.inf always does.",
                depth,
            )

    def look_for_silence(self, engine: Engine, depth: int = 4) -> None:
        """Whether the start has been waiting for a variable for long."""
        usable = engine.cell.header[SEEN] - engine.cell.header[BAD]
        if not engine.started and usable >= PATIENCE * engine.n_init:
            silent = ", ".join(map(str, engine.silent_variables()))
            self.tell("silent", f"variable {silent} has not shown a value yet; the model starts once it has", depth)

    def look_at_batch(self, engine: Engine, trace: Trace) -> None:
        """What there is to say after a batch."""
        n_bad, n_dropped = int(np.count_nonzero(trace.bad)), int(np.count_nonzero(trace.dropped))
        if n_bad:
            first = int(np.flatnonzero(trace.bad)[0])
            self.tell(
                "bad",
                f"{n_bad} of {len(trace)} rows could not be used and were skipped, the first of them row {first} "
                f"({engine.model.support}); further ones are only counted, in n_bad",
            )
        self.look_at(engine, depth=5)
        if len(trace) >= LOCKED_OUT and n_dropped > MANY * len(trace) and not engine.rescues:
            self.tell(
                "many dropped",
                f"{100 * n_dropped // len(trace)} % of {len(trace)} rows were dropped: that many are no outliers. "
                "A larger gamma or more components may fit the stream better.",
            )
