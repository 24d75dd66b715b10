"""The commands `limpet watch`, for a live source, and `limpet status`."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from limpet._format import format_duration, redact_url
from limpet.cli._logging import configure_logging, stop_on_signals
from limpet.cli.detect import check_not_input, make_alarm_table, print_input_errors
from limpet.cli.options import get_column_names, get_destinations, make_learner
from limpet.streams.checkpoint_store import CheckpointStore, StatusFile, read_status
from limpet.streams.metrics import collect_metrics, serve_metrics
from limpet.streams.monitor_plan import MonitorPlan
from limpet.streams.runner import CHECKPOINT_INTERVAL_S, Runner
from limpet.streams.schema import Schema
from limpet.streams.sinks.base import MultiSink
from limpet.streams.sinks.stdout import StdoutSink
from limpet.streams.sources.base import ProbedSource
from limpet.streams.uri import identify_source, open_sink, open_source

log = logging.getLogger("limpet.watch")


def run_watch(uri: str, values: dict[str, Any]) -> None:
    """Watch until the source ends, or until SIGTERM or Ctrl-C."""
    configure_logging(values["log_format"])
    destinations = get_destinations(values)
    check_not_input(uri, destinations)
    learner, stop = make_learner(values), threading.Event()
    with ExitStack() as resources:
        stop_on_signals(stop)
        checkpoints = None
        if values["checkpoint"] is not None:
            checkpoints = CheckpointStore(values["checkpoint"])
            resources.callback(checkpoints.close)
        checkpoint = None if checkpoints is None else checkpoints.latest()
        column_names = get_column_names(values)
        source = open_source(uri, **column_names, follow=values["follow"], input_format=values["input_format"])
        runners: list[Runner] = []
        if values["metrics"]:
            server = serve_metrics(values["metrics"], lambda: collect_metrics(runners[0]) if runners else [])
            resources.callback(server.close)
            log.info("metrics at http://%s/metrics", values["metrics"])
        status = None if checkpoints is None else StatusFile(checkpoints.folder, redact_url(uri))
        sinks = [open_sink(sink_uri, table) for table, sink_uri in destinations]
        if not any(table == "alarms" or sink_uri == "-" for table, sink_uri in destinations):
            sinks.append(StdoutSink("alarms", values["output_format"]))
        log.info("watching %s", redact_url(uri))
        probed = ProbedSource(source)
        if checkpoint is not None and checkpoint[0]["schema"] is not None:
            probed.schema = Schema.from_dict(checkpoint[0]["schema"])
        if probed.schema is None:
            probed.wait_for_schema(stop, None if checkpoint is None else checkpoint[0]["position"])
        if probed.schema is None:
            log.info("stopped before the first point" if stop.is_set() else "ended: no record could be read")
            return
        plan = MonitorPlan.from_schema(probed.schema, learner, joint=values["joint"], max_keys=values["max_keys"])
        for label, value in plan.describe():
            log.info("%s: %s", label, value)
        if not plan.raises_alarms:
            log.warning("the learner sra raises no alarms; --points writes the result of each point")
        interval = values["checkpoint_interval"]
        run_id_fields = {"source": identify_source(uri), "separate": plan.is_split, **column_names}
        run_id_fields["input_format"] = values["input_format"]
        runner = Runner(
            plan.wrap_source(probed),
            plan.learner_or_fleet,
            MultiSink(sinks),
            checkpoints,
            checkpoint_interval=CHECKPOINT_INTERVAL_S if interval is None else interval,
            late=values["late"],
            stop=stop,
            run_id_fields=run_id_fields,
        )
        runners.append(runner)
        if status is not None:
            runner.on_tick.append(status.tick)
        stats = runner.run()
    outcome, unused = "stopped" if stop.is_set() else "ended", (stats.malformed.total, stats.invalid.total)
    log.info("%s after %d records, %d alarms", outcome, stats.records, stats.n_alarms)
    if any(unused):
        log.warning("%d malformed records and %d invalid points were not used", *unused)
    if stats.late > stats.points:
        log.warning("%d of %d points were late and skipped. Check the times of the source.", stats.late, stats.records)
    runner.raise_if_undelivered()


def run_status(folder: Path, output_format: str) -> None:
    """Print the state of a run."""
    status, stats = read_status(folder)
    if output_format == "json":
        sys.stdout.write(json.dumps(status) + "\n")
        return
    console, now = Console(), time.time()
    lag = "unknown" if status["lag"] is None else "{:,} {}".format(*status["lag"])
    checkpoint, checkpointed_at = "none yet", status["checkpointed_at"]
    if checkpointed_at is not None:
        checkpoint = f"{stats.checkpoints:,}, {format_age(now - checkpointed_at)}"
    rows = {
        "source": status["source"],
        "state": f"{status['state']}, process {status['pid']}, updated {format_age(now - status['updated_at'])}",
        "running for": format_duration(int(status["updated_at"] - status["started_at"]), max_units=2),
        "rate": f"{status['points_per_s']:,.0f} points/s",
        "lag": lag,
        "records": f"{stats.records:,}",
        "points": f"{stats.points:,}",
        "rejected": f"{stats.rejected:,} as outliers",
        "skipped": f"{stats.late:,} late, {stats.duplicates:,} duplicates",
        "malformed": f"{stats.malformed.total:,} records",
        "invalid": f"{stats.invalid.total:,} points",
        "alarms": ", ".join(f"{count:,} {kind}" for kind, count in stats.alarms.items()) or "none",
        "checkpoint": checkpoint,
    }
    grid = Table.grid(padding=(0, 2))
    for label, value in rows.items():
        grid.add_row(Text(label, style="dim"), Text(value))
    console.print(grid)
    if stats.latest:
        console.print(Text("\nLatest alarms", style="bold"))
        console.print(make_alarm_table(stats.latest))
    print_input_errors(console, stats)


def format_age(seconds: float) -> str:
    """Return how long ago something was.

    >>> format_age(0.2), format_age(75.0)
    ('just now', '1 min 15 s ago')
    """
    return "just now" if seconds < 2.0 else f"{format_duration(int(seconds), max_units=2)} ago"
