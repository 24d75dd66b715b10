"""The settings of the commands, told once: flags, keys of a file, and the file `init` writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

DETECT_COMMAND, WATCH_COMMAND, SERVE_COMMAND, SPARK_COMMAND = "detect", "watch", "serve", "spark"
DETECT_AND_WATCH_COMMANDS, LIVE_COMMANDS, LOCAL_COMMANDS = (
    (DETECT_COMMAND, WATCH_COMMAND),
    (WATCH_COMMAND, SERVE_COMMAND),
    (DETECT_COMMAND, WATCH_COMMAND, SERVE_COMMAND),
)
ALL_COMMANDS = (*LOCAL_COMMANDS, SPARK_COMMAND)
SPARK_GROUP = "Spark"  # the group of settings that Spark is begun with


@dataclass(frozen=True)
class Option:
    """One setting.

    name: of the flag, with - for _, and of the key in a file. kind: its type. told: in the help and in the file.
    example: what the file shows in a comment. metavar: what the help calls it. flags: where they are not the name.
    """

    name: str
    kind: Any
    default: Any
    help: str
    example: Any
    metavar: str = ""
    commands: Sequence[str] = ALL_COMMANDS
    flags: Sequence[str] = ()
    group: str = ""


INPUT_OPTIONS = [
    Option("columns", list[str], None, "Columns to watch, with commas; all that hold numbers.", ["flow"], "NAMES"),
    Option("key", str, None, "The column that names the stream of each row, or 'none'.", "sensor", "NAME"),
    Option("time", str, None, "The column with the times, or 'none'.", "time", "NAME"),
    Option(
        "form", str, None, "csv or json, where the name of the source does not tell.", "csv", "csv|json", LOCAL_COMMANDS
    ),
    Option(
        "late",
        str,
        "skip",
        "Points older than the last of their stream, or equal to it.",
        "learn",
        "skip|learn",
        DETECT_AND_WATCH_COMMANDS,
    ),
]
JOINT_HELP = "Watch the columns together, or each by itself; by default together up to 8."
SEASON_HELP = "Rows after which things repeat themselves: 288 for a day in steps of 5 minutes."
MANUAL_MODE_HELP = "By hand: the paper's algorithm, which raises no alarms."
LEARNING_OPTIONS = [
    Option("joint", bool, None, JOINT_HELP, True, "", LOCAL_COMMANDS, flags=("--joint/--separate",)),
    Option("far", float, 1e-4, "False alarms: at most one in 1/far points of a stable stream.", 1e-5, "RATE"),
    Option("components", str, "1", "Gaussians of the mixture, or 'auto' for 1 to 3.", "auto", "K"),
    Option("season", int, 0, SEASON_HELP, 288, "ROWS"),
    Option("lags", int, 0, "How many rows back a point depends on.", 2, "ROWS"),
    Option(
        "memory", str, "full", "Kept of a stream: full (3 KB a variable) or compact (0.5 KB).", "compact", "full|lean"
    ),
    Option("gamma", float, None, f"The threshold, or inf. {MANUAL_MODE_HELP}", 6.0, "NUMBER"),
    Option("rho", float, None, f"The step size. {MANUAL_MODE_HELP}", 0.01, "NUMBER"),
    Option("beta", float, None, "With --gamma and --M: the step size by Corollary 1 of the paper.", 0.1, "NUMBER"),
    Option("M", float, None, "With --gamma and --beta: how sharp the data are.", 5.0, "NUMBER"),
    Option("norm", str, "whitened", "What --gamma counts: deviations, or the paper's.", "mean", "whitened|mean|full"),
    Option(
        "max_keys",
        int,
        None,
        "Streams kept at most; those not seen for longest leave.",
        100_000,
        "N",
        DETECT_AND_WATCH_COMMANDS,
    ),
]
ALARMS_HELP = "Where alarms go; may be said several times. .jsonl .csv .parquet .db - nats:// mqtt:// kafka:// http://"
POINTS_HELP = "Where each point goes with its score: the same but http://."
REPORT_HELP = "The page to write; 'none' for no page."
OUTPUT_OPTIONS = [
    Option("report", Path, Path("report.html"), REPORT_HELP, "report.html", "FILE", (DETECT_COMMAND,)),
    Option("alarms", list[str], None, ALARMS_HELP, ["alarms.jsonl"], "PLACE", DETECT_AND_WATCH_COMMANDS),
    Option("points", list[str], None, POINTS_HELP, ["points.db"], "PLACE", DETECT_AND_WATCH_COMMANDS),
    Option(
        "format", str, "text", "What is printed: json is for machines.", "json", "text|json", DETECT_AND_WATCH_COMMANDS
    ),
    Option("show", int, 20, "Alarms to print, at most.", 50, "N", (DETECT_COMMAND,)),
    Option(
        "fail_on_alarm",
        bool,
        False,
        "Leave with exit code 1 if there were alarms.",
        True,
        "",
        (DETECT_COMMAND,),
        ("--fail-on-alarm",),
    ),
]
ONCE_HELP = "Stop at the end of what is there, instead of waiting for more."
METRICS_HELP = "Serve metrics for Prometheus here, such as 127.0.0.1:9464."
CHECKPOINT_INTERVAL_HELP = "Seconds between checkpoints; if it is not said, 5 for watch and 30 for serve."
RUNTIME_OPTIONS = [
    Option(
        "checkpoint", Path, None, "A folder to go on from after a crash or a restart.", "state", "DIR", (WATCH_COMMAND,)
    ),
    Option("every", float, None, CHECKPOINT_INTERVAL_HELP, 10.0, "SECONDS", LIVE_COMMANDS),
    Option("once", bool, False, ONCE_HELP, True, "", (WATCH_COMMAND,), ("--once",)),
    Option("metrics", str, None, METRICS_HELP, "127.0.0.1:9464", "ADDRESS", (WATCH_COMMAND,)),
    Option(
        "log_format", str, "text", "Log lines, on standard error.", "json", "text|json", (*LIVE_COMMANDS, SPARK_COMMAND)
    ),
]
STORE_HELP = "Where all is kept: an SQLite file, or postgresql://user@host/database."
TOKEN_HELP = (
    "A file with the token that is asked for; or set LIMPET_TOKEN. Needed for any other host than this machine."
)
KEEP_HELP = "Points of a stream that are kept in full; older ones are kept in buckets."
SERVER_OPTIONS = [
    Option("host", str, "127.0.0.1", "Where to listen.", "0.0.0.0", "ADDRESS", (SERVE_COMMAND,)),
    Option("port", int, 8420, "Where to listen; 0 for any that is free.", 8000, "PORT", (SERVE_COMMAND,)),
    Option("store", str, "limpet.db", STORE_HELP, "postgresql://limpet@localhost/limpet", "PLACE", (SERVE_COMMAND,)),
    Option("token_file", Path, None, TOKEN_HELP, "token.txt", "FILE", (SERVE_COMMAND,)),
    Option("keep", int, 10_000, KEEP_HELP, 50_000, "POINTS", (SERVE_COMMAND,)),
    Option("max_streams", int, 100_000, "Streams, at most.", 1000, "N", (SERVE_COMMAND,)),
    Option("rate", float, 1000.0, "Requests a second that one address may make.", 50.0, "N", (SERVE_COMMAND,)),
    Option("max_body", float, 8.0, "Megabytes that may be posted at once.", 1.0, "MB", (SERVE_COMMAND,)),
    Option(
        "demo",
        bool,
        False,
        "Also watch streams that are made up, to have a look.",
        True,
        "",
        (SERVE_COMMAND,),
        ("--demo",),
    ),
    Option("open", bool, None, "Open the page in the browser.", False, "", (SERVE_COMMAND,), ("--open/--no-open",)),
]
OPTION_GROUPS = {
    "Input": INPUT_OPTIONS,
    "Learning": LEARNING_OPTIONS,
    "Output": OUTPUT_OPTIONS,
    "Running": RUNTIME_OPTIONS,
    "Serving": SERVER_OPTIONS,
}
OPTIONS = tuple(replace(option, group=group) for group, settings in OPTION_GROUPS.items() for option in settings)

INPUT_FORMAT_HELP = "Of the files, where their names do not tell."
SCHEMA_HELP = "Columns and their types; else files that are there are looked at."
SOURCE_OPTION_HELP = "An option of the source, as Spark calls it; may be said several times."
WATERMARK_HELP = "How much later than others a row may come; older ones are not learnt from."
IDLE_HELP = "A stream that is silent for so long is forgotten; needs --watermark."
BUCKETS_HELP = "Groups that keys are dealt to; if it is not said, 64, or what the checkpoint has."
TRIGGER_HELP = "How often to look for more; if it is not said, as soon as the last batch is done."
FILES_PER_BATCH_HELP = "Files that a batch takes, at most; if it is not said, 256 MB of them."
PACKAGES_HELP = "Packages of Maven that Spark needs, with commas; of the version that goes with your Spark."
SPARK_LOG_HELP = "Where Spark's own log goes; if it is not said, nowhere."
BATCH_HELP = "Read all files once, sort them by time and write the table: no checkpoint."
SPARK_OPTION_GROUPS = {
    "Input": [
        Option("input_format", str, None, INPUT_FORMAT_HELP, "csv", "parquet|csv|json"),
        Option("schema", str, None, SCHEMA_HELP, "sensor string, ts timestamp, flow double", "COLUMNS"),
        Option("option", list[str], None, SOURCE_OPTION_HELP, ["startingOffsets=latest"], "NAME=VALUE"),
        Option("watermark", str, None, WATERMARK_HELP, "10 minutes", "TIME"),
    ],
    "Learning": [
        Option("idle", str, None, IDLE_HELP, "7 days", "TIME"),
        Option("initial", Path, None, "The file of a fleet, with which streams begin.", "fleet.limpet", "FILE"),
    ],
    "Output": [
        Option("out", str, None, "The folder for the scored rows.", "scored", "DIR"),
        Option("to", str, "parquet", "What to write.", "json", "parquet|delta|csv|json"),
        Option("prefix", str, "", "Before the names of the new columns.", "hf_", "TEXT"),
    ],
    "Running": [
        Option("checkpoint", str, None, "The folder that it goes on from.", "state", "DIR"),
        Option("buckets", int, None, BUCKETS_HELP, 256, "N"),
        Option("once", bool, False, ONCE_HELP, True, flags=("--once",)),
        Option("every", str, None, TRIGGER_HELP, "10 seconds", "TIME"),
        Option("files_per_batch", int, None, FILES_PER_BATCH_HELP, 100, "N"),
        Option("batch", bool, False, BATCH_HELP, True, flags=("--batch",)),
    ],
    SPARK_GROUP: [
        Option("master", str, "local[*]", "Where to run: local[2], spark://host:7077, yarn, …", "local[2]", "ADDRESS"),
        Option("driver_memory", str, "4g", "Memory of the driver; with local[…], of all.", "8g", "SIZE"),
        Option("packages", str, None, PACKAGES_HELP, "io.delta:delta-spark_2.13:VERSION", "NAMES"),
        Option("conf", list[str], None, "A setting of Spark's; may be said several times.", ["a=b"], "NAME=VALUE"),
        Option("spark_log", Path, None, SPARK_LOG_HELP, "spark.log", "FILE"),
    ],
}
SPARK_OPTIONS = tuple(
    replace(option, group=group, commands=(SPARK_COMMAND,))
    for group, settings in SPARK_OPTION_GROUPS.items()
    for option in settings
)
OPTION_CHOICES = {
    "form": ("csv", "json"),
    "late": ("skip", "learn"),
    "memory": ("full", "compact"),
    "norm": ("whitened", "mean", "full"),
    "format": ("text", "json"),
    "log_format": ("text", "json"),
    "input_format": ("parquet", "csv", "json"),
    "to": ("parquet", "delta", "csv", "json"),
}
MIN_OPTION_VALUES = {"show": 0, "every": 0.0, "port": 0, "keep": 100, "max_streams": 1, "rate": 0.1, "max_body": 0.001}
MIN_OPTION_VALUES |= {"buckets": 1, "files_per_batch": 1}


def get_options(command: str) -> list[Option]:
    """Those of a command."""
    options = [option for option in (*OPTIONS, *SPARK_OPTIONS) if command in option.commands]
    return sorted(options, key=lambda option: [*OPTION_GROUPS, *SPARK_OPTION_GROUPS].index(option.group))


def make_config_template() -> str:
    """A configuration file with every setting in a comment."""
    lines = [
        "# Settings of `limpet detect`, `watch`, `serve` and `spark score`, each with --config limpet.toml.",
        "# Every flag is a key here; flags on the command line go before these. Take away a # to set one.",
        "",
        "# A file, a folder, - for standard input, nats://host:4222/subject, mqtt://host/topic, kafka://host:9092/topic",
        '# source = "nats://127.0.0.1:4222/sensors"',
        *_make_config_lines(OPTIONS),
        "",
        "# === `limpet spark score` ===",
        "# Its own settings. What is said here goes before what is said above, for it alone.",
        "# [spark]",
        *_make_config_lines(SPARK_OPTIONS),
    ]
    return "\n".join(lines) + "\n"


def _make_config_lines(options: Sequence[Option]) -> Iterator[str]:
    """Lines of a configuration file."""
    group = ""
    for option in options:
        if option.group != group:
            group = option.group
            yield from ("", f"# --- {group} ---")
        names = " and ".join(f"`{command}`" for command in option.commands)
        scope = f" ({names} only)" if option in OPTIONS and len(option.commands) < len(ALL_COMMANDS) else ""
        default = f" Default: {option.default}." if option.default not in (None, False, "") else ""
        yield from ("", f"# {option.help}{default}{scope}", f"# {option.name} = {_to_toml(option.example)}")


def _to_toml(value: Any) -> str:
    """A value in TOML, which writes these as JSON does."""
    return json.dumps(value)
