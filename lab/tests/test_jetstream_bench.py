"""Test the figures that `limpet bench jetstream` derives from the status of a watch."""

from types import SimpleNamespace

from limpet.streams.checkpoint_store import StatusFile
from limpet.streams.results import RunStats
from limpet_lab.bench.jetstream import make_flow_figures


def test_flow_figures_equal_the_status(tmp_path):
    status = StatusFile(tmp_path, "nats://localhost/points")
    points, lag = make_flow_figures("steady", tmp_path, seconds=2.0)
    assert points.value == lag.value == 0.0
    runner = SimpleNamespace(stats=RunStats(points=200), lag=(7, "messages"), committed_at=None)
    status.tick(runner, last=True)
    points, lag = make_flow_figures("steady", tmp_path, seconds=2.0)
    assert (points.name, points.value) == ("steady: points", 100.0)
    assert (lag.name, lag.value) == ("steady: behind at the end", 7.0)
