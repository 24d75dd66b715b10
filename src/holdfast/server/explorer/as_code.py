"""A setting as the Python and as the command that do the same."""

from __future__ import annotations

import math
import shlex
from typing import Any

from holdfast.server.explorer.looked_at import LookedAt
from holdfast.server.explorer.settings import Autopilot, Hand, Rival
from holdfast.streams.separate import TOGETHER


def as_python(data: LookedAt, setting: Autopilot | Hand | Rival) -> str:
    """A few lines that run."""
    learner = isinstance(setting, Autopilot | Hand) or setting.name in ("SEM", "IEM", "SDEM")
    name = setting.name if isinstance(setting, Rival) else "SRA"
    arguments = ", ".join(f"{name}={_number(value)}" for name, value in setting.told().items())
    call = f"hf.{'' if learner else 'detectors.'}{name}({arguments})"
    lines = ["import math"] if "math." in call else []
    if data.lines is not None:
        return "\n".join([*lines, data.lines, *_on_values(call, learner, "stream.y" + _which(data), setting)]) + "\n"
    source = f"hf.streams.source_at({', '.join(_source(data))})"
    if not learner:
        read = [f"batches = {source}.read()", "values = np.concatenate([batch.values for batch in batches])"]
        lines += ["import holdfast as hf", "import numpy as np", "", *read]
        return "\n".join([*lines, *_on_values(call, learner, "values", setting)]) + "\n"
    lines += ["import holdfast as hf", ""]
    show = 'lambda results: print(*results.alarms, sep="\\n")' if isinstance(setting, Autopilot) else "()"
    if data.told.get("key"):
        lines += ["# one learner with this setting for each key", f"fleet = hf.Fleet({call})"]
        return "\n".join([*lines, f"hf.run({source}, fleet, {show})", "print(fleet.counts())"]) + "\n"
    return "\n".join([*lines, f"model = {call}", f"hf.run({source}, model, {show})", *_told(setting)]) + "\n"


def as_command(data: LookedAt, setting: Autopilot | Hand | Rival) -> str | None:
    """The command for the file; None for rivals, which it does not run."""
    if isinstance(setting, Rival):
        return None
    words = ["holdfast", "detect", file_name(data)]
    if _some_columns(data):
        words += ["--columns", ",".join(data.names)]
    if data.told.get("by"):
        words += ["--key", data.told["by"]]
    if len(data.names) > TOGETHER:
        words.append("--joint")
    for name, value in setting.told().items():
        flag = {"n_components": "components"}.get(name, name)
        words += [f"--{flag}", value if isinstance(value, str) else f"{value:g}" if value == math.inf else repr(value)]
    return shlex.join(words)


def file_name(data: LookedAt) -> str:
    """The name of the file; a built-in stream can be saved under this one."""
    return data.name if data.lines is None else f"{data.name}.csv"


def _on_values(call: str, learner: bool, values: str, setting: Any) -> list[str]:
    if not learner:
        return [f"detector = {call}", f"scores = detector.process({values})", "print(scores[-5:])"]
    shown = ["print(*trace.alarms, sep='\\n')"] if isinstance(setting, Autopilot) else []
    return [f"model = {call}", f"trace = model.process({values})", *shown, *_told(setting)]


def _told(setting: Any) -> list[str]:
    last = ["print(model.summary())"] if isinstance(setting, Autopilot) else []
    return ['print(model.n_dropped, "points rejected")', *last]


def _source(data: LookedAt) -> list[str]:
    arguments = [repr(file_name(data))]
    if _some_columns(data):
        arguments.append(f"columns={list(data.names)!r}")
    if data.told.get("by"):
        arguments.append(f"key={data.told['by']!r}")
    return arguments


def _some_columns(data: LookedAt) -> bool:
    """Whether not all columns are looked at, or in another order."""
    return tuple(data.told.get("columns", data.names)) != data.names


def _which(data: LookedAt) -> str:
    """The columns of a built-in stream."""
    everything = tuple(data.told["columns"])
    return "" if data.names == everything else f"[:, {[everything.index(name) for name in data.names]}]"


def _number(value: Any) -> str:
    return "math.inf" if value == math.inf else repr(value)
