"""Generate Python and a command that repeat a run of the explorer."""

from __future__ import annotations

import math
import shlex
from typing import Any

from limpet.learners.base import Learner
from limpet.server.explorer.dataset import ExplorerDataset
from limpet.server.explorer.settings import AnySettings, AutoSettings, BaselineSettings, ManualSettings
from limpet.streams.monitor_plan import MAX_JOINT_COLUMNS


def to_python(data: ExplorerDataset, setting: AnySettings) -> str:
    """Return a script for a setting."""
    model = setting.learner()
    is_learner = isinstance(model, Learner)
    arguments = ", ".join(f"{name}={_to_literal(value)}" for name, value in setting.to_params().items())
    call = f"lp.{'' if is_learner else 'drift.'}{type(model).__name__}({arguments})"
    source = f"lp.streams.open_source({', '.join(_source_arguments(data))})"
    lines = ["import math"] if "math." in call else []
    if data.source_code is not None:
        lines += [data.source_code, *_call_lines(call, is_learner, "stream.y" + _column_index(data), setting)]
    elif not is_learner:
        lines += ["import limpet as lp", "import numpy as np", "", f"batches = {source}.read()"]
        lines += ["values = np.concatenate([batch.values for batch in batches])"]
        lines += _call_lines(call, is_learner, "values", setting)
    else:
        sink = 'lambda results: print(*results.alarms, sep="\\n")' if isinstance(setting, AutoSettings) else "()"
        lines += ["import limpet as lp", ""]
        if data.metadata.get("key"):
            lines += ["# one learner with this setting for each key", f"fleet = lp.Fleet({call})"]
            lines += [f"lp.run({source}, fleet, {sink})", "print(fleet.counts())"]
        else:
            lines += [f"model = {call}", f"lp.run({source}, model, {sink})", *_report_lines(setting)]
    return "\n".join(lines) + "\n"


def to_cli(data: ExplorerDataset, setting: AnySettings) -> str | None:
    """Return the command for a file, None for baselines, which the command does not have."""
    if isinstance(setting, BaselineSettings):
        return None
    arguments = ["limpet", "detect", _file_name(data)]
    if _is_column_subset(data):
        arguments += ["--columns", ",".join(data.names)]
    if data.metadata.get("key_column"):
        arguments += ["--key", data.metadata["key_column"]]
    if len(data.names) > MAX_JOINT_COLUMNS:
        arguments.append("--joint")
    if isinstance(setting, ManualSettings):
        arguments += ["--learner", "sra"]
    for name, value in setting.to_params().items():
        text = value if isinstance(value, str) else "inf" if value == math.inf else repr(value)
        arguments += [f"--{name.replace('_', '-')}", text]
    return shlex.join(arguments)


def _file_name(data: ExplorerDataset) -> str:
    """Return the name of the file; an example stream can be saved under this name."""
    return data.name if data.source_code is None else f"{data.name}.csv"


def _call_lines(call: str, is_learner: bool, values: str, setting: AnySettings) -> list[str]:
    if not is_learner:
        return [f"detector = {call}", f"scores = detector.process({values})", "print(scores[-5:])"]
    alarm_lines = ["print(*trace.alarms, sep='\\n')"] if isinstance(setting, AutoSettings) else []
    return [f"model = {call}", f"trace = model.process({values})", *alarm_lines, *_report_lines(setting)]


def _report_lines(setting: AnySettings) -> list[str]:
    last = ["print(model.summary())"] if isinstance(setting, AutoSettings) else []
    return ['print(model.n_rejected, "points rejected")', *last]


def _source_arguments(data: ExplorerDataset) -> list[str]:
    arguments = [repr(_file_name(data))]
    if _is_column_subset(data):
        arguments.append(f"columns={list(data.names)!r}")
    if data.metadata.get("key_column"):
        arguments.append(f"key={data.metadata['key_column']!r}")
    return arguments


def _is_column_subset(data: ExplorerDataset) -> bool:
    """Return whether some columns are left out or in another order."""
    return tuple(data.metadata.get("columns", data.names)) != data.names


def _column_index(data: ExplorerDataset) -> str:
    """Return the index expression for the selected columns of an example stream."""
    all_columns = tuple(data.metadata["columns"])
    return "" if data.names == all_columns else f"[:, {[all_columns.index(name) for name in data.names]}]"


def _to_literal(value: Any) -> str:
    return "math.inf" if value == math.inf else repr(value)
