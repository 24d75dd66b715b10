"""What a checkpoint of a run holds, and what must be the same for a run to go on from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.errors import BadInputError, CheckpointError
from holdfast.fleet import Fleet, from_bytes
from holdfast.learners.stochastic_approximation import StochasticApproximation
from holdfast.streams.batch import Batch

FORMAT = 1
Model = StochasticApproximation | Fleet


def settings_of(model: Model) -> dict[str, Any]:
    """All that a model was made with, defaults included; `on_bad` may change."""
    learner, most = (model.model, model.max_keys) if isinstance(model, Fleet) else (model, None)
    kept = learner._description(None, None)
    settings = {name: value for name, value in kept["settings"].items() if name != "on_bad"}
    told: dict[str, Any] = json.loads(json.dumps(settings))
    return {"fleet": isinstance(model, Fleet), "learner": kept["learner"], "max_keys": most, **told}


def require_same_run(header: dict[str, Any], model: Model, about: Mapping[str, Any]) -> None:
    """Refuses a checkpoint of another run: with other settings, of another source, of other columns."""
    if header.get("run_format") != FORMAT:
        raise CheckpointError(f"these checkpoints have format {header.get('run_format')}, this holdfast {FORMAT}")
    now = settings_of(model)
    compared = [(header["about"], json.loads(json.dumps(dict(about)))), (header["model"], now)]
    for before, after in compared:
        for name in {**before, **after}:
            if before.get(name) != after.get(name):
                raise CheckpointError(
                    f"the checkpoint was made with {name} = {_told(before.get(name))}, now it is "
                    f"{_told(after.get(name))}: give the same, or another folder for checkpoints"
                )


def require_position(batch: Batch) -> None:
    """Refuses a batch of records after which a run could not go on."""
    position = batch.position
    if position is None and batch.n_records:
        raise BadInputError("with a checkpoint, each batch of a source must have the position after it")
    try:
        json.dumps(position)
    except (TypeError, ValueError) as error:
        raise BadInputError(f"a position is something that JSON can hold, got {position!r:.80}: {error}") from None


def restored(model: Model, state: memoryview) -> Model:
    """The model as it was, in place of this one, which lets go of its file."""
    spill = None
    if isinstance(model, Fleet) and model._roster.spill is not None:
        spill = model._roster.spill.path
        model.close()
    return from_bytes(bytearray(state), spill)


def _told(value: Any) -> str:
    return "not given" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
