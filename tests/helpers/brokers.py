"""Real brokers for the tests, each on a free port of this machine."""

from __future__ import annotations

import getpass
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np

from harness.nats import Server, free_port, nats_server
from limpet.detection.alarm import Alarm
from limpet.learners.results import Trace
from limpet.streams.batch import Batch
from limpet.streams.results import BatchResult

__all__ = [
    "MOSQUITTO",
    "Server",
    "free_port",
    "gather_batches",
    "get_values",
    "make_results",
    "nats_server",
    "start_mosquitto",
]

MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")


def start_mosquitto(folder: Path, *lines: str) -> Server:
    """Start a broker that saves its state to disk every second, so that it can be killed after that."""
    port = free_port()
    config = [
        f"user {getpass.getuser()}",
        f"listener {port} 127.0.0.1",
        "persistence true",
        f"persistence_location {folder}/",
        "autosave_interval 1",
        "max_queued_messages 0",
    ]
    if not any("password_file" in line for line in lines):
        config.append("allow_anonymous true")
    path = folder / "mosquitto.conf"
    path.write_text("\n".join([*config, *lines]) + "\n")
    folder.chmod(0o777)
    return Server([str(MOSQUITTO), "-c", str(path)], port)


def make_results(
    n: int, *, alarms: tuple[int, ...] = (), first: int = 0, first_alarm: int = 0, run: str = "r"
) -> BatchResult:
    """Results of n points 0, 1, 2, …, some of which raise an alarm; the first is invalid."""
    score = np.arange(float(n))
    score[:1] = np.nan
    raised = [Alarm("anomaly", first + i, first + i, 5.0, "up", ("a",), 1e-5) for i in alarms]
    trace = Trace(
        score,
        np.zeros(n, np.int8),
        auto_scores=(score, score),
        alarms=raised,
        first_row=first,
        explicit_alarm_index=list(alarms),
    )
    batch = Batch(first + np.arange(float(n)), None, ("a",))
    return BatchResult(batch, trace, first, first, first_alarm, run)


def gather_batches(batches: Any, n: int, seconds: float = 8.0, on_batch: Any = None) -> list[Batch]:
    """Return the batches up to the one with the n-th point, or those of the first seconds."""
    received: list[Batch] = []
    until = time.monotonic() + seconds
    for batch in batches:
        received.append(batch)
        if on_batch is not None:
            on_batch(batch)
        if sum(map(len, received)) >= n or time.monotonic() > until:
            break
    return received


def get_values(batches: list[Batch]) -> list[float]:
    return [float(value) for batch in batches for value in batch.values[:, 0]]
