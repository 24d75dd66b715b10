"""A report as one HTML file: text, tables and pictures, with nothing to fetch and nothing to run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from limpet.exceptions import InvalidInputError

STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5b6670; --page: #fbfbf9; --card: #fff;
  --rule: #dfe2e5; --accent: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ea; --soft: #9aa5af; --page: #14181c; --card: #1b2127;
    --rule: #313a42; --accent: #56b4e9; }
  picture { filter: brightness(.92); }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); -webkit-text-size-adjust: 100%;
  font: 1.0625rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: clamp(1.5rem, 5vw, 4rem) clamp(1rem, 4vw, 2.5rem); }
h1, .lead, td, dd, figcaption { overflow-wrap: break-word; }
h1 { font-size: clamp(1.75rem, 5vw, 2.6rem); line-height: 1.15; letter-spacing: -.02em; margin: 0 0 .75rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 .5rem; }
p { max-width: 44rem; margin: .75rem 0; }
.lead { font-size: 1.2rem; line-height: 1.5; color: var(--soft); }
.facts { display: grid; gap: .75rem; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr));
  margin: 2rem 0; }
.facts div { display: flex; flex-direction: column-reverse; justify-content: flex-end; padding: .9rem 1rem;
  background: var(--card); border: 1px solid var(--rule); border-radius: .6rem; }
.facts dt { font-size: .875rem; line-height: 1.35; color: var(--soft); }
.facts dd { margin: 0; font-size: 1.7rem; line-height: 1.2; font-weight: 650; color: var(--accent); }
figure { margin: 1.25rem 0; }
figcaption, footer { font-size: .9rem; line-height: 1.5; color: var(--soft); }
figcaption { max-width: 44rem; margin-top: .5rem; }
footer { margin-top: 4rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
picture { display: block; padding: .6rem; background: #fff;
  border: 1px solid var(--rule); border-radius: .6rem; }
img { display: block; width: 100%; height: auto; }
.wide { overflow-x: auto; }
.tall { max-height: 34rem; overflow-y: auto; border: 1px solid var(--rule); border-radius: .6rem; }
.tall thead th { position: sticky; top: 0; background: var(--card); border-bottom: 0; box-shadow: 0 1px var(--rule); }
.tall th:first-child { padding-left: 1rem; }
details { margin: .75rem 0; }
summary { cursor: pointer; color: var(--accent); }
nav ul { columns: 2 20rem; column-gap: 2.5rem; list-style: none; margin: 1.5rem 0; padding: 0; line-height: 1.75; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
.terms { display: grid; grid-template-columns: minmax(7rem, max-content) minmax(0, 38rem); gap: .35rem 1.25rem;
  font-size: .975rem; line-height: 1.5; }
.terms dt { color: var(--soft); }
.terms dd { margin: 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .975rem; }
th, td { padding: .4rem 1rem; text-align: right; border-bottom: 1px solid var(--rule); }
thead th { font-weight: 600; line-height: 1.3; vertical-align: bottom; color: var(--soft); }
tbody th { font-weight: 400; color: var(--soft); }
td { white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; }
.text { text-align: left; white-space: normal; }
td.text { min-width: 7.5rem; }
.mark { white-space: nowrap; }
.mark::before { content: ""; display: inline-block; vertical-align: -.1em; margin-right: .5em; height: .9em; }
.bar::before { width: .2em; margin: 0 .75em 0 .25em; background: #c8102e; }
.dot::before { width: .7em; height: .7em; vertical-align: 0; border-radius: 50%; background: #cc79a7; }
.aside td, .aside th { padding-top: 0; font-size: .875rem; color: var(--soft); }
.aside th:first-child { padding-left: 1rem; }
tr:has(+ .aside) > * { border-bottom: 0; padding-bottom: 0; }
@media (min-width: 40rem) { .words th { white-space: nowrap; } }
@media (max-width: 40rem) {
  th, td { padding: .4rem .5rem; } table { width: 100%; }
  .scrolls { overflow-x: auto; } .scrolls img { width: 48rem; }
  .terms { grid-template-columns: 1fr; gap: 0; } .terms dd { margin-bottom: .6rem; }
}
"""
GENERATOR = '<meta name="generator" content="limpet">'
NARROW_PAGE = "(max-width: 40rem)"


@dataclass(frozen=True)
class KeyFigures:
    """Figures to be seen at a glance: pairs of a value and what it is."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Table:
    """Rows of words; the first column names the row, the others hold its numbers.

    aside: places of rows that say something about the row above them, and are shown smaller. folded: what to click
    on to see the table, which is shut until then. texts: places of columns that hold words, not numbers. marks: words
    that have a mark before them, "bar" or "dot". tall: that it may be long, and is scrolled through by itself.
    """

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    aside: Sequence[int] = ()
    folded: str = ""
    texts: Sequence[int] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    tall: bool = False


@dataclass(frozen=True)
class DefinitionList:
    """Words and what they mean."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Picture:
    """A PNG, in words for those who cannot see it, and another one for narrow pages where there is one."""

    png: bytes
    description: str
    caption: str = ""
    narrow: bytes | None = None


