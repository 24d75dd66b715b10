"""Options of all commands, the configuration file, and the learner they create."""

from __future__ import annotations

import difflib
import inspect
import re
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from limpet._format import join_names
from limpet._validation import Constraint, Interval, Options, check_param, invalid_param_error
from limpet.exceptions import InvalidInputError

if TYPE_CHECKING:
    from limpet.learners import SRA, Detector

DURATION_PATTERN = re.compile(r"(\d+\.?\d*|\.\d+) *(ms|s|min|h|d|)")
SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
DETECTOR_PARAMS = ("far", "season", "lags", "memory")
SRA_PARAMS = ("gamma", "rho", "beta", "M", "norm")
SPARK = "spark"  # the command with a separate table in the file
LOCAL_COMMANDS = ("detect", "watch", "serve")
VALUE_TYPES: Any = {bool: (bool, "true or false"), int: (int, "an integer"), float: (int | float, "a number")}
Command = TypeVar("Command", bound=Callable[..., None])


class Option(NamedTuple):
    """An option: type, default, typer declaration, and example for the template."""

    kind: Any
    default: Any
    declaration: Any
    example: Any


SOURCE = Option(str, None, None, None)  # an argument of every command that reads a file


def with_options(options: dict[str, Option]) -> Callable[[Command], Command]:
    """Add options to a function, passed as `**values`; its docstring is the help."""

    def declare(function: Command) -> Command:
        *parameters, _ = inspect.signature(function, eval_str=True).parameters.values()
        for name, (kind, default, declaration, _) in options.items():
            annotation: Any = Annotated[kind | None if default is None else kind, declaration]
            parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            parameters.append(parameter.replace(annotation=annotation))
        vars(function)["__signature__"] = inspect.Signature(parameters)
        # A paragraph is one line; indented lines, and one after \b, stay as they are.
        function.__doc__ = re.sub(r"(?<=[^\n\b])\n(?=\S)", " ", inspect.getdoc(function) or "")
        return function

    return declare


def configurable(app: typer.Typer, name: str) -> Callable[[Command], Command]:
    """Make a command; options also from a file or LIMPET_COMMAND_OPTION variables."""

    def register(function: Command) -> Command:
        environment = {"auto_envvar_prefix": f"LIMPET_{name.upper()}"}
        return app.command(context_settings=environment)(with_options(OPTIONS_BY_COMMAND[name])(function))

    return register


def load_config(context: typer.Context, path: Path | None) -> Path | None:
    """Set the defaults of options from a file: the callback of --config."""
    if path is not None:
        shared, spark = read_config(path)
        if SPARK in context.command_path.split()[-2:]:  # limpet, the command and its subcommand
            local_options, spark_options = get_options(*LOCAL_COMMANDS), get_options(SPARK)
            shared = {name: shared[name] for name in shared if local_options[name] is spark_options.get(name)} | spark
        context.default_map = shared
        context.meta["config"] = path
    return path


def get_origin_name(context: typer.Context, param: typer.CallbackParam) -> str:
    """Return the name of an option as the user wrote it: flag, or file and key."""
    source = context.get_parameter_source(str(param.name))
    if source is not None and source.name == "DEFAULT_MAP":
        return f"{context.meta['config']}: {param.name}"
    return param.opts[0] if param.opts else str(param.name)


def read_config(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the values of a file: those at the top, and those of the table [spark]."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path}: must be TOML: {error}.") from None
    spark = table.pop(SPARK, {})
    if not isinstance(spark, dict):
        raise invalid_param_error(f"{path}: {SPARK}", f"must be a table [{SPARK}]", spark)
    return _read_table(str(path), table, *LOCAL_COMMANDS), _read_table(f"{path}: [{SPARK}]", spark, SPARK)


def get_options(*commands: str) -> dict[str, Option]:
    """Return the options that a file may set, by name; the first command counts."""
    options = {"source": SOURCE}
    for command in commands:
        for name, option in OPTIONS_BY_COMMAND[command].items():
            options.setdefault(name, option)
    return {name: option for name, option in options.items() if name != "config"}


