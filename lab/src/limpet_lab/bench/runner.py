"""Run benchmarks, and print their figures."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limpet._parallel import n_threads
from limpet.exceptions import InvalidInputError
from limpet_lab.bench import BENCHMARKS, DEFAULT_BENCHMARKS
from limpet_lab.bench._measurement import Figure, format_lines

if TYPE_CHECKING:
    from rich.console import Console


QUICK_NOTE = "Quick run: fewer points and rounds, so the figures are rough, and goals are not checked."
PLAIN_STYLE: dict[str, Any] = {"markup": False, "highlight": False}


def run_benchmarks(names: Sequence[str], quick: bool, path: Path | None, console: Console) -> bool:
    """Run benchmarks, print their figures, and return whether every goal was reached.

    quick: fewer points and rounds; goals are not checked, since they are for whole runs.
    """
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise InvalidInputError(f"NAME: must be one of {', '.join(BENCHMARKS)}, got {', '.join(unknown)}.")
    if path is not None and not path.absolute().parent.is_dir():
        raise InvalidInputError(f"--json: the folder must exist, got {path}. Create {path.parent}.")
    figures: dict[str, list[Figure]] = {}
    for name in names or DEFAULT_BENCHMARKS:
        try:
            module = import_module(f"limpet_lab.bench.{name}")
        except ModuleNotFoundError as error:
            if error.name != "harness":
                raise
            message = f"{name}: starts servers by tests/harness, which is missing. Run it in a clone of the repository."
            raise InvalidInputError(message) from None
        measure: Callable[[bool], list[Figure]] = module.measure
        with console.status(f"{name} …"):
            measured = measure(quick)
        figures[name] = [figure.without_goal() for figure in measured] if quick else measured
        console.print(f"{name}{', quick run' if quick else ''}: {module.TITLE}", style="italic", **PLAIN_STYLE)
        for line in format_lines(figures[name], console.width):
            console.print(line, soft_wrap=True, **PLAIN_STYLE)
        console.print()
    if quick:
        console.print(QUICK_NOTE, **PLAIN_STYLE)
    if path is not None:
        path.write_text(
            json.dumps({"machine": describe_machine(), "quick": quick, **to_json(figures)}, indent=1) + "\n"
        )
    return all(figure.is_reached for group in figures.values() for figure in group)


def to_json(figures: dict[str, list[Figure]]) -> dict[str, list[dict[str, object]]]:
    """Return the figures as JSON values."""
    return {name: [figure.to_dict() for figure in group] for name, group in figures.items()}


def describe_machine() -> dict[str, str]:
    """Return versions and processor of this machine."""
    versions = {name: metadata.version(name) for name in ("numpy", "numba")}
    return {
        "python": platform.python_version(),
        "processor": platform.processor() or platform.machine(),
        "cores": str(n_threads()),
        **versions,
    }
