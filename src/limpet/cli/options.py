"""The options of the commands, each declared once: flag, type, help, and the values it may have."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limpet._validation import Constraint, Interval, Options, check_param, invalid_param_error
from limpet.cli.config import get_origin_name, load_config
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
    help: str,
    *flags: str,
    constraint: Constraint | None = None,
    choices: tuple[str, ...] = (),
    **settings: Any,
) -> Any:
    """Declare an option in a panel of the help."""
    if choices:
        constraint, settings["metavar"] = Options(*choices), "|".join(choices)

    def check(context: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
        if value is not None and constraint is not None:
            check_param(get_origin_name(context, param), value, constraint)
        return value

    settings = {"callback": None if constraint is None else check, "show_envvar": False} | settings
    return typer.Option(*flags, help=help, rich_help_panel=panel, **settings)


_input, _learning, _output, _running, _serving, _spark = (
    partial(_option, panel) for panel in ("Input", "Learning", "Output", "Running", "Serving", "Spark")
)
_learner = partial(_learning, callback=_read_learner_param)


# Input

_COLUMNS_HELP = "Columns to learn, separated by commas (repeatable). Default: all numeric columns."
Columns = Annotated[list[str] | None, _input(_COLUMNS_HELP, metavar="NAMES", callback=_split_names)]
Key = Annotated[
    str | None, _input("Column with the key of the stream. Default: by name; Spark requires it.", metavar="NAME")
]
NoKey = Annotated[bool, _input("Read all records as one stream, even if a column looks like a key.", "--no-key")]
Time = Annotated[str | None, _input("Column with the times. Default: by name; none on Spark.", metavar="NAME")]
NoTime = Annotated[bool, _input("Ignore times, even if a column looks like them.", "--no-time")]
InputFormat = Annotated[
    str | None, _input("Format of the records. Default: by the name of the source.", choices=("csv", "json"))
]
Late = Annotated[str, _input("What to do with late and duplicate points.", choices=("skip", "learn"))]

# Learning

Joint = Annotated[
    bool | None,
    _learning(
        "Learn the columns as one stream, or each as its own. Default: jointly up to 8 columns.", "--joint/--separate"
    ),
]
Learner = Annotated[
    str,
    _learning(
        "Learner of a stream: detector needs no parameters; sra is the paper's algorithm and raises no alarms.",
        choices=("detector", "sra"),
    ),
]
NComponents = Annotated[
    str | None, _learner("Gaussians of the mixture, or auto for 1 to 3.", metavar="K", show_default="1")
]
Far = Annotated[
    float | None, _learner("False-alarm rate per point and kind of alarm.", metavar="RATE", show_default="0.0001")
]
Season = Annotated[
    int | None,
    _learner("Period of the season: 288 for a day of 5-minute rows; 0 for none.", metavar="ROWS", show_default="0"),
]
Lags = Annotated[int | None, _learner("Previous points that a point depends on.", metavar="ROWS", show_default="0")]
Memory = Annotated[
    str | None,
    _learner("State per variable: full (3 KB) or compact (0.5 KB).", metavar="full|compact", show_default="full"),
]
Gamma = Annotated[float | None, _learner("With --learner sra: threshold, or inf for none.", metavar="NUMBER")]
Rho = Annotated[float | None, _learner("With --learner sra: step size.", metavar="NUMBER")]
Beta = Annotated[
    float | None, _learner("With --learner sra, --gamma and --M: step size by Corollary 1.", metavar="NUMBER")
]
M = Annotated[float | None, _learner("With --learner sra, --gamma and --beta: sharpness.", "--M", metavar="NUMBER")]
Norm = Annotated[
    str | None,
    _learner("With --learner sra: norm that --gamma bounds.", metavar="whitened|mean|full", show_default="whitened"),
]
MaxKeys = Annotated[
    int | None,
    _learning(
        "Streams kept; the one without a point for longest is evicted. Default: no limit.",
        metavar="N",
        constraint=Interval(int, 1, None),
    ),
]

# Output

_DESTINATION_HELP = ".jsonl .csv .parquet .db - nats:// mqtt:// kafka://"
Alarms = Annotated[
    list[str] | None, _output(f"Alarm destination (repeatable): {_DESTINATION_HELP} http://", metavar="URI")
]
Points = Annotated[
    list[str] | None, _output(f"Destination of the scored points (repeatable): {_DESTINATION_HELP}", metavar="URI")
]
OutputFormat = Annotated[str, _output("Format of the printed results.", choices=("text", "json"))]
Report = Annotated[Path, _output("Report to write.", metavar="FILE")]
NoReport = Annotated[bool, _output("Write no report.", "--no-report")]
MaxAlarms = Annotated[int, _output("Alarms to print.", metavar="N", constraint=Interval(int, 0, None))]
FailOnAlarm = Annotated[bool, _output("Exit with code 1 if there are alarms.", "--fail-on-alarm")]

# Running

_CHECKPOINT_INTERVAL = {"metavar": "DURATION", "callback": _read_duration}
_CHECKPOINT_INTERVAL_HELP = "Time between checkpoints: seconds, or 10s, 5min. Default: 5s for watch, 30s for serve."
Checkpoint = Annotated[Path | None, _running("Directory to resume from after a crash or a restart.", metavar="DIR")]
CheckpointInterval = Annotated[
    str | None, _running(_CHECKPOINT_INTERVAL_HELP, "--checkpoint-interval", **_CHECKPOINT_INTERVAL)
]
Follow = Annotated[bool, _running("Wait for more records at the end of the source, or stop.", "--follow/--no-follow")]
Metrics = Annotated[
    str | None, _running("Address to serve Prometheus metrics at, such as 127.0.0.1:9464.", metavar="ADDRESS")
]
LogFormat = Annotated[str, _running("Format of the log on standard error.", choices=("text", "json"))]
Config = Annotated[
    Path | None,
    _running(
        "TOML file with values for the options; `limpet init` writes one.",
        metavar="FILE",
        is_eager=True,
        callback=load_config,
    ),
]

# Serving

Host = Annotated[str, _serving("Address to listen at.", metavar="ADDRESS")]
Port = Annotated[
    int, _serving("Port to listen at; 0 for any free one.", metavar="PORT", constraint=Interval(int, 0, 65_535))
]
Database = Annotated[str, _serving("SQLite file, or postgresql://user@host/database.", metavar="FILE|URL")]
TokenFile = Annotated[
    Path | None,
    _serving(
        "File with the token that clients send, or set LIMPET_TOKEN. Required unless --host is this machine.",
        metavar="FILE",
    ),
]
RetainPoints = Annotated[
    int,
    _serving(
        "Latest points of a stream stored in full; older ones are downsampled.",
        metavar="N",
        constraint=Interval(int, 100, None),
    ),
]
MaxStreams = Annotated[int, _serving("Largest number of streams.", metavar="N", constraint=Interval(int, 1, None))]
Rate = Annotated[
    float, _serving("Requests per second from one address.", metavar="N", constraint=Interval(float, 0.1, None))
]
MaxBody = Annotated[
    float, _serving("Largest request, in megabytes.", metavar="MB", constraint=Interval(float, 0.001, None))
]
Demo = Annotated[bool, _serving("Also watch synthetic streams.", "--demo")]
Open = Annotated[bool | None, _serving("Open the page in the browser.", "--open/--no-open")]

# Spark

SparkInputFormat = Annotated[
    str | None,
    _input("Format of the files. Default: by their names.", "--input-format", choices=("parquet", "csv", "json")),
]
SchemaOption = Annotated[
    str | None, _input("Columns and their types. Default: inferred from the files.", "--schema", metavar="COLUMNS")
]
SourceOption = Annotated[
    list[str] | None, _input("Option of Spark's source (repeatable).", "--option", metavar="NAME=VALUE")
]
Watermark = Annotated[str | None, _input("How late a row may arrive; later ones are not learned.", metavar="DURATION")]
Idle = Annotated[
    str | None,
    _learning("Time without rows after which a stream is forgotten; requires --watermark.", metavar="DURATION"),
]
Initial = Annotated[Path | None, _learning("Fleet file to initialize the streams from.", metavar="FILE")]
Out = Annotated[str | None, _output("Directory for the scored rows.", metavar="DIR")]
SparkOutputFormat = Annotated[
    str, _output("Format of the scored rows.", "--output-format", choices=("parquet", "delta", "csv", "json"))
]
Prefix = Annotated[str, _output("Prefix of the names of the new columns.", metavar="TEXT")]
SparkCheckpoint = Annotated[str | None, _running("Directory to resume from.", "--checkpoint", metavar="DIR")]
Buckets = Annotated[
    int | None,
    _running(
        "Buckets that keys are hashed into. Default: 64, or those of the checkpoint.",
        "--buckets",
        metavar="N",
        constraint=Interval(int, 1, None),
    ),
]
SparkFollow = Annotated[bool, _running("Wait for more rows at the end of the source, or stop.", "--follow/--no-follow")]
SparkInterval = Annotated[
    str | None,
    _running(
        "Time between batches: seconds, or 10s, 5min. Default: none.", "--checkpoint-interval", **_CHECKPOINT_INTERVAL
    ),
]
FilesPerBatch = Annotated[
    int | None, _running("Files per batch. Default: 256 MB of them.", metavar="N", constraint=Interval(int, 1, None))
]
BatchMode = Annotated[
    bool, _running("Read all files once, sort them by time and write the table, without a checkpoint.", "--batch")
]
Master = Annotated[str, _spark("Where to run: local[2], spark://host:7077, yarn.", metavar="ADDRESS")]
DriverMemory = Annotated[str, _spark("Memory of the driver; with local[…], of all.", metavar="SIZE")]
Packages = Annotated[
    str | None, _spark("Maven packages, separated by commas, of your version of Spark.", metavar="NAMES")
]
Conf = Annotated[list[str] | None, _spark("Spark property (repeatable).", metavar="NAME=VALUE")]
SparkLog = Annotated[Path | None, _spark("File for Spark's own log. Default: no log.", metavar="FILE")]
