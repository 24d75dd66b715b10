"""A bucket as the value of Spark's state, and back: a version, a fleet's bytes, the times of its streams."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.engines.spark.bucket import Bucket
from holdfast.engines.spark.clock import Clock
from holdfast.engines.spark.plan import VERSION, Plan, check_retuning
from holdfast.errors import CheckpointError
from holdfast.fleet.checkpoint import fleet_from
from holdfast.learners.checkpoint import opened

SCHEMA = "version int, generation int, buckets int, fleet binary, times binary"
Value = tuple[int, int, int, bytes, bytes]


def value_of(bucket: Bucket) -> Value:
    """The bucket as Spark keeps it."""
    plan = bucket.plan
    times = b"" if plan.time is None else bucket.last_times().astype("<i8").tobytes()
    return VERSION, plan.generation, plan.n_buckets, bucket.fleet.to_bytes(), times


def bucket_of(value: Any, plan: Plan) -> Bucket | None:
    """The bucket that a value is; None if it is of a generation that is no more."""
    version, generation, buckets, fleet, times = value
    if version != VERSION:
        raise CheckpointError(f"this state has version {version}; this holdfast reads version {VERSION}")
    if generation < plan.generation:
        return None
    if generation > plan.generation or buckets != plan.n_buckets:
        raise CheckpointError(
            f"this state is of {buckets} buckets, generation {generation}; the job has {plan.n_buckets}, generation "
            f"{plan.generation}: give the checkpoint to score(…, checkpoint=…), which looks"
        )
    return opened_bucket(fleet, times, plan)


def opened_bucket(fleet: bytes, times: bytes, plan: Plan) -> Bucket:
    """The bucket of a fleet's bytes and the times of its streams; settings are those of the plan, if they may be."""
    header, body = opened(bytearray(fleet))
    if header["settings"] != plan.model["settings"] or header["learner"] != plan.model["learner"]:
        check_retuning(header, plan.model)
        header["settings"] = plan.model["settings"]
    if header["width"] is not None:
        names = header["names"] or plan.values  # which a fleet that was begun with may not have had
        if header["width"] != len(plan.values) or tuple(names) != plan.values:
            told = ", ".join(header["names"] or ()) or f"{header['width']} variables"
            raise CheckpointError(f"these streams were learnt from {told}, and not from {', '.join(plan.values)}")
        header["names"] = names
    return Bucket(plan, fleet_from(header, body, None), Clock(np.frombuffer(times, "<i8").astype(np.int64)))
