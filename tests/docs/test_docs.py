"""Check the documentation: files shown in pages, links, public names, figures."""

import ast
import inspect
import re
from functools import reduce

import pytest

import limpet as lp
from helpers.scripts import ROOT, import_script
from limpet_lab.bench import BENCHMARKS

DOCS = ROOT / "docs"
GUIDE, REFERENCE, HOW_TO, CONCEPTS = (DOCS / name for name in ("guide", "reference", "how-to", "concepts"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "lab" / "README.md"])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)

# Public names that pages must mention.
DOCUMENTED_NAMES = [
    "Detector",
    "Fleet",
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
    "core.Constant",
    "core.InverseTime",
    "core.PolynomialDecay",
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


def read_prose(page):
    """Return a page without its blocks of code, in which brackets are not links."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def find_anchors(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.*)$", read_prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def find_links(page):
    """Yield the relative links of a page: (link, the file it names, its anchor or "")."""
    for link in LINK.findall(read_prose(page)):
        if re.match(r"[a-z][a-z0-9+.-]*:|//", link):
            continue
        path, _, anchor = link.partition("#")
        yield link, (page.parent / path if path else page), anchor


def get_page_name(page):
    return str(page.relative_to(ROOT))


def test_page_contains_the_example_file():
    example = (HOW_TO / "exponential.py").read_text(encoding="utf-8")
    page = (HOW_TO / "add-a-model.md").read_text(encoding="utf-8")
    assert f"```python\n{example}```\n" in page


@pytest.mark.parametrize("page", PAGES, ids=get_page_name)
def test_links_resolve(page):
    for link, target, anchor in find_links(page):
        assert target.exists(), f"{get_page_name(page)} links to {link}, which does not exist"
        if anchor and target.suffix == ".md":
            assert anchor in find_anchors(target), f"{get_page_name(page)} links to {link}: no such heading exists"


def get_link_targets(page):
    return {target.resolve() for _, target, _ in find_links(page)}


@pytest.mark.parametrize(
    "folder", [GUIDE, REFERENCE, HOW_TO, CONCEPTS, DOCS / "decisions"], ids=lambda folder: folder.name
)
def test_index_of_a_folder_lists_its_pages(folder):
    (contents,) = (page for page in (folder / "index.md", folder / "README.md") if page.exists())
    assert {page.resolve() for page in folder.glob("*.md")} - {contents.resolve()} <= get_link_targets(contents)
    assert contents.resolve() in get_link_targets(DOCS / "index.md")


def test_front_page_lists_all_pages_of_its_folder():
    assert {page.resolve() for page in DOCS.glob("*.md")} - {(DOCS / "index.md").resolve()} <= get_link_targets(
        DOCS / "index.md"
    )


# Pages of the guide without code: a page in a browser, and two of results.
WITHOUT_CODE = {"index", "explorer", "reproduction", "robust-regression"}


def test_guide_and_reference_mirror_each_other():
    guide, reference = ({page.stem for page in folder.glob("*.md")} for folder in (GUIDE, REFERENCE))
    assert guide - WITHOUT_CODE == reference - {"index"}
    for name in guide - WITHOUT_CODE:
        guide_page, reference_page = (folder / f"{name}.md" for folder in (GUIDE, REFERENCE))
        assert reference_page.resolve() in get_link_targets(guide_page), (
            f"the guide's {name} does not link to its reference"
        )
        assert guide_page.resolve() in get_link_targets(reference_page), (
            f"the reference of {name} does not link to its guide"
        )


MODULES = [name for name in lp.__all__ if inspect.ismodule(getattr(lp, name))] + [
    "fleet",
    "learners",
    "spark",
    "adapters.river",
    "adapters.sklearn",
    "adapters.sktime",
]


def iter_public_names():
    """Yield every public name with the module that exports it: limpet or a subpackage."""
    yield from (("limpet", name) for name in lp.__all__ if name not in MODULES)
    for module in MODULES:
        path = ROOT / "src" / "limpet" / module.replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        lists = [
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ]
        defined = [node.name for node in tree.body if hasattr(node, "name") and not node.name.startswith("_")]
        yield from ((f"limpet.{module}", name) for name in (ast.literal_eval(lists[0]) if lists else defined))


@pytest.mark.parametrize(("module", "name"), list(iter_public_names()))
def test_every_public_name_is_on_a_page_of_the_reference(module, name):
    shown = re.findall(
        r"^::: (\S+)", "\n".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md")), re.MULTILINE
    )
    # A module may be shown as a whole. A function with the name of its file is shown from there.
    homes = {
        module,
        f"{module}.{name}",
        f"{module}.{name}.{name}",
        f"limpet.{name}",
        f"limpet.learners.{name}",
        f"limpet.fleet.{name}",
    }
    homes |= {f"limpet.streams.{name}", f"limpet.detection.{name}"} if module == "limpet" else set()
    assert homes & set(shown), f"no page of the reference has {module}.{name}"


@pytest.mark.parametrize("name", DOCUMENTED_NAMES)
def test_documented_names_exist(name):
    assert callable(reduce(getattr, name.split("."), lp))


@pytest.mark.parametrize("name", DOCUMENTED_NAMES)
def test_documented_names_are_in_the_docs(name):
    module, _, last = name.rpartition(".")
    used = rf"\b(?:lp|limpet)\.{re.escape(name)}\b" + (rf"|\b{module}\.{last}\b" if module else "")
    imported = rf"^>>> from limpet{rf'.{module}' if module else ''} import .*\b{last}\b"
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert re.search(rf"{used}|{imported}", text, re.MULTILINE), f"no page mentions lp.{name}"


def test_figures_of_the_readme_equal_the_benchmark():
    """After `limpet bench --json FILE`: python lab/pages/readme_table.py FILE."""
    text = (ROOT / "README.md").read_text()
    assert import_script("readme_table").fill_readme(text) == text


def test_figures_of_the_reproduction_equal_its_results():
    """After `limpet reproduce --out FOLDER`: python lab/pages/reproduction_page.py FOLDER."""
    text = (GUIDE / "reproduction.md").read_text(encoding="utf-8")
    assert import_script("reproduction_page").fill_page(text) == text


def test_figures_of_streams_equal_the_benchmark():
    """After `limpet bench detect watch_crash jetstream --json FILE`: python lab/pages/streams_page.py FILE."""
    text = (GUIDE / "streams.md").read_text(encoding="utf-8")
    assert import_script("streams_page").fill_page(text) == text


@pytest.mark.parametrize("name", [*BENCHMARKS, "reproduction"])
def test_result_files_are_small(name):
    assert (ROOT / "lab" / "results" / f"{name}.json").stat().st_size <= 20_000
