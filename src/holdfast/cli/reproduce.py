"""The command `holdfast reproduce`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from holdfast.experiments.plan import QUICK_TRIALS, TRIALS, Plan
from holdfast.experiments.running import reproduce, titles

INTERRUPTED_EXIT_CODE = 130  # as shells have it


def run_reproduce(
    names: Sequence[str],
    out: Path | None,
    quick: bool,
    trials: int | None,
    resume: bool,
    workers: int | None,
    console: Console,
) -> None:
    """Runs the results and says where they are; leaves with 1 if some could not run."""
    plan = Plan(trials or (QUICK_TRIALS if quick else TRIALS), quick, workers)
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    try:
        complete = reproduce(names, folder, plan, console, resume)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    for label, name in (("Report", "report.html"), ("Numbers", "results.json")):
        console.print(f"{label}: {folder / name}", markup=False, highlight=False, soft_wrap=True)
    if not complete:
        raise typer.Exit(1)


def list_results() -> None:
    """The names of all results, and what they are."""
    title_by_name = titles()
    width = max(map(len, title_by_name))
    for name, title in title_by_name.items():
        typer.echo(f"{name:{width}}  {title}")
