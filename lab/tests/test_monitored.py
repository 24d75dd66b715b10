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

N_ROWS = 400
Y = np.random.default_rng(0).standard_normal(N_ROWS)
Y[200:] += 8.0
Y[[100, 300]] = 90.0, -3.0
SHIFT_ALARM = Alarm("change", 205, 200, 8.0, "up", (0,))
MANY_ALARMS = [Alarm("change", row, row - 9, 2.0, "wider", (0,)) for row in range(50, N_ROWS, 9)]
OUTCOMES_WITH_ANOMALY = np.where(np.arange(N_ROWS) == 100, OUTCOME_REJECTED | OUTCOME_ANOMALY, OUTCOME_ACCEPTED).astype(
    np.int8
)
MEANS = np.where(np.arange(N_ROWS) < 200, 0.0, 8.0)[:, None, None]


def make_trace(alarms=(), means=None, outcomes=OUTCOMES_WITH_ANOMALY, n=N_ROWS):
    """A trace with decisions, with these outcomes."""
    kept = {} if means is None else {"means": means}
    return Trace(np.abs(Y[:n]), outcomes[:n], kept, (np.linspace(0.0, 1.0, n), np.ones(n)), list(alarms))


TRACE_WITHOUT_ALARMS = make_trace(outcomes=np.full(N_ROWS, OUTCOME_ACCEPTED, np.int8))
PLAIN_TRACE = Trace(
    np.abs(Y), np.where(np.arange(N_ROWS) < 200, OUTCOME_ACCEPTED, OUTCOME_REJECTED).astype(np.int8), {"means": MEANS}
)

DRAWINGS_BY_CASE = {
    "all there is": lambda: draw_monitored_stream(
        Y,
        make_trace([SHIFT_ALARM], MEANS),
        title="a",
        deviations=np.ones(N_ROWS),
        changes=[200],
        beside={"plain": PLAIN_TRACE, "quiet": TRACE_WITHOUT_ALARMS},
    ),
    "no alarms, no estimate": lambda: draw_monitored_stream(Y[:, None], TRACE_WITHOUT_ALARMS, scores=False),
    "a plain trace, which has no alarms": lambda: draw_monitored_stream(Y, PLAIN_TRACE),
    "many alarms": lambda: draw_monitored_stream(
        Y, make_trace([Alarm("change", t, t - 9, 2.0, "wider", (0,)) for t in range(50, N_ROWS, 9)])
    ),
    "two components": lambda: draw_monitored_stream(
        Y, make_trace(means=np.concatenate([MEANS, -MEANS], axis=1)), deviations=np.ones((N_ROWS, 2))
    ),
    "no score": lambda: draw_monitored_stream(Y[:9], Trace(np.full(9, np.nan), np.full(9, OUTCOME_ACCEPTED, np.int8))),
    "everything dropped": lambda: draw_monitored_stream(
        Y, make_trace(outcomes=np.full(N_ROWS, OUTCOME_REJECTED, np.int8))
    ),
    "a later batch": lambda: draw_monitored_stream(
        Y, make_trace([Alarm("change", 5205, 5200, 8.0, "up", (0,)), SHIFT_ALARM]), changes=[5200], first_row=5000
    ),
}


def get_pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def has_color(png, color, min_pixels=1):
    rgb = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    return int((np.abs(get_pixels(png) - rgb).sum(axis=-1) < 12).sum()) >= min_pixels


@pytest.mark.parametrize("draw", DRAWINGS_BY_CASE.values(), ids=DRAWINGS_BY_CASE)
def test_drawing_is_a_reproducible_png_that_is_not_blank(draw, recwarn):
    png = draw()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    pixels = get_pixels(png)
    assert pixels.shape[1] == 1440
    assert 300 < pixels.shape[0] < 2500
    assert 0.005 < np.any(pixels < 250, axis=-1).mean() < 0.7
    assert draw() == png
    assert not recwarn.list


def test_only_given_elements_are_drawn():
    bare = draw_monitored_stream(Y, TRACE_WITHOUT_ALARMS, scores=False)
    assert not any(has_color(bare, color, 30) for color in (BLUE, PURPLE, RED, VERMILION))
    whole = draw_monitored_stream(Y, make_trace([SHIFT_ALARM], MEANS), scores=False)
    assert all(has_color(whole, color, 30) for color in (BLUE, PURPLE, RED, VERMILION))
    assert draw_monitored_stream(Y, make_trace([SHIFT_ALARM], MEANS), changes=[200], scores=False) != whole


def find_leftmost_red(png):
    """The column of the panel where the first alarm stands."""
    below_the_legend = get_pixels(png)[150:]
    return int(np.flatnonzero((np.abs(below_the_legend - [200, 16, 46]).sum(axis=-1) < 12).any(axis=0))[0])


def test_alarms_are_drawn_relative_to_the_first_row():
    early, late = (
        draw_monitored_stream(Y, make_trace([SHIFT_ALARM]), first_row=first, scores=False) for first in (0, 100)
    )
    # A quarter of the panel to the left.
    assert abs((find_leftmost_red(early) - find_leftmost_red(late)) / 1350 - 0.25) < 0.03


def test_results_of_a_detector_are_drawn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = lp.Detector().process(Y, record="means")
    assert trace.outcomes[-1] & OUTCOME_CHANGE == 0
    assert [alarm.kind for alarm in trace.alarms].count("change") == 1
    assert has_color(draw_monitored_stream(Y, trace), RED, 100)


INVALID_CALLS_BY_CASE = {
    "a short stream": lambda: draw_monitored_stream(Y[1:], TRACE_WITHOUT_ALARMS),
    "two variables": lambda: draw_monitored_stream(np.stack([Y, Y], axis=1), TRACE_WITHOUT_ALARMS),
    "means of two variables": lambda: draw_monitored_stream(Y, make_trace(means=np.zeros((N_ROWS, 1, 2)))),
    "short deviations": lambda: draw_monitored_stream(Y, make_trace(means=MEANS), deviations=np.ones(N_ROWS - 1)),
    "a change after the end": lambda: draw_monitored_stream(Y, TRACE_WITHOUT_ALARMS, changes=[N_ROWS]),
    "a change before the first row": lambda: draw_monitored_stream(Y, TRACE_WITHOUT_ALARMS, changes=[3], first_row=5),
    "a short trace beside": lambda: draw_monitored_stream(
        Y, TRACE_WITHOUT_ALARMS, beside={"b": make_trace(n=N_ROWS - 1)}
    ),
}


@pytest.mark.parametrize("draw", INVALID_CALLS_BY_CASE.values(), ids=INVALID_CALLS_BY_CASE)
def test_invalid_input_raises(draw):
    with pytest.raises(InvalidInputError, match="got"):
        draw()
