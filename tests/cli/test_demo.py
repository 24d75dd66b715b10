"""`limpet demo`: the text agrees with the learners, and the report is self-contained."""

import base64
import io
import math
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

from limpet.cli._demo_summary import describe_study, describe_traffic, run_study, run_traffic_study
from limpet.cli.demo import run_demo
from limpet.exceptions import InvalidInputError, MissingExtraError
from limpet.learners import SRA
from limpet.plots.stream import draw_stream
from limpet.report.html import KeyFigures, Picture, Section, Table, require_writable, write_report

PNG = b"\x89PNG\r\n\x1a\n"


class ParsedPage(HTMLParser):
    """The tags, references and text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.references, self.words = [], [], []
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.references += [value for name, value in attributes if name in ("src", "srcset", "href", "data", "action")]

    def handle_data(self, data):
        self.words.append(data)


def make_console():
    return Console(file=io.StringIO(), width=100, force_terminal=False)


def get_printed_text(console):
    return " ".join(console.file.getvalue().split())


@pytest.fixture(scope="module")
def study():
    return run_study(seed=0)


@pytest.fixture(scope="module")
def traffic():
    return run_traffic_study(seed=0)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """One run for all tests: the printed text, the report, and the picture."""
    folder, console = tmp_path_factory.mktemp("demo"), make_console()
    run_demo(folder / "report.html", 0, console, picture=folder / "demo.png")
    return (
        get_printed_text(console),
        (folder / "report.html").read_text(encoding="utf-8"),
        (folder / "demo.png").read_bytes(),
    )


@pytest.fixture
def no_matplotlib(monkeypatch):
    names = [name for name in sys.modules if name.split(".")[0] == "matplotlib"]
    for name in {*names, "matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"}:
        monkeypatch.setitem(sys.modules, name, None)


# --- output: Detector on traffic -----------------------------------------------------------------


def test_every_event_of_the_traffic_is_listed_with_its_alarm(demo, traffic):
    stream, alarms = traffic.stream, {alarm.row: alarm for alarm in traffic.trace.alarms}
    events = dict.fromkeys(np.flatnonzero(stream.outliers), "spike")
    events |= {int(np.flatnonzero(stream.labels)[0]): "outage", stream.change_points[0]: "shift of the level"}
    for row, event in events.items():
        assert f"{row:,} {event} " in demo[0]
    for row in np.flatnonzero(stream.outliers):
        assert f"{row:,} spike {'anomaly' if row in alarms else 'none'} " in demo[0]


def test_outage_and_shift_are_detected_in_time(traffic):
    stream, outage = traffic.stream, np.flatnonzero(traffic.stream.labels)
    assert traffic.find_alarm("anomaly", outage[0], outage[-1]).row == outage[0]
    alarm = traffic.find_alarm("change", stream.change_points[0], len(stream))
    assert alarm.row - stream.change_points[0] <= 12
    assert abs(alarm.onset - stream.change_points[0]) <= 2
    assert traffic.trace.rejected[stream.outliers].all()


def test_alarms_without_a_cause_are_counted(traffic):
    lead, facts, sections = describe_traffic(traffic)
    assert "synthetic" in lead
    explained = 2 + sum(
        row in {alarm.row for alarm in traffic.trace.alarms} for row in np.flatnonzero(traffic.stream.outliers)
    )
    assert facts.pairs[3] == (str(len(traffic.trace.alarms) - explained), "false alarms")
    rows = sections[0].parts[0].rows
    assert len(rows) == 10 + int(facts.pairs[3][0])


# --- output: the paper's algorithm ---------------------------------------------------------------


def test_change_is_located_near_the_true_row(demo):
    row = int(re.search(r"moved most at row ([\d,]+)", demo[0])[1].replace(",", ""))
    assert 10_000 <= row <= 10_100
    assert "the stream changed at row 10,000" in demo[0]


def test_numbers_of_rejected_points_equal_the_learner(demo, study):
    outliers, rejected = study.stream.outliers, study.trace.rejected
    assert rejected.sum() == study.learner.n_rejected
    n_hits, n_wrong = (rejected & outliers).sum(), (rejected & ~outliers).sum()
    assert f"outliers {outliers.sum():,} {n_hits:,} " in demo[0]
    assert f"clean points {(~outliers).sum():,} {n_wrong:,} " in demo[0]
    assert f"all {len(outliers):,} {study.learner.n_rejected:,} " in demo[0]
    accepted_outliers = np.flatnonzero(outliers & ~rejected)
    assert f"{len(accepted_outliers)} lie within ±{np.abs(study.stream.y[accepted_outliers]).max():.2f}" in demo[0]


def test_mixture_is_printed_next_to_the_true_one(demo, study):
    upper, lower = np.argsort(-study.learner.means[:, 0])
    others = np.argsort(-study.baseline.means[:, 0])
    for number, truth, ours, theirs in ((1, 1.0, upper, others[0]), (2, -1.0, lower, others[1])):
        means = (truth, study.learner.means[ours, 0], study.baseline.means[theirs, 0])
        weights = (0.5, study.learner.weights[ours], study.baseline.weights[theirs])
        spreads = (0.1**2, study.learner.covariances[ours, 0, 0], study.baseline.covariances[theirs, 0, 0])
        for name, values in (("mean", means), ("weight", weights), ("deviation", np.sqrt(spreads))):
            row = " ".join(f"{value:.2f}".replace("-", "−") for value in values)
            assert f"{name} {number} {row}" in demo[0]


def test_error_without_threshold_is_over_ten_times_larger(demo):
    before, after = re.search(r"ratio ([\d.]+) ([\d.]+)", demo[0]).groups()
    assert float(before) > 10
    assert float(after) > 10


def test_time_per_point_is_printed(demo):
    assert 1 <= int(re.search(r"(\d+) ns per point", demo[0])[1]) < 100_000


def test_outliers_in_the_warm_up_are_mentioned():
    study = run_study(seed=4)
    n_early = study.stream.outliers[: study.learner.warmup].sum()
    words = str(describe_study(study)[2])
    assert n_early > 0
    assert f"{n_early} are in the first {study.learner.warmup} rows" in words


# --- report --------------------------------------------------------------------------------------


def test_report_is_self_contained(demo):
    page = ParsedPage(demo[1])
    assert page.references
    assert all(reference.startswith("data:image/png;base64,") for reference in page.references)
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert not re.search(r"https?://|@import|url\(", demo[1])


def test_pictures_can_be_decoded(demo):
    from PIL import Image

    pictures = [base64.b64decode(reference.split(",", 1)[1]) for reference in ParsedPage(demo[1]).references]
    images = [Image.open(io.BytesIO(picture)) for picture in pictures]
    images.sort(key=lambda image: image.width)
    assert [image.format for image in images] == ["PNG"] * 4
    assert demo[2] in pictures
    assert len(demo[2]) < 300_000
    for image in images[2:]:
        assert image.width >= 1400
        assert len(image.convert("RGB").getcolors(maxcolors=1 << 20)) > 50  # something is drawn


def test_report_has_the_printed_numbers(demo):
    text = ParsedPage(demo[1]).text
    for fact in re.findall(r"[\d,.]+", demo[0].split("Report:")[0]):
        if not fact.strip(",."):
            continue
        assert fact.strip(",.") in text
    assert "of 211 outliers rejected" in text


def test_equal_runs_draw_equal_pictures(demo, tmp_path):
    run_demo(tmp_path / "report.html", 0, make_console(), picture=tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == demo[2]


def test_svg_has_rasterized_points(study):
    svg = draw_stream(study.stream.y, study.trace, study.change, file_format="svg")
    assert b"<svg" in svg
    assert b"data:image/png;base64" in svg
    assert len(svg) < 2_000_000


def test_report_is_opened_on_request(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run_demo(tmp_path / "report.html", 0, make_console(), open_report=True)
    assert opened == [(tmp_path / "report.html").as_uri()]


@pytest.mark.parametrize("seed", [15, 128])
def test_runs_with_wrong_estimates_are_reported_unchanged(tmp_path, seed, recwarn):
    """SRA splits the points wrongly for some time, and sEM (128) loses a component."""
    console = make_console()
    run_demo(tmp_path / "report.html", seed, console)
    row = run_study(seed).mean_shift.row
    assert f"moved most at row {row:,}; the stream changed at row 10,000" in get_printed_text(console)
    assert not recwarn.list


# --- errors ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_matplotlib")
def test_text_is_printed_without_matplotlib(tmp_path, study):
    console = make_console()
    run_demo(tmp_path / "report.html", 0, console, picture=tmp_path / "demo.png")
    assert "moved most at row 10,0" in get_printed_text(console)
    assert "pip install 'limpet[plots]'" in get_printed_text(console)
    assert not (tmp_path / "report.html").exists()
    assert not (tmp_path / "demo.png").exists()
    with pytest.raises(MissingExtraError, match="matplotlib"):
        draw_stream(study.stream.y, study.trace, study.change)


@pytest.mark.parametrize("name", ["folder.png", "no such folder/a.png", "file/a.png"])
@pytest.mark.parametrize("which", ["out", "picture"])
def test_unwritable_path_raises_before_the_run(tmp_path, monkeypatch, name, which):
    def fail(seed):
        raise AssertionError("the work has begun")

    monkeypatch.setattr("limpet.cli._demo_summary.run_traffic_study", fail)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.png").mkdir()
    valid, unwritable = tmp_path / "good", tmp_path / name
    paths = {"out": valid.with_suffix(".html"), "picture": valid.with_suffix(".png"), which: unwritable}
    with pytest.raises(InvalidInputError, match="cannot be written"):
        run_demo(paths["out"], 0, make_console(), picture=paths["picture"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.png"]


def test_require_writable_changes_nothing(tmp_path):
    old, new = tmp_path / "old.html", tmp_path / "new.html"
    old.write_text("precious")
    require_writable(old)
    require_writable(new)
    assert old.read_text() == "precious"
    assert not new.exists()


def test_error_of_the_disk_is_an_invalid_input_error(tmp_path):
    with pytest.raises(InvalidInputError, match="is a directory"):
        write_report(tmp_path, "title", "lead", [])


@pytest.mark.parametrize(
    ("y", "around", "file_format"), [(np.zeros(3), 0, "png"), (None, 20_000, "png"), (None, 0, "bmp")]
)
def test_invalid_drawing_arguments_raise(study, y, around, file_format):
    with pytest.raises(InvalidInputError):
        draw_stream(study.stream.y if y is None else y, study.trace, around, file_format=file_format)


def test_picture_of_another_format_raises(tmp_path):
    with pytest.raises(InvalidInputError, match="picture"):
        run_demo(tmp_path / "report.html", 0, make_console(), picture=tmp_path / "demo.jpeg")


@pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")
@pytest.mark.parametrize("jump", [0.0, 1000.0])
def test_traces_without_or_with_only_rejections_are_drawn(jump):
    y = np.random.default_rng(0).normal(size=2000)
    y[1000:] += jump
    trace = SRA(gamma=math.inf if jump == 0.0 else 6.0).process(y, record="means")
    assert set(trace.rejected[1000:]) == {jump > 0.0}
    assert draw_stream(y, trace, 1500, reach=100).startswith(PNG)


# --- page --------------------------------------------------------------------------------------


def test_text_is_escaped(tmp_path):
    text = "<script>alert('x')</script> & \"quotes\""
    parts = [text, KeyFigures([(text, text)]), Table([text, text], [[text, text]], text), Picture(PNG, text, text)]
    path = write_report(tmp_path / "report.html", text, text, [Section(text, parts)], text)
    page = ParsedPage(path.read_text(encoding="utf-8"))
    assert "script" not in page.tags
    assert page.references == ["data:image/png;base64," + base64.b64encode(PNG).decode()]
    assert page.text.count("alert('x')") == 14


def test_command_imports_no_heavy_packages():
    code = "import sys, limpet.cli.demo; sys.exit(bool({'numpy', 'numba', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
