"""The settings of `detect` and `watch`, told once: flags, keys of a configuration file, and the file `init` writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DETECT, WATCH = "detect", "watch"
BOTH = (DETECT, WATCH)


@dataclass(frozen=True)
class Setting:
    """One setting.

    name: of the flag, with - for _, and of the key in a file. kind: its type. told: in the help and in the file.
    example: what the file shows in a comment. group: the heading it stands under. flags: where they are not the name.
    """

    name: str
    kind: Any
    default: Any
    told: str
    example: Any
    group: str
    commands: Sequence[str] = BOTH
    flags: Sequence[str] = ()
    metavar: str | None = None


ALARMS_GO = (
    "Where alarms go, several times if need be: .jsonl, .csv, .parquet, .db, -, nats://, mqtt://, kafka://, http://."
)
INPUT, LEARNING, OUTPUT, RUNNING = "Input", "Learning", "Output", "Running"
SETTINGS = (
    Setting(
        "columns",
        list[str],
        None,
        "Columns to watch, with commas; by default all that hold numbers.",
        ["pressure", "flow"],
        INPUT,
    ),
    Setting("key", str, None, "The column that names the stream of each row, or 'none'.", "sensor", INPUT),
    Setting("time", str, None, "The column with the times, or 'none'.", "time", INPUT),
    Setting("form", str, None, "Of a file or of standard input: csv or json, if its name does not tell.", "csv", INPUT),
    Setting(
        "late",
        str,
        "skip",
        "Points older than the last one of their stream, or equal to it: skip or learn.",
        "learn",
        INPUT,
    ),
    Setting(
        "joint",
        bool,
        None,
        "Watch the columns together, or each by itself; by default together up to 8.",
        True,
        LEARNING,
        flags=("--joint/--separate",),
    ),
    Setting("far", float, 1e-4, "False alarms: at most one in 1/far points of a stable stream.", 1e-5, LEARNING),
    Setting("components", str, "1", "Gaussians of the mixture, or 'auto' for 1 to 3.", "auto", LEARNING),
    Setting(
        "season",
        int,
        0,
        "Rows after which things repeat themselves, such as 288 for a day of 5 minutes.",
        288,
        LEARNING,
    ),
    Setting("lags", int, 0, "How many rows back a point depends on.", 2, LEARNING),
    Setting(
        "memory",
        str,
        "full",
        "What is kept of a stream: full (3 KB for one variable) or lean (0.5 KB).",
        "lean",
        LEARNING,
    ),
    Setting(
        "max_keys", int, None, "Streams kept at most; those not seen for longest are forgotten.", 100_000, LEARNING
    ),
    Setting(
        "report", Path, Path("report.html"), "The page to write; 'none' for no page.", "report.html", OUTPUT, (DETECT,)
    ),
    Setting("alarms", list[str], None, ALARMS_GO, ["alarms.jsonl"], OUTPUT),
    Setting(
        "points", list[str], None, "Where each point goes with its score: the same but http://.", ["points.db"], OUTPUT
    ),
    Setting("format", str, "text", "What is printed: text, or json for machines.", "json", OUTPUT),
    Setting("show", int, 20, "Alarms to print, at most.", 50, OUTPUT, (DETECT,)),
    Setting(
        "fail_on_alarm",
        bool,
        False,
        "Leave with exit code 1 if there were alarms.",
        True,
        OUTPUT,
        (DETECT,),
        ("--fail-on-alarm",),
    ),
    Setting("checkpoint", Path, None, "A folder to go on from after a crash or a restart.", "state", RUNNING, (WATCH,)),
    Setting("every", float, 5.0, "Seconds between checkpoints.", 10.0, RUNNING, (WATCH,)),
    Setting(
        "once",
        bool,
        False,
        "Stop at the end of what is there, instead of waiting for more.",
        True,
        RUNNING,
        (WATCH,),
        ("--once",),
    ),
    Setting(
        "metrics",
        str,
        None,
        "Serve metrics for Prometheus here, such as 127.0.0.1:9464.",
        "127.0.0.1:9464",
        RUNNING,
        (WATCH,),
    ),
    Setting("log_format", str, "text", "Log lines on standard error: text or json.", "json", RUNNING, (WATCH,)),
)
CHOICES = {
    "form": ("csv", "json"),
    "late": ("skip", "learn"),
    "memory": ("full", "lean"),
    "format": ("text", "json"),
    "log_format": ("text", "json"),
}


def settings_of(command: str) -> list[Setting]:
    """Those of a command."""
    return [one for one in SETTINGS if command in one.commands]


def template() -> str:
    """A configuration file with every setting in a comment."""
    lines = [
        "# Settings of `holdfast watch --config holdfast.toml` and `holdfast detect --config holdfast.toml`.",
        "# Every flag is a key here; flags on the command line go before these. Take away a # to set one.",
        "",
        "# A file, a folder, - for standard input, nats://host:4222/subject, mqtt://host/topic, kafka://host:9092/topic",
        '# source = "nats://127.0.0.1:4222/sensors"',
    ]
    group = ""
    for one in SETTINGS:
        if one.group != group:
            group = one.group
            lines += ["", f"# --- {group} ---"]
        only = f" (`{one.commands[0]}` only)" if len(one.commands) == 1 else ""
        lines += ["", f"# {one.told}{only}", f"# {one.name} = {_toml(one.example)}"]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value in TOML, which writes these as JSON does."""
    return json.dumps(value)
