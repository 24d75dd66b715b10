"""Throughput, latency and memory from JetStream to alarms."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np

from harness.nats import SUBJECT, message, publish, publish_in_pace, running
from limpet.streams.checkpoint_store import STATUS_FILE_NAME, read_status
from limpet_lab.bench._measurement import Figure
from limpet_lab.bench.watch_crash import draw_levels

TITLE = "server, publisher and watch on this machine; alarms and checkpoints to disk"
LEVELS = draw_levels(100_000)


def measure(quick: bool) -> list[Figure]:
    """Measure a backlog, a steady flow for a minute, and a thousand messages per second."""
    figures = []
    for points_per_message, messages in ((1, 20_000 if quick else 300_000), (20, 2_000 if quick else 100_000)):
        figures += measure_backlog(points_per_message, messages)
    figures += measure_steady_flow(25_000, 10, 4.0 if quick else 60.0)
    return figures + measure_latency(1000, 3.0 if quick else 20.0)


def measure_backlog(points_per_message: int, messages: int) -> list[Figure]:
    """Measure points per second of a backlog, from the first message to the last."""
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "nats") as url:
        publish(url, (_make_message(points_per_message, i) for i in range(messages)))
        alarm_times: list[float] = []
        stop = threading.Event()

        def record_alarms(results: object) -> None:
            alarm_times.append(time.perf_counter())

        import limpet as lp
        from limpet.streams import open_source

        source = open_source(f"{url}/{SUBJECT}", follow=False)
        outcome = lp.run(
            source, lp.Detector(), [record_alarms, str(Path(name) / "alarms.db")], Path(name) / "state", stop=stop
        )
        rate = (outcome.stats.points - points_per_message) / (alarm_times[-1] - alarm_times[0])
    goal = 20_000.0 if points_per_message > 1 else None
    return [Figure(f"backlog, {points_per_message} a message: points", rate, "per second", at_least=goal)]


def measure_steady_flow(points_per_second: float, points_per_message: int, seconds: float) -> list[Figure]:
    """Publish at a constant rate: whether a watch in another process keeps up, and its memory."""
    title = f"steady {points_per_second:,.0f} a second, {points_per_message} a message, {seconds:.0f} s"
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "nats") as url:
        state, alarms = Path(name) / "state", Path(name) / "alarms.db"
        words = ["watch", f"{url}/{SUBJECT}", "--checkpoint", str(state), "--alarms", str(alarms)]
        with subprocess.Popen([sys.executable, "-m", "limpet", *words], stderr=subprocess.DEVNULL) as watch:
            try:
                publish(url, [_make_message(points_per_message, 0)])
                while not (state / STATUS_FILE_NAME).exists():
                    if watch.poll() is not None:
                        raise RuntimeError(f"the watch ended with {watch.returncode}")
                    time.sleep(0.05)
                messages_per_second = points_per_second / points_per_message
                publisher = _start_process(
                    publish_in_pace, url, messages_per_second, seconds, partial(_make_message, points_per_message)
                )
                time.sleep(min(10.0, seconds / 2))
                memory_before = _get_resident_mb(watch.pid)
                publisher.join()
                memory_after = _get_resident_mb(watch.pid)
                time.sleep(1.5)  # until the next status
                flow_figures = make_flow_figures(title, state, seconds)
            finally:
                watch.terminate()
    return [
        *flow_figures,
        Figure(f"{title}: memory", memory_after, "MB"),
        Figure(f"{title}: memory over that after 10 s", memory_after / memory_before, "×", at_most=1.1),
    ]


def make_flow_figures(title: str, state: Path, seconds: float) -> list[Figure]:
    """Return points per second and the lag, by the status of a watch with this checkpoint folder."""
    status, stats = read_status(state)
    lag = float(status["lag"][0] if status["lag"] else 0)
    return [
        Figure(f"{title}: points", stats.points / seconds, "per second", at_least=20_000.0),
        Figure(f"{title}: behind at the end", lag, "messages", at_most=100),
    ]


def measure_latency(messages_per_second: float, seconds: float) -> list[Figure]:
    """Measure the latency of single points, from publishing to the written result."""
    import limpet as lp
    from limpet.streams import open_source
    from limpet.streams.results import BatchResult

    delays: list[float] = []
    stop = threading.Event()

    def record_alarms(results: BatchResult) -> None:
        now = time.time()
        assert results.batch.times is not None
        delays.extend((now - results.batch.times).tolist())

    with tempfile.TemporaryDirectory() as name, running(Path(name) / "nats") as url:
        publisher = _start_process(publish_in_pace, url, messages_per_second, seconds, _make_stamped_message)
        watch = threading.Thread(
            target=lambda: lp.run(
                open_source(f"{url}/{SUBJECT}"), lp.Detector(), record_alarms, Path(name) / "state", stop=stop
            )
        )
        watch.start()
        publisher.join()
        time.sleep(0.5)
        stop.set()
        watch.join()
    settled = np.array(delays[len(delays) // 4 :]) * 1e3  # once it is compiled and has caught up
    what = f"{messages_per_second:,.0f} messages per second: latency"
    return [
        Figure(f"{what} p50", float(np.percentile(settled, 50)), "ms"),
        Figure(f"{what} p99", float(np.percentile(settled, 99)), "ms"),
        Figure(f"{what} largest", float(settled.max()), "ms"),
    ]


def _make_message(n_points: int, index: int) -> bytes:
    first = index * n_points
    return message([LEVELS[(first + i) % len(LEVELS)] for i in range(n_points)], first)


def _make_stamped_message(index: int) -> bytes:
    return json.dumps({"time": time.time(), "level": LEVELS[index % len(LEVELS)]}).encode()


def _start_process(*call: object) -> multiprocessing.process.BaseProcess:
    """Start a function with its arguments in another process."""
    process = multiprocessing.get_context("spawn").Process(target=call[0], args=call[1:])  # type: ignore[arg-type]
    process.start()
    return process


def _get_resident_mb(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
