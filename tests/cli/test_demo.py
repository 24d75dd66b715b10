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


class Page(HTMLParser):
    """All that a page refers to, and its text."""

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


def recording_console():
    return Console(file=io.StringIO(), width=100, force_terminal=False)


def printed(console):
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
    folder, console = tmp_path_factory.mktemp("demo"), recording_console()
    run_demo(folder / "report.html", 0, console, picture=folder / "demo.png")
    return (
        printed(console),
        (folder / "report.html").read_text(encoding="utf-8"),
        (folder / "demo.png").read_bytes(),
    )


@pytest.fixture
def no_matplotlib(monkeypatch):
    names = [name for name in sys.modules if name.split(".")[0] == "matplotlib"]
    for name in {*names, "matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"}:
        monkeypatch.setitem(sys.modules, name, None)


# --- what is printed: Detector on traffic -----------------------------------------------------------------


def test_every_event_of_the_traffic_is_listed_with_its_alarm(demo, traffic):
    stream, alarms = traffic.stream, {alarm.row: alarm for alarm in traffic.trace.alarms}
    events = dict.fromkeys(np.flatnonzero(stream.outliers), "spike")
    events |= {int(np.flatnonzero(stream.labels)[0]): "outage", stream.change_points[0]: "shift of the level"}
    for row, event in events.items():
        assert f"{row:,} {event} " in demo[0]
    for row in np.flatnonzero(stream.outliers):
        assert f"{row:,} spike {'anomaly' if row in alarms else 'none'} " in demo[0]


def test_the_outage_and_the_shift_are_found_in_time(traffic):
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
    assert facts.pairs[3] == (str(len(traffic.trace.alarms) - explained), "alarms without a cause")
    rows = sections[0].parts[0].rows
    assert len(rows) == 10 + int(facts.pairs[3][0])


# --- what is printed: the paper's algorithm ---------------------------------------------------------------


def test_the_change_is_found_near_the_true_row(demo):
    row = int(re.search(r"moved most at row ([\d,]+)", demo[0])[1].replace(",", ""))
    assert 10_000 <= row <= 10_100
    assert "the stream changed at row 10,000" in demo[0]


def test_the_rejected_points_are_those_of_the_learner(demo, study):
    outliers, rejected = study.stream.outliers, study.trace.rejected
    assert rejected.sum() == study.learner.n_rejected
    hits, wrong = (rejected & outliers).sum(), (rejected & ~outliers).sum()
    assert f"outliers {outliers.sum():,} {hits:,} " in demo[0]
    assert f"clean points {(~outliers).sum():,} {wrong:,} " in demo[0]
    assert f"all {len(outliers):,} {study.learner.n_rejected:,} " in demo[0]
    learned = np.flatnonzero(outliers & ~rejected)
    assert f"{len(learned)} lie within ±{np.abs(study.stream.y[learned]).max():.2f}" in demo[0]


def test_the_mixture_stands_beside_the_truth(demo, study):
    upper, lower = np.argsort(-study.learner.means[:, 0])
    others = np.argsort(-study.baseline.means[:, 0])
    for number, truth, ours, theirs in ((1, 1.0, upper, others[0]), (2, -1.0, lower, others[1])):
        means = (truth, study.learner.means[ours, 0], study.baseline.means[theirs, 0])
        weights = (0.5, study.learner.weights[ours], study.baseline.weights[theirs])
        spreads = (0.1**2, study.learner.covariances[ours, 0, 0], study.baseline.covariances[theirs, 0, 0])
        for name, values in (("mean", means), ("weight", weights), ("deviation", np.sqrt(spreads))):
            row = " ".join(f"{value:.2f}".replace("-", "−") for value in values)
            assert f"{name} {number} {row}" in demo[0]


def test_the_threshold_is_worth_it(demo):
    before, after = re.search(r"ratio ([\d.]+) ([\d.]+)", demo[0]).groups()
    assert float(before) > 10
    assert float(after) > 10


def test_the_time_is_that_of_a_point(demo):
    assert 1 <= int(re.search(r"(\d+) ns per point", demo[0])[1]) < 100_000


def test_outliers_in_the_warm_up_are_mentioned():
    study = run_study(seed=4)
    n_early = study.stream.outliers[: study.learner.warmup].sum()
    words = str(describe_study(study)[2])
    assert n_early > 0
    assert f"{n_early} are in the first {study.learner.warmup} rows" in words


# --- what is written --------------------------------------------------------------------------------------


def test_the_report_needs_nothing_else(demo):
    page = Page(demo[1])
    assert page.references
    assert all(reference.startswith("data:image/png;base64,") for reference in page.references)
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert not re.search(r"https?://|@import|url\(", demo[1])


def test_the_pictures_are_pictures(demo):
    from PIL import Image

    pictures = [base64.b64decode(reference.split(",", 1)[1]) for reference in Page(demo[1]).references]
    images = [Image.open(io.BytesIO(picture)) for picture in pictures]
    images.sort(key=lambda image: image.width)
    assert [image.format for image in images] == ["PNG"] * 4
    assert demo[2] in pictures
    assert len(demo[2]) < 300_000
    for image in images[2:]:
        assert image.width >= 1400
        assert len(image.convert("RGB").getcolors(maxcolors=1 << 20)) > 50  # something is drawn


