"""Pictures and page of a detection run, for any kind of stream."""

import io
import math
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

from limpet.core.algorithm import OUTCOME_ACCEPTED, OUTCOME_ANOMALY, OUTCOME_INVALID, OUTCOME_REJECTED
from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError, MissingExtraError
from limpet.learners import Trace
from limpet.plots._axes import DATE_AXIS, NUMBER_AXIS, ROW_AXIS, configure_x_axis, make_row_axis
from limpet.plots._style import BLUE, PURPLE, RED, VERMILION
from limpet.plots.alarm_map import Strip, draw_alarm_map
from limpet.plots.overview import MAX_PANELS, draw_overview, select_variables, value_limits
from limpet.report.detection import DetectionReport, StreamReport, write_detection
from limpet.report.html import check_report
from limpet.streams.batch import InputErrorLog
from limpet.streams.downsample import MinMaxSummary
from limpet.streams.schema import Schema

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


def make_input_errors():
    errors = InputErrorLog()
    for index in range(7):
        errors.add("not a number", index, "<img src=x>")
    return errors


def write_and_read_page(tmp_path, report):
    write_detection(tmp_path / "report.html", report)
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_page_has_the_key_figures_and_escapes_input(tmp_path):
    pytest.importorskip("matplotlib")
    columns = Schema(("<script>", "b"), "when", "ISO 8601", None, {"note": "not numeric"}, ("pump",))
    summary = make_summary(d=2, times=make_dates(400), names=columns.values)
    report = DetectionReport(
        "a <b> file.csv",
        columns,
        [StreamReport("all", summary, [ANOMALY, SHIFT])],
        [replace(ANOMALY, time="2024-05-01T01:40:00Z"), replace(SHIFT, time="2024-05-01T03:25:00Z")],
        n_points=400,
        n_rejected=1,
        n_records=407,
        malformed=make_input_errors(),
        far=1e-4,
        command="limpet detect 'a <b> file.csv'",
    )
    page = write_and_read_page(tmp_path, report)
    for fact in (
        "1 change and 1 anomaly in 400 points, from 2024-05-01 00:00 to 2024-05-01 06:39.",
        "<h1>a &lt;b&gt; file.csv</h1>",
        "2024-05-01 01:40:00",
        "&lt;script&gt; up by 8 sd",
        '<span class="marker bar">change</span>',
        "10,000 points",
        "note: not numeric",
        "if each &#39;pump&#39; is a separate stream, use --key pump",
        "7 records of 407 could not be parsed",
        "&lt;img src=x&gt;",
        "0.25 %",
        "limpet detect &#39;a &lt;b&gt; file.csv&#39;",
    ):
        assert fact in page, fact
    assert page.count("data:image/png;base64,") == 2  # wide and narrow
    assert "<script" not in page
    assert "<h2>Streams</h2>" not in page


def test_page_without_alarms(tmp_path):
    calm = StreamReport("all", None, [], 400)
    page = write_and_read_page(tmp_path, DetectionReport("f.csv", Schema(("v0",)), [calm], [], 400, far=1e-3))
    assert "No changes and no anomalies in 400 points." in page
    assert "<h2>Alarms</h2>" not in page
    page = write_and_read_page(tmp_path, DetectionReport("f.csv", Schema(("v0",)), [calm], [], 400, n_rejected=3))
    assert "400 points: 3 points rejected." in page  # a learner that raises no alarms
    assert "<h2>False alarms</h2>" not in page
    page = write_and_read_page(
        tmp_path,
        DetectionReport("f.csv", Schema(("v0",)), [StreamReport("all", MinMaxSummary(("v0",)))], [], 0, far=1e-3),
    )
    assert "0 points" in page


@pytest.mark.long
def test_page_of_a_hundred_streams(tmp_path):
    pytest.importorskip("matplotlib")
    summaries = [make_summary(60, times=make_dates(60)) for _ in range(99)]
    alarms_by_stream = {
        3: [Alarm("change", 35, 30, 8.0, "up", (0,), key="s3")] * 2,
        70: [Alarm("anomaly", 15, 15, 9.0, "up", (0,))],
    }
    streams = [StreamReport(f"s{i}", summary, alarms_by_stream.get(i, [])) for i, summary in enumerate(summaries)]
    streams.append(StreamReport("s99", None, [], 12_345, 77))
    alarms = [replace(alarm, key=f"s{i}") for i in alarms_by_stream for alarm in alarms_by_stream[i]]
    n = 99 * 60 + 12_345
    report = DetectionReport(
        "f.csv", Schema(("v0",), key="who"), streams, alarms, n, far=1e-4, joint=False, n_streams=150
    )
    page = write_and_read_page(tmp_path, report)
    assert page.count("<img ") == 3  # the map, and the two streams with alarms
    assert "The 60 with most alarms of 150." in page
    assert "2 changes and 1 anomaly in 18,285 points of 150 streams" in page
    assert '<th scope="row">s99</th><td>0</td><td>0</td><td>12,345</td><td>77</td>' in page
    assert page.index('<th scope="row">s3</th>') < page.index('<th scope="row">s70</th>') < page.index(">s0<")
    assert "100 of 150 streams" in page
    assert "Each stream is monitored separately." in page


def test_page_shows_the_most_important_of_many_alarms(tmp_path):
    anomalies = [Alarm("anomaly", row, row, float(row % 1000), "up", (0,), 1e-5) for row in range(2000)]
    shifts = [Alarm("change", row, row - 9, 2.0, "wider", (0,)) for row in (77, 1234)]
    report = DetectionReport(
        "f.csv",
        Schema(("v0",)),
        [],
        sorted(anomalies + shifts, key=lambda alarm: alarm.row),
        2000,
        far=1e-4,
    )
    page = write_and_read_page(tmp_path, report)
    assert "200 of 2,002 alarms" in page
    assert page.count('<span class="marker bar">') == 2
    assert page.count('<span class="marker dot">') == 198
    assert '<th scope="row">1,999</th>' in page  # 999 standard deviations
    assert '<th scope="row">1,000</th>' not in page


@pytest.mark.parametrize("module", ["matplotlib", "jinja2"])
def test_missing_package_raises_first(module, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"{module}.*pip install 'limpet\[plots\]'"):
        check_report(tmp_path / "report.html")
    report = DetectionReport("f.csv", Schema(("v0",)), [StreamReport("", make_summary(), [SHIFT])], [SHIFT], 400)
    with pytest.raises(MissingExtraError, match=rf"{module}.*pip install 'limpet\[plots\]'"):
        write_detection(tmp_path / "report.html", report)


def test_overview_of_a_detector(tmp_path):
    pytest.importorskip("matplotlib")
    import limpet as lp

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
