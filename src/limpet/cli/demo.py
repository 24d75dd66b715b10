"""The command `limpet demo`: the paper's stream, what is learnt of it, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from limpet.cli._demo_summary import Study
    from limpet.report.html import KeyFigures, Picture, Section, Table


REPORT_TITLE = "One stream, one pass"


def run_demo(out: Path, seed: int, console: Console, open_report: bool = False, picture: Path | None = None) -> None:
    """Run the paper's univariate abrupt stream, print what came of it, and write the report to ``out``.

    ``picture`` also keeps the report's picture in a file of its own, a PNG or an SVG by its suffix; that of
    the README is ``limpet demo --picture docs/pictures/demo.png``.
    Without matplotlib the report has no picture, and the console says how to get one.
    """
    from limpet import __version__
    from limpet.cli._demo_summary import describe_study, run_study
    from limpet.exceptions import InvalidInputError, MissingExtraError
    from limpet.report.html import Section, require_writable, write_report

    if picture is not None and picture.suffix.lower() not in (".png", ".svg"):
        raise InvalidInputError(f"picture: expected a name that ends in .png or .svg, got {str(picture)!r}")
    for path in (out, picture):
        if path is not None:
            require_writable(path)
    with console.status("learning …"):
        study = run_study(seed)
    lead, facts, sections = describe_study(study)
    _print_sections(console, lead, sections)
    top: list[str | KeyFigures | Table | Picture] = [facts]
    try:
        with console.status("drawing …"):
            top.append(_make_picture(study))
            if picture is not None:
                picture.write_bytes(_render_stream(study, file_format=picture.suffix.lower()[1:]))
    except MissingExtraError as error:
        top.append(f"No picture: {error}")
        console.print(f"No picture: {error}", markup=False, highlight=False, style="yellow", soft_wrap=True)
    footer = f"limpet {__version__} · seed {seed} · {study.learner!r}"
    write_report(out, REPORT_TITLE, lead, [Section("", top), *sections], footer)
    console.print(f"Report: {out}", markup=False, highlight=False, soft_wrap=True)
    if open_report:
        import webbrowser

        webbrowser.open(out.resolve().as_uri())


def _print_sections(console: Console, lead: str, sections: Sequence[Section]) -> None:
    """Print the text and the tables of a report."""
    from rich.padding import Padding
    from rich.text import Text

    from limpet.report.html import Table

    console.print(Text(lead))
    for section in sections:
        console.print(Text(f"\n{section.title}", style="bold"))
        for part in section.parts:
            if isinstance(part, Table | str):
                renderable = _to_rich_table(part) if isinstance(part, Table) else Text(part)
                console.print(Padding(renderable, (0, 0, 0, 2), expand=False))
    console.print()


def _to_rich_table(table: Table) -> RichTable:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    rich_table = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim")
    for i, word in enumerate(table.heading):
        rich_table.add_column(word, justify="right" if i else "left")
    for row in table.rows:
        rich_table.add_row(*row)
    return rich_table


def _make_picture(study: Study) -> Picture:
    from limpet.report.html import Picture

    return Picture(
        _render_stream(study),
        "Three panels: the stream with the points that were dropped and the estimated means, "
        "the same near the change, and the score of every point.",
        "The stream: crosses were dropped; the blue lines are the means as SRA estimated them, the orange "
        "ones as sEM did, which learns every outlier. Then the rows near the change, where triangles stand "
        "for points beyond the edge, and the score −log f(y) that each point had when it came.",
        narrow=_render_stream(study, narrow=True),
    )


def _render_stream(study: Study, narrow: bool = False, file_format: str = "png") -> bytes:
    from limpet.plots.stream import draw_stream

    return draw_stream(
        study.stream.y,
        study.trace,
        study.mean_shift.row,
        change_point=study.change,
        true_means=study.stream.means,
        rival=("means without the threshold", study.baseline_trace.means),
        narrow=narrow,
        file_format=file_format,
    )
