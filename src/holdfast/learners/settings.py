"""Settings of learners as JSON: numbers and words as they are, models and step sizes by name."""

from __future__ import annotations

import math
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from holdfast.models.base import Model, model_from_config
from holdfast.models.penalty import ConjugatePrior
from holdfast.registry import registered_name
from holdfast.scheme.step_sizes import StepSize


def to_json(value: Any) -> Any:
    """The value as JSON can hold it.

    >>> to_json(math.inf), to_json(Penalty(weight=0.1))["penalty"]["weight"]
    ({'number': 'inf'}, 0.1)
    """
    if isinstance(value, Model):
        return {
            "model": registered_name(type(value)),
            "settings": {k: to_json(v) for k, v in value.to_config().items()},
        }
    if isinstance(value, StepSize) and is_dataclass(value):
        return {
            "step_size": registered_name(type(value)),
            "settings": {k: to_json(v) for k, v in asdict(value).items()},
        }
    if isinstance(value, ConjugatePrior):
        return {"penalty": {k: to_json(v) for k, v in asdict(value).items()}}
    if isinstance(value, np.generic):
        return to_json(value.item())
    if isinstance(value, tuple | list | np.ndarray):
        return [to_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value


def from_json(value: Any) -> Any:
    """The value that `to_json` was given."""
    if isinstance(value, list):
        return tuple(map(from_json, value))
    if not isinstance(value, dict):
        return value
    if "number" in value:
        return float(value["number"])
    if "penalty" in value:
        return ConjugatePrior(**{k: from_json(v) for k, v in value["penalty"].items()})
    settings = {k: from_json(v) for k, v in value["settings"].items()}
    if "model" in value:
        return model_from_config(value["model"], settings)
    return StepSize.registry[value["step_size"]](**settings)
