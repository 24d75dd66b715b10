"""The page of a detection run."""

import sys
from dataclasses import replace

import pytest

from helpers.pictures import ANOMALY, SHIFT, make_dates, make_summary
from limpet.detection.alarm import Alarm
from limpet.exceptions import MissingExtraError
from limpet.report.detection import DetectionReport, StreamReport, write_detection
from limpet.report.html import check_report
from limpet.streams.batch import InputErrorLog
from limpet.streams.downsample import MinMaxSummary
from limpet.streams.schema import Schema


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
    assert "200 of 2,002 alarms: the largest changes" in page
    assert page.count('<span class="marker bar">') == 2
    assert page.count('<span class="marker dot">') == 198
    assert '<th scope="row">1,999</th>' in page  # 999 standard deviations
    assert '<th scope="row">1,000</th>' not in page


def test_only_the_kind_of_an_alarm_is_marked(tmp_path):
    alarms = [
        Alarm("change", 35, 30, 8.0, "up", (0,), key="anomaly"),
        Alarm("anomaly", 40, 40, 9.0, "up", (0,), key="change"),
    ]
    streams = [
        StreamReport(name, None, [alarm], 100) for name, alarm in zip(("anomaly", "change"), alarms, strict=True)
    ]
    report = DetectionReport("f.csv", Schema(("v0",)), streams, alarms, 200, far=1e-4, joint=False, n_streams=2)
    page = write_and_read_page(tmp_path, report)
    assert (
        page.count('<span class="marker bar">change</span>')
        == page.count('<span class="marker dot">anomaly</span>')
        == 1
    )


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
