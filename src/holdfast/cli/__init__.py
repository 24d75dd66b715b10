"""The command line. Heavy imports stay inside the commands, so that `holdfast --help` is instant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from holdfast.benchmarks import LONG, USUAL, listed

app = typer.Typer(
    help="Learns from data streams in one pass: ignores outliers, follows changes, tells which is which.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def version(wanted: bool) -> None:
    """Prints the version and leaves."""
    if wanted:
        from holdfast import __version__

        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options that stand before a command."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The report to write.")] = Path("report.html"),
    seed: Annotated[int, typer.Option(help="Seed of the stream.", min=0)] = 0,
    picture: Annotated[Path | None, typer.Option(help="Also keep the picture, as .png or .svg.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
) -> None:
    """Run the paper's stream: what is learnt, what is dropped, where it changed; writes report.html."""
    from rich.console import Console

    from holdfast.cli.demo import run_demo

    run_demo(out, seed, Console(), open_report=show, picture=picture)


@app.command()
def tradeoff(
    gamma: Annotated[
        list[str] | None, typer.Option(help="Thresholds γ, several times or with commas; 'inf' is allowed.")
    ] = None,
    beta: Annotated[float, typer.Option(help="β of Corollary 1.")] = 0.1,
    M: Annotated[float, typer.Option("--M", help="Sharpness of the distribution of H.")] = 5.0,
    alpha: Annotated[float, typer.Option(help="Share of clean points.")] = 0.99,
    U: Annotated[float, typer.Option("--U", help="Outliers are uniform on [−U, U]^dim.")] = 20.0,
    dim: Annotated[int, typer.Option(help="Dimension of the data.")] = 1,
    n: Annotated[int, typer.Option(help="Length of the run.")] = 20_000,
    V: Annotated[float, typer.Option("--V", help="Expected fall of the Lyapunov function.")] = 1.0,
    c0: Annotated[float, typer.Option(help="Bias of the mean field.")] = 0.0,
    c1: Annotated[float, typer.Option(help="Constant of Assumption 1 (a).")] = 1.0,
    d0: Annotated[float, typer.Option(help="Constant of Assumption 1 (b).")] = 1.0,
    d1: Annotated[float, typer.Option(help="Constant of Assumption 1 (b); the paper prints 1.")] = 1.0,
    sigma0: Annotated[float, typer.Option(help="Noise of H on clean data.")] = 1.0,
    sigma1: Annotated[float, typer.Option(help="Noise of H that grows with the mean field.")] = 1.0,
    out: Annotated[Path, typer.Option(help="The picture to write.")] = Path("tradeoff.png"),
) -> None:
    """The theory as a calculator: ρ for each γ, the bound, the best pair; draws them."""
    from rich.console import Console

    from holdfast.cli.tradeoff import run_tradeoff

    others = {"U": U, "dim": dim, "n": n, "V": V, "c0": c0, "c1": c1, "d0": d0, "d1": d1}
    run_tradeoff(gamma or [], beta, M, alpha, {**others, "sigma0": sigma0, "sigma1": sigma1}, out, Console())


@app.command()
def reproduce(
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
    from rich.console import Console

    from holdfast.cli.reproduce import list_results, run_reproduce

    if names_only:
        list_results()
    else:
        run_reproduce(names or [], out, quick, trials, resume, workers, Console())


# \b: the lines of a paragraph stay as they are
BENCH_HELP = f"""Measure every figure that holdfast claims, against the peer named, in one run on this machine.

\bIf none is named:
{listed(USUAL)}

\bOnly if it is named, since it takes minutes:
{listed(LONG)}
"""


@app.command(help=BENCH_HELP)
def bench(
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
    from rich.console import Console

    from holdfast.benchmarks.running import run_benchmarks

    if not run_benchmarks(names or [], quick, json, Console()):
        raise typer.Exit(1)


def main() -> None:
    """The command `holdfast`. Errors of ours are told in one line, without a traceback; exit code 2."""
    from holdfast.errors import HoldfastError

    try:
        app()
    except HoldfastError as error:
        sys.stderr.write(f"holdfast: {error}\n")
        sys.exit(2)
