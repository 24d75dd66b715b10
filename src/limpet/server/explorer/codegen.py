"""Generate Python and a command that repeat a run of the explorer."""

from __future__ import annotations

import math
import shlex
from typing import Any

from limpet.server.explorer.dataset import ExplorerDataset
from limpet.server.explorer.settings import AutoSettings, BaselineSettings, ManualSettings
from limpet.streams.monitor_plan import MAX_JOINT_COLUMNS


def to_python(data: ExplorerDataset, setting: AutoSettings | ManualSettings | BaselineSettings) -> str:
    """Return a script for a setting."""
    learner = isinstance(setting, AutoSettings | ManualSettings) or setting.name in ("SEM", "IEM", "SDEM")
    name = (
        setting.name
        if isinstance(setting, BaselineSettings)
        else "Detector"
        if isinstance(setting, AutoSettings)
        else "SRA"
    )
    arguments = ", ".join(f"{name}={_to_literal(value)}" for name, value in setting.to_params().items())
    call = f"lp.{'' if learner else 'drift.'}{name}({arguments})"
    lines = ["import math"] if "math." in call else []
    if data.source_code is not None:
        return (
            "\n".join(
                [*lines, data.source_code, *_call_lines(call, learner, "stream.y" + _column_index(data), setting)]
            )
            + "\n"
        )
    source = f"lp.streams.open_source({', '.join(_source_arguments(data))})"
    if not learner:
        read_lines = [f"batches = {source}.read()", "values = np.concatenate([batch.values for batch in batches])"]
        lines += ["import limpet as lp", "import numpy as np", "", *read_lines]
        return "\n".join([*lines, *_call_lines(call, learner, "values", setting)]) + "\n"
    lines += ["import limpet as lp", ""]
    sink = 'lambda results: print(*results.alarms, sep="\\n")' if isinstance(setting, AutoSettings) else "()"
    if data.metadata.get("key"):
        lines += ["# one learner with this setting for each key", f"fleet = lp.Fleet({call})"]
        return "\n".join([*lines, f"lp.run({source}, fleet, {sink})", "print(fleet.counts())"]) + "\n"
    return "\n".join([*lines, f"model = {call}", f"lp.run({source}, model, {sink})", *_report_lines(setting)]) + "\n"


def to_cli(data: ExplorerDataset, setting: AutoSettings | ManualSettings | BaselineSettings) -> str | None:
    """Return the command for a file, None for baselines, which the command does not have."""
    if isinstance(setting, BaselineSettings):
        return None
    arguments = ["limpet", "detect", file_name(data)]
    if _is_column_subset(data):
        arguments += ["--columns", ",".join(data.names)]
    if data.metadata.get("key_column"):
        arguments += ["--key", data.metadata["key_column"]]
    if len(data.names) > MAX_JOINT_COLUMNS:
        arguments.append("--joint")
    if isinstance(setting, ManualSettings):
        arguments += ["--learner", "sra"]
    for name, value in setting.to_params().items():
        arguments += [
            f"--{name.replace('_', '-')}",
            value if isinstance(value, str) else f"{value:g}" if value == math.inf else repr(value),
        ]
    return shlex.join(arguments)


def file_name(data: ExplorerDataset) -> str:
    """Return the name of the file; an example stream can be saved under this name."""
    return data.name if data.source_code is None else f"{data.name}.csv"


def _call_lines(call: str, learner: bool, values: str, setting: Any) -> list[str]:
    if not learner:
        return [f"detector = {call}", f"scores = detector.process({values})", "print(scores[-5:])"]
    alarm_lines = ["print(*trace.alarms, sep='\\n')"] if isinstance(setting, AutoSettings) else []
    return [f"model = {call}", f"trace = model.process({values})", *alarm_lines, *_report_lines(setting)]


def _report_lines(setting: Any) -> list[str]:
    last = ["print(model.summary())"] if isinstance(setting, AutoSettings) else []
    return ['print(model.n_rejected, "points rejected")', *last]


def _source_arguments(data: ExplorerDataset) -> list[str]:
    arguments = [repr(file_name(data))]
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
