"""The settings of `detect` and `watch`, told once: flags, keys of a configuration file, and the file `init` writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

DETECT, WATCH = "detect", "watch"
BOTH = (DETECT, WATCH)


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
    commands: Sequence[str] = BOTH
    flags: Sequence[str] = ()
    group: str = ""


INPUT = [
    Setting("columns", list[str], None, "Columns to watch, with commas; all that hold numbers.", ["flow"], "NAMES"),
    Setting("key", str, None, "The column that names the stream of each row, or 'none'.", "sensor", "NAME"),
    Setting("time", str, None, "The column with the times, or 'none'.", "time", "NAME"),
    Setting("form", str, None, "csv or json, where the name of the source does not tell.", "csv", "csv|json"),
    Setting("late", str, "skip", "Points older than the last of their stream, or equal to it.", "learn", "skip|learn"),
]
JOINT = "Watch the columns together, or each by itself; by default together up to 8."
SEASON = "Rows after which things repeat themselves: 288 for a day in steps of 5 minutes."
BY_HAND = "By hand: the paper's algorithm, which raises no alarms."
LEARNING = [
    Setting("joint", bool, None, JOINT, True, flags=("--joint/--separate",)),
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
    Setting("max_keys", int, None, "Streams kept at most; those not seen for longest leave.", 100_000, "N"),
]
ALARMS_GO = "Where alarms go; may be said several times. .jsonl .csv .parquet .db - nats:// mqtt:// kafka:// http://"
POINTS_GO = "Where each point goes with its score: the same but http://."
REPORT = "The page to write; 'none' for no page."
OUTPUT = [
    Setting("report", Path, Path("report.html"), REPORT, "report.html", "FILE", (DETECT,)),
    Setting("alarms", list[str], None, ALARMS_GO, ["alarms.jsonl"], "PLACE"),
    Setting("points", list[str], None, POINTS_GO, ["points.db"], "PLACE"),
    Setting("format", str, "text", "What is printed: json is for machines.", "json", "text|json"),
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
RUNNING = [
    Setting("checkpoint", Path, None, "A folder to go on from after a crash or a restart.", "state", "DIR", (WATCH,)),
    Setting("every", float, 5.0, "Seconds between checkpoints.", 10.0, "SECONDS", (WATCH,)),
    Setting("once", bool, False, ONCE, True, "", (WATCH,), ("--once",)),
    Setting("metrics", str, None, METRICS, "127.0.0.1:9464", "ADDRESS", (WATCH,)),
    Setting("log_format", str, "text", "Log lines, on standard error.", "json", "text|json", (WATCH,)),
]
GROUPS = {"Input": INPUT, "Learning": LEARNING, "Output": OUTPUT, "Running": RUNNING}
SETTINGS = tuple(replace(one, group=group) for group, settings in GROUPS.items() for one in settings)
CHOICES = {
    "form": ("csv", "json"),
    "late": ("skip", "learn"),
    "memory": ("full", "lean"),
    "norm": ("whitened", "mean", "full"),
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
        default = f" Default: {one.default}." if one.default not in (None, False) else ""
        lines += ["", f"# {one.told}{default}{only}", f"# {one.name} = {_toml(one.example)}"]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value in TOML, which writes these as JSON does."""
    return json.dumps(value)
