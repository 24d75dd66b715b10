"""Positions that a checkpoint brings back: whether they are of the source that is to go on."""

from __future__ import annotations

from typing import Any

from holdfast.errors import CheckpointError, InvalidInputError


def position_field(position: Any, name: str, kind: type) -> Any:
    """A part of a position; None without a position."""
    if position is None:
        return None
    if not isinstance(position, dict) or not isinstance(position.get(name), kind):
        raise InvalidInputError(f"the position {position!r:.80} is not one of this source: it has no {name!r}")
    return position[name]


def check_same_position_field(position: Any, name: str, current: str, label: str) -> None:
    """That a position is of the same topic, or whatever it is, as now.

    >>> require_same_part({"topic": "a"}, "topic", "b", "kafka topic")
    Traceback (most recent call last):
    ...
    holdfast.errors.CheckpointError: the checkpoint is of kafka topic a, now it is b: give another --checkpoint folder
    """
    stored = position_field(position, name, str)
    if stored is not None and stored != current:
        raise CheckpointError(
            f"the checkpoint is of {label} {stored}, now it is {current}: give another --checkpoint folder"
        )
