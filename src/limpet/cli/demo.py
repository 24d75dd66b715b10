"""The command `limpet demo`: Detector on traffic, SRA on the paper's stream."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from limpet.cli._demo_summary import Study, TrafficStudy
    from limpet.report.html import Picture, Section

REPORT_TITLE = "Six weeks of traffic, one pass"
PAPER_TITLE = "The paper's algorithm"
INDENT = (0, 0, 0, 2)


def run_demo(out: Path, seed: int, console: Console, open_report: bool = False, picture: Path | None = None) -> None:
    """Run and print both studies; write the report, and its first picture as a PNG.

    Without the packages of the extra ``plots`` no report is written; the console has the command to install them.
    """
    from limpet import __version__
    from limpet.cli._demo_summary import describe_study, describe_traffic, run_study, run_traffic_study
    from limpet.exceptions import InvalidInputError, MissingExtraError
    from limpet.report.html import Section, check_report, require_writable, write_report

    if picture is not None and picture.suffix.lower() != ".png":
        raise InvalidInputError(f"--picture: must end in .png, got {str(picture)!r}.")
    for path in (out, picture):
        if path is not None:
            require_writable(path)
    missing = ""
    try:
        check_report(out)
    except MissingExtraError as error:
        missing = f"No report: {error}"
    with console.status("learning …"):
        traffic = run_traffic_study(seed)
        study = run_study(seed)
    lead, facts, sections = describe_traffic(traffic)
    paper_lead, paper_facts, paper_sections = describe_study(study)
    _print_sections(console, lead, sections)
    _print_sections(console, f"{PAPER_TITLE}. {paper_lead}", paper_sections)
    if missing:
        console.print(missing, markup=False, highlight=False, style="yellow", soft_wrap=True)
        return
    with console.status("drawing …"):
        pictures = [_draw_traffic(traffic), _draw_paper_stream(study)]
        if picture is not None:
            picture.write_bytes(pictures[0].png)
    top, paper_top = Section("", [facts, pictures[0]]), Section(PAPER_TITLE, [paper_lead, paper_facts, pictures[1]])
    footer = f"limpet {__version__} · seed {seed} · {traffic.learner!r} · {study.learner!r}"
    write_report(out, REPORT_TITLE, lead, [top, *sections, paper_top, *paper_sections], footer)
    console.print(f"Report: {out}", markup=False, highlight=False, soft_wrap=True)
    if open_report:
        import webbrowser

        webbrowser.open(out.resolve().as_uri())


def _print_sections(console: Console, lead: str, sections: Sequence[Section]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.padding import Padding
    from rich.table import Table as RichTable
    from rich.text import Text

    from limpet.report.html import Table

    console.print(Text(lead))
    for section in sections:
        console.print(Text(f"\n{section.title}", style="bold"))
        for part in section.parts:
            if isinstance(part, str):
                console.print(Padding(Text(part), INDENT, expand=False))
            elif isinstance(part, Table):
                table = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
                for i, heading in enumerate(part.heading):
                    table.add_column(heading, justify="right" if i and i not in part.text_columns else "left")
                for row in part.rows:
                    table.add_row(*row)
                console.print(Padding(table, INDENT, expand=False))
    console.print()


def _draw_traffic(study: TrafficStudy) -> Picture:
    from limpet.plots.overview import draw_overview
    from limpet.report.html import Picture
    from limpet.streams.downsample import MinMaxSummary, last_estimate

    summary = MinMaxSummary(("requests per minute",), 2 * len(study.stream))  # every row
    summary.add(study.stream.y, study.trace, last_estimate(study.trace), study.times)
    draw = partial(draw_overview, summary, study.trace.alarms, title="requests per minute")
    return Picture(
        draw(),
        "The traffic over time with its expected value, rejected points and alarms, and both scores.",
        "The traffic, the level as Detector estimates it without the season, and its alarms: crosses were rejected, "
        "circles are anomaly alarms, the vertical line is the change alarm. Below, the scores.",
        narrow=draw(narrow=True),
    )


def _draw_paper_stream(study: Study) -> Picture:
    from limpet.plots.stream import draw_stream
    from limpet.report.html import Picture

    baseline = ("means without the threshold", study.baseline_trace.means)
    draw = partial(draw_stream, study.stream.y, study.trace, study.mean_shift.row, change_point=study.change)
    draw = partial(draw, true_means=study.stream.means, baseline=baseline)
    return Picture(
        draw(),
        "Three panels: the stream with rejected points and the estimated means, the same near the change, and the "
        "score of every point.",
        "The stream: crosses were rejected; the blue lines are the means estimated by SRA, the orange ones those of "
        "sEM, which learns every outlier. Then the rows near the change, where triangles mark points beyond the "
        "edge, and the score −log f(y) of each point.",
        narrow=draw(narrow=True),
    )
