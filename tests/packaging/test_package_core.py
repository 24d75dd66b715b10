"""Test the wheel in an environment without extras, on all Pythons."""

import re
import sys

import pytest
import typer
from packaging.requirements import Requirement

from helpers.packages import ROOT, find_interpreter, make_environment
from limpet.cli.main import app

pytestmark = pytest.mark.package

LAB_COMMANDS = {("bench",), ("reproduce",)}  # of limpet-lab, which is not installed
EXAMPLES_SCRIPT = """
import doctest, sys
failed, n = doctest.testfile(sys.argv[1], False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
assert n > 5 and not failed
"""
TYPES_SCRIPT = """
import limpet as lp
reveal_type(lp.Detector(far=1e-4).process([1.0, 2.0]).score)
lp.SRA(n_components="two", gamma=[])
"""


def run_readme_examples(environment, cwd):
    completed = environment.run(["python", "-c", EXAMPLES_SCRIPT, str(ROOT / "README.md")], cwd, LIMPET_QUIET="1")
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "", "")
    assert list(cwd.glob("*.limpet"))


def iter_commands(group=None, before=()):
    """Yield the words of all commands and groups of commands."""
    group = group or typer.main.get_command(app)
    if before not in LAB_COMMANDS:
        yield list(before)
    for name, command in getattr(group, "commands", {}).items():
        yield from iter_commands(command, (*before, name))


@pytest.fixture
def csv_path(tmp_path):
    rows = [f"{row},s{row % 2},{20 + row % 7 * 0.1 + (row > 700) * 5}\n" for row in range(1000)]
    (tmp_path / "some.csv").write_text("time,sensor,level\n" + "".join(rows))
    return tmp_path / "some.csv"


def test_only_core_dependencies_are_installed(core):
    distributions = core.list_installed()
    needed, pending = {"limpet"}, ["numpy", "numba", "typer", "rich"]
    while pending:
        name = pending.pop()
        needed.add(name)
        wanted = map(Requirement, distributions[name].requires or [])
        now = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
        pending += [short for each in now if (short := each.name.lower().replace("_", "-")) not in needed]
    assert set(distributions) == needed
    assert not needed & {"river", "scipy", "pandas", "matplotlib", "narwhals", "scikit-learn", "pip"}
    assert "No broken requirements" in core.pip("check")


def test_limpet_is_imported_from_the_wheel(core, tmp_path):
    completed = core.run(["python", "-c", "import limpet; print(limpet.__file__)"], tmp_path)
    assert completed.stdout.startswith(str(core.folder))


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_readme_examples_run_on_all_pythons(version, core, wheel, tmp_path):
    python = find_interpreter(version)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    environment = core if python == sys.executable else make_environment(tmp_path / "env", wheel, python=python)
    completed = environment.run(["python", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], tmp_path)
    assert completed.stdout.strip() == version
    run_readme_examples(environment, tmp_path)
    assert environment.run(["limpet", "--help"], tmp_path).returncode == 0


def test_every_command_has_help(core, tmp_path):
    words = list(iter_commands())
    assert ["spark", "score"] in words
    for each in words:
        completed = core.run(["limpet", *each, "--help"], tmp_path)
        assert (completed.returncode, completed.stderr) == (0, ""), each
        assert "Usage: limpet" in completed.stdout


def test_as_a_module_and_its_version(core, tmp_path):
    completed = core.run(["python", "-m", "limpet", "--version"], tmp_path)
    assert re.fullmatch(r"limpet \d+\.\d+\.\d+\n", completed.stdout)


def test_demo(core, tmp_path):
    completed = core.run(["limpet", "demo"], tmp_path, LIMPET_QUIET="1")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "No report: a report needs jinja2 and matplotlib" in completed.stdout
    assert "pip install 'limpet[plots]'\n" in completed.stdout
    assert not (tmp_path / "report.html").exists()


def test_detect(core, tmp_path, csv_path):
    completed = core.run(["limpet", "detect", csv_path, "--key", "sensor"], tmp_path, LIMPET_QUIET="1")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert len((tmp_path / "alarms.csv").read_text().splitlines()) > 1
    assert "pip install 'limpet[plots]'\n" in completed.stdout
    assert not (tmp_path / "report.html").exists()


def test_tradeoff(core, tmp_path):
    words = ["tradeoff", "--gamma", "1,3,5", "--beta", "0.1", "--M", "5", "--c1", "0.01", "--sigma1", "0"]
    completed = core.run(["limpet", *words], tmp_path)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "Smallest bound" in completed.stdout
    assert "pip install 'limpet[plots]'\n" in completed.stdout


def test_type_hints_are_found(core, tmp_path):
    """Type checkers know what limpet returns, and report wrong arguments."""
    (tmp_path / "theirs.py").write_text(TYPES_SCRIPT)
    command = [sys.executable, "-m", "mypy", "--python-executable", str(core.python), "theirs.py"]
    completed = core.run(command, tmp_path)
    assert re.search(r'theirs\.py:3: note: Revealed type is "numpy\.ndarray\[', completed.stdout), (
        completed.stdout + completed.stderr
    )
    assert set(re.findall(r"(\S+:\d+): error", completed.stdout)) == {"theirs.py:4"}
