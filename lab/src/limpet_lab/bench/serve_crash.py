"""`kill -9` of the server under load, at random moments: compare its store with the responses that clients received."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from harness import postgres
from harness.retrying_client import Client
from harness.server_process import ServerProcess, run_server
from harness.server_store_check import StoreComparison, compare_store
from limpet_lab.bench._measurement import Figure

TITLE = "`limpet serve` restarted each time on the same store; 1 is bit-identical"
STARTUP_KILL_SHARE = 0.2  # of the kills come while the server is starting
STARTUP_S = 2.0  # … within so many seconds
KILL_DELAY_RANGE_S = (0.05, 1.5)  # seconds at work until the others come
CHECKPOINT_INTERVAL_S = 0.3  # seconds between them, so that kills hit them too
MANY_RETAINED_POINTS, FEW_RETAINED_POINTS = 10_000_000, 100  # points of a stream that are kept in full


def measure(quick: bool) -> list[Figure]:
    """Measure with SQLite, with SQLite that retains few points, and with PostgreSQL where it is installed."""
    with tempfile.TemporaryDirectory() as name:
        store = f"{name}/a.db"
        figures = _make_figures("SQLite", *run_with_kills(store, Path(name), 3 if quick else 20))
        compact_store = f"{name}/b.db"
        figures += _make_figures(
            "SQLite, old points in buckets",
            *run_with_kills(compact_store, Path(name), 2 if quick else 10, retained_points=FEW_RETAINED_POINTS),
        )
        if postgres.available():
            with postgres.running() as url:
                figures += _make_figures("PostgreSQL", *run_with_kills(url, Path(name), 1 if quick else 8))
    return figures


def make_clients(port: int) -> list[Client]:
    """Return clients for batches and single points, of one variable and of two, half of them with names."""
    kinds = [
        (width, points_per_post, named) for width in (1, 2) for points_per_post in (1, 100) for named in (False, True)
    ]
    return [
        Client(
            f"{width}-{points_per_post}-{'named' if named else 'unnamed'}", width, points_per_post, named, port, seed
        )
        for seed, (width, points_per_post, named) in enumerate(kinds)
    ]


def run_with_kills(
    store: str, folder: Path, kills: int, retained_points: int = MANY_RETAINED_POINTS, seed: int = 0
) -> tuple[list[Client], StoreComparison, int]:
    """Run clients and a server that is killed `kills` times, then stopped; return the comparison and the kills."""
    with run_server(
        store, folder, "--retain-points", str(retained_points), "--checkpoint-interval", str(CHECKPOINT_INTERVAL_S)
    ) as server:
        clients, stop = make_clients(server.port), threading.Event()
        threads = [threading.Thread(target=client.run, args=(stop,), daemon=True) for client in clients]
        for thread in threads:
            thread.start()
        try:
            _wait_for(clients)
            _kill(server, kills, random.Random(seed))
            _wait_for(clients)
        finally:
            stop.set()
        for thread in threads:
            thread.join()
        server.stop()
    return clients, compare_store(store, clients), kills


def _wait_for(clients: Sequence[Client]) -> None:
    """Wait until each client has posted, so that kernels are compiled."""
    wanted = [len(client.kept) + 3 * client.together for client in clients]
    while any(len(client.kept) < n and not client.wrong for client, n in zip(clients, wanted, strict=True)):
        time.sleep(0.02)


def _kill(server: ServerProcess, kills: int, rng: random.Random) -> None:
    """Kill and restart the server repeatedly; at the end it serves."""
    for index in range(kills):
        if index and rng.random() < STARTUP_KILL_SHARE:
            time.sleep(rng.uniform(0.0, STARTUP_S))
        else:
            server.wait()
            time.sleep(rng.uniform(*KILL_DELAY_RANGE_S))
        server.kill()
        server.start(wait=False)
    server.wait()


def _make_figures(name: str, clients: Sequence[Client], comparison: StoreComparison, kills: int) -> list[Figure]:
    errors = [error for client in clients for error in client.wrong]
    if errors:
        raise RuntimeError("; ".join(errors))
    what = f"{name}, {kills} kills"
    return [
        Figure(f"{what}: points acknowledged to clients", sum(len(client.kept) for client in clients)),
        Figure(f"{what}: of these lost", comparison.lost, "", at_most=0.0),
        Figure(f"{what}: stored twice", comparison.doubled, "", at_most=0.0),
        Figure(f"{what}: stored, never acknowledged", comparison.more, "", at_most=0.0),
        Figure(f"{what}: posts without a response", sum(client.unanswered for client in clients), "", at_least=1.0),
        Figure(f"{what}: alarms", comparison.n_alarms, "", at_least=1.0),
        *(
            Figure(f"{what}: equal {name}", float(is_so), "", at_least=1.0, at_most=1.0)
            for name, is_so in comparison.equal.items()
        ),
    ]
