"""The command `limpet watch`: process a live source until it ends or a signal arrives."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack
from typing import Any

from limpet._format import redact_url
from limpet.cli._logging import configure_logging, stop_on_signals
from limpet.cli.options import check_not_input, get_column_names, get_destinations, make_learner
from limpet.streams.checkpoint_store import CheckpointStore, StatusFile
from limpet.streams.metrics import collect_metrics, serve_metrics
from limpet.streams.monitor_plan import MonitorPlan
from limpet.streams.runner import CHECKPOINT_INTERVAL_S, Runner
from limpet.streams.schema import Schema
from limpet.streams.sinks.base import MultiSink
from limpet.streams.sinks.stdout import StdoutSink
from limpet.streams.sources.base import ProbedSource
from limpet.streams.uri import local_path, open_sink, open_source

log = logging.getLogger("limpet.watch")


def run_watch(uri: str, values: dict[str, Any]) -> None:
    """Watch until the source ends, or until SIGTERM or Ctrl-C."""
    configure_logging(values["log_format"])
    destinations = get_destinations(values)
    check_not_input(uri, *(sink_uri for _, sink_uri in destinations))
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
        runner = Runner(
            plan.wrap_source(probed),
            plan.model,
            MultiSink(sinks),
            checkpoints,
            checkpoint_interval=CHECKPOINT_INTERVAL_S if interval is None else interval,
            late=values["late"],
            stop=stop,
            run_id_fields={
                "source": _to_canonical_uri(uri),
                "separate": plan.is_split,
                **column_names,
                "input_format": values["input_format"],
            },
        )
        runners.append(runner)
        if status is not None:
            runner.on_tick.append(status.tick)
        stats = runner.run()
    log.info("%s after %d records, %d alarms", "stopped" if stop.is_set() else "ended", stats.records, stats.n_alarms)
    if stats.late > stats.points:
        log.warning("%d of %d points were late and skipped: is a time wrong?", stats.late, stats.records)
    runner.raise_if_undelivered()


def _to_canonical_uri(uri: str) -> str:
    """Return the name of a source in a checkpoint: the absolute path of a file."""
    path = local_path(uri)
    return redact_url(uri) if path is None else str(path.resolve())
