"""The command line; heavy imports stay inside commands for a fast `--help`."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from limpet.cli.options import OUTPUT_FORMAT, configurable, with_options
from limpet.cli.spark import app as spark

BROKEN_PIPE_EXIT_CODE = 141  # as in shells
INTERNAL_ERROR_EXIT_CODE = 70  # EX_SOFTWARE of sysexits.h
CLICK_ERROR: Any = typer.BadParameter.mro()[2]  # ClickException, which typer does not export

app = typer.Typer(
    help="Learn from data streams in one pass: ignore outliers, follow changes, raise alarms.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def version(is_requested: bool) -> None:
    """Print the version and exit."""
    if is_requested:
        from limpet import __version__

        typer.echo(f"limpet {__version__}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options before a command."""


@configurable(app, "detect")
def detect(
    source: Annotated[str, typer.Argument(metavar="FILE", help="File to read.", show_default=False)], **values: Any
) -> None:
    """Find outliers, anomalies, changes in a file; write alarms.csv and report.html.

    FILE holds separated values (.csv, .tsv), JSON lines (.jsonl) or Parquet, and may be larger than memory. Numeric
    columns are detected automatically; time and key columns are detected by name. The command prints a table of alarms.

    \b
    Examples:
      limpet detect pump.csv
      limpet detect pump.csv --columns pressure,flow --far 1e-5
      limpet detect fleet.parquet --key sensor --points scored.parquet

    Exit codes: 0 done, 1 alarms with --fail-on-alarm, 2 invalid input or options, 70 internal error, 130 interrupted.
    """
    from rich.console import Console

    from limpet.cli.detect import run_detect

    run_detect(source, values, Console())


@configurable(app, "watch")
def watch(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Source to read.", show_default=False)], **values: Any
) -> None:
    """Watch a live source and raise alarms as they happen; resume after a crash.

    SOURCE is a file that grows, a folder that receives files, - for standard input, nats://host:4222/subject
    (JetStream), mqtt://host/topic or kafka://host:9092/topic. Records are separated values or JSON.

    With --checkpoint, the same command resumes after a failure of the process, the machine or the network. CSV and
    JSON-lines files, Parquet folders, SQLite and JetStream are exactly-once; other sinks are at-least-once.

    \b
    Examples:
      tail -f pump.csv | limpet watch -
      limpet watch nats://127.0.0.1:4222/sensors --key sensor --checkpoint state
      limpet watch --config limpet.toml

    SIGTERM and Ctrl-C stop it gracefully. Exit codes: 0 ended or stopped, 2 invalid source or options.
    """
    from limpet.cli.watch import run_watch

    run_watch(source, values)


@configurable(app, "serve")
def serve(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Source to read as well.", show_default=False)] = "",
    **values: Any,
) -> None:
    """Serve a web page: explorer of one stream, live monitor of many, and their API.

    Points arrive by HTTP (POST /streams/KEY/points) and from SOURCE, which may be any source of `limpet watch`. All
    data are stored in one SQLite file, or in PostgreSQL; the server resumes after a crash.

    \b
    Examples:
      limpet serve --demo
      curl --json 1.5 http://127.0.0.1:8420/streams/pump/points
      limpet serve nats://127.0.0.1:4222/sensors --key sensor
      limpet serve --database postgresql://me@localhost/plant
      LIMPET_TOKEN=… limpet serve --host 0.0.0.0

    SIGTERM and Ctrl-C stop it gracefully. Exit codes: 0 stopped, 2 invalid source or options.
    """
    from limpet.cli.serve import run_serve

    run_serve(source, values)


@app.command()
@with_options(OUTPUT_FORMAT)
def status(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder given to --checkpoint.")], **values: Any
) -> None:
    """Print the state of a `limpet watch`: rate, lag, skipped points, latest alarms."""
    from limpet.cli.watch import run_status

    run_status(folder, values["output_format"])


app.add_typer(spark, name="spark", short_help="Run on Spark: score streams, inspect and move states.")