def _read_table(where: str, table: dict[str, Any], *commands: str) -> dict[str, Any]:
    options, values = get_options(*commands), {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in options:
            matches = difflib.get_close_matches(name, options, 1)
            names = join_names(sorted(options), max_names=99)
            advice = f"Did you mean {matches[0]!r}?" if matches else f"The keys are {names}."
            raise InvalidInputError(f"{where}: {name}: is not an option. {advice}")
        values[name] = _convert(f"{where}: {name}", value, options[name].kind)
    return values


def _convert(where: str, value: Any, kind: Any) -> Any:
    """Return a value of a file as the type of its option."""
    if kind == list[str]:
        value, expected = [value] if isinstance(value, str) else value, "a list of strings"
        accepted = isinstance(value, list) and all(isinstance(item, str) for item in value)
    else:
        types, expected = VALUE_TYPES.get(kind, (str | int | float, "a string"))
        accepted = isinstance(value, types) and isinstance(value, bool) == (kind is bool)
    if not accepted:
        raise invalid_param_error(where, f"must be {expected}", value)
    return value if kind == list[str] or kind in VALUE_TYPES else str(value)


def make_learner(values: dict[str, Any]) -> Detector | SRA:
    """Create the learner of a stream; its class has the defaults and validates."""
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
    """Return destinations of results: (table, URI), table is "alarms" or "points"."""
    return [(table, uri) for table in ("alarms", "points") for uri in values[table] or ()]


# Callbacks of options: they convert and check what the command line, the environment or a file gives.


def read_duration(context: typer.Context, param: typer.CallbackParam, value: str | None) -> float | None:
    """Return the seconds of a duration."""
    if value is None:
        return None
    match = DURATION_PATTERN.fullmatch(value.strip())
    if match is None:
        name, constraint = get_origin_name(context, param), "must be seconds, or a duration such as 10s, 5min or 1h"
        raise invalid_param_error(name, constraint, value)
    return float(match[1]) * SECONDS_PER_UNIT[match[2]]


def _split_names(value: list[str] | None) -> list[str]:
    return [name.strip() for names in value or () for name in names.split(",") if name.strip()]


def _read_learner_param(context: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    """Check a value by the table of the class, imported only if a value is given."""
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
    metavar: str | tuple[str, ...] | None,
    help: str,
    example: Any = None,
    *flags: str,
    default: Any = None,
    least: float | None = None,
    most: float | None = None,
    **settings: Any,
) -> Option:
    """Declare an option in a panel of the help; its type is that of the example.

    `metavar` is the placeholder of its value, or a tuple of all choices; `least` and `most` are limits of a number.
    """
    example = default if example is None else example
    kind: Any = list[str] if isinstance(example, list) else type(example)
    if isinstance(example, Path):
        kind = Path  # not PosixPath, which most versions of typer refuse
    constraint: Constraint | None = None
    if isinstance(metavar, tuple):
        constraint, metavar = Options(*metavar), "|".join(metavar)
    elif least is not None:
        constraint = Interval(kind, least, most)

    def check(context: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
        if value is not None and constraint is not None:
            check_param(get_origin_name(context, param), value, constraint)
        return value

    settings = {"callback": None if constraint is None else check, "show_envvar": False} | settings
    declaration = typer.Option(*flags, help=help, rich_help_panel=panel, metavar=metavar, **settings)
    return Option(kind, default, declaration, example)


def _flag(panel: str, help: str, *flags: str, default: bool | None = False) -> Option:
    return _option(panel, None, help, not default, *flags, default=default)


_input, _learning, _output, _running, _serving, _spark = (
    partial(_option, panel) for panel in ("Input", "Learning", "Output", "Running", "Serving", "Spark")
)
_learner = partial(_learning, callback=_read_learner_param)
_interval = partial(_running, "DURATION", example="10s", callback=read_duration)
_DESTINATIONS = ".jsonl .csv .parquet .db - nats:// mqtt:// kafka://"

OPTIONS = {
    "columns": _input(
        "NAMES",
        "Columns to learn, separated by commas (repeatable). Default: all numeric columns.",
        ["flow"],
        callback=_split_names,
    ),
    "key": _input("NAME", "Column with the key of the stream. Default: by name; Spark requires it.", "sensor"),
    "no_key": _flag("Input", "Read all records as one stream, even if a column looks like a key.", "--no-key"),
    "time": _input("NAME", "Column with the times. Default: by name; none on Spark.", "time"),
    "no_time": _flag("Input", "Ignore times, even if a column looks like them.", "--no-time"),
    "input_format": _input(("csv", "json"), "Format of the records. Default: by the name of the source.", "csv"),
    "late": _input(("skip", "learn"), "What to do with late and duplicate points.", default="skip"),
    "joint": _flag(
        "Learning",
        "Learn the columns as one multivariate stream, or as separate streams. Default: one stream up to 8 columns.",
        "--joint/--separate",
        default=None,
    ),
    "learner": _learning(
        ("detector", "sra"),
        "Learner of a stream: detector needs no parameters; sra is the paper's algorithm and raises no alarms.",
        default="detector",
    ),
    "n_components": _learner("K", "Gaussians of the mixture, or auto for 1 to 3.", "auto", show_default="1"),
    "far": _learner("RATE", "False-alarm rate per point and kind of alarm.", 1e-5, show_default="0.0001"),
    "season": _learner(
        "ROWS", "Period of the season: 288 for a day of 5-minute rows; 0 for none.", 288, show_default="0"
    ),
    "lags": _learner("ROWS", "Number of previous points to regress each point on.", 2, show_default="0"),
    "memory": _learner(
        "full|compact", "State per variable: full (3 KB) or compact (0.5 KB).", "compact", show_default="full"
    ),
    "gamma": _learner("NUMBER", "With --learner sra: threshold, or inf for none.", 6.0),
    "rho": _learner("NUMBER", "With --learner sra: step size.", 0.01),
    "beta": _learner("NUMBER", "With --learner sra, --gamma and --M: step size by Corollary 1.", 0.1),
    "M": _learner("NUMBER", "With --learner sra, --gamma and --beta: tail scale of ‖H‖.", 5.0, "--M"),
    "norm": _learner(
        "whitened|mean|full", "With --learner sra: norm that --gamma bounds.", "mean", show_default="whitened"
    ),
    "max_keys": _learning(
        "N", "Maximum number of streams in memory; the least recently seen is evicted. Default: none.", 100_000, least=1
    ),
    "alarms": _output("URI", f"Alarm destination (repeatable): {_DESTINATIONS} http://", ["alarms.jsonl"]),
    "points": _output("URI", f"Destination of the scored points (repeatable): {_DESTINATIONS}", ["points.db"]),
    "output_format": _output(("text", "json"), "Format of the printed results.", default="text"),
    "report": _output("FILE", "Report to write.", default=Path("report.html")),
    "no_report": _flag("Output", "Write no report.", "--no-report"),
    "max_alarms": _output("N", "Alarms to print.", default=20, least=0),
    "fail_on_alarm": _flag("Output", "Exit with code 1 if there are alarms.", "--fail-on-alarm"),
    "checkpoint": _running("FOLDER", "Folder to resume from after a crash or a restart.", Path("state")),
    "checkpoint_interval": _interval(
        "Time between checkpoints: seconds, or 10s, 5min. Default: 5s for watch, 30s for serve."
    ),
    "follow": _flag("Running", "Wait for more records at the end of the source, or stop.", default=True),
    "metrics": _running("ADDRESS", "Address to serve Prometheus metrics at, such as 127.0.0.1:9464.", "127.0.0.1:9464"),
    "log_format": _running(("text", "json"), "Format of the log on standard error.", default="text"),
    "config": _running(
        "FILE",
        "TOML file with values for the options; `limpet init` writes one.",
        Path("limpet.toml"),
        is_eager=True,
        callback=load_config,
    ),
    "host": _serving("ADDRESS", "Address to listen at.", default="127.0.0.1"),
    "port": _serving("PORT", "Port to listen at; 0 for any free one.", default=8420, least=0, most=65_535),
    "database": _serving("FILE|URL", "SQLite file, or postgresql://user@host/database.", default="limpet.db"),
    "token_file": _serving(
        "FILE",
        "File with the token that clients send, or set LIMPET_TOKEN. Required unless --host is this machine.",
        Path("token.txt"),
    ),
    "retain_points": _serving(
        "N", "Latest points of a stream stored in full; older ones are downsampled.", default=10_000, least=100
    ),
    "max_streams": _serving("N", "Largest number of streams.", default=100_000, least=1),
    "rate": _serving("N", "Requests per second from one address.", default=1000.0, least=0.1),
    "max_body": _serving("MB", "Largest request, in megabytes.", default=8.0, least=0.001),
    "demo": _flag("Serving", "Also watch synthetic streams.", "--demo"),
    "open": _serving(None, "Open the page in the browser.", False),
}
SPARK_OPTIONS = OPTIONS | {
    "input_format": _input(("parquet", "csv", "json"), "Format of the files. Default: by their names.", "csv"),
    "schema": _input(
        "COLUMNS",
        "Columns and their types. Default: inferred from the files.",
        "sensor string, ts timestamp, flow double",
    ),
    "option": _input("NAME=VALUE", "Option of Spark's source (repeatable).", ["startingOffsets=latest"]),
    "watermark": _input("DURATION", "How late a row may arrive; later ones are not learned.", "10 minutes"),
    "idle_timeout": _learning(
        "DURATION", "Time without rows after which a stream is dropped; requires --watermark.", "7 days"
    ),
    "initial": _learning("FILE", "Fleet file to initialize the streams from.", Path("fleet.limpet")),
    "out": _output("FOLDER", "Folder for the scored rows.", "scored"),
    "output_format": _output(("parquet", "delta", "csv", "json"), "Format of the scored rows.", default="parquet"),
    "prefix": _output("TEXT", "Prefix of the names of the new columns.", default=""),
    "checkpoint": _running("FOLDER", "Folder to resume from.", "state"),
    "buckets": _running(
        "N", "Buckets that keys are hashed into. Default: 64, or those of the checkpoint.", 256, least=1
    ),
    "follow": _flag("Running", "Wait for more rows at the end of the source, or stop.", default=True),
    "checkpoint_interval": _interval("Time between batches: seconds, or 10s, 5min. Default: none."),
    "files_per_batch": _running("N", "Files per batch. Default: 256 MB of them.", 100, least=1),
    "batch": _flag(
        "Running", "Read all files once, sort them by time and write the table, without a checkpoint.", "--batch"
    ),
    "master": _spark("ADDRESS", "Where to run: local[2], spark://host:7077, yarn.", default="local[*]"),
    "driver_memory": _spark("SIZE", "Memory of the driver; with local[…], of the whole job.", default="4g"),
    "packages": _spark(
        "NAMES", "Maven packages, separated by commas, of your version of Spark.", "io.delta:delta-spark_2.13:VERSION"
    ),
    "conf": _spark("NAME=VALUE", "Spark property (repeatable).", ["a=b"]),
    "spark_log": _spark("FILE", "File for Spark's own log. Default: no log.", Path("spark.log")),
}


def _pick(*names: str, table: dict[str, Option] = OPTIONS) -> dict[str, Option]:
    return {name: table[name] for name in " ".join(names).split()}


_RECORDS = "columns key no_key time no_time input_format"
_LEARNER = " ".join(("learner n_components", *DETECTOR_PARAMS, *SRA_PARAMS))
OUTPUT_FORMAT, SPARK_SESSION = _pick("output_format"), _pick("master conf", table=SPARK_OPTIONS)
OPTIONS_BY_COMMAND = {
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
