"""Warnings of learners, each issued once per learner."""

from __future__ import annotations

import warnings

import numpy as np

from limpet.core.start_buffer import MAX_WAIT_FACTOR
from limpet.core.state import CONSECUTIVE_REJECTIONS, N_INVALID, N_SEEN
from limpet.exceptions import LimpetWarning
from limpet.learners._engine import Engine
from limpet.learners.results import Trace

LOCK_OUT_POINTS = 200  # successive rejections after which a model is considered locked out
MANY_REJECTED_SHARE = 0.2  # of a batch


class WarningOnce:
    """Issues each warning once."""

    def __init__(self) -> None:
        self.issued_topics: set[str] = set()

    def warn_once(self, topic: str, message: str, depth: int = 4, code: str = "", **fields: object) -> None:
        """Warn at the line that called the learner, `depth` frames up, once per topic.

        Its code is by default the topic; `fields` are the values in the message by name.
        """
        if topic not in self.issued_topics:
            self.issued_topics.add(topic)
            self.emit(LimpetWarning(message, code or topic, **fields), depth + 1)

    def emit(self, warning: LimpetWarning, depth: int) -> None:
        """Issue a warning `depth` frames up; subclasses may collect it instead."""
        warnings.warn(warning, stacklevel=depth)

    def check_state(self, engine: Engine, depth: int = 4) -> None:
        """Warn of a degenerate model, a lock-out, and variables without values."""
        if problem := engine.health_message():
            self.warn_once(problem, problem, depth, "degenerate_model")
        self.check_lock_out(engine, depth + 1)
        self.check_unobserved(engine, depth + 1)

    def check_lock_out(self, engine: Engine, depth: int = 4) -> None:
        if engine.buffer.header[CONSECUTIVE_REJECTIONS] >= LOCK_OUT_POINTS and not engine.self_recovering:
            self.warn_once(
                "locked_out",
                f"the last {LOCK_OUT_POINTS} points were all rejected: the stream has moved beyond the threshold, and "
                "the model no longer learns. Set patience=20 to let it follow; gamma=math.inf rejects nothing.",
                depth,
                n_points=LOCK_OUT_POINTS,
            )

    def check_unobserved(self, engine: Engine, depth: int = 4) -> None:
        """Warn of variables whose first value the initialization has been waiting for."""
        n_usable = engine.buffer.header[N_SEEN] - engine.buffer.header[N_INVALID]
        if not engine.started and n_usable >= MAX_WAIT_FACTOR * engine.n_init:
            unobserved = engine.unobserved_variables()
            self.warn_once(
                "unobserved",
                f"variable {', '.join(map(str, unobserved))}: no value in the last {engine.n_init} points. The "
                "learner is initialized after the next value.",
                depth,
                variables=tuple(unobserved),
            )

    def check_batch(self, engine: Engine, trace: Trace) -> None:
        """Warn of invalid rows, of many rejected rows, and of the state after a batch."""
        n_invalid, n_rejected = int(np.count_nonzero(trace.invalid)), int(np.count_nonzero(trace.rejected))
        if n_invalid:
            first = int(np.flatnonzero(trace.invalid)[0])
            self.warn_once(
                "invalid",
                f"{n_invalid} of {len(trace)} rows are invalid and were not used, first row {first} (must be "
                f"{engine.model.support_description}). Further ones are only counted, in n_invalid.",
                n_invalid=n_invalid,
                n_rows=len(trace),
                first_row=first,
            )
        self.check_state(engine, depth=5)
        are_many = len(trace) >= LOCK_OUT_POINTS and n_rejected > MANY_REJECTED_SHARE * len(trace)
        if are_many and not engine.self_recovering:
            self.warn_once(
                "many_rejected",
                f"{100 * n_rejected // len(trace)} % of {len(trace)} rows were rejected, more than outliers explain. "
                "Use a larger gamma or more components.",
                n_rejected=n_rejected,
                n_rows=len(trace),
            )
