"""Positions that a checkpoint brings back: whether they are of the source that is to go on."""

from __future__ import annotations

from typing import Any

from holdfast.errors import BadInputError, CheckpointError


def part_of(position: Any, name: str, kind: type) -> Any:
    """A part of a position; None without a position."""
    if position is None:
        return None
    if not isinstance(position, dict) or not isinstance(position.get(name), kind):
        raise BadInputError(f"the position {position!r:.80} is not one of this source: it has no {name!r}")
    return position[name]


def require_same_part(position: Any, name: str, now: str, what: str) -> None:
    """That a position is of the same topic, or whatever it is, as now.

    >>> require_same_part({"topic": "a"}, "topic", "b", "kafka topic")
    Traceback (most recent call last):
    ...
    holdfast.errors.CheckpointError: the checkpoint is of kafka topic a, now it is b: give another --checkpoint folder
    """
    was = part_of(position, name, str)
    if was is not None and was != now:
        raise CheckpointError(f"the checkpoint is of {what} {was}, now it is {now}: give another --checkpoint folder")
