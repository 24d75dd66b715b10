"""Check that every snippet of the pages is executed, and that every command shown exists."""

import doctest
import re

import pytest
from typer.main import get_command

from helpers.snippets import PAGES, ROOT, find_commands, find_fenced_blocks, get_block_id, split_arguments
from limpet.cli.main import app
from limpet_lab.bench import BENCHMARKS
from limpet_lab.cli import bench, reproduce
from walking import environment_here, steps, walk

PYTHON_BLOCKS = [block for page in PAGES for block in find_fenced_blocks(page) if block.language == "python"]
EXECUTED_PAGES = [page for page in PAGES if any(block.language == "console" for block in find_fenced_blocks(page))]
COMMANDS = [block for page in PAGES for block in find_commands(page)]
KNOWN_LANGUAGES = {"python", "console", "sh", "text", "yaml", "toml", ""}
# Run by a separate test: the page, and that test.
TESTS_BY_PAGE = {
    "docs/guide/spark.md": "test_spark_guide.py",
    "docs/how-to/spark.md": "test_spark_guide.py",
    "docs/start-here.md": "test_start_here.py",
    "docs/gallery.md": "test_gallery.py",
}
# Shown as the content of a file that is imported by tests (test_docs.py), or as a line of one.
FILES_BY_PAGE = {"docs/how-to/add-a-model.md": ("exponential.py", "cases.py")}
LAB_COMMANDS = {"bench": bench, "reproduce": reproduce}
OUTPUT_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_languages_are_known():
    assert {block.language for page in PAGES for block in find_fenced_blocks(page)} <= KNOWN_LANGUAGES


@pytest.mark.parametrize("block", PYTHON_BLOCKS, ids=get_block_id)
def test_python_block_is_executed(block):
    page = str(block.page.relative_to(ROOT))
    if block.text.lstrip().startswith(
        ">>> "
    ):  # by doctest, which pytest collects from all pages under docs/ and the README
        assert page in ("README.md", "CONTRIBUTING.md", "lab/README.md") or page.startswith("docs/")
    elif page in TESTS_BY_PAGE:
        assert block.page.name in (ROOT / "tests" / "docs" / TESTS_BY_PAGE[page]).read_text(encoding="utf-8")
    elif page in FILES_BY_PAGE:
        assert "class Exponential" in block.text or "Case(" in block.text
    else:
        saved = [text for step in steps(block.page.read_text(encoding="utf-8")) for text in step.files.values()]
        assert block.text in saved


def test_only_loaders_are_skipped():
    """Doctest skips only examples of loaders, whose data are not part of limpet."""
    skipped = [line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines() if "+SKIP" in line]
    assert all(re.search(r"\bload_\w+\(", line) for line in skipped)


@pytest.mark.parametrize(
    "page", [page for page in EXECUTED_PAGES if page.name != "start-here.md"], ids=lambda page: page.name
)
def test_commands_of_a_page_print_the_shown_output(page, tmp_path):
    """`python docs/tools/walking.py PAGE` writes what the commands print into the page."""
    results = walk(page.read_text(encoding="utf-8"), tmp_path, environment_here(), here=True)
    for typed, printed in results:
        assert doctest.OutputChecker().check_output(typed.shown, printed, OUTPUT_FLAGS), f"$ {typed.command}\n{printed}"


@pytest.mark.parametrize("block", COMMANDS, ids=get_block_id)
def test_flags_of_shown_commands_exist(block):
    command, rest = get_command(app), split_arguments(block.text)
    if rest[0] in LAB_COMMANDS:
        command = LAB_COMMANDS[rest.pop(0)]
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    command.make_context(command.name, [word for word in rest if word != "…"])


def test_wrong_flags_are_detected():
    assert len(COMMANDS) > 40
    wrong = COMMANDS[0]._replace(text="limpet detect my.csv --nonsense 3")
    with pytest.raises(Exception, match="nonsense"):
        test_flags_of_shown_commands_exist(wrong)


BENCH_PAGES = sorted({*PAGES, ROOT / "CHANGELOG.md"})
BENCH_CALL = re.compile(r"\blimpet bench((?: [a-z_]+)*)")


def find_benchmark_names(text):
    """Return the names after each `limpet bench`, in commands and in inline code, which can break over two lines."""
    text = re.sub(r"(?<!`)`[^`]+`(?!`)", lambda match: " ".join(match[0].split()), text)
    return [name for match in BENCH_CALL.finditer(text) for name in match[1].split()]


@pytest.mark.parametrize("page", BENCH_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_benchmarks_that_a_page_names_exist(page):
    assert set(find_benchmark_names(page.read_text(encoding="utf-8"))) <= set(BENCHMARKS)


def test_names_of_benchmarks_are_found():
    text = "    limpet bench speed   # minutes\n    limpet bench --quick\n`limpet bench` and `limpet bench\nno fleet`."
    assert find_benchmark_names(text) == ["speed", "no", "fleet"]
    names = [name for page in BENCH_PAGES for name in find_benchmark_names(page.read_text(encoding="utf-8"))]
    assert set(names) == set(BENCHMARKS)
