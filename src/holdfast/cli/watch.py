"""The command `holdfast watch`: a live source, for as long as it takes."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack
from typing import Any

from holdfast.cli.arrangement import Arrangement, learner_of
from holdfast.cli.logs import set_up_logs
from holdfast.cli.outputs import refuse_own_input, sinks_of
from holdfast.cli.signals import stop_on_signals
from holdfast.streams.checkpoints import Checkpoints
from holdfast.streams.metrics import metrics_of
from holdfast.streams.peeked import Peeked
from holdfast.streams.places import path_at, shown, source_at
from holdfast.streams.prometheus import exposition, serve
from holdfast.streams.runner import EVERY, Runner
from holdfast.streams.sink import Sink
from holdfast.streams.sinks import Several
from holdfast.streams.standard_output import StandardOutput
from holdfast.streams.status import StatusFile

log = logging.getLogger("holdfast.watch")


def run_watch(place: str, values: dict[str, Any]) -> None:
    """Watches until the source ends, or somebody says stop."""
    set_up_logs(values["log_format"])
    results = {name: values[name] for name in ("alarms", "points")}
    places = [one for listed in results.values() for one in listed or ()]
    refuse_own_input(place, *places)
    learner_of(values)  # which says what is wrong with the settings before anything is waited for
    stop = threading.Event()
    with ExitStack() as open_ones:
        stop_on_signals(stop)
        checkpoints = None
        if values["checkpoint"] is not None:
            checkpoints = Checkpoints(values["checkpoint"])
            open_ones.callback(checkpoints.close)
        found = None if checkpoints is None else checkpoints.newest()
        source = source_at(
            place,
            columns=values["columns"] or None,
            key=values["key"],
            time=values["time"],
            follow=not values["once"],
            form=values["form"],
        )
        runners: list[Runner] = []
        if values["metrics"]:
            server = serve(values["metrics"], lambda: exposition(metrics_of(runners[0]) if runners else {}))
            open_ones.callback(server.close)
            log.info("metrics at http://%s/metrics", values["metrics"])
        status = None if checkpoints is None else StatusFile(checkpoints.folder, shown(place))
        sink = Several(_sinks(results, values["format"]))
        log.info("watching %s", shown(place))
        peeked = Peeked(source, None if found is None else found[0]["position"])
        if peeked.columns is None:  # else they are those of the checkpoint
            peeked.look(stop)
        if peeked.columns is None:
            log.info("stopped before anything had come" if stop.is_set() else "ended: not one record could be read")
            return
        arrangement = Arrangement.of(peeked.columns, values)
        for word, meaning in arrangement.told():
            log.info("%s: %s", word, meaning)
        if not arrangement.raises_alarms:
            log.warning("set by hand: the paper's algorithm raises no alarms; --points tells what became of each point")
        wanted = {name: values[name] for name in ("columns", "key", "time", "form")}
        runner = Runner(
            arrangement.source(peeked),
            arrangement.model,
            sink,
            checkpoints,
            every=EVERY if values["every"] is None else values["every"],
            late=values["late"],
            stop=stop,
            about={"source": _as_known(place), "separate": arrangement.separate, **wanted},
        )
        runners.append(runner)
        if status is not None:
            runner.ticks.append(status.tick)
        tally = runner.run()
    log.info("%s after %d records, %d alarms", "stopped" if stop.is_set() else "ended", tally.records, tally.n_alarms)
    if tally.late > tally.points:
        log.warning("%d of %d points came late and were skipped: is a time wrong?", tally.late, tally.records)
    runner.require_delivered()


def _sinks(results: dict[str, Any], form: str) -> list[Sink]:
    """Those that are named, and standard output where alarms would go nowhere."""
    sinks = sinks_of(results, anew=False)
    if not results["alarms"] and not (results["points"] and "-" in results["points"]):
        sinks.append(StandardOutput("alarms", form))
    return sinks


def _as_known(place: str) -> str:
    """A source as a checkpoint knows it again: files by their whole paths."""
    path = path_at(place)
    return shown(place) if path is None else str(path.resolve())
