"""Select the best setting of a sweep, and the best variable of a detector."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from limpet.tuning import Setting, SweepResult, select_best
from limpet_lab.paper.methods import DriftMethod, FloatArray, Method


class Choice(NamedTuple):
    """Indices of a setting and a variable in a sweep, the setting, and its record for results.json."""

    setting_index: int
    variable: int
    setting: Setting
    record: Setting


def choose_setting(method: Method, sweep: SweepResult, training: FloatArray, largest: bool = True) -> Choice:
    """Choose setting and variable by training values (settings, …, variables), averaged over all axes between."""
    by_variable = np.moveaxis(training, -1, 1)
    n_variables = by_variable.shape[1]
    best = select_best(by_variable.reshape(len(training) * n_variables, -1), largest)
    index, variable = divmod(best, n_variables)
    setting = sweep.settings[index]
    return Choice(index, variable, setting, make_setting_record(method, setting, variable, n_variables))


def make_setting_record(method: Method, setting: Setting, variable: int = 0, n_variables: int = 1) -> dict[str, Any]:
    """Return the setting, with the step size of Corollary 1 and the variable of a detector."""
    # JSON has no infinity.
    record: dict[str, Any] = {name: "inf" if value == math.inf else value for name, value in setting.items()}
    if {"gamma", "beta", "M"} <= record.keys():
        from limpet.tradeoff import step_size

        record["rho"] = float(step_size(record["gamma"], record["beta"], record["M"]))
    if isinstance(method, DriftMethod) and n_variables > 1:
        record["variable"] = variable + 1
    return record


def describe_failures(cannot_run: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a sentence for each method that has settings which cannot run.

    >>> describe_failures({"KSWIN": ["window=10, stat=10: too short", "window=20, stat=15: too short"]})
    ['KSWIN cannot run with 2 of its settings, such as window=10, stat=10: too short. results.json lists them.']
    """
    return [
        f"{name} cannot run with {len(reasons)} of its settings, such as {reasons[0]}. results.json lists them."
        for name, reasons in cannot_run.items()
    ]


def list_reasons(sweep: SweepResult) -> list[str]:
    """List the settings that cannot run, with the reasons."""
    return [
        ", ".join(f"{name}={value:g}" for name, value in sweep.settings[index].items()) + f": {reason}"
        for index, reason in sweep.cannot_run.items()
    ]
