"""The command `holdfast spark status`: what a checkpoint tells without any of its states."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.cli.spark.addresses import local_path, may_be_elsewhere, whole
from holdfast.cli.spark.errors import told_plainly
from holdfast.cli.spark.opening import session_for
from holdfast.errors import BadInputError

if TYPE_CHECKING:
    from holdfast.engines.spark.folder import Readable
    from holdfast.engines.spark.plan import Plan


def run_status(checkpoint: str, form: str, values: Mapping[str, Any]) -> None:
    """Prints it."""
    if form not in ("text", "json"):
        raise BadInputError(f"--format: expected one of text, json, got {form!r}")
    plan = plan_here(checkpoint, values)
    if plan is None:
        with told_plainly(), session_for(values) as spark:
            from holdfast.engines.spark.folder import Folder

            folder = Folder(spark, whole(checkpoint))
            told = _told(folder, plan_of(folder, checkpoint))
    else:
        from holdfast.engines.spark.folder import LocalFolder

        told = _told(LocalFolder(local_path(checkpoint) or ""), plan)
    if form == "json":
        sys.stdout.write(json.dumps(told) + "\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for word, meaning in pairs_of(told):
        grid.add_row(Text(word, style="dim"), Text(meaning))
    Console().print(grid)


def plan_here(checkpoint: str, values: Mapping[str, Any]) -> Plan | None:
    """What a checkpoint was begun with, as far as this machine tells; None where it may be elsewhere, for Spark to say.

    values: the settings of Spark.
    """
    from holdfast.engines.spark.folder import LocalFolder
    from holdfast.engines.spark.generations import OWN

    path = local_path(checkpoint)
    if path is None or (may_be_elsewhere(checkpoint, values) and not LocalFolder(path).names(OWN)):
        return None
    return plan_of(LocalFolder(path), checkpoint)


def plan_of(folder: Readable, checkpoint: str) -> Plan:
    """What a checkpoint was begun with."""
    from holdfast.engines.spark.generations import latest

    plan = latest(folder)
    if plan is None:
        raise BadInputError(f"{checkpoint} is no checkpoint of `holdfast spark score`: nothing of holdfast is in it")
    return plan


def _told(folder: Readable, plan: Plan) -> dict[str, Any]:
    """What there is to say."""
    batches = [int(name) for name in folder.names("commits") if name.isdigit()]
    begun = [int(name) for name in folder.names("offsets") if name.isdigit()]
    about = _metadata(folder, max(begun)) if begun else {}
    return {
        "key": plan.key,
        "values": list(plan.values),
        "time": plan.time,
        "watermark": plan.watermark,
        "idle": plan.idle,
        "buckets": plan.n_buckets,
        "generation": plan.generation,
        "model": repr(plan.learner()),
        "last_batch": max(batches, default=None),
        "unfinished": bool(begun) and max(begun) > max(batches, default=-1),
        "last_begun": about.get("batchTimestampMs"),
        "event_time": about.get("batchWatermarkMs") or None,
    }


def _metadata(folder: Readable, batch: int) -> dict[str, Any]:
    """What Spark notes of a batch when it begins: the second line of a file of its own."""
    lines = folder.read(f"offsets/{batch}").splitlines()
    try:
        found = json.loads(lines[1])
    except (IndexError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def pairs_of(told: dict[str, Any]) -> list[tuple[str, str]]:
    """In words."""
    from holdfast.cli.status import ago

    batch = "none yet" if told["last_batch"] is None else f"number {told['last_batch']:,}"
    if told["unfinished"]:
        batch += "; one more was begun, which is done again when it goes on"
    pairs = [
        ("key", told["key"]),
        ("learns from", ", ".join(told["values"])),
        ("time", told["time"] or "none"),
        ("model", told["model"]),
        ("buckets", f"{told['buckets']:,}, generation {told['generation']}"),
        ("last batch", batch),
    ]
    if told["last_begun"] is not None:
        pairs.append(("begun", ago(max(time.time() - told["last_begun"] / 1000, 0.0))))
    if told["watermark"] is not None:
        seen = "" if told["event_time"] is None else f", now at {_moment(told['event_time'])}"
        pairs.append(("watermark", f"{_written(told['watermark'])}{seen}"))
    if told["idle"] is not None:
        timed = in_units(told["idle"]) if told["watermark"] else f"{told['idle']:,}"
        pairs.append(("forgets after", timed))
    return pairs


def _written(watermark: str) -> str:
    from holdfast.engines.spark.schema import duration

    return in_units(duration("watermark", watermark, "us", least=0) or 0)


def in_units(microseconds: int) -> str:
    """A duration as people write it, and all of it.

    >>> in_units(600_000_000), in_units(86_401_500_000), in_units(0)
    ('10 min', '1 d 1 s 500 ms', '0 s')
    """
    units = {"d": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1}
    parts = []
    for name, size in units.items():
        n, microseconds = divmod(microseconds, size)
        parts += [f"{n:,} {name}"] if n else []
    return " ".join(parts) or "0 s"


def _moment(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(milliseconds / 1000))
