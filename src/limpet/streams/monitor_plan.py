"""Which streams there are and what learns them: by the columns that were understood, and by the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from limpet.exceptions import InvalidInputError
from limpet.fleet import Fleet
from limpet.learners import SRA
from limpet.streams.checkpoint_store import Model
from limpet.streams.schema import Schema, join_names
from limpet.streams.sources.base import Source
from limpet.streams.split_columns import MAX_JOINT_COLUMNS, SplitColumns

REFERENCE_POINTS = 100  # points that a change is seen against


@dataclass(frozen=True)
class MonitorPlan:
    """separate: whether each column is a stream of its own. learner: of one stream, before it has seen anything.
    model: what learns, which is such a learner or a fleet of them."""

    columns: Schema
    separate: bool
    learner: SRA
    model: Model

    @classmethod
    def from_columns(cls, columns: Schema, values: dict[str, Any]) -> MonitorPlan:
        """How these columns are watched with these settings."""
        joint = values["joint"]
        separate = len(columns.values) > MAX_JOINT_COLUMNS if joint is None else not joint
        separate = separate and len(columns.values) > 1
        learner = make_learner(values)
        if not separate and columns.key is None:
            if values["max_keys"] is not None:
                raise InvalidInputError("--max-keys is for many streams: there is one only. Is there a --key?")
            return cls(columns, separate, learner, learner.clone())
        return cls(columns, separate, learner, Fleet(learner, max_keys=values["max_keys"]))

    @property
    def n_streams(self) -> int:
        """How many streams there are by now."""
        return len(self.model) if isinstance(self.model, Fleet) else 1

    @property
    def raises_alarms(self) -> bool:
        """Whether the learner decides anything: the paper's algorithm, set by hand, only learns and rejects."""
        return self.learner._is_auto

    @property
    def n_warming_up(self) -> int:
        """Streams with too few points to raise every kind of alarm."""
        seen = self.model.counts()["n_seen"] if isinstance(self.model, Fleet) else [self.model.n_seen]
        return sum(int(n) <= self.learner.n_init + REFERENCE_POINTS for n in seen)

    def wrap_source(self, source: Source) -> Source:
        """The source as it is learnt from."""
        return SplitColumns(source) if self.separate else source

    def describe(self) -> list[tuple[str, str]]:
        """What was understood, in pairs of words."""
        columns, n = self.columns, len(self.columns.values)
        mode = "" if n == 1 else ", each by itself" if self.separate else ", together"
        pairs = [("watching", f"{join_names(columns.values)}{mode}")]
        time = "none found" if columns.time is None else f"{columns.time} ({columns.time_kind})"
        pairs.append(("time", time))
        pairs.append(("key", "none: one stream" if columns.key is None else f"{columns.key}: one stream for each"))
        if columns.ignored:
            pairs.append(("left out", join_names([f"{name} ({why})" for name, why in columns.ignored.items()], 12)))
        return pairs


def make_learner(values: dict[str, Any]) -> SRA:
    """The learner of one stream."""
    components = values["components"]
    return SRA(
        n_components="auto" if components == "auto" else int(components),
        gamma=values["gamma"],
        rho=values["rho"],
        beta=values["beta"],
        M=values["M"],
        norm=values["norm"],
        far=values["far"],
        lags=values["lags"],
        season=values["season"],
        memory=values["memory"],
    )
