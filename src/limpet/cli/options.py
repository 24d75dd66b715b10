"""The table of options: flag, type, default, help and possible values; and what commands create from their values."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from limpet._validation import Constraint, Interval, Options, check_param, invalid_param_error
from limpet.cli.config import OPTIONS_BY_COMMAND, SPARK, Option, get_origin_name, load_config
from limpet.exceptions import InvalidInputError

if TYPE_CHECKING:
    from limpet.learners import SRA, Detector

DURATION_PATTERN = re.compile(r"(\d+\.?\d*|\.\d+) *(ms|s|min|h|d|)")
SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
DETECTOR_PARAMS = ("far", "season", "lags", "memory")
SRA_PARAMS = ("gamma", "rho", "beta", "M", "norm")


def make_learner(values: dict[str, Any]) -> Detector | SRA:
    """Create the learner of one stream from the options; its class checks them and has the defaults."""
    from limpet.learners import SRA, Detector

    is_sra = values["learner"] == "sra"
    for name in DETECTOR_PARAMS if is_sra else SRA_PARAMS:
        if values[name] is not None:
            raise InvalidInputError(f"--{name}: requires --learner {'detector' if is_sra else 'sra'}.")
    names = ("n_components", *(SRA_PARAMS if is_sra else DETECTOR_PARAMS))
    params = {name: values[name] for name in names if values[name] is not None}
    return SRA(**params) if is_sra else Detector(**params)


def get_column_names(values: dict[str, Any]) -> dict[str, Any]:
    """Return the names of the columns of values, key and time as sources take them."""
    from limpet.streams.schema import NO_COLUMN

    names = {name: NO_COLUMN if values[f"no_{name}"] else values[name] for name in ("key", "time")}
    return {"columns": tuple(values["columns"] or ()) or None, **names}


def get_destinations(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the destinations of results: pairs of a table, "alarms" or "points", and a URI."""
    return [(table, uri) for table in ("alarms", "points") for uri in values[table] or ()]


def check_not_input(source: str, *uris: str) -> None:
    """Refuse to overwrite the input, and to write into a directory that is watched."""
    from limpet.streams.uri import local_path

    input_path = local_path(source)
    if input_path is None or not input_path.exists():
        return
    for uri in uris:
        path = local_path(uri)
        if path is None:
            continue
        if path.exists() and path.samefile(input_path):
            raise InvalidInputError(f"{uri}: is the input file. Give another name for the results.")
        if input_path.is_dir() and path.resolve().parent == input_path.resolve():
            raise InvalidInputError(f"{uri}: is in the input directory. Give another directory for the results.")


def parse_duration(value: str) -> float:
    """Return the seconds of a duration.

    >>> parse_duration("10"), parse_duration("10s"), parse_duration("1.5 min")
    (10.0, 10.0, 90.0)
    """
    match = DURATION_PATTERN.fullmatch(value.strip())
    if match is None:
        raise ValueError
    return float(match[1]) * SECONDS_PER_UNIT[match[2]]


# Callbacks of options: they convert and check what the command line, the environment or a file gives.


def _read_duration(context: typer.Context, param: typer.CallbackParam, value: str | None) -> Any:
    try:
        return None if value is None else parse_duration(value)
    except ValueError:
        name, constraint = get_origin_name(context, param), "must be seconds, or a duration such as 10s, 5min or 1h"
        raise invalid_param_error(name, constraint, value) from None


def _split_names(value: list[str] | None) -> list[str]:
    return [name.strip() for names in value or () for name in names.split(",") if name.strip()]


