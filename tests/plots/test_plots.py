"""Pictures of any kind of stream."""

import math
import warnings

import numpy as np
import pytest

import limpet as lp
from helpers.pictures import ANOMALY, SHIFT, START, has_color, make_dates, make_summary, read_pixels
from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError
from limpet.plots._axes import (
    DATE_AXIS,
    NUMBER_AXIS,
    ROW_AXIS,
    configure_x_axis,
    full_or_robust_limits,
    make_row_axis,
    robust_limits,
)
from limpet.plots._style import BLUE, PURPLE, RED, VERMILION, new_figure, render_png
from limpet.plots.alarm_map import Strip, draw_alarm_map
from limpet.plots.overview import MAX_PANELS, draw_overview, select_variables, value_limits
from limpet.streams.downsample import MinMaxSummary

CASES = {
    "points": lambda: (make_summary(), [ANOMALY, SHIFT]),
    "buckets": lambda: (make_summary(max_buckets=64), [ANOMALY, SHIFT]),
    "dates": lambda: (make_summary(times=make_dates(400)), [ANOMALY, SHIFT]),
    "eight variables": lambda: (
        make_summary(d=8),
        [ANOMALY, SHIFT, Alarm("change", 300, 290, 2.0, "wider", ("v3", "v4"))],
    ),
    "a plain learner": lambda: (make_summary(auto=False, means=False), []),
    "three rows": lambda: (make_summary(3), []),
    "one row": lambda: (make_summary(1, times=make_dates(1)), []),
    "a constant": lambda: (make_summary(values=np.full((50, 1), 7.0)), []),
    "a huge constant": lambda: (make_summary(values=np.full((50, 1), 3e9), max_buckets=16), []),
    "no values": lambda: (make_summary(values=np.full((50, 2), np.nan)), []),
    "huge numbers": lambda: (make_summary(values=np.geomspace(1.0, 1e300, 60)[:, None]), []),
    "all rejected": lambda: (make_summary(values=np.full((9, 1), 99.0)), []),
    "no size": lambda: (make_summary(), [Alarm("change", 205, 200, math.nan, "up", (0,))]),
    "alarms of nowhere": lambda: (make_summary(), [Alarm("change", 9999, 9998, math.inf, "up", (7, "x"))]),
    "thousands of alarms": lambda: (
        make_summary(4000),
        [Alarm(kind, row, row - 1, 2.0, "down", (0,)) for row in range(1, 4000, 2) for kind in ("change", "anomaly")],
    ),
    "names that are no formulas": lambda: (make_summary(d=2, names=("$\\frac{", "温度\n<b>" + 300 * "x")), [SHIFT]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_all_kinds_of_streams_are_drawn(case, recwarn):
    pytest.importorskip("matplotlib")
    summary, alarms = case()
    assert read_pixels(draw_overview(summary, alarms, title="a $ b", scores=summary.width > 1)).shape[1] == 1440
    assert not recwarn.list


def test_narrow_pictures_and_maps(recwarn):
    pytest.importorskip("matplotlib")
    strips = [Strip(name, *case()) for name, case in CASES.items()]
    assert read_pixels(draw_overview(strips[0].summary, strips[0].alarms, narrow=True)).shape[1] < 800
    assert read_pixels(draw_alarm_map(strips)).shape[1] == 1440
    assert read_pixels(draw_alarm_map(strips[:1], narrow=True)).shape[1] < 800
    assert not recwarn.list


@pytest.mark.parametrize("max_buckets", [4096, 64])
def test_only_existing_results_are_drawn(max_buckets):
    pytest.importorskip("matplotlib")
    summary = make_summary(max_buckets=max_buckets)
    whole = draw_overview(summary, [ANOMALY, SHIFT], scores=False, legend=False)
    assert all(has_color(whole, color, 12) for color in (BLUE, PURPLE, RED, VERMILION))
    assert whole == draw_overview(summary, [ANOMALY, SHIFT], scores=False, legend=False)
    calm = make_summary(values=np.random.default_rng(1).standard_normal((400, 1)), means=False, max_buckets=max_buckets)
    bare = draw_overview(calm, [], scores=False, legend=False)
    assert not any(has_color(bare, color, 12) for color in (BLUE, PURPLE, RED, VERMILION))


def test_empty_input_raises():
    pytest.importorskip("matplotlib")
    for call in (lambda: draw_overview(MinMaxSummary(("a",)), []), lambda: draw_alarm_map([])):
        with pytest.raises(InvalidInputError):
            call()


def test_value_limits_exclude_far_outliers():
    low, high = value_limits(make_summary(), 0)
    assert -6.0 < low < -2.0
    assert 10.0 < high < 15.0
    near = np.random.default_rng(0).standard_normal((400, 1)) * 20.0
    near[100] = 75.0
    assert value_limits(make_summary(values=near), 0)[1] > 75.0  # rejected, but near


def test_axis_shows_times_if_they_increase():
    late = make_dates(400)
    late[200] -= np.timedelta64(120, "s")
    axis = make_row_axis(make_summary(times=late))
    assert axis.kind == DATE_AXIS
    assert axis([399])[0] - axis([0])[0] == pytest.approx(399 / 1440)
    assert make_row_axis(make_summary(times=make_dates(400)[::-1])).kind == ROW_AXIS
    assert make_row_axis(make_summary(times=np.full(400, START))).kind == ROW_AXIS
    assert make_row_axis(make_summary(times=np.arange(400.0) / 2, max_buckets=64))([50, 101]) == pytest.approx(
        [25.0, 50.5]
    )
    assert make_row_axis(make_summary(times=np.arange(400.0))).kind == NUMBER_AXIS
    assert make_row_axis(make_summary(times=np.array(["x"] * 400, object))).kind == ROW_AXIS


@pytest.mark.parametrize("days", [1.4 / 24, 0.1, 2.1, 2.9, 85.0, 900.0])
@pytest.mark.parametrize("ticks", [5, 9])
def test_any_span_of_time_has_some_ticks(days, ticks, recwarn):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    configure_x_axis(axes, DATE_AXIS, (20454.0, 20454.0 + days), ticks)
    within = [tick for tick in axes.xaxis.get_majorticklocs() if 20454.0 <= tick <= 20454.0 + days]
    assert 1 <= len(within) <= 2 * ticks
    assert not recwarn.list


def test_variables_with_alarms_are_selected():
    summary = make_summary(20, 40)
    shown = select_variables(
        summary, [Alarm("change", 9, 8, 1.0, "up", ("v37", 5)), Alarm("anomaly", 9, 9, 1.0, "up", (39,))]
    )
    assert len(shown) == MAX_PANELS
    assert {5, 37, 39} <= set(shown)
    assert shown == sorted(shown)


def test_robust_limits_ignore_extreme_values():
    values = np.append(np.linspace(0.0, 1.0, 1000), [1e9, np.nan, -np.inf])
    low, high = robust_limits(values)
    assert -0.5 < low < 0.0 < 1.0 < high < 1.5
    assert full_or_robust_limits(values)[1] == high
    assert full_or_robust_limits(np.append(values[:1000], 1.5))[1] > 1.5
    assert robust_limits(np.array([np.nan])) is full_or_robust_limits(np.array([np.inf])) is None
    assert robust_limits(np.zeros(5)) == (-1.0, 1.0)


def test_empty_figure_is_rendered():
    pytest.importorskip("matplotlib")
    assert render_png(new_figure(1.0, 1.0)).startswith(b"\x89PNG")


def test_overview_of_a_detector(tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    values = rng.standard_normal((6000, 1))
    values[3000:] += 5.0
    values[1000] = 60.0
    learner, summary, alarms = lp.Detector(), MinMaxSummary(("v0",)), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in np.split(values, 4):
            trace = learner.process(batch, record="means")
            summary.add(batch, trace, trace.means[:, 0, :])
            alarms += trace.alarms
    assert summary.is_auto
    assert summary.n_anomalies.sum() >= 1
    assert abs(summary.estimate[0, -1] - 5.0) < 0.5
    assert has_color(draw_overview(summary, alarms), RED, 100)
