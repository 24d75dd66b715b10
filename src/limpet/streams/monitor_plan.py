"""Choose streams and learners by the columns: joint or split, single or fleet."""

from __future__ import annotations

from dataclasses import dataclass

from limpet._format import join_names
from limpet.core.memory_profile import MEMORY_PROFILES
from limpet.exceptions import InvalidInputError
from limpet.fleet import Fleet
from limpet.learners import SRA, Detector
from limpet.streams.checkpoint_store import LearnerOrFleet
from limpet.streams.schema import Schema
from limpet.streams.sources.base import BaseSource, SplitColumns

MAX_JOINT_COLUMNS = 8  # more columns are split, unless the user chooses


def should_split(n_columns: int, joint: bool | None = None) -> bool:
    """Return whether columns are separate streams: if more than 8, or by `joint`."""
    return n_columns > 1 and (n_columns > MAX_JOINT_COLUMNS if joint is None else not joint)


def warmup_points(learner: Detector | SRA) -> int:
    """Return how many first points cannot raise all alarms or, of SRA, be rejected."""
    if isinstance(learner, Detector):
        return max(learner.n_init, MEMORY_PROFILES[learner.memory].warmup_points)
    return learner.n_init + learner.warmup


@dataclass(frozen=True)
class MonitorPlan:
    """The streams in the records of a source, and what learns them."""

    schema: Schema
    is_split: bool  # whether each column is a separate stream
    learner: Detector | SRA  # of one stream, without a point
    learner_or_fleet: LearnerOrFleet  # a copy of the learner, or a fleet of it where there are several streams

    @classmethod
    def from_schema(
        cls, schema: Schema, learner: Detector | SRA, *, joint: bool | None = None, max_keys: int | None = None
    ) -> MonitorPlan:
        """Plan for some columns, at most `max_keys` streams of which are kept in memory."""
        is_split = should_split(len(schema.values), joint)
        if is_split or schema.key is not None:
            return cls(schema, is_split, learner, Fleet(learner, max_keys=max_keys))
        if max_keys is not None:
            raise InvalidInputError("max_keys: requires more than one stream, got one. Name a key column.")
        return cls(schema, is_split, learner, learner.clone())

    @property
    def n_streams(self) -> int:
        """Number of streams so far."""
        return len(self.learner_or_fleet) if isinstance(self.learner_or_fleet, Fleet) else 1

    @property
    def raises_alarms(self) -> bool:
        """Whether the learner raises alarms; SRA only learns and rejects."""
        return self.learner.is_auto

    @property
    def n_warming_up(self) -> int:
        """Number of streams with too few points to raise every kind of alarm."""
        learner = self.learner_or_fleet
        seen = learner.counts()["n_seen"] if isinstance(learner, Fleet) else [learner.n_seen]
        return sum(int(n) <= warmup_points(self.learner) for n in seen)

    def wrap_source(self, source: BaseSource) -> BaseSource:
        """Return the source as it is learned: with columns split, if they are."""
        return SplitColumns(source) if self.is_split else source

    def describe(self) -> list[tuple[str, str]]:
        """Describe the inferred columns as pairs of a label and a description."""
        schema, n = self.schema, len(self.schema.values)
        mode = "" if n == 1 else ", each separately" if self.is_split else ", jointly"
        pairs = [
            ("watching", f"{join_names(schema.values)}{mode}"),
            ("time", "not found" if schema.time is None else f"{schema.time} ({schema.time_kind})"),
            ("key", "none: one stream" if schema.key is None else f"{schema.key}: one stream per key"),
        ]
        if schema.ignored:
            reasons = [f"{name} ({reason})" for name, reason in schema.ignored.items()]
            pairs.append(("ignored", join_names(reasons, max_names=12)))
        return pairs
