"""Pictures and page of what was found in a file: whatever the file holds, they are drawn and say so."""

import io
import math
import sys
import warnings

import numpy as np
import pytest

from limpet.core.algorithm import OUTCOME_ACCEPTED, OUTCOME_ANOMALY, OUTCOME_INVALID, OUTCOME_REJECTED
from limpet.detection.alarm import Alarm
from limpet.exceptions import InvalidInputError
from limpet.learners import Trace
from limpet.plots._axes import DATES, NUMBERS, ROWS, axis_of, configure_x_axis
from limpet.plots._style import BLUE, PURPLE, RED, VERMILION
from limpet.plots.alarm_map import Strip, draw_alarm_map
from limpet.plots.overview import PANELS, draw_overview, drawn_variables, limits_of
from limpet.report.detection import DetectionReport, StreamReport, TimedAlarm, write_detection
from limpet.streams.downsample import MinMaxSummary
from limpet.streams.rejects import RejectLog
from limpet.streams.schema import Schema

SHIFT = Alarm("change", 205, 200, 8.0, "up", (0,))
ODD = Alarm("anomaly", 100, 100, 90.0, "up", (0,), 1e-9)
START = np.datetime64("2024-05-01", "ns")


def a_sketch(n=400, d=1, *, values=None, times=None, watched=True, means=True, most=4096, names=None):
    """A stream with an outlier and a change, and what an autopilot makes of it."""
    rng = np.random.default_rng(0)
    if values is None:
        values = rng.standard_normal((n, d))
        values[n // 2 :] += 8.0
        values[n // 4] = 90.0
    n, d = values.shape
    fates = np.full(n, OUTCOME_ACCEPTED, np.int8)
    fates[np.abs(values).max(axis=1) > 50.0] = OUTCOME_REJECTED | OUTCOME_ANOMALY
    fates[np.isnan(values).all(axis=1)] = OUTCOME_INVALID
    trace = Trace(rng.random(n), fates, {}, (rng.random(n), rng.random(n)) if watched else None)
    level = np.where(np.arange(n) < n // 2, 0.0, 8.0)[:, None] * np.ones(d) if means else None
    sketch = MinMaxSummary(names or tuple(f"v{i}" for i in range(d)), most)
    sketch.add(values, trace, level, times)
    return sketch


def dates(n, step="60s"):
    return START + np.arange(n) * np.timedelta64(int(step[:-1]), "s")


def picture_of(png):
    Image = pytest.importorskip("PIL.Image")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def shows(png, colour, least=30):
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return int((np.abs(picture_of(png) - wanted).sum(axis=-1) < 12).sum()) >= least


HARD = {
    "points": lambda: (a_sketch(), [ODD, SHIFT]),
    "buckets": lambda: (a_sketch(most=64), [ODD, SHIFT]),
    "dates": lambda: (a_sketch(times=dates(400)), [ODD, SHIFT]),
    "eight variables": lambda: (a_sketch(d=8), [ODD, SHIFT, Alarm("change", 300, 290, 2.0, "wider", ("v3", "v4"))]),
    "a plain learner": lambda: (a_sketch(watched=False, means=False), []),
    "three rows": lambda: (a_sketch(3), []),
    "one row": lambda: (a_sketch(1, times=dates(1)), []),
    "a constant": lambda: (a_sketch(values=np.full((50, 1), 7.0)), []),
    "a huge constant": lambda: (a_sketch(values=np.full((50, 1), 3e9), most=16), []),
    "no values": lambda: (a_sketch(values=np.full((50, 2), np.nan)), []),
    "huge numbers": lambda: (a_sketch(values=np.geomspace(1.0, 1e300, 60)[:, None]), []),
    "all dropped": lambda: (a_sketch(values=np.full((9, 1), 99.0)), []),
    "no size": lambda: (a_sketch(), [Alarm("change", 205, 200, math.nan, "up", (0,))]),
    "alarms of nowhere": lambda: (a_sketch(), [Alarm("change", 9999, 9998, math.inf, "up", (7, "x"))]),
    "thousands of alarms": lambda: (
        a_sketch(4000),
        [Alarm(kind, row, row - 1, 2.0, "down", (0,)) for row in range(1, 4000, 2) for kind in ("change", "anomaly")],
    ),
    "names that are no formulas": lambda: (a_sketch(d=2, names=("$\\frac{", "温度\n<b>" + 300 * "x")), [SHIFT]),
}


@pytest.mark.parametrize("case", HARD.values(), ids=HARD)
def test_any_stream_can_be_drawn(case, recwarn):
    pytest.importorskip("matplotlib")
    sketch, alarms = case()
    assert picture_of(draw_overview(sketch, alarms, title="a $ b", scores=sketch.width > 1)).shape[1] == 1440
    assert not recwarn.list


def test_narrow_pictures_and_maps(recwarn):
    pytest.importorskip("matplotlib")
    strips = [Strip(name, *case()) for name, case in HARD.items()]
    assert picture_of(draw_overview(strips[0].sketch, strips[0].alarms, narrow=True)).shape[1] < 800
    assert picture_of(draw_alarm_map(strips)).shape[1] == 1440
    assert picture_of(draw_alarm_map(strips[:1], narrow=True)).shape[1] < 800
    assert not recwarn.list


@pytest.mark.parametrize("most", [4096, 64])
def test_what_is_there_is_drawn_and_what_is_not_is_not(most):
    pytest.importorskip("matplotlib")
    sketch = a_sketch(most=most)
    whole = draw_overview(sketch, [ODD, SHIFT], scores=False, legend=False)
    assert all(shows(whole, colour, 12) for colour in (BLUE, PURPLE, RED, VERMILION))
    assert whole == draw_overview(sketch, [ODD, SHIFT], scores=False, legend=False)
    calm = a_sketch(values=np.random.default_rng(1).standard_normal((400, 1)), means=False, most=most)
    bare = draw_overview(calm, [], scores=False, legend=False)
    assert not any(shows(bare, colour, 12) for colour in (BLUE, PURPLE, RED, VERMILION))


def test_nothing_cannot_be_drawn():
    pytest.importorskip("matplotlib")
    for call in (lambda: draw_overview(MinMaxSummary(("a",)), []), lambda: draw_alarm_map([])):
        with pytest.raises(InvalidInputError):
            call()


def test_far_outliers_do_not_squash_the_rest():
    low, high = limits_of(a_sketch(), 0)
    assert -6.0 < low < -2.0
    assert 10.0 < high < 15.0
    near = np.random.default_rng(0).standard_normal((400, 1)) * 20.0
    near[100] = 75.0
    assert limits_of(a_sketch(values=near), 0)[1] > 75.0  # dropped, but not so far


def test_the_axis_is_that_of_times_where_they_rise():
    late = dates(400)
    late[200] -= np.timedelta64(120, "s")
    axis = axis_of(a_sketch(times=late))
    assert axis.kind == DATES
    assert axis([399])[0] - axis([0])[0] == pytest.approx(399 / 1440)
    assert axis_of(a_sketch(times=dates(400)[::-1])).kind == ROWS
    assert axis_of(a_sketch(times=np.full(400, START))).kind == ROWS
    assert axis_of(a_sketch(times=np.arange(400.0) / 2, most=64))([50, 101]) == pytest.approx([25.0, 50.5])
    assert axis_of(a_sketch(times=np.arange(400.0))).kind == NUMBERS
    assert axis_of(a_sketch(times=np.array(["x"] * 400, object))).kind == ROWS


@pytest.mark.parametrize("days", [1.4 / 24, 0.1, 2.1, 2.9, 85.0, 900.0])
@pytest.mark.parametrize("ticks", [5, 9])
def test_any_span_of_time_has_some_ticks(days, ticks, recwarn):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    configure_x_axis(axes, DATES, (20454.0, 20454.0 + days), ticks)
    within = [tick for tick in axes.xaxis.get_majorticklocs() if 20454.0 <= tick <= 20454.0 + days]
    assert 1 <= len(within) <= 2 * ticks
    assert not recwarn.list


def test_of_very_many_variables_those_with_alarms_are_drawn():
    sketch = a_sketch(20, 40)
    shown = drawn_variables(
        sketch, [Alarm("change", 9, 8, 1.0, "up", ("v37", 5)), Alarm("anomaly", 9, 9, 1.0, "up", (39,))]
    )
    assert len(shown) == PANELS
    assert {5, 37, 39} <= set(shown)
    assert shown == sorted(shown)


def refusals():
    refused = RejectLog()
    for place in range(7):
        refused.add("not a number", place, "<img src=x>")
    return refused


def a_page(tmp_path, found):
    said = write_detection(tmp_path / "report.html", found)
    return said, (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_page_has_the_facts_and_escapes_what_it_is_given(tmp_path):
    pytest.importorskip("matplotlib")
    columns = Schema(("<script>", "b"), "when", "ISO 8601", None, {"note": "holds texts"}, ("say --key note",))
    sketch = a_sketch(d=2, times=dates(400), names=columns.values)
    found = DetectionReport(
        "a <b> file.csv",
        columns,
        [StreamReport("all", sketch, [ODD, SHIFT])],
        [TimedAlarm(ODD, "2024-05-01T01:40:00Z"), TimedAlarm(SHIFT, "2024-05-01T03:25:00Z")],
        n_points=400,
        n_rejected=1,
        n_records=407,
        refused=refusals(),
        far=1e-4,
        hints=("the last value matters",),
        command="limpet detect 'a <b> file.csv'",
    )
    said, page = a_page(tmp_path, found)
    assert said is None
    for fact in (
        "1 change and 1 anomaly in 400 points, from 2024-05-01 00:00 to 2024-05-01 06:39.",
        "<h1>a &lt;b&gt; file.csv</h1>",
        "2024-05-01 01:40:00",
        "&lt;script&gt; up by 8 sd",
        '<span class="mark bar">change</span>',
        "10,000 points",
        "note: holds texts",
        "say --key note",
        "the last value matters",
        "7 records of 407 could not be read",
        "&lt;img src=x&gt;",
        "0.25 %",
        "limpet detect &#x27;a &lt;b&gt; file.csv&#x27;",
    ):
        assert fact in page, fact
    assert page.count("data:image/png;base64,") == 2  # wide and narrow
    assert "<script" not in page
    assert "Stream by stream" not in page


def test_a_calm_file_is_told_to_be_calm(tmp_path):
    calm = StreamReport("all", None, [], 400)
    _, page = a_page(tmp_path, DetectionReport("f.csv", Schema(("v0",)), [calm], [], 400, far=1e-3))
    assert "Nothing to report: no change and no anomaly in 400 points." in page
    assert "<h2>Alarms</h2>" not in page
    _, page = a_page(tmp_path, DetectionReport("f.csv", Schema(("v0",)), [calm], [], 400, n_rejected=3))
    assert "400 points: 3 points dropped." in page  # a learner that raises no alarms
    assert "trust" not in page
    _, page = a_page(
        tmp_path,
        DetectionReport("f.csv", Schema(("v0",)), [StreamReport("all", MinMaxSummary(("v0",)))], [], 0, far=1e-3),
    )
    assert "no points" in page


@pytest.mark.long
def test_a_hundred_streams_make_a_page_one_can_read(tmp_path):
    pytest.importorskip("matplotlib")
    sketches = [a_sketch(60, times=dates(60)) for _ in range(99)]
    loud = {
        3: [Alarm("change", 35, 30, 8.0, "up", (0,), key="s3")] * 2,
        70: [Alarm("anomaly", 15, 15, 9.0, "up", (0,))],
    }
    streams = [StreamReport(f"s{i}", sketch, loud.get(i, [])) for i, sketch in enumerate(sketches)]
    streams.append(StreamReport("s99", None, [], 12_345, 77))
    alarms = [TimedAlarm(alarm, stream=f"s{i}") for i in loud for alarm in loud[i]]
    told, n = [], 99 * 60 + 12_345
    found = DetectionReport(
        "f.csv", Schema(("v0",), key="who"), streams, alarms, n, far=1e-4, joint=False, n_streams=150
    )
    assert write_detection(tmp_path / "r.html", found, lambda done, of: told.append((done, of))) is None
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]  # the map, and the two that have alarms
    assert "The 60 with most alarms of 150." in page
    assert "2 changes and 1 anomaly in 18,285 points of 150 streams" in page
    assert '<th scope="row">s99</th><td>0</td><td>0</td><td>12,345</td><td>77</td>' in page
    assert page.index('<th scope="row">s3</th>') < page.index('<th scope="row">s70</th>') < page.index(">s0<")
    assert "100 of 150 streams" in page
    assert "Each stream is watched by itself." in page


def test_too_many_alarms_are_the_most_important_ones(tmp_path):
    odd = [TimedAlarm(Alarm("anomaly", row, row, float(row % 1000), "up", (0,), 1e-5)) for row in range(2000)]
    shifts = [TimedAlarm(Alarm("change", row, row - 9, 2.0, "wider", (0,))) for row in (77, 1234)]
    found = DetectionReport(
        "f.csv",
        Schema(("v0",)),
        [],
        sorted(odd + shifts, key=lambda one: one.alarm.row),
        2000,
        far=1e-4,
        results="r.csv",
    )
    _, page = a_page(tmp_path, found)
    assert "200 of 2,002 alarms" in page
    assert "all of them are in r.csv" in page
    assert page.count('<span class="mark bar">') == 2
    assert page.count('<span class="mark dot">') == 198
    assert '<th scope="row">1,999</th>' in page  # 999 standard deviations
    assert '<th scope="row">1,000</th>' not in page


def test_without_matplotlib_the_page_says_so(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = DetectionReport(
        "f.csv", Schema(("v0",)), [StreamReport("all", a_sketch(), [SHIFT])], [TimedAlarm(SHIFT)], 400, far=1e-3
    )
    said, page = a_page(tmp_path, found)
    assert "pip install" in said
    assert "pip install" in page
    assert "data:image" not in page
    assert "v0 up by 8 sd" in page
    found = DetectionReport(
        "f.csv", Schema(("v0",)), [StreamReport(n, a_sketch(), []) for n in "ab"], [], 800, far=1e-3, joint=False
    )
    said, page = a_page(tmp_path, found)
    assert "pip install" in said


def test_it_shows_what_the_autopilot_gives(tmp_path):
    pytest.importorskip("matplotlib")
    import limpet as lp

    rng = np.random.default_rng(0)
    values = rng.standard_normal((6000, 1))
    values[3000:] += 5.0
    values[1000] = 60.0
    learner, sketch, alarms = lp.SRA(), MinMaxSummary(("v0",)), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in np.split(values, 4):
            trace = learner.process(batch, record="means")
            sketch.add(batch, trace, trace.means[:, 0, :])
            alarms += trace.alarms
    assert sketch.is_auto
    assert sketch.n_anomalies.sum() >= 1
    assert abs(sketch.estimate[0, -1] - 5.0) < 0.5
    assert shows(draw_overview(sketch, alarms), RED, 100)
