"""The command line. Heavy imports stay inside the commands, so that `holdfast --help` is instant."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.benchmarks import LONG, USUAL, listed
from holdfast.cli.flags import options_command
from holdfast.cli.settings import DETECT_COMMAND, SERVE_COMMAND, WATCH_COMMAND
from holdfast.cli.spark import app as spark

BROKEN_PIPE_EXIT_CODE = 141  # as shells have it

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


# A paragraph is one line; \b: the lines of a paragraph stay as they are.
DETECT_HELP = """Find outliers, anomalies and changes in a file: a table of alarms, alarms.csv and report.html.

FILE holds separated values (.csv, .tsv), JSON lines (.jsonl) or Parquet, and may be larger than memory. \
Columns of numbers are found by themselves, and so are the columns of time and key, if they are called so.

\b
Examples:
  holdfast detect pump.csv
  holdfast detect pump.csv --columns pressure,flow --far 1e-5
  holdfast detect fleet.parquet --key sensor --points scored.parquet

Exit codes: 0 done, 1 alarms with --fail-on-alarm, 2 something is wrong with input or settings, 130 interrupted.
"""


@app.command(help=DETECT_HELP)
@options_command(DETECT_COMMAND, "The file to look at.", "FILE")
def detect(source: str, values: dict[str, Any]) -> None:
    """See DETECT_HELP."""
    from rich.console import Console

    from holdfast.cli.detect import run_detect

    run_detect(source, values, Console())


WATCH_HELP = """Watch a live source, for days and through crashes: alarms as they come.

SOURCE is a file that grows, a folder that files are dropped into, - for standard input, nats://host:4222/subject \
(JetStream), mqtt://host/topic or kafka://host:9092/topic. Records are separated values or JSON.

With --checkpoint nothing is lost when the process, the machine or the network dies: the same command goes on where it \
was. Nothing is told twice in files, SQLite and JetStream; other sinks may get the last alarms again.

\b
Examples:
  tail -f pump.csv | holdfast watch -
  holdfast watch nats://127.0.0.1:4222/sensors --key sensor --checkpoint state
  holdfast watch --config holdfast.toml

SIGTERM and Ctrl-C end it in order. Exit codes: 0 ended or stopped, 2 something is wrong with source or settings.
"""


@app.command(help=WATCH_HELP)
@options_command(WATCH_COMMAND, "What to watch.", "SOURCE")
def watch(source: str, values: dict[str, Any]) -> None:
    """See WATCH_HELP."""
    from holdfast.cli.watch import run_watch

    run_watch(source, values)


SERVE_HELP = """Serve a page to look at: an explorer of one stream, a live monitor of many, and the API behind it.

Points come by HTTP (POST /streams/KEY/points), and from SOURCE, if one is named: whatever `holdfast watch` reads. \
Everything is kept in one SQLite file, or in PostgreSQL; after a crash it goes on where it was.

\b
Examples:
  holdfast serve --demo
  curl --json 1.5 http://127.0.0.1:8420/streams/pump/points
  holdfast serve nats://127.0.0.1:4222/sensors --key sensor
  holdfast serve --store postgresql://me@localhost/plant
  HOLDFAST_TOKEN=… holdfast serve --host 0.0.0.0

SIGTERM and Ctrl-C end it in order. Exit codes: 0 stopped, 2 something is wrong with source or settings.
"""


@app.command(help=SERVE_HELP)
@options_command(SERVE_COMMAND, "What to watch besides.", "SOURCE", is_required=False)
def serve(source: str, values: dict[str, Any]) -> None:
    """See SERVE_HELP."""
    from holdfast.cli.serve import run_serve

    run_serve(source, values)


@app.command()
def status(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder given to --checkpoint.")],
    form: Annotated[str, typer.Option("--format", help="text, or json for machines.")] = "text",
) -> None:
    """How a `holdfast watch` is doing: rate, lag, what was dropped, the latest alarms."""
    from rich.console import Console

    from holdfast.cli.status import run_status

    run_status(folder, form, Console())


app.add_typer(spark, name="spark", short_help="Run past one machine, on Spark: score streams, move states.")


@app.command()
def init(
    path: Annotated[Path, typer.Argument(metavar="[FILE]", help="The file to write.")] = Path("holdfast.toml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a configuration file with every setting of `detect`, `watch`, `serve` and `spark score`, in comments."""
    from holdfast.cli.settings import make_config_template
    from holdfast.errors import InvalidInputError

    if path.exists() and not force:
        raise InvalidInputError(f"{path} is there already: give another name, or --force")
    try:
        path.write_text(make_config_template(), encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from None
    typer.echo(f"Written: {path}. Then: holdfast watch --config {path}")


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
    """The command `holdfast`. What is wrong is told in one line, not a traceback; exit code 2, or the error's own."""
    from holdfast.errors import HoldfastError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter is no reason to stop
    try:
        app()
        sys.stdout.flush()
    except HoldfastError as error:
        _exit_with_message(f"holdfast: {error}", getattr(error, "exit_code", 2))
    except BrokenPipeError:  # of those who read: `holdfast … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(BROKEN_PIPE_EXIT_CODE)
    except OSError as error:
        name = f" ({error.filename})" if error.filename else ""
        _exit_with_message(f"holdfast: {(error.strerror or str(error)).lower()}{name}")


def _exit_with_message(message: str, code: int = 2) -> None:
    """Ends with an exit code, although standard output may be full."""
    sys.stderr.write(" ".join(message.splitlines()) + "\n")
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
