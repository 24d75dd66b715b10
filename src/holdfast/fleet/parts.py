"""A fleet in parts, and parts as one fleet again: each stream goes where it is sent, as it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.errors import BadInputError
from holdfast.fleet.fleet import Fleet
from holdfast.fleet.found import Integers
from holdfast.fleet.roster import Streams
from holdfast.scheme.state import HELD


def split(fleet: Fleet, owners: Integers) -> dict[int, Fleet]:
    """The streams of a fleet by owner: owners[i] gets that of key i of `keys_of`. Owners of nothing are not there.

    Points that came without a key are counted by the first of them.

    >>> from holdfast import SRA
    >>> fleet = Fleet(SRA(gamma=4.0, rho=0.01))
    >>> _ = fleet.update(["oil", "water", "gas"], [90.0, 20.0, 5.0])
    >>> {owner: part.keys() for owner, part in split(fleet, np.array([0, 1, 0])).items()}
    {0: ['oil', 'gas'], 1: ['water']}
    """
    if not len(owners):
        return {}
    streams = fleet._roster.all_streams()
    waiting = streams.states[:, HELD] >= 0.0
    slots = np.cumsum(waiting) - 1
    parts: dict[int, Fleet] = {}
    for owner in np.unique(owners).tolist():
        own = np.flatnonzero(owners == owner)
        keys = [streams.keys[i] for i in own.tolist()]
        starts = streams.starts[slots[own[waiting[own]]]]
        parts[owner] = _fleet_like(fleet, Streams(keys, streams.states[own], starts, np.zeros(0, np.int64)))
    next(iter(parts.values()))._calls.n_keyless = fleet.n_keyless
    return parts


def keys_of(fleet: Fleet) -> list[str | int]:
    """All keys, also of streams that were spilled, in the order of `split`."""
    return list(fleet._roster.all_streams().keys)


def joined(fleets: Sequence[Fleet]) -> Fleet:
    """One fleet with the streams of several of the same model; a key may be in one of them only.

    >>> from holdfast import SRA
    >>> one, other = Fleet(SRA(gamma=4.0, rho=0.01)), Fleet(SRA(gamma=4.0, rho=0.01))
    >>> _ = one.update(["oil"], [90.0]), other.update(["water"], [20.0])
    >>> joined([one, other]).counts()["key"]
    ['oil', 'water']
    """
    parts = [fleet for fleet in fleets if fleet._calls.width is not None]
    n_keyless = sum(fleet.n_keyless for fleet in fleets)
    if not parts:
        whole = Fleet(fleets[0].model)
        whole._calls.n_keyless = n_keyless
        return whole
    kinds = {(repr(fleet.model), fleet._calls.width, fleet.variables) for fleet in parts}
    if len(kinds) > 1:
        raise BadInputError(f"expected fleets of one kind, got {' and '.join(map(str, sorted(kinds, key=str)))}")
    streams = [fleet._roster.all_streams() for fleet in parts]
    keys = [key for one in streams for key in one.keys]
    if len(set(keys)) < len(keys):
        raise BadInputError("a key is in several of these fleets")
    states, starts = (np.concatenate([one[i] for one in streams]) for i in (1, 2))
    whole = _fleet_like(parts[0], Streams(keys, states, starts, np.zeros(0, np.int64)))
    whole._calls.n_keyless = n_keyless
    return whole


def _fleet_like(fleet: Fleet, streams: Streams) -> Fleet:
    """A fleet of the same kind with these streams."""
    part = Fleet(fleet.model)
    assert fleet._calls.width is not None
    part._calls.open(fleet._calls.width, fleet.variables)
    part._roster.fill(streams)
    return part
