"""What a job does with its columns: said once, sent to all executors, and kept beside the checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from limpet._validation import check_int
from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.learners.base import StochasticApproximation, learner_from_config
from limpet.spark import partitioner

SPEC_VERSION = 1  # of this description and of the state
DEFAULT_BUCKETS, MAX_BUCKETS = 64, 1 << 20


@dataclass(frozen=True)
class JobSpec:
    """Which columns there are, what learns from them, and how the states are laid out.

    model: the learner as the header of a checkpoint tells it. time: the column of times, kept as whole numbers in
    `unit` ("us" of a date or a timestamp, "" of a number). time_type: which kind of date or timestamp. idle: after how
    long a silent stream is forgotten, in that unit. buckets: how many the keys are dealt to; None until that is known.
    generation: grows with every rebucketing. states: the file with the states that a generation begins with, if any.
    after: the last batch that was committed when they were written.
    """

    model: dict[str, Any]
    key: str
    texts: bool
    values: tuple[str, ...]
    time: str | None = None
    unit: str = ""
    time_type: str = ""
    idle: int | None = None
    watermark: str | None = None
    prefix: str = ""
    buckets: int | None = None
    generation: int = 1
    states: str | None = None
    after: int | None = None

    def to_json(self) -> str:
        """As text, with the version of its form."""
        return json.dumps({"version": SPEC_VERSION, "hash": partitioner.HASH_VERSION, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> JobSpec:
        """What `to_json` was called on."""
        try:
            payload = json.loads(text)
            version, hash_version = payload.pop("version"), payload.pop("hash")
            spec = cls(**payload | {"values": tuple(payload["values"])}) if version == SPEC_VERSION else None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CheckpointError("the description of this checkpoint is truncated or altered") from None
        if spec is None or hash_version != partitioner.HASH_VERSION:
            raise CheckpointError(
                f"this checkpoint was written with version {version} of the state and {hash_version} of the hash; this "
                f"limpet has {SPEC_VERSION} and {partitioner.HASH_VERSION}"
            )
        return spec

    def make_learner(self) -> StochasticApproximation:
        """A learner with these settings that has seen nothing."""
        return _make_learner(json.dumps(self.model))

    def get_modules(self) -> set[str]:
        """The modules of classes that are not ours, and have to be known where the job runs."""
        return set(_iter_modules(self.model))

    @property
    def is_auto(self) -> bool:
        """Whether streams run on autopilot."""
        return getattr(self.make_learner(), "_is_auto", False)

    @property
    def n_buckets(self) -> int:
        """How many buckets there are."""
        return self.buckets or DEFAULT_BUCKETS

    def resume_from(self, previous: JobSpec) -> JobSpec:
        """This plan on the checkpoint of an earlier one; refused where its states would mean something else."""
        for name, description in FIXED_FIELDS.items():
            old, new = getattr(previous, name), getattr(self, name)
            if old != new:
                raise CheckpointError(
                    f"this checkpoint was begun with {description} {_format_setting(old)}, got {_format_setting(new)}: that cannot change. Go "
                    "on with what it was begun with, or begin a new checkpoint, and a new folder for its results"
                )
        if self.buckets is not None and self.buckets != previous.buckets:
            raise CheckpointError(
                f"this checkpoint has {previous.buckets} buckets, got {self.buckets}: limpet.spark.rebucket, "
                "or `limpet spark rebucket`, moves it to another number"
            )
        check_param_changes(previous.model, self.model)
        layout = {name: getattr(previous, name) for name in ("buckets", "generation", "states", "after")}
        return replace(self, **layout)


def check_buckets(buckets: Any) -> int:
    """A number of buckets, if it can be one."""
    if check_int("buckets", buckets, 1) > MAX_BUCKETS:
        raise InvalidInputError(f"buckets: expected at most {MAX_BUCKETS}, got {buckets}")
    return int(buckets)


FIXED_FIELDS = {
    "key": "the key",
    "texts": "keys that are texts:",
    "values": "the values",
    "time": "the time",
    "unit": "times of the unit",
    "time_type": "times of the type",
}


def check_param_changes(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Refuses settings with which states that were learnt with other settings would mean something else."""
    if old["learner"] != new["learner"]:
        raise CheckpointError(f"the states were learnt by {old['learner']}, which {new['learner']} cannot go on with")
    learners = learner_from_config(old), learner_from_config(new)  # with the settings that the old one did not have yet
    before, after = (learner._config(None, None)["settings"] for learner in learners)
    changed = [name for name in after if before[name] != after[name]]
    mutable = set(learners[0].mutable_params) & set(learners[1].mutable_params)
    if fixed := [name for name in changed if name not in mutable]:
        raise CheckpointError(
            f"the states were learnt by {learners[0]!r}; {learners[1]!r} cannot go on with them: {', '.join(fixed)} "
            f"cannot change (of this learner {', '.join(sorted(mutable)) or 'nothing'} can)"
        )


def _iter_modules(record: Any) -> Iterator[str]:
    """In a description, those of the classes in it that have a module in their name."""
    for name, value in record.items() if isinstance(record, dict) else ():
        if isinstance(value, str) and name in ("learner", "model", "step_size") and ":" in value:
            yield value.partition(":")[0]
        yield from _iter_modules(value)


@cache
def _make_learner(model: str) -> StochasticApproximation:
    return learner_from_config(json.loads(model))


def _format_setting(setting: Any) -> str:
    return ", ".join(map(repr, setting)) if isinstance(setting, tuple) else repr(setting)
