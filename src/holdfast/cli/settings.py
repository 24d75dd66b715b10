"""The settings of the commands, told once: flags, keys of a file, and the file `init` writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

DETECT, WATCH, SERVE, SPARK = "detect", "watch", "serve", "spark"
BOTH, LIVE, HERE = (DETECT, WATCH), (WATCH, SERVE), (DETECT, WATCH, SERVE)
ALL = (*HERE, SPARK)
ON_SPARK = "Spark"  # the group of settings that Spark is begun with


@dataclass(frozen=True)
class Setting:
    """One setting.

    name: of the flag, with - for _, and of the key in a file. kind: its type. told: in the help and in the file.
    example: what the file shows in a comment. metavar: what the help calls it. flags: where they are not the name.
    """

    name: str
    kind: Any
    default: Any
    told: str
    example: Any
    metavar: str = ""
    commands: Sequence[str] = ALL
    flags: Sequence[str] = ()
    group: str = ""


INPUT = [
    Setting("columns", list[str], None, "Columns to watch, with commas; all that hold numbers.", ["flow"], "NAMES"),
    Setting("key", str, None, "The column that names the stream of each row, or 'none'.", "sensor", "NAME"),
    Setting("time", str, None, "The column with the times, or 'none'.", "time", "NAME"),
    Setting("form", str, None, "csv or json, where the name of the source does not tell.", "csv", "csv|json", HERE),
    Setting(
        "late", str, "skip", "Points older than the last of their stream, or equal to it.", "learn", "skip|learn", BOTH
    ),
]
JOINT = "Watch the columns together, or each by itself; by default together up to 8."
SEASON = "Rows after which things repeat themselves: 288 for a day in steps of 5 minutes."
BY_HAND = "By hand: the paper's algorithm, which raises no alarms."
LEARNING = [
    Setting("joint", bool, None, JOINT, True, "", HERE, flags=("--joint/--separate",)),
    Setting("far", float, 1e-4, "False alarms: at most one in 1/far points of a stable stream.", 1e-5, "RATE"),
    Setting("components", str, "1", "Gaussians of the mixture, or 'auto' for 1 to 3.", "auto", "K"),
    Setting("season", int, 0, SEASON, 288, "ROWS"),
    Setting("lags", int, 0, "How many rows back a point depends on.", 2, "ROWS"),
    Setting("memory", str, "full", "Kept of a stream: full (3 KB a variable) or lean (0.5 KB).", "lean", "full|lean"),
    Setting("gamma", float, None, f"The threshold, or inf. {BY_HAND}", 6.0, "NUMBER"),
    Setting("rho", float, None, f"The step size. {BY_HAND}", 0.01, "NUMBER"),
    Setting("beta", float, None, "With --gamma and --M: the step size by Corollary 1 of the paper.", 0.1, "NUMBER"),
    Setting("M", float, None, "With --gamma and --beta: how sharp the data are.", 5.0, "NUMBER"),
    Setting("norm", str, "whitened", "What --gamma counts: deviations, or the paper's.", "mean", "whitened|mean|full"),
    Setting("max_keys", int, None, "Streams kept at most; those not seen for longest leave.", 100_000, "N", BOTH),
]
ALARMS_GO = "Where alarms go; may be said several times. .jsonl .csv .parquet .db - nats:// mqtt:// kafka:// http://"
POINTS_GO = "Where each point goes with its score: the same but http://."
REPORT = "The page to write; 'none' for no page."
OUTPUT = [
    Setting("report", Path, Path("report.html"), REPORT, "report.html", "FILE", (DETECT,)),
    Setting("alarms", list[str], None, ALARMS_GO, ["alarms.jsonl"], "PLACE", BOTH),
    Setting("points", list[str], None, POINTS_GO, ["points.db"], "PLACE", BOTH),
    Setting("format", str, "text", "What is printed: json is for machines.", "json", "text|json", BOTH),
    Setting("show", int, 20, "Alarms to print, at most.", 50, "N", (DETECT,)),
    Setting(
        "fail_on_alarm",
        bool,
        False,
        "Leave with exit code 1 if there were alarms.",
        True,
        "",
        (DETECT,),
        ("--fail-on-alarm",),
    ),
]
ONCE = "Stop at the end of what is there, instead of waiting for more."
METRICS = "Serve metrics for Prometheus here, such as 127.0.0.1:9464."
EVERY = "Seconds between checkpoints; if it is not said, 5 for watch and 30 for serve."
RUNNING = [
    Setting("checkpoint", Path, None, "A folder to go on from after a crash or a restart.", "state", "DIR", (WATCH,)),
    Setting("every", float, None, EVERY, 10.0, "SECONDS", LIVE),
    Setting("once", bool, False, ONCE, True, "", (WATCH,), ("--once",)),
    Setting("metrics", str, None, METRICS, "127.0.0.1:9464", "ADDRESS", (WATCH,)),
    Setting("log_format", str, "text", "Log lines, on standard error.", "json", "text|json", (*LIVE, SPARK)),
]
STORE = "Where all is kept: an SQLite file, or postgresql://user@host/database."
TOKEN = "A file with the token that is asked for; or set HOLDFAST_TOKEN. Needed for any other host than this machine."
KEEP = "Points of a stream that are kept in full; older ones are kept in buckets."
SERVING = [
    Setting("host", str, "127.0.0.1", "Where to listen.", "0.0.0.0", "ADDRESS", (SERVE,)),
    Setting("port", int, 8420, "Where to listen; 0 for any that is free.", 8000, "PORT", (SERVE,)),
    Setting("store", str, "holdfast.db", STORE, "postgresql://holdfast@localhost/holdfast", "PLACE", (SERVE,)),
    Setting("token_file", Path, None, TOKEN, "token.txt", "FILE", (SERVE,)),
    Setting("keep", int, 10_000, KEEP, 50_000, "POINTS", (SERVE,)),
    Setting("max_streams", int, 100_000, "Streams, at most.", 1000, "N", (SERVE,)),
    Setting("rate", float, 1000.0, "Requests a second that one address may make.", 50.0, "N", (SERVE,)),
    Setting("max_body", float, 8.0, "Megabytes that may be posted at once.", 1.0, "MB", (SERVE,)),
    Setting(
        "demo", bool, False, "Also watch streams that are made up, to have a look.", True, "", (SERVE,), ("--demo",)
    ),
    Setting("open", bool, None, "Open the page in the browser.", False, "", (SERVE,), ("--open/--no-open",)),
]
GROUPS = {"Input": INPUT, "Learning": LEARNING, "Output": OUTPUT, "Running": RUNNING, "Serving": SERVING}
SETTINGS = tuple(replace(one, group=group) for group, settings in GROUPS.items() for one in settings)

FORMAT = "Of the files, where their names do not tell."
SCHEMA = "Columns and their types; else files that are there are looked at."
OPTION = "An option of the source, as Spark calls it; may be said several times."
WATERMARK = "How much later than others a row may come; older ones are not learnt from."
IDLE = "A stream that is silent for so long is forgotten; needs --watermark."
BUCKETS = "Groups that keys are dealt to; if it is not said, 64, or what the checkpoint has."
DEFAULT_TRIGGER = "How often to look for more; if it is not said, as soon as the last batch is done."
FILES = "Files that a batch takes, at most; if it is not said, 256 MB of them."
PACKAGES = "Packages of Maven that Spark needs, with commas; of the version that goes with your Spark."
SPARK_LOG = "Where Spark's own log goes; if it is not said, nowhere."
ALL_ONCE = "Read all files once, sort them by time and write the table: no checkpoint."
SPARK_GROUPS = {
    "Input": [
        Setting("input_format", str, None, FORMAT, "csv", "parquet|csv|json"),
        Setting("schema", str, None, SCHEMA, "sensor string, ts timestamp, flow double", "COLUMNS"),
        Setting("option", list[str], None, OPTION, ["startingOffsets=latest"], "NAME=VALUE"),
        Setting("watermark", str, None, WATERMARK, "10 minutes", "TIME"),
    ],
    "Learning": [
        Setting("idle", str, None, IDLE, "7 days", "TIME"),
        Setting("initial", Path, None, "The file of a fleet, with which streams begin.", "fleet.hf", "FILE"),
    ],
    "Output": [
        Setting("out", str, None, "The folder for the scored rows.", "scored", "DIR"),
        Setting("to", str, "parquet", "What to write.", "json", "parquet|delta|csv|json"),
        Setting("prefix", str, "", "Before the names of the new columns.", "hf_", "TEXT"),
    ],
    "Running": [
        Setting("checkpoint", str, None, "The folder that it goes on from.", "state", "DIR"),
        Setting("buckets", int, None, BUCKETS, 256, "N"),
        Setting("once", bool, False, ONCE, True, flags=("--once",)),
        Setting("every", str, None, DEFAULT_TRIGGER, "10 seconds", "TIME"),
        Setting("files_per_batch", int, None, FILES, 100, "N"),
        Setting("batch", bool, False, ALL_ONCE, True, flags=("--batch",)),
    ],
    ON_SPARK: [
        Setting("master", str, "local[*]", "Where to run: local[2], spark://host:7077, yarn, …", "local[2]", "ADDRESS"),
        Setting("driver_memory", str, "4g", "Memory of the driver; with local[…], of all.", "8g", "SIZE"),
        Setting("packages", str, None, PACKAGES, "io.delta:delta-spark_2.13:VERSION", "NAMES"),
        Setting("conf", list[str], None, "A setting of Spark's; may be said several times.", ["a=b"], "NAME=VALUE"),
        Setting("spark_log", Path, None, SPARK_LOG, "spark.log", "FILE"),
    ],
}
SPARK_SETTINGS = tuple(
    replace(one, group=group, commands=(SPARK,)) for group, settings in SPARK_GROUPS.items() for one in settings
)
CHOICES = {
    "form": ("csv", "json"),
    "late": ("skip", "learn"),
    "memory": ("full", "lean"),
    "norm": ("whitened", "mean", "full"),
    "format": ("text", "json"),
    "log_format": ("text", "json"),
    "input_format": ("parquet", "csv", "json"),
    "to": ("parquet", "delta", "csv", "json"),
}
LEAST = {"show": 0, "every": 0.0, "port": 0, "keep": 100, "max_streams": 1, "rate": 0.1, "max_body": 0.001}
LEAST |= {"buckets": 1, "files_per_batch": 1}


def settings_of(command: str) -> list[Setting]:
    """Those of a command."""
    found = [one for one in (*SETTINGS, *SPARK_SETTINGS) if command in one.commands]
    return sorted(found, key=lambda one: [*GROUPS, *SPARK_GROUPS].index(one.group))


def template() -> str:
    """A configuration file with every setting in a comment."""
    lines = [
        "# Settings of `holdfast detect`, `watch`, `serve` and `spark score`, each with --config holdfast.toml.",
        "# Every flag is a key here; flags on the command line go before these. Take away a # to set one.",
        "",
        "# A file, a folder, - for standard input, nats://host:4222/subject, mqtt://host/topic, kafka://host:9092/topic",
        '# source = "nats://127.0.0.1:4222/sensors"',
        *_told(SETTINGS),
        "",
        "# === `holdfast spark score` ===",
        "# Its own settings. What is said here goes before what is said above, for it alone.",
        "# [spark]",
        *_told(SPARK_SETTINGS),
    ]
    return "\n".join(lines) + "\n"


def _told(settings: Sequence[Setting]) -> Iterator[str]:
    """Lines of a configuration file."""
    group = ""
    for one in settings:
        if one.group != group:
            group = one.group
            yield from ("", f"# --- {group} ---")
        names = " and ".join(f"`{command}`" for command in one.commands)
        only = f" ({names} only)" if one in SETTINGS and len(one.commands) < len(ALL) else ""
        default = f" Default: {one.default}." if one.default not in (None, False, "") else ""
        yield from ("", f"# {one.told}{default}{only}", f"# {one.name} = {_toml(one.example)}")


def _toml(value: Any) -> str:
    """A value in TOML, which writes these as JSON does."""
    return json.dumps(value)
