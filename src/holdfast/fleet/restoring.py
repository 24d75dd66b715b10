"""Fleets and learners from bytes and files."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast import learners
from holdfast.errors import InvalidInputError
from holdfast.fleet.checkpoint import read_fleet
from holdfast.fleet.fleet import Fleet
from holdfast.learners.checkpoint import BytesLike, read_header
from holdfast.learners.stochastic_approximation import StochasticApproximation


def from_bytes(data: BytesLike, spill: str | os.PathLike[str] | None = None) -> StochasticApproximation | Fleet:
    """The learner or the fleet that `to_bytes` was called on, ready to go on where it was.

    spill: of a fleet with max_keys, the file for streams that have to leave; see `Fleet`.
    """
    header, body = read_header(data)
    if "fleet" in header:
        return read_fleet(header, body if not body.readonly else memoryview(bytearray(body)), spill)
    if spill is not None:
        raise InvalidInputError("spill is for a fleet; these are the bytes of a learner")
    return learners.from_bytes(bytes(data))


def load(path: str | os.PathLike[str], spill: str | os.PathLike[str] | None = None) -> StochasticApproximation | Fleet:
    """The learner or the fleet that was saved to this file. spill: as in `from_bytes`."""
    size = Path(path).stat().st_size
    data = bytearray(size)
    with open(path, "rb") as file:
        file.readinto(data)
    return from_bytes(data, spill)
