"""The command line. Heavy imports stay inside the commands, so that `limpet --help` is instant."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from limpet.cli.config import options_command
from limpet.cli.options import DETECT_COMMAND, SERVE_COMMAND, WATCH_COMMAND
from limpet.cli.spark import app as spark

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
        from limpet import __version__

        typer.echo(f"limpet {__version__}")
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
  limpet detect pump.csv
  limpet detect pump.csv --columns pressure,flow --far 1e-5
  limpet detect fleet.parquet --key sensor --points scored.parquet

Exit codes: 0 done, 1 alarms with --fail-on-alarm, 2 something is wrong with input or settings, 130 interrupted.
"""


@app.command(help=DETECT_HELP)
@options_command(DETECT_COMMAND, "The file to look at.", "FILE")
def detect(source: str, values: dict[str, Any]) -> None:
    """See DETECT_HELP."""
    from rich.console import Console

    from limpet.cli.detect import run_detect

    run_detect(source, values, Console())


WATCH_HELP = """Watch a live source, for days and through crashes: alarms as they come.

SOURCE is a file that grows, a folder that files are dropped into, - for standard input, nats://host:4222/subject \
(JetStream), mqtt://host/topic or kafka://host:9092/topic. Records are separated values or JSON.

With --checkpoint nothing is lost when the process, the machine or the network dies: the same command goes on where it \
was. Nothing is told twice in files, SQLite and JetStream; other sinks may get the last alarms again.

\b
Examples:
  tail -f pump.csv | limpet watch -
  limpet watch nats://127.0.0.1:4222/sensors --key sensor --checkpoint state
  limpet watch --config limpet.toml

SIGTERM and Ctrl-C end it in order. Exit codes: 0 ended or stopped, 2 something is wrong with source or settings.
"""


@app.command(help=WATCH_HELP)
@options_command(WATCH_COMMAND, "What to watch.", "SOURCE")
def watch(source: str, values: dict[str, Any]) -> None:
    """See WATCH_HELP."""
    from limpet.cli.watch import run_watch

    run_watch(source, values)


SERVE_HELP = """Serve a page to look at: an explorer of one stream, a live monitor of many, and the API behind it.

Points come by HTTP (POST /streams/KEY/points), and from SOURCE, if one is named: whatever `limpet watch` reads. \
Everything is kept in one SQLite file, or in PostgreSQL; after a crash it goes on where it was.

\b
Examples:
  limpet serve --demo
  curl --json 1.5 http://127.0.0.1:8420/streams/pump/points
  limpet serve nats://127.0.0.1:4222/sensors --key sensor
  limpet serve --store postgresql://me@localhost/plant
  LIMPET_TOKEN=… limpet serve --host 0.0.0.0

SIGTERM and Ctrl-C end it in order. Exit codes: 0 stopped, 2 something is wrong with source or settings.
"""


@app.command(help=SERVE_HELP)
@options_command(SERVE_COMMAND, "What to watch besides.", "SOURCE", is_required=False)
def serve(source: str, values: dict[str, Any]) -> None:
    """See SERVE_HELP."""
    from limpet.cli.serve import run_serve

    run_serve(source, values)


@app.command()
def status(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder given to --checkpoint.")],
    form: Annotated[str, typer.Option("--format", help="text, or json for machines.")] = "text",
) -> None:
    """How a `limpet watch` is doing: rate, lag, what was dropped, the latest alarms."""
    from rich.console import Console

    from limpet.cli.status import run_status

    run_status(folder, form, Console())


app.add_typer(spark, name="spark", short_help="Run past one machine, on Spark: score streams, move states.")


@app.command()
def init(
    path: Annotated[Path, typer.Argument(metavar="[FILE]", help="The file to write.")] = Path("limpet.toml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a configuration file with every setting of `detect`, `watch`, `serve` and `spark score`, in comments."""
    from limpet.cli.options import make_config_template
    from limpet.exceptions import InvalidInputError

    if path.exists() and not force:
        raise InvalidInputError(f"{path} is there already: give another name, or --force")
    try:
        path.write_text(make_config_template(), encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from None
    typer.echo(f"Written: {path}. Then: limpet watch --config {path}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The report to write.")] = Path("report.html"),
    seed: Annotated[int, typer.Option(help="Seed of the stream.", min=0)] = 0,
    picture: Annotated[Path | None, typer.Option(help="Also keep the picture, as .png or .svg.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
) -> None:
    """Run the paper's stream: what is learnt, what is dropped, where it changed; writes report.html."""
    from rich.console import Console

    from limpet.cli.demo import run_demo

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

    from limpet.cli.tradeoff import run_tradeoff

    others = {"U": U, "dim": dim, "n": n, "V": V, "c0": c0, "c1": c1, "d0": d0, "d1": d1}
    run_tradeoff(gamma or [], beta, M, alpha, {**others, "sigma0": sigma0, "sigma1": sigma1}, out, Console())


def _run_lab_command(context: typer.Context, name: str) -> None:
    """Hand the arguments to a command that another distribution registers under the group `limpet.commands`."""
    from importlib.metadata import entry_points

    found = list(entry_points(group="limpet.commands", name=name))
    if not found:
        _exit_with_message(
            f"limpet {name}: requires the package limpet-lab, which is not installed. "
            "In a clone of the repository: pip install -e './lab[all]'"
        )
    found[0].load()(context.args, prog_name=f"limpet {name}", standalone_mode=False)


LAB_COMMAND: dict[str, Any] = {
    "context_settings": {"ignore_unknown_options": True, "allow_extra_args": True},
    "add_help_option": False,
}


@app.command(**LAB_COMMAND)
def reproduce(context: typer.Context) -> None:
    """Recompute every table and figure of the paper, with baselines (requires limpet-lab)."""
    _run_lab_command(context, "reproduce")


@app.command(**LAB_COMMAND)
def bench(context: typer.Context) -> None:
    """Measure every figure that limpet claims, against peers (requires limpet-lab)."""
    _run_lab_command(context, "bench")


def main() -> None:
    """The command `limpet`. What is wrong is told in one line, not a traceback; exit code 2, or the error's own."""
    from limpet.exceptions import LimpetError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter is no reason to stop
    try:
        app()
        sys.stdout.flush()
    except LimpetError as error:
        _exit_with_message(f"limpet: {error}", getattr(error, "exit_code", 2))
    except BrokenPipeError:  # of those who read: `limpet … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(BROKEN_PIPE_EXIT_CODE)
    except OSError as error:
        name = f" ({error.filename})" if error.filename else ""
        _exit_with_message(f"limpet: {(error.strerror or str(error)).lower()}{name}")


def _exit_with_message(message: str, code: int = 2) -> None:
    """Ends with an exit code, although standard output may be full."""
    sys.stderr.write(" ".join(message.splitlines()) + "\n")
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