def test_the_report_has_the_facts(demo):
    text = Page(demo[1]).text
    for fact in re.findall(r"[\d,.]+", demo[0].split("Report:")[0]):
        if not fact.strip(",."):
            continue
        assert fact.strip(",.") in text
    assert "of 211 outliers rejected" in text


def test_equal_runs_draw_equal_pictures(demo, tmp_path):
    run_demo(tmp_path / "report.html", 0, recording_console(), picture=tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == demo[2]


def test_an_svg_has_its_points_as_a_raster(study):
    svg = draw_stream(study.stream.y, study.trace, study.change, file_format="svg")
    assert b"<svg" in svg
    assert b"data:image/png;base64" in svg
    assert len(svg) < 2_000_000


def test_it_opens_the_report_on_request(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run_demo(tmp_path / "report.html", 0, recording_console(), open_report=True)
    assert opened == [(tmp_path / "report.html").as_uri()]


@pytest.mark.parametrize("seed", [15, 128])
def test_a_stream_that_goes_badly_is_shown_as_it_went(tmp_path, seed, recwarn):
    """Where, as written, SRA splits the points wrongly for a while, and sEM (128) loses a component."""
    console = recording_console()
    run_demo(tmp_path / "report.html", seed, console)
    row = run_study(seed).mean_shift.row
    assert f"moved most at row {row:,}; the stream changed at row 10,000" in printed(console)
    assert not recwarn.list


# --- what can go wrong ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_matplotlib")
def test_without_matplotlib_the_rest_is_there(tmp_path, study):
    console = recording_console()
    run_demo(tmp_path / "report.html", 0, console, picture=tmp_path / "demo.png")
    assert "moved most at row 10,0" in printed(console)
    assert "pip install 'limpet[plots]'" in printed(console)
    assert not (tmp_path / "report.html").exists()
    assert not (tmp_path / "demo.png").exists()
    with pytest.raises(MissingExtraError, match="matplotlib"):
        draw_stream(study.stream.y, study.trace, study.change)


@pytest.mark.parametrize("name", ["folder.png", "no such folder/a.png", "file/a.png"])
@pytest.mark.parametrize("which", ["out", "picture"])
def test_a_path_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch, name, which):
    def never(seed):
        raise AssertionError("the work has begun")

    monkeypatch.setattr("limpet.cli._demo_summary.run_traffic_study", never)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.png").mkdir()
    good, bad = tmp_path / "good", tmp_path / name
    paths = {"out": good.with_suffix(".html"), "picture": good.with_suffix(".png"), which: bad}
    with pytest.raises(InvalidInputError, match="cannot be written"):
        run_demo(paths["out"], 0, recording_console(), picture=paths["picture"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.png"]


def test_require_writable_changes_nothing(tmp_path):
    old, new = tmp_path / "old.html", tmp_path / "new.html"
    old.write_text("precious")
    require_writable(old)
    require_writable(new)
    assert old.read_text() == "precious"
    assert not new.exists()


def test_an_error_of_the_disk_is_an_invalid_input(tmp_path):
    with pytest.raises(InvalidInputError, match="is a directory"):
        write_report(tmp_path, "title", "lead", [])


@pytest.mark.parametrize(
    ("y", "around", "file_format"), [(np.zeros(3), 0, "png"), (None, 20_000, "png"), (None, 0, "bmp")]
)
def test_what_cannot_be_drawn_is_refused(study, y, around, file_format):
    with pytest.raises(InvalidInputError):
        draw_stream(study.stream.y if y is None else y, study.trace, around, file_format=file_format)


def test_a_picture_is_a_png_or_an_svg(tmp_path):
    with pytest.raises(InvalidInputError, match="picture"):
        run_demo(tmp_path / "report.html", 0, recording_console(), picture=tmp_path / "demo.jpeg")


@pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")
@pytest.mark.parametrize("jump", [0.0, 1000.0])
def test_a_learner_that_drops_nothing_or_everything_can_be_drawn(jump):
    y = np.random.default_rng(0).normal(size=2000)
    y[1000:] += jump
    trace = SRA(gamma=math.inf if jump == 0.0 else 6.0).process(y, record="means")
    assert set(trace.rejected[1000:]) == {jump > 0.0}
    assert draw_stream(y, trace, 1500, reach=100).startswith(PNG)


# --- the page itself --------------------------------------------------------------------------------------


def test_every_text_is_escaped(tmp_path):
    evil = "<script>alert('x')</script> & \"quotes\""
    parts = [evil, KeyFigures([(evil, evil)]), Table([evil, evil], [[evil, evil]], evil), Picture(PNG, evil, evil)]
    path = write_report(tmp_path / "report.html", evil, evil, [Section(evil, parts)], evil)
    page = Page(path.read_text(encoding="utf-8"))
    assert "script" not in page.tags
    assert page.references == ["data:image/png;base64," + base64.b64encode(PNG).decode()]
    assert page.text.count("alert('x')") == 14


def test_the_command_is_imported_without_the_heavy_parts():
    code = "import sys, limpet.cli.demo; sys.exit(bool({'numpy', 'numba', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
