"""Split a fleet by owner and concatenate fleets, without changing any state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from limpet._format import join_names
from limpet.exceptions import InvalidInputError
from limpet.fleet._key_index import Integers
from limpet.fleet._membership import StreamSnapshot
from limpet.fleet.fleet import Fleet


def split(fleet: Fleet, owners: Integers) -> dict[int, Fleet]:
    """Return a fleet for each owner; owners[i] is the owner of key i of `all_keys`.

    The count of points without a key passes to the first of them.

    >>> from limpet import SRA
    >>> fleet = Fleet(SRA(gamma=4.0, rho=0.01))
    >>> _ = fleet.update(["oil", "water", "gas"], [90.0, 20.0, 5.0])
    >>> {owner: part.keys() for owner, part in split(fleet, np.array([0, 1, 0])).items()}
    {0: ['oil', 'gas'], 1: ['water']}
    """
    if not len(owners):
        return {}
    streams = fleet._membership.all_streams()
    parts = {
        owner: _build_similar_fleet(fleet, streams.select(np.flatnonzero(owners == owner)))
        for owner in np.unique(owners).tolist()
    }
    next(iter(parts.values()))._executor.n_missing_keys = fleet.n_missing_keys
    return parts


def all_keys(fleet: Fleet) -> list[str | int]:
    """Return all keys, including those of spilled streams, in the order of `split`."""
    return list(fleet._membership.all_streams().keys)


def concat(fleets: Sequence[Fleet]) -> Fleet:
    """Return one fleet with the streams of several.

    The fleets must have equal learners and distinct keys.

    >>> from limpet import SRA
    >>> first, second = Fleet(SRA(gamma=4.0, rho=0.01)), Fleet(SRA(gamma=4.0, rho=0.01))
    >>> _ = first.update(["oil"], [90.0]), second.update(["water"], [20.0])
    >>> concat([first, second]).counts()["key"]
    ['oil', 'water']
    """
    parts = [fleet for fleet in fleets if fleet._executor.width is not None]
    merged = _build_similar_fleet(parts[0], _join_streams(parts)) if parts else Fleet(fleets[0].learner)
    merged._executor.n_missing_keys = sum(fleet.n_missing_keys for fleet in fleets)
    return merged


def _join_streams(parts: Sequence[Fleet]) -> StreamSnapshot:
    configs = {(repr(fleet.learner), fleet._executor.width, fleet.feature_names) for fleet in parts}
    if len(configs) > 1:
        raise InvalidInputError(
            f"fleets: must have equal learners and variables, got {join_names(sorted(map(str, configs)), 'and')}."
        )
    streams = [fleet._membership.all_streams() for fleet in parts]
    keys = [key for part in streams for key in part.keys]
    if len(set(keys)) < len(keys):
        raise InvalidInputError("fleets: must have distinct keys, got a key in several of them.")
    states = np.concatenate([part.states for part in streams])
    start_buffers = np.concatenate([part.start_buffers for part in streams])
    return StreamSnapshot(keys, states, start_buffers, np.zeros(0, np.int64))


def _build_similar_fleet(fleet: Fleet, streams: StreamSnapshot) -> Fleet:
    """Return a fleet with the same learner and variables and with these streams."""
    part = Fleet(fleet.learner)
    assert fleet._executor.width is not None
    part._executor.set_width(fleet._executor.width, fleet.feature_names)
    part._membership.restore(streams)
    return part
