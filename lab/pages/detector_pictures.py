"""Draw the pictures of `docs/guide/detector.md` and `docs/guide/alarms.md`, for `detector_page.py`."""

import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import limpet as lp
from limpet.exceptions import LimpetWarning
from limpet.learners import Trace
from limpet_lab.bench.detection_delay import ROWS_AFTER_CHANGE
from limpet_lab.bench.false_alarm_rate import draw_garch
from limpet_lab.plots.monitored import draw_monitored_stream
from limpet_lab.plots.small_multiples import draw_panels

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
STYLE_NAMES = {"ours": "Detector", "Page–Hinkley": "PH"}  # as other pictures have them
SHIFT_SIZES_SD = {".5 sd": 0.5, "1 sd": 1.0, "2 sd": 2.0, "3 sd": 3.0, "5 sd": 5.0}


def process_with_deviations(y: np.ndarray, **settings: object) -> tuple[Trace, np.ndarray]:
    """Return the trace of a Detector, and its standard deviation after each row."""
    trace = lp.Detector(**settings).process(y, record="means")
    detector, deviations = lp.Detector(**settings), np.full(len(y), np.nan)
    for row, x in enumerate(y):
        detector.update(x)
        deviations[row] = np.sqrt(detector.covariances[0, 0, 0]) if detector.started else np.nan
    return trace, deviations


def draw_shift() -> bytes:
    """Draw outliers, a spread that doubles and a level that jumps by ten standard deviations, next to plain SRA."""
    rng, rows = np.random.default_rng(21), np.arange(2400)
    y = np.where(rows < 1600, 20.0, 30.0) + np.where(rows < 800, 0.5, 1.0) * rng.standard_normal(len(rows))
    is_outlier = rng.random(len(rows)) < 0.02
    y[is_outlier] = rng.uniform(8.0, 42.0, is_outlier.sum())
    trace, deviations = process_with_deviations(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LimpetWarning)  # that it is locked out
        plain = lp.SRA(rho=0.01).process(y, record="means")
    beside = {"lp.SRA(rho=0.01): the paper's algorithm is locked out by the jump": plain}
    return draw_monitored_stream(
        y, trace, title="lp.Detector()", deviations=deviations, changes=[800, 1600], beside=beside
    )


def draw_season() -> bytes:
    """Draw a stream with a season and one change, without and with `season`."""
    rng, rows = np.random.default_rng(2), np.arange(2880)
    y = 2.0 * np.sin(2.0 * np.pi / 288 * rows) + rng.standard_normal(len(rows)) + 2.0 * (rows >= 2300)
    plain, seasonal = (lp.Detector(season=season).process(y, record="means") for season in (0, 288))
    return draw_monitored_stream(
        y, plain, title="lp.Detector()", changes=[2300], beside={"lp.Detector(season=288)": seasonal}, scores=False
    )


def draw_clusters() -> bytes:
    """Draw a spread that comes in clusters."""
    y = draw_garch(np.random.default_rng(1), 5000, 1)[:, 0]
    trace, deviations = process_with_deviations(y)
    return draw_monitored_stream(
        y, trace, title="lp.Detector() on GARCH(0.1, 0.85)", deviations=deviations, scores=False
    )


def draw_ramp() -> bytes:
    """Draw a level that climbs slowly."""
    rng, rows = np.random.default_rng(11), np.arange(3000)
    y = rng.standard_normal(len(rows)) + 10.0 * np.clip((rows - 1000) / 1000, 0.0, 1.0)
    trace, deviations = process_with_deviations(y)
    return draw_monitored_stream(y, trace, title="lp.Detector()", deviations=deviations, changes=[1000, 2000])


def draw_delays(delays: Mapping[str, Mapping[str, Mapping[str, float]]]) -> bytes:
    """Draw median delays by the size of the shift; delays: title → method → kind of change → delay."""
    panels = {
        title: {
            STYLE_NAMES.get(name, name): [
                row[kind] if row.get(kind, ROWS_AFTER_CHANGE) < ROWS_AFTER_CHANGE else np.nan for kind in SHIFT_SIZES_SD
            ]
            for name, row in methods.items()
        }
        for title, methods in delays.items()
    }
    return draw_panels(list(SHIFT_SIZES_SD.values()), panels, x_label="shift of the level, standard deviations")


def draw_all(clean: Mapping[str, Mapping[str, float]], with_outliers: Mapping[str, Mapping[str, float]]) -> None:
    """Draw every picture into docs/pictures; that of the delays if they were measured."""
    pictures = {
        "detector-shift.png": draw_shift,
        "alarms-season.png": draw_season,
        "alarms-clusters.png": draw_clusters,
        "alarms-ramp.png": draw_ramp,
    }
    if clean or with_outliers:
        delays = {"points until the alarm, no outliers": clean, "… with 5 % outliers": with_outliers}
        pictures["alarms-delays.png"] = lambda: draw_delays(delays)
    for name, draw in pictures.items():
        (PICTURES / name).write_bytes(draw())
