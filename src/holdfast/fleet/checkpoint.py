"""A fleet as bytes, in the container of `learners.checkpoint`:

    header (its learner's settings, how many streams, …) | states | first points of those not started | when seen | keys

Keys are whole numbers of 8 bytes, or texts as a JSON list.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import BadInputError, CheckpointError
from holdfast.fleet.roster import Streams
from holdfast.learners.checkpoint import Bytes, opened, sealed
from holdfast.learners.restoring import described

if TYPE_CHECKING:
    from holdfast.fleet.fleet import Fleet


def parts_of(fleet: Fleet) -> Iterator[Bytes]:
    """The pieces to be written one after another."""
    streams = fleet._roster.all_streams()
    texts = any(isinstance(key, str) for key in streams.keys[:1])
    keys = json.dumps(streams.keys).encode() if texts else np.array(streams.keys, "<i8").tobytes()
    header: dict[str, Any] = fleet.model._description(fleet._calls.width, fleet._calls.names)
    header["fleet"] = {
        "streams": len(streams.keys),
        "state_size": streams.states.shape[1],
        "waiting": len(streams.starts),
        "texts": texts,
        "max_keys": fleet.max_keys,
        "spills": fleet._roster.spill is not None,
        "n_keyless": fleet.n_keyless,
    }
    arrays = (streams.states, streams.starts, streams.seen)
    yield from sealed(header, (*(np.ascontiguousarray(a).data.cast("B") for a in arrays if a.size), keys))


def fleet_from(header: dict[str, Any], body: memoryview, spill: str | os.PathLike[str] | None) -> Fleet:
    """The fleet that header and body tell of."""
    from holdfast.fleet.fleet import Fleet

    told = header["fleet"]
    n, max_keys = told["streams"], told["max_keys"]
    if told["spills"] and spill is None:
        raise BadInputError(f"this fleet keeps {max_keys} streams and spills the others: say where to, with spill=…")
    fleet = Fleet(described(header), max_keys=max_keys, spill=spill)
    fleet._calls.n_keyless = told["n_keyless"]
    if header["width"] is None:
        return fleet
    fleet._calls.open(header["width"], tuple(header["names"]) if header["names"] else None)
    store = fleet._roster.store
    if store.states.shape[1] != told["state_size"]:
        raise CheckpointError(f"expected states of {store.states.shape[1]} numbers, got {told['state_size']}")
    shapes = ((n, told["state_size"]), (told["waiting"], *store.starts.shape[1:]), (n if max_keys is not None else 0,))
    arrays, at = [], 0
    for shape, kind in zip(shapes, ("<f8", "<f8", "<i8"), strict=True):
        count = math.prod(shape)
        arrays.append(np.frombuffer(body, kind, count, at).reshape(shape))
        at += 8 * count
    keys = json.loads(bytes(body[at:])) if told["texts"] else np.frombuffer(body[at:], "<i8").tolist()
    fleet._roster.fill(Streams(keys, *arrays))
    return fleet


def fleet_of(data: bytes) -> Fleet:
    """The fleet that `to_bytes` was called on."""
    return fleet_from(*opened(bytearray(data)), None)
