"""The documentation: it shows what it says, its links lead somewhere, it names all that users rely on."""

import json
import re
import sys
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

import holdfast as hf

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "guide"
PAGES = sorted([*ROOT.glob("README.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)

# What DESIGN.md promises, as far as it exists.
CONTRACT = [
    "SRA",
    "SEM",
    "IEM",
    "SDEM",
    "StochasticApproximation",
    "from_bytes",
    "load",
    "models.GaussianMixture",
    "models.PoissonMixture",
    "models.LinearRegression",
    "models.LogisticRegression",
    "scheme.Constant",
    "scheme.OneOverT",
    "scheme.Power",
    "tradeoff.step_size",
    "tradeoff.bound",
    "tradeoff.gain",
    "tradeoff.optimum",
    "metrics.benefit_auc",
    "datasets.make_abrupt",
    "datasets.make_gradual",
    "datasets.load_well_log",
    "datasets.load_skab",
    "datasets.load_smtp",
    "datasets.load_thyroid",
    "tuning.tune",
]


def prose_of(page):
    """The page without its blocks of code, in which brackets are not links."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors_of(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links_of(page):
    """The relative links of a page: (link, the file it names, its anchor or "")."""
    for link in LINK.findall(prose_of(page)):
        if re.match(r"[a-z][a-z0-9+.-]*:|//", link):
            continue
        path, _, anchor = link.partition("#")
        yield link, (page.parent / path if path else page), anchor


def name_of(page):
    return str(page.relative_to(ROOT))


def test_the_page_shows_the_file():
    example = (GUIDE / "exponential.py").read_text(encoding="utf-8")
    page = (GUIDE / "your-own-model.md").read_text(encoding="utf-8")
    assert f"```python\n{example}```\n" in page


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for link, target, anchor in links_of(page):
        assert target.exists(), f"{name_of(page)} links to {link}, which is not there"
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), f"{name_of(page)} links to {link}: there is no such heading"


def test_the_contents_list_every_page_of_the_guide():
    index = ROOT / "docs" / "index.md"
    listed = {target.resolve() for _, target, _ in links_of(index)}
    assert {page.resolve() for page in GUIDE.glob("*.md")} <= listed


@pytest.mark.parametrize("name", CONTRACT)
def test_every_name_of_the_contract_can_be_reached(name):
    assert callable(reduce(getattr, name.split("."), hf))


@pytest.mark.parametrize("name", CONTRACT)
def test_every_name_of_the_contract_is_in_the_docs(name):
    room, _, last = name.rpartition(".")
    used = rf"\b(?:hf|holdfast)\.{re.escape(name)}\b" + (rf"|\b{room}\.{last}\b" if room else "")
    imported = rf"^>>> from holdfast{rf'.{room}' if room else ''} import .*\b{last}\b"
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert re.search(rf"{used}|{imported}", text, re.MULTILINE), f"no page mentions hf.{name}"


def scripts():
    """The scripts that write figures into pages."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return tuple(map(import_module, ("readme_table", "reproduction_page", "streams_page")))
    finally:
        sys.path.pop(0)


def test_the_figures_of_the_readme_are_those_of_the_benchmark():
    """After `holdfast bench --json benchmarks/results.json`: python benchmarks/readme_table.py."""
    text = (ROOT / "README.md").read_text()
    assert scripts()[0].readme_with_table(text) == text


def test_the_figures_of_the_reproduction_are_those_of_its_results():
    """After `holdfast reproduce --out DIR`: python benchmarks/reproduction_page.py DIR."""
    text = (GUIDE / "reproduction.md").read_text(encoding="utf-8")
    assert scripts()[1].page_with_figures(text) == text


def test_the_figures_of_streams_are_those_of_the_benchmark():
    """After `holdfast bench detect crash jetstream --json FILE`: python benchmarks/streams_page.py FILE."""
    text = (GUIDE / "streams.md").read_text(encoding="utf-8")
    assert scripts()[2].page_with_figures(text) == text
    results = json.loads((ROOT / "benchmarks" / "streams.json").read_text(encoding="utf-8"))
    assert not results["quick"]
