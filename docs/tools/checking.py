"""Check a built site: links lead to files and anchors that exist, and nothing is loaded from another host."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches without a click.
FETCHED = {("img", "src"), ("script", "src"), ("link", "href"), ("source", "src"), ("iframe", "src"), ("video", "src")}
NOT_FETCHED = {"canonical", "next", "prev", "alternate", "edit"}  # relations of <link> that only inform
IN_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """The anchors of a page, and its references (tag, attribute, address)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.references: list[tuple[str, str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each tag."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "link" and values.get("rel", "") in NOT_FETCHED:
            tag = "a"
        self.references += [(tag, name, values[name]) for name in ("href", "src") if name in values]
        self.references += [
            (tag, "src", candidate.split()[0]) for candidate in values.get("srcset", "").split(",") if candidate.strip()
        ]


def faults(site: Path) -> list[str]:
    """Return the faults in the pages and the styles of a site, a sentence each."""
    site = site.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    result = [fault for path in pages for fault in _faults_of(path, pages, site)]
    for style in sorted(site.rglob("*.css")):
        for match in IN_STYLE.finditer(style.read_text(encoding="utf-8")):
            if _is_external(match[1] or match[2]):
                result.append(f"{style.relative_to(site)} loads {match[1] or match[2]}")
    return result


def _faults_of(path: Path, pages: dict[Path, Page], site: Path) -> Iterator[str]:
    for tag, attribute, address in pages[path].references:
        where = f"{path.relative_to(site)}: <{tag} {attribute}={address}>"
        if _is_external(address):
            if (tag, attribute) in FETCHED:
                yield f"{where} is loaded from another host"
            continue
        parts = urlsplit(address)
        if parts.scheme:  # data:, mailto:, javascript:
            continue
        start = site if parts.path.startswith("/") else path.parent  # 404.html can be shown for any address
        target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
        if target.is_dir():
            target /= "index.html"
        if not target.is_relative_to(site) or not target.exists():
            yield f"{where} leads nowhere"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"{where}: no such anchor exists"


def _is_external(address: str) -> bool:
    return address.startswith(("http:", "https:", "//"))
