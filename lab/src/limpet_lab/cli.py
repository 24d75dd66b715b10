"""The commands `limpet bench` and `limpet reproduce`, found by limpet through the entry points `limpet.commands`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from limpet_lab.bench import DEFAULT_BENCHMARKS, SLOW_BENCHMARKS, list_benchmarks
from limpet_lab.paper import runner
from limpet_lab.paper.config import QUICK_TRIALS, TRIALS, Plan

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
        complete = runner.reproduce(names, folder, plan, console, resume)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    for label, name in (("Report", "report.html"), ("Numbers", "results.json")):
        console.print(f"{label}: {folder / name}", markup=False, highlight=False, soft_wrap=True)
    if not complete:
        raise typer.Exit(1)


def list_results() -> None:
    """The names of all results, and what they are."""
    title_by_name = runner.titles()
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
        list[str] | None, typer.Argument(metavar="[TABLE]...", help="Tables and figures; all of them if none is named.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for results.json and report.html.", show_default="reproduction"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A taste in a minute: one stream of each kind, one restart.")
    ] = False,
    trials: Annotated[
        int | None, typer.Option(help="Streams of each kind, and restarts on real data; 10 as in the paper.", min=1)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Leave out what an earlier run has finished.")] = False,
    workers: Annotated[int | None, typer.Option(help="Threads; as many as there are cores.", min=1)] = None,
    names_only: Annotated[bool, typer.Option("--list", help="Show the names of all tables and figures.")] = False,
) -> None:
    """Every table and figure of the paper, ours beside the paper's, with honest rivals; some minutes on two cores."""
    from limpet_lab.cli import list_results, run_reproduce

    if names_only:
        list_results()
    else:
        run_reproduce(names or [], out, quick, trials, resume, workers, Console())


# \b: the lines of a paragraph stay as they are
BENCH_HELP = f"""Measure every figure that limpet claims, against the peer named, in one run on this machine.

\bIf none is named:
{list_benchmarks(DEFAULT_BENCHMARKS)}

\bOnly if it is named, since it takes minutes:
{list_benchmarks(SLOW_BENCHMARKS)}
"""


@bench_app.command(help=BENCH_HELP)
def _bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Of the benchmarks above; the first group if none is named."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A taste: fewer points, fewer rounds, and no goals to reach.")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Also write the figures to this file.")] = None,
) -> None:
    """See BENCH_HELP."""
    from limpet_lab.bench.runner import run_benchmarks

    if not run_benchmarks(names or [], quick, json, Console()):
        raise typer.Exit(1)


reproduce = typer.main.get_command(reproduce_app)
bench = typer.main.get_command(bench_app)