@app.command()
def init(
    path: Annotated[Path, typer.Argument(metavar="[FILE]", help="File to write.")] = Path("limpet.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a configuration template for `detect`, `watch`, `serve`, `spark score`."""
    from limpet.cli.init import make_config_template
    from limpet.exceptions import InvalidInputError

    if path.exists() and not force:
        raise InvalidInputError(f"FILE: must not exist, got {path}. Give another name, or --force.")
    try:
        path.write_text(make_config_template(), encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"FILE: {path} cannot be written: {(error.strerror or str(error)).lower()}.") from None
    typer.echo(f"Written: {path}. Set source and other options in it, then run: limpet watch --config {path}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Report to write.")] = Path("report.html"),
    seed: Annotated[int, typer.Option(help="Seed of the streams.", min=0)] = 0,
    picture: Annotated[Path | None, typer.Option(help="Also write the first picture to a .png file.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
) -> None:
    """Detect outliers, an outage and a shift in traffic, then run the paper's SRA."""
    from rich.console import Console

    from limpet.cli.demo import run_demo

    run_demo(out, seed, Console(), open_report=show, picture=picture)


@app.command()
def tradeoff(
    gamma: Annotated[
        list[str] | None, typer.Option(help="Thresholds γ, separated by commas (repeatable); inf for none.")
    ] = None,
    beta: Annotated[float, typer.Option(help="β of Corollary 1.")] = 0.1,
    M: Annotated[float, typer.Option("--M", help="Tail scale of ‖H‖: P(‖H‖ ≥ z) ≤ exp(−z²/M²).")] = 5.0,
    alpha: Annotated[float, typer.Option(help="Share of points that are no outliers.")] = 0.99,
    U: Annotated[float, typer.Option("--U", help="Outliers are uniform on [−U, U]^dim.")] = 20.0,
    dim: Annotated[int, typer.Option(help="Dimension of the data.")] = 1,
    n: Annotated[int, typer.Option(help="Length of the run.")] = 20_000,
    V: Annotated[float, typer.Option("--V", help="Expected decrease of the Lyapunov function.")] = 1.0,
    c0: Annotated[float, typer.Option(help="Bias of the mean field.")] = 0.0,
    c1: Annotated[float, typer.Option(help="Constant of Assumption 1 (a).")] = 1.0,
    d0: Annotated[float, typer.Option(help="Constant of Assumption 1 (b).")] = 1.0,
    d1: Annotated[float, typer.Option(help="Constant of Assumption 1 (b); the paper prints 1.")] = 1.0,
    sigma0: Annotated[float, typer.Option(help="Noise of H on clean data.")] = 1.0,
    sigma1: Annotated[float, typer.Option(help="Noise of H proportional to the mean field.")] = 1.0,
    out: Annotated[Path, typer.Option(help="Picture to write.")] = Path("tradeoff.png"),
) -> None:
    """Compute and draw ρ and the bound for each γ, and the best pair, by the theory."""
    from limpet.cli.tradeoff import run_tradeoff

    others = {"U": U, "dim": dim, "n": n, "V": V, "c0": c0, "c1": c1, "d0": d0, "d1": d1}
    run_tradeoff(gamma or [], beta, M, alpha, {**others, "sigma0": sigma0, "sigma1": sigma1}, out)


LAB_COMMAND: dict[str, Any] = {
    "context_settings": {"ignore_unknown_options": True, "allow_extra_args": True},
    "add_help_option": False,
}
BENCH_HELP = "Measure every figure that limpet claims, against baselines (requires limpet-lab)."
REPRODUCE_HELP = "Recompute every table and figure of the paper, with baselines (requires limpet-lab)."


@app.command("bench", help=BENCH_HELP, **LAB_COMMAND)
@app.command("reproduce", help=REPRODUCE_HELP, **LAB_COMMAND)
def run_lab_command(context: typer.Context) -> None:
    """Run a command that another distribution registers under `limpet.commands`."""
    from importlib.metadata import entry_points

    name = str(context.info_name)
    matches = list(entry_points(group="limpet.commands", name=name))
    if not matches:
        advice = "In a clone of the repository: pip install -e './lab[all]'"
        _exit_with_message(f"limpet {name}: requires the package limpet-lab, which is not installed. {advice}")
    raise typer.Exit(matches[0].load()(context.args, prog_name=f"limpet {name}", standalone_mode=False) or 0)


def main() -> None:
    """Run `limpet`; print an error in one line and exit with its code, by default 2."""
    from limpet.exceptions import LimpetError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals that lack a character
    try:
        code = app(prog_name="limpet", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code)
    except CLICK_ERROR as error:
        _exit_with_message(_format_usage_error(error))
    except LimpetError as error:
        _exit_with_message(f"limpet: {error}", getattr(error, "exit_code", 2))
    except BrokenPipeError:  # the reader of the output is gone: `limpet … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(BROKEN_PIPE_EXIT_CODE)
    except OSError as error:
        name = f" ({error.filename})" if error.filename else ""
        _exit_with_message(f"limpet: {(error.strerror or str(error)).lower()}{name}")
    except Exception as error:  # of limpet or of a plug-in; 1 would mean that alarms were raised
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(INTERNAL_ERROR_EXIT_CODE)


def _format_usage_error(error: Any) -> str:
    """Format an error of the command line in one line; "" if help was shown instead."""
    context, param = getattr(error, "ctx", None), getattr(error, "param", None)
    message = error.format_message().strip()
    if param is not None:
        name = param.opts[0] if param.opts[0].startswith("-") else param.metavar or param.name
        message = f"{name}: {error.message or 'is missing'}"
    hint = f" See {context.command_path} --help." if context is not None else ""
    return f"limpet: {message}{'' if message.endswith(('.', '?')) else '.'}{hint}" if message else ""


def _exit_with_message(message: str, code: int = 2) -> None:
    """Write a line to standard error and exit, even if standard output is closed."""
    sys.stderr.write(" ".join(message.splitlines()) + "\n" * bool(message))
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
