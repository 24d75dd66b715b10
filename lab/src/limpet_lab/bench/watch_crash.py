"""`kill -9` at random moments of a watch: compared with a watch that was not killed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from harness.nats import SUBJECT, message, publish, require_client, running
from harness.watch_process import Watch, compare_runs
from limpet_lab.bench._measurement import Figure, format_power_of_ten

TITLE = "into SQLite, with a checkpoint every 0.05 s; 1 is bit-identical"
N_POINTS, N_KILLS = 1_000_000, 50
N_QUICK_POINTS, N_QUICK_KILLS = 60_000, 2
POINTS_PER_MESSAGE = 20  # points in a message


def draw_levels(n: int) -> list[float]:
    """Draw levels that change now and then, with outliers."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=n) + (np.arange(n) // 20_000) % 2
    values[rng.random(n) < 0.001] += 30.0
    return [round(value, 4) for value in values.tolist()]


def measure(quick: bool) -> list[Figure]:
    """Measure from a file, and from JetStream."""
    require_client()
    points, kills = (N_QUICK_POINTS, N_QUICK_KILLS) if quick else (N_POINTS, N_KILLS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        values = draw_levels(points)
        path = folder / "x.csv"
        seconds = np.datetime64("2026-01-01T00:00:00") + np.arange(points)
        rows = zip(seconds.astype(str).tolist(), values, strict=True)
        path.write_text("time,level\n" + "".join(f"{moment},{value}\n" for moment, value in rows))
        figures = _compare_watches("file", str(path), folder / "file", points, kills)
        with running(folder / "nats") as url:
            publish(url, (message(values[i : i + POINTS_PER_MESSAGE], i) for i in range(0, points, POINTS_PER_MESSAGE)))
            figures += _compare_watches("JetStream", f"{url}/{SUBJECT}", folder / "jetstream", points, kills)
    return figures


def _compare_watches(name: str, source: str, folder: Path, points: int, kills: int) -> list[Figure]:
    uninterrupted, killed = Watch(source, folder / "whole"), Watch(source, folder / "killed")
    uninterrupted.run()
    n_kills = killed.run_with_kills(kills)
    what = f"{name}, {format_power_of_ten(points)} points"
    rows = uninterrupted.rows()
    figures = [
        Figure(f"{what}: kills", n_kills, "", at_least=kills),
        Figure(f"{what}: points written", len(rows["points"]), "", at_least=points, at_most=points),
        Figure(f"{what}: alarms written", len(rows["alarms"]), "", at_least=1),
    ]
    return figures + [
        Figure(f"{what}: equal {name}", float(is_equal), "", 1.0, 1.0)
        for name, is_equal in compare_runs(uninterrupted, killed).items()
    ]
