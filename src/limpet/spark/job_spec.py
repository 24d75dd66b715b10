"""The specification of a job, which executors receive and checkpoints store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from limpet._format import join_names
from limpet._validation import Interval, check_param
from limpet.exceptions import CheckpointError
from limpet.learners.base import Learner, learner_from_config
from limpet.spark import partitioner

SPEC_VERSION = 2  # of the specification and of the states
DEFAULT_BUCKETS, MAX_BUCKETS = 64, 1 << 20
FIXED_FIELDS = {  # on a checkpoint
    "key": "the key",
    "has_string_keys": "whether keys are strings",
    "values": "the values",
    "time": "the time",
    "time_unit": "the unit of times",
    "time_type": "the type of times",
}


@dataclass(frozen=True)
class JobSpec:
    """The columns of a job, its learner, and the layout of its states."""

    learner: dict[str, Any]  # class and parameters, as in the header of its file
    key: str
    has_string_keys: bool  # otherwise they are integers
    values: tuple[str, ...]
    time: str | None = None
    time_unit: str = ""  # "us" of dates and timestamps, "" of integers
    time_type: str = ""  # Spark's type of the column of dates or timestamps
    idle_timeout: int | None = None  # time after which a silent stream is dropped, in `time_unit`
    watermark: str | None = None  # delay of Spark's watermark
    prefix: str = ""  # of the names of the result columns
    buckets: int | None = None  # None until it is known
    generation: int = 1  # incremented by every repartitioning
    states_file: str | None = None  # states with which the generation starts
    after_batch: int | None = None  # last batch committed when that file was written

    def to_json(self) -> str:
        """Serialize the specification with its version."""
        return json.dumps({"version": SPEC_VERSION, "hash": partitioner.HASH_VERSION, **asdict(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> JobSpec:
        """Parse the result of `to_json`; raise if it is corrupted or of another version."""
        try:
            payload = json.loads(text)
            version, hash_version = payload.pop("version"), payload.pop("hash")
            spec = cls(**payload | {"values": tuple(payload["values"])}) if version == SPEC_VERSION else None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CheckpointError("checkpoint: its job specification is truncated or altered.") from None
        if spec is None or hash_version != partitioner.HASH_VERSION:
            raise CheckpointError(
                f"checkpoint: must be of format {SPEC_VERSION} and hash {partitioner.HASH_VERSION}, got format "
                f"{version} and hash {hash_version}. Start a new checkpoint."
            )
        return spec

    def make_learner(self) -> Learner:
        """Create a learner without data."""
        return _make_learner(json.dumps(self.learner))

    def get_modules(self) -> set[str]:
        """Return the modules of user-defined classes, which executors have to import."""
        return set(_iter_modules(self.learner))

    @property
    def is_auto(self) -> bool:
        """Whether the learner returns p-values and alarms."""
        return self.make_learner().is_auto

    @property
    def n_buckets(self) -> int:
        """The number of buckets, given or default."""
        return self.buckets or DEFAULT_BUCKETS

    def resume_from(self, previous: JobSpec) -> JobSpec:
        """Return the specification on the checkpoint of a job; raise if it does not fit."""
        for name, description in FIXED_FIELDS.items():
            old, new = getattr(previous, name), getattr(self, name)
            if old != new:
                raise CheckpointError(
                    f"checkpoint: {description} must remain {_format_value(old)}, got {_format_value(new)}. Start a "
                    "new checkpoint with a new output folder to change it."
                )
        if self.buckets is not None and self.buckets != previous.buckets:
            raise CheckpointError(
                f"buckets: must be {previous.buckets}, as in the checkpoint, got {self.buckets}. "
                "limpet.spark.repartition or `limpet spark repartition` changes it."
            )
        check_param_changes(previous.learner, self.learner)
        layout = {name: getattr(previous, name) for name in ("buckets", "generation", "states_file", "after_batch")}
        return replace(self, **layout)


def check_buckets(buckets: Any) -> int:
    """Return a number of buckets, if it is valid."""
    check_param("buckets", buckets, Interval(int, 1, MAX_BUCKETS))
    return int(buckets)


def get_config(learner: Learner) -> dict[str, Any]:
    """Return class and parameters of a learner, as in the header of its file."""
    config = learner.config()
    return {name: config[name] for name in ("learner", "settings")}


def check_param_changes(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Check that states learned with one configuration can be continued with another."""
    if old["learner"] != new["learner"]:
        raise CheckpointError(
            f"learner: must be {old['learner']}, whose states the checkpoint has, got {new['learner']}."
        )
    learners = learner_from_config(old), learner_from_config(new)  # adds parameters that the old one did not have yet
    before, after = (get_config(learner)["settings"] for learner in learners)
    changed = [name for name in after if before[name] != after[name]]
    mutable = set(learners[0].mutable_params) & set(learners[1].mutable_params)
    if fixed := [name for name in changed if name not in mutable]:
        raise CheckpointError(
            f"learner: {join_names(fixed, 'and')} must remain as in the states of {learners[0]!r}, got "
            f"{learners[1]!r}. Parameters that may change: {join_names(sorted(mutable))}."
        )


def _iter_modules(record: Any) -> Iterator[str]:
    """Yield the modules of classes in a configuration, named `module:class`."""
    for name, value in record.items() if isinstance(record, dict) else ():
        if isinstance(value, str) and name in ("learner", "model", "step_size") and ":" in value:
            yield value.partition(":")[0]
        yield from _iter_modules(value)


@cache
def _make_learner(config: str) -> Learner:
    return learner_from_config(json.loads(config))


def _format_value(value: Any) -> str:
    return ", ".join(map(repr, value)) if isinstance(value, tuple) else repr(value)
