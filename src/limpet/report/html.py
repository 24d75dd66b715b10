"""Reports as a single HTML file, without scripts and external files."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from limpet._optional import optional_import, require_installed
from limpet.exceptions import InvalidInputError

GENERATOR = '<meta name="generator" content="limpet">'


@dataclass(frozen=True)
class KeyFigures:
    """Large figures: pairs of a value and its name."""

    kind: ClassVar[str] = "key_figures"
    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Table:
    """Rows of strings; the first column names the row."""

    kind: ClassVar[str] = "table"
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    note_rows: Sequence[int] = ()  # that comment on the previous row, in a smaller font
    toggle: str = ""  # label of a toggle; the table is hidden until the reader clicks it
    text_columns: Sequence[int] = ()  # left-aligned
    markers: Mapping[str, str] = field(default_factory=dict)  # by text of a cell: its class, "bar" or "dot" …
    marker_column: int = -1  # … in this column
    scrollable: bool = False  # a long table gets a scrollbar


@dataclass(frozen=True)
class DefinitionList:
    """Terms and their definitions."""

    kind: ClassVar[str] = "definitions"
    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Picture:
    """A PNG with a description, and optionally another PNG for narrow pages."""

    kind: ClassVar[str] = "picture"
    png: bytes
    description: str
    caption: str = ""
    narrow: bytes | None = None


Part = str | KeyFigures | Table | DefinitionList | Picture


@dataclass(frozen=True)
class Section:
    """A heading, which may be empty, and its parts; a string is a paragraph."""

    title: str
    parts: Sequence[Part]
    anchor: str = ""  # the target of links


def write_report(path: str | Path, title: str, lead: str, sections: Sequence[Section], footer: str = "") -> Path:
    """Write a report to ``path`` and return the path. All text is escaped.

    The first section is followed by a table of contents if sections have anchors.

    Examples
    --------
    >>> import tempfile
    >>> section = Section("Means", ["Estimated.", Table(["", "mean"], [["a < b", "0.50"]])])
    >>> page = write_report(Path(tempfile.mkdtemp()) / "report.html", "Title", "Lead.", [section])
    >>> "a &lt; b</th><td>0.50</td>" in page.read_text(encoding="utf-8")
    True
    """
    with optional_import("a report", "plots"):
        from jinja2 import Environment, PackageLoader
        from markupsafe import Markup
    loader = PackageLoader("limpet.report")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["data_uri"] = _data_uri
    template = environment.get_template("report.html.j2")
    page = template.render(title=title, lead=lead, sections=sections, footer=footer, generator=Markup(GENERATOR))
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise _write_error(path, error) from None
    return Path(path)


def check_report(path: str | Path) -> None:
    """Raise if packages for a report are missing, or the path is not writable.

    >>> check_report("nowhere/report.html")
    Traceback (most recent call last):
    limpet.exceptions.InvalidInputError: nowhere/report.html: cannot be written, its folder nowhere does not exist.
    """
    require_installed("a report", "plots", "jinja2", "matplotlib")
    require_writable(path)


def require_writable(path: str | Path) -> None:
    """Raise if a file cannot be written; for checks before long work."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidInputError(f"{path}: cannot be written, its folder {target.parent} does not exist.")
    existed = target.exists()
    try:
        with target.open("ab"):  # the only reliable check; an existing file is unchanged
            pass
    except OSError as error:
        raise _write_error(path, error) from None
    if not existed:
        target.unlink()


def _write_error(path: str | Path, error: OSError) -> InvalidInputError:
    return InvalidInputError(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}.")


def _data_uri(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode('ascii')}"
