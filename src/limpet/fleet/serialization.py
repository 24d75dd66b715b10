"""Serialize fleets in the container of `limpet.learners.serialization`:

    header (parameters of the learner, number of streams, …) | states | start buffers | last seen | keys

Keys are integers of 8 bytes, or strings as a JSON list.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from limpet.exceptions import CheckpointError, InvalidInputError
from limpet.fleet._membership import StreamSnapshot
from limpet.learners.base import learner_from_config
from limpet.learners.serialization import BytesLike, pack_container, read_header

if TYPE_CHECKING:
    from limpet.fleet.fleet import Fleet


def iter_chunks(fleet: Fleet) -> Iterator[BytesLike]:
    """Yield the parts of a serialized fleet."""
    streams = fleet._membership.all_streams()
    has_str_keys = any(isinstance(key, str) for key in streams.keys[:1])
    keys = json.dumps(streams.keys).encode() if has_str_keys else np.array(streams.keys, "<i8").tobytes()
    header: dict[str, Any] = fleet.learner._config(fleet._executor.width, fleet._executor.feature_names)
    header["fleet"] = {
        "streams": len(streams.keys),
        "state_size": streams.states.shape[1],
        "not_started": len(streams.start_buffers),
        "has_str_keys": has_str_keys,
        "max_keys": fleet.max_keys,
        "spills": fleet._membership.spill is not None,
        "n_missing_keys": fleet.n_missing_keys,
    }
    arrays = (streams.states, streams.start_buffers, streams.last_seen)
    yield from pack_container(
        header, (*(np.ascontiguousarray(array).data.cast("B") for array in arrays if array.size), keys)
    )


def read_fleet(header: dict[str, Any], body: memoryview, spill: str | os.PathLike[str] | None) -> Fleet:
    """Restore a fleet from header and body."""
    from limpet.fleet.fleet import Fleet

    section = header["fleet"]
    n, max_keys = section["streams"], section["max_keys"]
    if section["spills"] and spill is None:
        raise InvalidInputError(
            f"spill: required for a fleet that spills all but {max_keys} streams, got None. Pass spill=FILE."
        )
    fleet = Fleet(learner_from_config(header), max_keys=max_keys, spill=spill)
    fleet._executor.n_missing_keys = section["n_missing_keys"]
    if header["width"] is None:
        return fleet
    fleet._executor.set_width(header["width"], tuple(header["names"]) if header["names"] else None)
    matrix = fleet._membership.state_matrix
    if matrix.states.shape[1] != section["state_size"]:
        raise CheckpointError(f"state_size: must be {matrix.states.shape[1]}, got {section['state_size']}.")
    shapes = (
        (n, section["state_size"]),
        (section["not_started"], *matrix.start_buffers.shape[1:]),
        (n if max_keys is not None else 0,),
    )
    arrays, offset = [], 0
    for shape, dtype in zip(shapes, ("<f8", "<f8", "<i8"), strict=True):
        count = math.prod(shape)
        arrays.append(np.frombuffer(body, dtype, count, offset).reshape(shape))
        offset += 8 * count
    keys = json.loads(bytes(body[offset:])) if section["has_str_keys"] else np.frombuffer(body[offset:], "<i8").tolist()
    fleet._membership.restore(StreamSnapshot(keys, *arrays))
    return fleet


def fleet_from_bytes(data: bytes) -> Fleet:
    """Restore a fleet from the bytes of `Fleet.to_bytes`."""
    return read_fleet(*read_header(bytearray(data)), None)