Part = str | KeyFigures | Table | DefinitionList | Picture


@dataclass(frozen=True)
class Section:
    """A heading, or none, and what stands under it; a plain string is a paragraph. name: for links to it."""

    title: str
    parts: Sequence[Part]
    name: str = ""


def write_report(path: str | Path, title: str, lead: str, sections: Sequence[Section], footer: str = "") -> Path:
    """Write the report to ``path`` and return it; all text is escaped, so it may hold anything.

    If sections have names, the first one is followed by a list of links to all others that have.

    Examples
    --------
    >>> import tempfile
    >>> section = Section("Means", ["Those learnt.", Table(["", "mean"], [["a < b", "0.50"]])])
    >>> page = write_report(Path(tempfile.mkdtemp()) / "report.html", "Title", "Lead.", [section])
    >>> "a &lt; b</th><td>0.50</td>" in page.read_text(encoding="utf-8")
    True
    """
    shown = [_section(section) for section in sections]
    links = [f'<li><a href="#{escape(s.name)}">{escape(s.title)}</a></li>' for s in sections if s.name]
    if links:
        shown.insert(1, f'<nav aria-label="Contents"><ul>{"".join(links)}</ul></nav>')
    body = "\n".join(shown)
    page = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{GENERATOR}\n"
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n{body}\n'
        f"{f'<footer>{escape(footer)}</footer>' if footer else ''}\n</main>\n</body>\n</html>\n"
    )
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise _cannot_write(path, error) from None
    return Path(path)


def require_writable(path: str | Path) -> None:
    """Raise an error that says why, if a file cannot be written there; to be asked before long work.

    >>> require_writable("nowhere/report.html")
    Traceback (most recent call last):
    limpet.exceptions.BadInputError: cannot write 'nowhere/report.html': there is no folder 'nowhere'
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InvalidInputError(f"cannot write {str(path)!r}: there is no folder {str(target.parent)!r}")
    existed = target.exists()
    try:
        with target.open("ab"):  # the only sure way to know; appending nothing leaves an old file as it is
            pass
    except OSError as error:
        raise _cannot_write(path, error) from None
    if not existed:
        target.unlink()


def _cannot_write(path: str | Path, error: OSError) -> InvalidInputError:
    return InvalidInputError(f"cannot write {str(path)!r}: {(error.strerror or str(error)).lower()}")


def _section(section: Section) -> str:
    heading = f"<h2>{escape(section.title)}</h2>\n" if section.title else ""
    name = f' id="{escape(section.name)}"' if section.name else ""
    return f"<section{name}>\n{heading}" + "\n".join(map(_part, section.parts)) + "\n</section>"


def _part(part: Part) -> str:
    if isinstance(part, KeyFigures):
        tiles = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for value, name in part.pairs)
        return f'<dl class="facts">{"".join(tiles)}</dl>'
    if isinstance(part, Table):
        return _table(part)
    if isinstance(part, DefinitionList):
        pairs = (f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in part.pairs)
        return f'<dl class="terms">{"".join(pairs)}</dl>'
    if isinstance(part, Picture):
        narrow = f'<source media="{NARROW_PAGE}" srcset="{_inline(part.narrow)}">' if part.narrow else ""
        image = f'<img src="{_inline(part.png)}" alt="{escape(part.description)}">'
        opening = "<picture>" if part.narrow else '<picture class="scrolls">'
        return f"<figure>{opening}{narrow}{image}</picture>{_caption(part.caption)}</figure>"
    return f"<p>{escape(part)}</p>"


def _table(part: Table) -> str:
    words = [' class="text"' if place in part.texts else "" for place in range(len(part.heading))]
    head = "".join(f'<th scope="col"{kind}>{escape(word)}</th>' for word, kind in zip(part.heading, words, strict=True))
    rows = "\n".join(_row(part, row, place in part.aside) for place, row in enumerate(part.rows))
    opening = '<table class="words">' if part.texts else "<table>"
    table = f"{opening}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    tall = " tall" if part.tall else ""
    figure = f'<figure><div class="wide{tall}">{table}</div>{_caption(part.caption)}</figure>'
    return f"<details><summary>{escape(part.folded)}</summary>{figure}</details>" if part.folded else figure


def _row(table: Table, words: Sequence[str], aside: bool) -> str:
    cells = []
    for place, word in enumerate(words[1:], 1):
        mark, kind = table.marks.get(word), ' class="text"' if place in table.texts else ""
        shown = f'<span class="mark {escape(mark)}">{escape(word)}</span>' if mark else escape(word)
        cells.append(f"<td{kind}>{shown}</td>")
    opening = '<tr class="aside">' if aside else "<tr>"
    return f'{opening}<th scope="row">{escape(words[0])}</th>{"".join(cells)}</tr>'


def _caption(text: str) -> str:
    return f"<figcaption>{escape(text)}</figcaption>" if text else ""


def _inline(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode('ascii')}"
