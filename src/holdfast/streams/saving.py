"""What a checkpoint of a run holds, and what must be the same for a run to go on from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.errors import CheckpointError, InvalidInputError
from holdfast.fleet import Fleet, from_bytes
from holdfast.learners.stochastic_approximation import StochasticApproximation
from holdfast.streams.batch import Batch

RUN_FORMAT_VERSION = 1
Model = StochasticApproximation | Fleet


def model_config(model: Model) -> dict[str, Any]:
    """All that a model was made with, defaults included; `on_invalid` may change."""
    learner, max_keys = (model.learner, model.max_keys) if isinstance(model, Fleet) else (model, None)
    description = learner._config(None, None)
    settings = {name: value for name, value in description["settings"].items() if name != "on_invalid"}
    json_settings: dict[str, Any] = json.loads(json.dumps(settings))
    return {"fleet": isinstance(model, Fleet), "learner": description["learner"], "max_keys": max_keys, **json_settings}


def check_compatible(header: dict[str, Any], model: Model, about: Mapping[str, Any]) -> None:
    """Refuses a checkpoint of another run: with other settings, of another source, of other columns."""
    if header.get("run_format") != RUN_FORMAT_VERSION:
        raise CheckpointError(
            f"these checkpoints have format {header.get('run_format')}, this holdfast {RUN_FORMAT_VERSION}"
        )
    current = model_config(model)
    pairs = [(header["about"], json.loads(json.dumps(dict(about)))), (header["model"], current)]
    for before, after in pairs:
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                raise CheckpointError(
                    f"the checkpoint was made with {name} = {_format_value(before.get(name))}, now it is "
                    f"{_format_value(after.get(name))}: give the same, or another folder for checkpoints"
                )


def check_position(batch: Batch) -> None:
    """Refuses a batch of records after which a run could not go on."""
    position = batch.position
    if position is None and batch.n_records:
        raise InvalidInputError("with a checkpoint, each batch of a source must have the position after it")
    try:
        json.dumps(position)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"a position is something that JSON can hold, got {position!r:.80}: {error}") from None


def restore_model(model: Model, state: memoryview) -> Model:
    """The model as it was, in place of this one, which lets go of its file."""
    spill = None
    if isinstance(model, Fleet) and model._membership.spill is not None:
        spill = model._membership.spill.path
        model.close()
    return from_bytes(bytearray(state), spill)


def _format_value(value: Any) -> str:
    return "not given" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
