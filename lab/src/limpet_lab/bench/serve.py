"""Throughput and latency of the server."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from harness import postgres
from harness.http_load import create, flood, paced, time_list_requests, time_rounds
from harness.http_load import warm_up as warm_up_server
from harness.server_process import ServerProcess, run_server
from limpet_lab.bench._measurement import Figure

TITLE = "`limpet serve` and its clients on this machine, through HTTP; a post gets its response once it is on disk"
LOAD_SECONDS, QUICK_LOAD_SECONDS = 20.0, 1.5
N_CONNECTIONS = 4
N_STREAMS = 10_000  # streams


def measure(quick: bool) -> list[Figure]:
    """Measure with SQLite, and with PostgreSQL where it is installed."""
    seconds = QUICK_LOAD_SECONDS if quick else LOAD_SECONDS
    with _start_client() as client:
        figures = measure_batches("SQLite", client, seconds, timed=False, at_least=50_000.0)
        figures += measure_batches("SQLite", client, seconds, timed=True)
        figures += measure_singles("SQLite", client, seconds, at_most=50.0)
        figures += measure_many_streams(client, N_STREAMS // 10 if quick else N_STREAMS)
        if postgres.available():
            with postgres.running() as url:
                figures += measure_batches("PostgreSQL", client, seconds, timed=False, url=url)
                figures += measure_singles("PostgreSQL", client, seconds, url=postgres.new_database(url))
    return figures


def measure_batches(
    name: str, client: Executor, seconds: float, *, timed: bool, url: str = "", at_least: float | None = None
) -> list[Figure]:
    """Post batches of 1,000 points to 8 streams, as fast as responses arrive."""
    with _start_server(url) as server:
        posted_before = warm_up(client, server.port, seconds, timed)
        processor_seconds_before = server.processor_seconds()
        posted = client.submit(flood, server.port, seconds, N_CONNECTIONS, timed, posted_before)
        time.sleep(min(5.0, seconds / 2))
        early_mb = server.megabytes()
        response = posted.result()
        late_mb, processor_seconds = server.megabytes(), server.processor_seconds() - processor_seconds_before
        server.stop()
    what = f"{name}, 1,000 {'points with times' if timed else 'numbers'} a post"
    return [
        Figure(f"{what}: points", response.points / response.seconds, "per second", at_least=at_least),
        Figure(f"{what}: processor time of the server", processor_seconds / response.points * 1e6, "µs per point"),
        Figure(f"{what}: memory after 5 s", early_mb, "MB"),
        Figure(f"{what}: memory after {seconds:.0f} s", late_mb, "MB"),
    ]


def warm_up(client: Executor, port: int, seconds: float, timed: bool) -> int:
    """Wait until all kernels are compiled; return the maximum number of batches posted to a stream."""
    client.submit(warm_up_server, port).result()
    return 2 + client.submit(flood, port, min(3.0, seconds), N_CONNECTIONS, timed, 2).result().points


def measure_singles(
    name: str, client: Executor, seconds: float, *, url: str = "", at_most: float | None = None
) -> list[Figure]:
    """Post 200 single points per second: milliseconds from when each was due until its response."""
    with _start_server(url) as server:
        warm_up(client, server.port, seconds, timed=False)
        delays = np.array(client.submit(paced, server.port, 200.0, seconds, 16).result())
        server.stop()
    what = f"{name}, 200 single posts per second: response"
    return [
        Figure(f"{what} p50", float(np.percentile(delays, 50)), "ms"),
        Figure(f"{what} p99", float(np.percentile(delays, 99)), "ms", at_most=at_most),
        Figure(f"{what} maximum", float(delays.max()), "ms"),
    ]


def measure_many_streams(client: Executor, streams: int) -> list[Figure]:
    """Request the list of all of many streams, and of the first hundred."""
    full_list, first_page = f"/streams?limit={streams}", "/streams?limit=100"
    with _start_server() as server:
        client.submit(create, server.port, streams, 60).result()  # as many as a sparkline shows
        round_seconds = client.submit(time_rounds, server.port, streams, 5).result()
        full_list_seconds = client.submit(time_list_requests, server.port, full_list, 5, streams).result()
        first_page_seconds = client.submit(time_list_requests, server.port, first_page, 20, 100).result()
        server.stop()
        started_at = time.perf_counter()
        server.start()
        restart_seconds = time.perf_counter() - started_at
        seconds_after_restart = client.submit(time_list_requests, server.port, full_list, 1, streams).result()
        server.stop()
    what = f"{streams:,} streams"
    return [
        Figure(f"{what}: list of all, slowest of 5", max(full_list_seconds), "s", at_most=1.0),
        Figure(f"{what}: list of all right after a restart", seconds_after_restart[0], "s", at_most=1.0),
        Figure(f"{what}: list of 100, slowest of 20", max(first_page_seconds) * 1e3, "ms"),
        Figure(f"{what}: a point of each in one post, slowest of 5", max(round_seconds), "s"),
        Figure(f"{what}: restart", restart_seconds, "s"),
    ]


@contextmanager
def _start_server(url: str = "") -> Iterator[ServerProcess]:
    """Start a server on an empty store: a file, if no URL is given."""
    with tempfile.TemporaryDirectory() as name, run_server(url or f"{name}/a.db", Path(name)) as server:
        yield server


@contextmanager
def _start_client() -> Iterator[Executor]:
    """Start a process for the client, which has imported what it needs."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(time.perf_counter).result()
        yield pool
