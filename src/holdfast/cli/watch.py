"""The command `holdfast watch`: a live source, for as long as it takes."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from holdfast.cli.arrangement import Arrangement
from holdfast.cli.logs import set_up_logs
from holdfast.cli.outputs import refuse_own_input, sinks_of
from holdfast.streams.brokers.addresses import without_password
from holdfast.streams.checkpoints import Checkpoints
from holdfast.streams.metrics import metrics_of
from holdfast.streams.peeked import Peeked
from holdfast.streams.places import source_at
from holdfast.streams.prometheus import exposition, serve
from holdfast.streams.runner import Runner
from holdfast.streams.sinks import Several
from holdfast.streams.standard_output import StandardOutput
from holdfast.streams.status import StatusFile

log = logging.getLogger("holdfast.watch")


def run_watch(place: str, values: dict[str, Any]) -> None:
    """Watches until the source ends, or somebody says stop."""
    set_up_logs(values["log_format"])
    refuse_own_input(Path(place), *(one for name in ("alarms", "points") for one in values[name] or ()))
    stop = threading.Event()
    on_stop: list[Callable[[], None]] = [stop.set]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: [one() for one in on_stop])
    with ExitStack() as open_ones:
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
        peeked = Peeked(source, None if found is None else found[0]["position"])
        log.info("watching %s", shown(place))
        if peeked.columns is None:  # else they are those of the checkpoint
            peeked.look(stop)
        if peeked.columns is None:
            log.info("stopped before anything had come" if stop.is_set() else "ended: not one record could be read")
            return
        arrangement = Arrangement.of(peeked.columns, values)
        for word, meaning in arrangement.told():
            log.info("%s: %s", word, meaning)
        sinks = sinks_of({name: values[name] for name in ("alarms", "points")}, anew=False)
        if not values["alarms"] and not (values["points"] and "-" in values["points"]):
            sinks.append(StandardOutput("alarms", values["format"]))
        runner = Runner(
            arrangement.source(peeked),
            arrangement.model,
            Several(sinks),
            checkpoints,
            every=values["every"],
            late=values["late"],
            stop=stop,
        )
        on_stop.append(runner.sink.hurry)
        if checkpoints is not None:
            runner.ticks.append(StatusFile(checkpoints.folder, shown(place)).tick)
        if values["metrics"]:
            server = serve(values["metrics"], lambda: exposition(metrics_of(runner)))
            open_ones.callback(server.close)
            log.info("metrics at http://%s/metrics", values["metrics"])
        tally = runner.run()
    log.info("%s after %d records, %d alarms", "stopped" if stop.is_set() else "ended", tally.records, tally.n_alarms)


def shown(place: str) -> str:
    """A source as it may be shown.

    >>> shown("nats://me:secret@host:4222/a"), shown("what?.csv")
    ('nats://host:4222/a', 'what?.csv')
    """
    return without_password(place) if "://" in place else place
