"""Learners from bytes and files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from holdfast.errors import CheckpointError, InvalidInputError
from holdfast.learners import checkpoint
from holdfast.learners.settings import from_json
from holdfast.learners.stochastic_approximation import StochasticApproximation


def from_bytes(data: bytes) -> StochasticApproximation:
    """The learner that `to_bytes` was called on, ready to go on where it was."""
    header, state = checkpoint.unpack(bytes(data))
    learner = learner_from_config(header)
    if header["width"] is not None:
        learner._restore(header, state)
    return learner


def learner_from_config(header: dict[str, Any]) -> StochasticApproximation:
    """A learner with the settings that the header of a checkpoint tells, which has seen nothing."""
    learner_class = StochasticApproximation.registry[header["learner"]]
    try:
        return learner_class(**{name: from_json(value) for name, value in header["settings"].items()})
    except (TypeError, InvalidInputError) as error:  # altered, or written by a version with other settings
        raise CheckpointError(
            f"this {learner_class.__name__} has settings that do not fit this holdfast: {error}"
        ) from None


def load(path: str | os.PathLike[str]) -> StochasticApproximation:
    """The learner that was saved to this file."""
    return from_bytes(Path(path).read_bytes())