def _read_learner_param(context: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    """Check a value by the table of the class, which is imported only if there is a value."""
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    if value is not None:
        from limpet.learners import SRA, Detector

        constraint = {**SRA.constraints, **Detector.constraints}.get(str(param.name))
        if constraint is not None:
            check_param(get_origin_name(context, param), value, constraint)
    return value


def _option(
    panel: str,
    kind: Any,
    metavar: str | None,
    help: str,
    *flags: str,
    default: Any = None,
    example: Any = None,
    constraint: Constraint | None = None,
    **settings: Any,
) -> Option:
    """Declare an option in a panel of the help; its example is the default, if not another value."""

    def check(context: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
        if value is not None and constraint is not None:
            check_param(get_origin_name(context, param), value, constraint)
        return value

    settings = {"callback": None if constraint is None else check, "show_envvar": False} | settings
    declaration = typer.Option(*flags, help=help, rich_help_panel=panel, metavar=metavar, **settings)
    return Option(kind, default, declaration, default if example is None else example)


def _flag(panel: str, help: str, *flags: str, default: bool | None = False) -> Option:
    return _option(panel, bool, None, help, *flags, default=default, example=not default)


def _choice(panel: str, choices: tuple[str, ...], help: str, **settings: Any) -> Option:
    return _option(panel, str, "|".join(choices), help, constraint=Options(*choices), **settings)


_input, _learning, _output, _running, _serving, _spark = (
    partial(_option, panel) for panel in ("Input", "Learning", "Output", "Running", "Serving", "Spark")
)
_learner = partial(_learning, callback=_read_learner_param)
_interval = partial(_running, str, "DURATION", callback=_read_duration, example="10s")
_AT_LEAST_1 = Interval(int, 1, None)
_DESTINATION_HELP = ".jsonl .csv .parquet .db - nats:// mqtt:// kafka://"

OPTIONS = {
    "columns": _input(
        list[str],
        "NAMES",
        "Columns to learn, separated by commas (repeatable). Default: all numeric columns.",
        callback=_split_names,
        example=["flow"],
    ),
    "key": _input(
        str, "NAME", "Column with the key of the stream. Default: by name; Spark requires it.", example="sensor"
    ),
    "no_key": _flag("Input", "Read all records as one stream, even if a column looks like a key.", "--no-key"),
    "time": _input(str, "NAME", "Column with the times. Default: by name; none on Spark.", example="time"),
    "no_time": _flag("Input", "Ignore times, even if a column looks like them.", "--no-time"),
    "input_format": _choice(
        "Input", ("csv", "json"), "Format of the records. Default: by the name of the source.", example="csv"
    ),
    "late": _choice("Input", ("skip", "learn"), "What to do with late and duplicate points.", default="skip"),
    "joint": _flag(
        "Learning",
        "Learn the columns as one stream, or each as its own. Default: jointly up to 8 columns.",
        "--joint/--separate",
        default=None,
    ),
    "learner": _choice(
        "Learning",
        ("detector", "sra"),
        "Learner of a stream: detector needs no parameters; sra is the paper's algorithm and raises no alarms.",
        default="detector",
    ),
    "n_components": _learner(
        str, "K", "Gaussians of the mixture, or auto for 1 to 3.", show_default="1", example="auto"
    ),
    "far": _learner(
        float, "RATE", "False-alarm rate per point and kind of alarm.", show_default="0.0001", example=1e-5
    ),
    "season": _learner(
        int, "ROWS", "Period of the season: 288 for a day of 5-minute rows; 0 for none.", show_default="0", example=288
    ),
    "lags": _learner(int, "ROWS", "Previous points that a point depends on.", show_default="0", example=2),
    "memory": _learner(
        str,
        "full|compact",
        "State per variable: full (3 KB) or compact (0.5 KB).",
        show_default="full",
        example="compact",
    ),
    "gamma": _learner(float, "NUMBER", "With --learner sra: threshold, or inf for none.", example=6.0),
    "rho": _learner(float, "NUMBER", "With --learner sra: step size.", example=0.01),
    "beta": _learner(float, "NUMBER", "With --learner sra, --gamma and --M: step size by Corollary 1.", example=0.1),
    "M": _learner(float, "NUMBER", "With --learner sra, --gamma and --beta: sharpness.", "--M", example=5.0),
    "norm": _learner(
        str,
        "whitened|mean|full",
        "With --learner sra: norm that --gamma bounds.",
        show_default="whitened",
        example="mean",
    ),
    "max_keys": _learning(
        int,
        "N",
        "Streams kept; the one without a point for longest is evicted. Default: no limit.",
        constraint=_AT_LEAST_1,
        example=100_000,
    ),
    "alarms": _output(
        list[str], "URI", f"Alarm destination (repeatable): {_DESTINATION_HELP} http://", example=["alarms.jsonl"]
    ),
    "points": _output(
        list[str], "URI", f"Destination of the scored points (repeatable): {_DESTINATION_HELP}", example=["points.db"]
    ),
    "output_format": _choice("Output", ("text", "json"), "Format of the printed results.", default="text"),
    "report": _output(Path, "FILE", "Report to write.", default=Path("report.html")),
    "no_report": _flag("Output", "Write no report.", "--no-report"),
    "max_alarms": _output(int, "N", "Alarms to print.", constraint=Interval(int, 0, None), default=20),
    "fail_on_alarm": _flag("Output", "Exit with code 1 if there are alarms.", "--fail-on-alarm"),
    "checkpoint": _running(Path, "DIR", "Directory to resume from after a crash or a restart.", example="state"),
    "checkpoint_interval": _interval(
        "Time between checkpoints: seconds, or 10s, 5min. Default: 5s for watch, 30s for serve."
    ),
    "follow": _flag("Running", "Wait for more records at the end of the source, or stop.", default=True),
    "metrics": _running(
        str, "ADDRESS", "Address to serve Prometheus metrics at, such as 127.0.0.1:9464.", example="127.0.0.1:9464"
    ),
    "log_format": _choice("Running", ("text", "json"), "Format of the log on standard error.", default="text"),
    "config": _running(
        Path,
        "FILE",
        "TOML file with values for the options; `limpet init` writes one.",
        is_eager=True,
        callback=load_config,
    ),
    "host": _serving(str, "ADDRESS", "Address to listen at.", default="127.0.0.1"),
    "port": _serving(
        int, "PORT", "Port to listen at; 0 for any free one.", constraint=Interval(int, 0, 65_535), default=8420
    ),
    "database": _serving(str, "FILE|URL", "SQLite file, or postgresql://user@host/database.", default="limpet.db"),
    "token_file": _serving(
        Path,
        "FILE",
        "File with the token that clients send, or set LIMPET_TOKEN. Required unless --host is this machine.",
        example="token.txt",
    ),
    "retain_points": _serving(
        int,
        "N",
        "Latest points of a stream stored in full; older ones are downsampled.",
        constraint=Interval(int, 100, None),
        default=10_000,
    ),
    "max_streams": _serving(int, "N", "Largest number of streams.", constraint=_AT_LEAST_1, default=100_000),
    "rate": _serving(
        float, "N", "Requests per second from one address.", constraint=Interval(float, 0.1, None), default=1000.0
    ),
    "max_body": _serving(
        float, "MB", "Largest request, in megabytes.", constraint=Interval(float, 0.001, None), default=8.0
    ),
    "demo": _flag("Serving", "Also watch synthetic streams.", "--demo"),
    "open": _serving(bool, None, "Open the page in the browser.", example=False),
}
SPARK_OPTIONS = OPTIONS | {
    "input_format": _choice(
        "Input", ("parquet", "csv", "json"), "Format of the files. Default: by their names.", example="csv"
    ),
    "schema": _input(
        str,
        "COLUMNS",
        "Columns and their types. Default: inferred from the files.",
        example="sensor string, ts timestamp, flow double",
    ),
    "option": _input(
        list[str], "NAME=VALUE", "Option of Spark's source (repeatable).", example=["startingOffsets=latest"]
    ),
    "watermark": _input(
        str, "DURATION", "How late a row may arrive; later ones are not learned.", example="10 minutes"
    ),
    "idle_timeout": _learning(
        str, "DURATION", "Time without rows after which a stream is forgotten; requires --watermark.", example="7 days"
    ),
    "initial": _learning(Path, "FILE", "Fleet file to initialize the streams from.", example="fleet.limpet"),
    "out": _output(str, "DIR", "Directory for the scored rows.", example="scored"),
    "output_format": _choice(
        "Output", ("parquet", "delta", "csv", "json"), "Format of the scored rows.", default="parquet"
    ),
    "prefix": _output(str, "TEXT", "Prefix of the names of the new columns.", default=""),
    "checkpoint": _running(str, "DIR", "Directory to resume from.", example="state"),
    "buckets": _running(
        int,
        "N",
        "Buckets that keys are hashed into. Default: 64, or those of the checkpoint.",
        constraint=_AT_LEAST_1,
        example=256,
    ),
    "follow": _flag("Running", "Wait for more rows at the end of the source, or stop.", default=True),
    "checkpoint_interval": _interval("Time between batches: seconds, or 10s, 5min. Default: none."),
    "files_per_batch": _running(
        int, "N", "Files per batch. Default: 256 MB of them.", constraint=_AT_LEAST_1, example=100
    ),
    "batch": _flag(
        "Running", "Read all files once, sort them by time and write the table, without a checkpoint.", "--batch"
    ),
    "master": _spark(str, "ADDRESS", "Where to run: local[2], spark://host:7077, yarn.", default="local[*]"),
    "driver_memory": _spark(str, "SIZE", "Memory of the driver; with local[…], of all.", default="4g"),
    "packages": _spark(
        str,
        "NAMES",
        "Maven packages, separated by commas, of your version of Spark.",
        example="io.delta:delta-spark_2.13:VERSION",
    ),
    "conf": _spark(list[str], "NAME=VALUE", "Spark property (repeatable).", example=["a=b"]),
    "spark_log": _spark(Path, "FILE", "File for Spark's own log. Default: no log.", example="spark.log"),
}


def _pick(*names: str, table: dict[str, Option] = OPTIONS) -> dict[str, Option]:
    return {name: table[name] for name in " ".join(names).split()}


_RECORDS = "columns key no_key time no_time input_format"
_LEARNER = " ".join(("learner n_components", *DETECTOR_PARAMS, *SRA_PARAMS))
OUTPUT_FORMAT, SPARK_SESSION = _pick("output_format"), _pick("master conf", table=SPARK_OPTIONS)
OPTIONS_BY_COMMAND |= {
    "detect": _pick(
        f"{_RECORDS} late joint {_LEARNER} max_keys report no_report alarms points output_format max_alarms",
        "fail_on_alarm config",
    ),
    "watch": _pick(
        f"{_RECORDS} late joint {_LEARNER} max_keys alarms points output_format checkpoint checkpoint_interval follow",
        "metrics log_format config",
    ),
    "serve": _pick(
        f"{_RECORDS} joint {_LEARNER} checkpoint_interval log_format config host port database token_file",
        "retain_points max_streams rate max_body demo open",
    ),
    SPARK: _pick(
        f"columns key time input_format schema option watermark {_LEARNER} idle_timeout initial out output_format",
        "prefix checkpoint buckets follow checkpoint_interval files_per_batch batch log_format config",
        "master driver_memory packages conf spark_log",
        table=SPARK_OPTIONS,
    ),
}
