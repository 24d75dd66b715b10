"""Streams to draw, and what a picture shows."""

import io

import numpy as np
import pytest

from limpet.core.algorithm import OUTCOME_ACCEPTED, OUTCOME_ANOMALY, OUTCOME_INVALID, OUTCOME_REJECTED
from limpet.detection.alarm import Alarm
from limpet.learners import Trace
from limpet.streams.downsample import MinMaxSummary

SHIFT = Alarm("change", 205, 200, 8.0, "up", (0,))
ANOMALY = Alarm("anomaly", 100, 100, 90.0, "up", (0,), 1e-9)
START = np.datetime64("2024-05-01", "ns")


def make_summary(n=400, d=1, *, values=None, times=None, auto=True, means=True, max_buckets=4096, names=None):
    """A stream with an outlier and a change, with the results of a detector."""
    rng = np.random.default_rng(0)
    if values is None:
        values = rng.standard_normal((n, d))
        values[n // 2 :] += 8.0
        values[n // 4] = 90.0
    n, d = values.shape
    outcomes = np.full(n, OUTCOME_ACCEPTED, np.int8)
    outcomes[np.abs(values).max(axis=1) > 50.0] = OUTCOME_REJECTED | OUTCOME_ANOMALY
    outcomes[np.isnan(values).all(axis=1)] = OUTCOME_INVALID
    trace = Trace(rng.random(n), outcomes, {}, (rng.random(n), rng.random(n)) if auto else None)
    level = np.where(np.arange(n) < n // 2, 0.0, 8.0)[:, None] * np.ones(d) if means else None
    summary = MinMaxSummary(names or tuple(f"v{i}" for i in range(d)), max_buckets)
    summary.add(values, trace, level, times)
    return summary


def make_dates(n, step="60s"):
    return START + np.arange(n) * np.timedelta64(int(step[:-1]), "s")


def read_pixels(png):
    Image = pytest.importorskip("PIL.Image")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def has_color(png, color, min_pixels=30):
    rgb = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    return int((np.abs(read_pixels(png) - rgb).sum(axis=-1) < 12).sum()) >= min_pixels
