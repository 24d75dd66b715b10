"""Check the site (`make docs`): staging, link checks, and that the table of contents lists all pages."""

import re

import pytest

from checking import faults
from staging import ROOT, site_path, stage, with_links

NAV = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2].partition("\nnot_in_nav")[0]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("staged") / "pages"
    stage(folder)
    return folder


def test_every_page_is_in_the_table_of_contents(pages):
    listed = set(re.findall(r"[\w/-]+\.md", re.sub(r"#.*", "", NAV)))
    staged = {str(path.relative_to(pages)) for path in pages.rglob("*.md")}
    assert listed <= staged
    assert {page for page in staged - listed if not page.startswith("decisions/0")} == {"readme.md"}


def test_staged_links_stay_within_the_site(pages):
    for page in pages.rglob("*.md"):
        text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\]\(([^)\s#]+)", text):
            if not re.match(r"[a-z]+:", link):
                assert (page.parent / link).resolve().is_relative_to(pages), f"{page}: {link}"
                assert (page.parent / link).exists(), f"{page}: {link}"


def test_tools_are_not_part_of_the_site(pages):
    assert not (pages / "tools").exists()
    assert (pages / "lab" / "results" / "runtime.json").exists()
    assert site_path("docs/index.md") == "index.md"
    assert with_links("```\n[a](../b)\n```\n[c](https://d.org/e)", "docs/guide/x.md") == (
        "```\n[a](../b)\n```\n[c](https://d.org/e)"
    )


VALID_PAGE = (
    '<h1 id="top">Hello</h1><a href="#top">up</a><a href="b.html#there">b</a><a href="https://example.org">out</a>'
)


@pytest.fixture
def site(tmp_path):
    (tmp_path / "a.html").write_text(VALID_PAGE, encoding="utf-8")
    (tmp_path / "b.html").write_text('<p id="there">x</p><img src="data:image/png;base64,AA">', encoding="utf-8")
    (tmp_path / "style.css").write_text("p { background: url(data:image/png;base64,AA) }", encoding="utf-8")
    return tmp_path


def test_valid_site_has_no_faults(site):
    assert faults(site) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('<a href="c.html">', "leads nowhere"),
        ('<a href="../../c.html">', "leads nowhere"),
        ('<a href="b.html#nope">', "no such anchor"),
        ('<a href="#nope">', "no such anchor"),
        ('<img src="missing.png">', "leads nowhere"),
        ('<script src="https://example.org/x.js"></script>', "loaded from another host"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loaded from another host"),
        ('<img srcset="https://example.org/x.png 2x">', "loaded from another host"),
    ],
)
def test_invalid_pages_are_reported(site, more, message):
    (site / "a.html").write_text(VALID_PAGE + more, encoding="utf-8")
    (fault,) = faults(site)
    assert fault.startswith("a.html")
    assert message in fault


def test_styles_load_nothing_external(site):
    (site / "style.css").write_text("@import 'https://example.org/x.css';", encoding="utf-8")
    assert faults(site) == ["style.css loads https://example.org/x.css"]
