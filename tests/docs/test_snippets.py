"""Check that every snippet of the pages is executed, and that every command shown exists."""

import doctest
import re

import pytest
from typer.main import get_command

from helpers.snippets import PAGES, ROOT, commands, fenced, name_of, words
from limpet.cli.main import app
from limpet_lab.cli import bench, reproduce
from walking import environment_here, steps, walk

PYTHON = [block for page in PAGES for block in fenced(page) if block.language == "python"]
WALKED = [page for page in PAGES if any(block.language == "console" for block in fenced(page))]
COMMANDS = [block for page in PAGES for block in commands(page)]
KNOWN = {"python", "console", "sh", "text", "yaml", "toml", ""}
# Run by a separate test: the page, and that test.
ELSEWHERE = {
    "docs/guide/spark.md": "test_spark_guide.py",
    "docs/how-to/spark.md": "test_spark_guide.py",
    "docs/start-here.md": "test_start_here.py",
    "docs/gallery.md": "test_gallery.py",
}
# Shown as the content of a file that is imported by tests (test_docs.py), or as a line of one.
SHOWN = {"docs/how-to/add-a-model.md": ("exponential.py", "cases.py")}
LAB_COMMANDS = {"bench": bench, "reproduce": reproduce}
RULES = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_languages_are_known():
    assert {block.language for page in PAGES for block in fenced(page)} <= KNOWN


@pytest.mark.parametrize("block", PYTHON, ids=name_of)
def test_python_is_run_by_something(block):
    page = str(block.page.relative_to(ROOT))
    if block.text.lstrip().startswith(
        ">>> "
    ):  # by doctest, which pytest collects from all pages under docs/ and the README
        assert page in ("README.md", "CONTRIBUTING.md", "lab/README.md") or page.startswith("docs/")
    elif page in ELSEWHERE:
        assert block.page.name in (ROOT / "tests" / "docs" / ELSEWHERE[page]).read_text(encoding="utf-8")
    elif page in SHOWN:
        assert "class Exponential" in block.text or "Case(" in block.text
    else:
        saved = [text for step in steps(block.page.read_text(encoding="utf-8")) for text in step.files.values()]
        assert block.text in saved


def test_what_is_skipped_is_what_needs_data():
    """Doctest skips examples of loaders only, whose data are not part of limpet."""
    skipped = [line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines() if "+SKIP" in line]
    assert all(re.search(r"\bload_\w+\(", line) for line in skipped)


@pytest.mark.parametrize("page", [page for page in WALKED if page.name != "start-here.md"], ids=lambda page: page.name)
def test_what_a_page_types_gives_what_it_shows(page, tmp_path):
    """`python docs/tools/walking.py PAGE` writes what the commands print into the page."""
    results = walk(page.read_text(encoding="utf-8"), tmp_path, environment_here(), here=True)
    for typed, printed in results:
        assert doctest.OutputChecker().check_output(typed.shown, printed, RULES), f"$ {typed.command}\n{printed}"


@pytest.mark.parametrize("block", COMMANDS, ids=name_of)
def test_a_command_has_the_flags_it_is_shown_with(block):
    command, rest = get_command(app), words(block.text)
    if rest[0] in LAB_COMMANDS:
        command = LAB_COMMANDS[rest.pop(0)]
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    command.make_context(command.name, [word for word in rest if word != "…"])


def test_there_are_commands_and_wrong_ones_would_be_noticed():
    assert len(COMMANDS) > 40
    wrong = COMMANDS[0]._replace(text="limpet detect my.csv --nonsense 3")
    with pytest.raises(Exception, match="nonsense"):
        test_a_command_has_the_flags_it_is_shown_with(wrong)
