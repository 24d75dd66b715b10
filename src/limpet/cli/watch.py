"""The command `limpet watch`: a live source, for as long as it takes."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack
from typing import Any

from limpet.cli._logging import configure_logging, stop_on_signals
from limpet.cli._outputs import check_not_input, open_sinks
from limpet.streams.checkpoint_store import CheckpointStore
from limpet.streams.metrics import collect_metrics, format_metrics, serve_metrics
from limpet.streams.monitor_plan import MonitorPlan, make_learner
from limpet.streams.runner import CHECKPOINT_INTERVAL_S, Runner
from limpet.streams.schema_probe import ProbedSource
from limpet.streams.sinks.base import MultiSink, BaseSink
from limpet.streams.sinks.stdout import StdoutSink
from limpet.streams.status_file import StatusFile
from limpet.streams.uri import local_path, open_source, redact

log = logging.getLogger("limpet.watch")


def run_watch(uri: str, values: dict[str, Any]) -> None:
    """Watches until the source ends, or somebody says stop."""
    configure_logging(values["log_format"])
    uris_by_table = {name: values[name] for name in ("alarms", "points")}
    sink_uris = [sink_uri for uris in uris_by_table.values() for sink_uri in uris or ()]
    check_not_input(uri, *sink_uris)
    make_learner(values)  # which says what is wrong with the settings before anything is waited for
    stop = threading.Event()
    with ExitStack() as resources:
        stop_on_signals(stop)
        checkpoints = None
        if values["checkpoint"] is not None:
            checkpoints = CheckpointStore(values["checkpoint"])
            resources.callback(checkpoints.close)
        checkpoint = None if checkpoints is None else checkpoints.latest()
        source = open_source(
            uri,
            columns=values["columns"] or None,
            key=values["key"],
            time=values["time"],
            follow=not values["once"],
            form=values["form"],
        )
        runners: list[Runner] = []
        if values["metrics"]:
            server = serve_metrics(
                values["metrics"], lambda: format_metrics(collect_metrics(runners[0]) if runners else {})
            )
            resources.callback(server.close)
            log.info("metrics at http://%s/metrics", values["metrics"])
        status = None if checkpoints is None else StatusFile(checkpoints.folder, redact(uri))
        sink = MultiSink(_open_sinks(uris_by_table, values["format"]))
        log.info("watching %s", redact(uri))
        probed = ProbedSource(source, None if checkpoint is None else checkpoint[0]["position"])
        if probed.columns is None:  # else they are those of the checkpoint
            probed.wait_for_schema(stop)
        if probed.columns is None:
            log.info("stopped before anything had come" if stop.is_set() else "ended: not one record could be read")
            return
        plan = MonitorPlan.from_columns(probed.columns, values)
        for label, value in plan.describe():
            log.info("%s: %s", label, value)
        if not plan.raises_alarms:
            log.warning("set by hand: the paper's algorithm raises no alarms; --points tells what became of each point")
        column_options = {name: values[name] for name in ("columns", "key", "time", "form")}
        runner = Runner(
            plan.wrap_source(probed),
            plan.model,
            sink,
            checkpoints,
            checkpoint_interval=CHECKPOINT_INTERVAL_S if values["every"] is None else values["every"],
            late=values["late"],
            stop=stop,
            run_id_fields={"source": _to_canonical_uri(uri), "separate": plan.separate, **column_options},
        )
        runners.append(runner)
        if status is not None:
            runner.on_tick.append(status.tick)
        stats = runner.run()
    log.info("%s after %d records, %d alarms", "stopped" if stop.is_set() else "ended", stats.records, stats.n_alarms)
    if stats.late > stats.points:
        log.warning("%d of %d points came late and were skipped: is a time wrong?", stats.late, stats.records)
    runner.raise_if_undelivered()


def _open_sinks(uris_by_table: dict[str, Any], form: str) -> list[BaseSink]:
    """Those that are named, and standard output where alarms would go nowhere."""
    sinks = open_sinks(uris_by_table, overwrite=False)
    if not uris_by_table["alarms"] and not (uris_by_table["points"] and "-" in uris_by_table["points"]):
        sinks.append(StdoutSink("alarms", form))
    return sinks


def _to_canonical_uri(uri: str) -> str:
    """A source as a checkpoint knows it again: files by their whole paths."""
    path = local_path(uri)
    return redact(uri) if path is None else str(path.resolve())
