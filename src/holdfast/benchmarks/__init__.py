"""Every figure that holdfast claims, measured on the machine at hand: `holdfast bench`.

A benchmark is a function `(quick) → list of Figure`. Times are compared in one run, as a ratio, best of several rounds
taken in turn, because machines are noisy; a figure with a goal says whether it was reached.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.benchmarks.figure import Figure
from holdfast.errors import BadInputError
from holdfast.threads import cores

if TYPE_CHECKING:
    from rich.console import Console

USUAL = ("speed", "scaling", "startup", "accuracy")
# Only where they are named: minutes each.
LONG = ("cost", "robustness", "real_streams", "promise", "delays", "lean", "fleet", "runtime")
NAMES = USUAL + LONG


def run_benchmarks(names: Sequence[str], quick: bool, path: Path | None, console: Console) -> bool:
    """Runs the benchmarks named, prints a table for each, and says whether every goal was reached."""
    from rich.table import Table

    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise BadInputError(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if path is not None and not path.absolute().parent.is_dir():
        raise BadInputError(f"the figures cannot be written to {path}: there is no folder {path.parent}")
    figures: dict[str, list[Figure]] = {}
    for name in names or USUAL:
        module = import_module(f"holdfast.benchmarks.{name}")
        measure: Callable[[bool], list[Figure]] = module.measure
        with console.status(f"{name} …"):
            figures[name] = measure(quick)
        table = Table(title=f"{name}: {module.TITLE}", title_justify="left")
        for heading, side in (("figure", "left"), ("measured", "right"), ("goal", "right"), ("", "left")):
            table.add_column(heading, justify="right" if side == "right" else "left")
        for figure in figures[name]:
            table.add_row(figure.name, figure.shown, figure.goal_shown, figure.verdict)
        console.print(table)
    if path is not None:
        path.write_text(json.dumps({"machine": machine(), "quick": quick, **plain(figures)}, indent=1) + "\n")
    return all(figure.reached for group in figures.values() for figure in group)


def plain(figures: dict[str, list[Figure]]) -> dict[str, list[dict[str, object]]]:
    """The figures as JSON can hold them."""
    return {name: [figure.as_dict() for figure in group] for name, group in figures.items()}


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    versions = {name: metadata.version(name) for name in ("numpy", "numba")}
    return {
        "python": platform.python_version(),
        "processor": platform.processor() or platform.machine(),
        "cores": str(cores()),
        **versions,
    }
