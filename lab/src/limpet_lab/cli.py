"""The commands `limpet bench` and `limpet reproduce`, found by limpet through the entry points `limpet.commands`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from limpet_lab.bench import DEFAULT_BENCHMARKS, SLOW_BENCHMARKS, list_benchmarks
from limpet_lab.paper import runner
from limpet_lab.paper.config import N_QUICK_TRIALS, N_TRIALS, Plan

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
    """Run the results, print their paths, and exit with 1 if some could not run."""
    plan = Plan(trials or (N_QUICK_TRIALS if quick else N_TRIALS), quick, workers)
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    try:
        complete = runner.reproduce(names, folder, plan, console, resume)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    for label, name in (("Report", "report.html"), ("Numbers", "results.json")):
        console.print(f"{label}: {folder / name}", markup=False, highlight=False, soft_wrap=True)
    if not complete:
        raise typer.Exit(1)


def list_results() -> None:
    """Print the names and titles of all results."""
    title_by_name = runner.get_titles()
    width = max(map(len, title_by_name))
    for name, title in title_by_name.items():
        typer.echo(f"{name:{width}}  {title}")


def _make_app() -> typer.Typer:
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


reproduce_app, bench_app = _make_app(), _make_app()


@reproduce_app.command()
def _reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[TABLE]...", help="Tables and figures to compute. Default: all.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for results.json and report.html.", show_default="reproduction"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Quick run in a minute: one stream of each kind, one restart.")
    ] = False,
    trials: Annotated[
        int | None,
        typer.Option(help="Streams of each kind, and restarts on real data. Default: 10, as in the paper.", min=1),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Skip results that an earlier run has finished.")] = False,
    workers: Annotated[int | None, typer.Option(help="Number of threads. Default: the number of cores.", min=1)] = None,
    names_only: Annotated[bool, typer.Option("--list", help="Show the names of all tables and figures.")] = False,
) -> None:
    """Compute every table and figure of the paper, with baselines; some minutes on two cores."""
    if names_only:
        list_results()
    else:
        run_reproduce(names or [], out, quick, trials, resume, workers, Console())


# \b: the lines of a paragraph stay as they are
BENCH_HELP = f"""Measure every figure that limpet claims, against baselines, in one run on this machine.

\bBy default:
{list_benchmarks(DEFAULT_BENCHMARKS)}

\bOnly by name, since they take minutes:
{list_benchmarks(SLOW_BENCHMARKS)}
"""


@bench_app.command(help=BENCH_HELP)
def _bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Benchmarks to run. Default: the first group."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Quick run: fewer points and rounds, goals not checked.")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Also write the figures to this JSON file.")] = None,
) -> None:
    """See BENCH_HELP."""
    from limpet_lab.bench.runner import run_benchmarks

    if not run_benchmarks(names or [], quick, json, Console()):
        raise typer.Exit(1)


reproduce = typer.main.get_command(reproduce_app)
bench = typer.main.get_command(bench_app)
