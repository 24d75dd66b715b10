"""The picture of a monitored stream: a reproducible PNG that shows alarms and estimates; errors for bad input."""

import io
import warnings

import numpy as np
import pytest

import limpet as lp
from limpet.core.algorithm import OUTCOME_ACCEPTED, OUTCOME_ANOMALY, OUTCOME_CHANGE, OUTCOME_REJECTED
from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError
from limpet.learners import Trace
from limpet.plots._style import BLUE, PURPLE, RED, VERMILION
from limpet_lab.plots.monitored import draw_monitored_stream

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")

N = 400
Y = np.random.default_rng(0).standard_normal(N)
Y[200:] += 8.0
Y[[100, 300]] = 90.0, -3.0
SHIFT = Alarm("change", 205, 200, 8.0, "up", (0,))
MANY_ALARMS = [Alarm("change", row, row - 9, 2.0, "wider", (0,)) for row in range(50, N, 9)]
WITH_ANOMALY = np.where(np.arange(N) == 100, OUTCOME_REJECTED | OUTCOME_ANOMALY, OUTCOME_ACCEPTED).astype(np.int8)
MEANS = np.where(np.arange(N) < 200, 0.0, 8.0)[:, None, None]


def make_trace(alarms=(), means=None, outcomes=WITH_ANOMALY, n=N):
    """A trace with decisions, with these outcomes."""
    kept = {} if means is None else {"means": means}
    return Trace(np.abs(Y[:n]), outcomes[:n], kept, (np.linspace(0.0, 1.0, n), np.ones(n)), list(alarms))


QUIET = make_trace(outcomes=np.full(N, OUTCOME_ACCEPTED, np.int8))
PLAIN = Trace(
    np.abs(Y), np.where(np.arange(N) < 200, OUTCOME_ACCEPTED, OUTCOME_REJECTED).astype(np.int8), {"means": MEANS}
)

DRAWINGS = {
    "all there is": lambda: draw_monitored_stream(
        Y,
        make_trace([SHIFT], MEANS),
        title="a",
        deviations=np.ones(N),
        changes=[200],
        beside={"plain": PLAIN, "quiet": QUIET},
    ),
    "no alarms, no estimate": lambda: draw_monitored_stream(Y[:, None], QUIET, scores=False),
    "a plain trace, which has no alarms": lambda: draw_monitored_stream(Y, PLAIN),
    "many alarms": lambda: draw_monitored_stream(
        Y, make_trace([Alarm("change", t, t - 9, 2.0, "wider", (0,)) for t in range(50, N, 9)])
    ),
    "two components": lambda: draw_monitored_stream(
        Y, make_trace(means=np.concatenate([MEANS, -MEANS], axis=1)), deviations=np.ones((N, 2))
    ),
    "no score": lambda: draw_monitored_stream(Y[:9], Trace(np.full(9, np.nan), np.full(9, OUTCOME_ACCEPTED, np.int8))),
    "everything dropped": lambda: draw_monitored_stream(Y, make_trace(outcomes=np.full(N, OUTCOME_REJECTED, np.int8))),
    "a later batch": lambda: draw_monitored_stream(
        Y, make_trace([Alarm("change", 5205, 5200, 8.0, "up", (0,)), SHIFT]), changes=[5200], first_row=5000
    ),
}


def pixels_of(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def shows(png, color, min_pixels=1):
    rgb = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    return int((np.abs(pixels_of(png) - rgb).sum(axis=-1) < 12).sum()) >= min_pixels


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_a_picture_is_a_png_that_shows_something_and_is_the_same_twice(draw, recwarn):
    png = draw()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    pixels = pixels_of(png)
    assert pixels.shape[1] == 1440
    assert 300 < pixels.shape[0] < 2500
    assert 0.005 < np.any(pixels < 250, axis=-1).mean() < 0.7
    assert draw() == png
    assert not recwarn.list


def test_what_is_there_is_drawn_and_what_is_not_is_not():
    bare = draw_monitored_stream(Y, QUIET, scores=False)
    assert not any(shows(bare, color, 30) for color in (BLUE, PURPLE, RED, VERMILION))
    whole = draw_monitored_stream(Y, make_trace([SHIFT], MEANS), scores=False)
    assert all(shows(whole, color, 30) for color in (BLUE, PURPLE, RED, VERMILION))
    assert draw_monitored_stream(Y, make_trace([SHIFT], MEANS), changes=[200], scores=False) != whole


def leftmost_red(png):
    """The column of the panel where the first alarm stands."""
    below_the_legend = pixels_of(png)[150:]
    return int(np.flatnonzero((np.abs(below_the_legend - [200, 16, 46]).sum(axis=-1) < 12).any(axis=0))[0])


def test_an_alarm_of_a_later_batch_stands_in_its_row():
    early, late = (draw_monitored_stream(Y, make_trace([SHIFT]), first_row=first, scores=False) for first in (0, 100))
    assert abs((leftmost_red(early) - leftmost_red(late)) / 1350 - 0.25) < 0.03  # a quarter of the panel to the left


def test_it_draws_the_results_of_a_detector():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = lp.Detector().process(Y, record="means")
    assert trace.outcomes[-1] & OUTCOME_CHANGE == 0
    assert [alarm.kind for alarm in trace.alarms].count("change") == 1
    assert shows(draw_monitored_stream(Y, trace), RED, 100)


BAD = {
    "a short stream": lambda: draw_monitored_stream(Y[1:], QUIET),
    "two variables": lambda: draw_monitored_stream(np.stack([Y, Y], axis=1), QUIET),
    "means of two variables": lambda: draw_monitored_stream(Y, make_trace(means=np.zeros((N, 1, 2)))),
    "short deviations": lambda: draw_monitored_stream(Y, make_trace(means=MEANS), deviations=np.ones(N - 1)),
    "a change after the end": lambda: draw_monitored_stream(Y, QUIET, changes=[N]),
    "a change before the first row": lambda: draw_monitored_stream(Y, QUIET, changes=[3], first_row=5),
    "a short trace beside": lambda: draw_monitored_stream(Y, QUIET, beside={"b": make_trace(n=N - 1)}),
}


@pytest.mark.parametrize("draw", BAD.values(), ids=BAD)
def test_bad_input_is_named(draw):
    with pytest.raises(InvalidInputError, match="got"):
        draw()
