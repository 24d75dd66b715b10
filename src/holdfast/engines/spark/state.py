"""A bucket as the value of Spark's state, and back: a version, a fleet's bytes, the times of its streams."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.engines.spark.bucket import PartitionState
from holdfast.engines.spark.clock import LastSeen
from holdfast.engines.spark.plan import SPEC_VERSION, JobSpec, check_param_changes
from holdfast.errors import CheckpointError
from holdfast.fleet.checkpoint import read_fleet
from holdfast.learners.checkpoint import read_header

STATE_SCHEMA = "version int, generation int, buckets int, fleet binary, times binary"
StateValue = tuple[int, int, int, bytes, bytes]


def to_state_value(bucket: PartitionState) -> StateValue:
    """The bucket as Spark keeps it."""
    spec = bucket.spec
    times = b"" if spec.time is None else bucket.last_times().astype("<i8").tobytes()
    return SPEC_VERSION, spec.generation, spec.n_buckets, bucket.fleet.to_bytes(), times


def from_state_value(value: Any, spec: JobSpec) -> PartitionState | None:
    """The bucket that a value is; None if it is of a generation that is no more."""
    version, generation, buckets, fleet, times = value
    if version != SPEC_VERSION:
        raise CheckpointError(f"this state has version {version}; this holdfast reads version {SPEC_VERSION}")
    if generation < spec.generation:
        return None
    if generation > spec.generation or buckets != spec.n_buckets:
        raise CheckpointError(
            f"this state is of {buckets} buckets, generation {generation}; the job has {spec.n_buckets}, generation "
            f"{spec.generation}: give the checkpoint to score(…, checkpoint=…), which looks"
        )
    return restore_partition(fleet, times, spec)


def restore_partition(fleet: bytes, times: bytes, spec: JobSpec) -> PartitionState:
    """The bucket of a fleet's bytes and the times of its streams; settings are those of the plan, if they may be."""
    header, body = read_header(bytearray(fleet))
    if header["settings"] != spec.model["settings"] or header["learner"] != spec.model["learner"]:
        check_param_changes(header, spec.model)
        header["settings"] = spec.model["settings"]
    if header["width"] is not None:
        names = header["names"] or spec.values  # which a fleet that was begun with may not have had
        if header["width"] != len(spec.values) or tuple(names) != spec.values:
            variables = ", ".join(header["names"] or ()) or f"{header['width']} variables"
            raise CheckpointError(f"these streams were learnt from {variables}, and not from {', '.join(spec.values)}")
        header["names"] = names
    return PartitionState(spec, read_fleet(header, body, None), LastSeen(np.frombuffer(times, "<i8").astype(np.int64)))
