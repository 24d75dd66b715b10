"""Test without extras: a missing one is named in one line, without a traceback."""

import re

import pytest

from helpers.packages import read_extras

pytestmark = pytest.mark.package

GROUPS = {"dev", "docs", "local", "all", "brokers"}  # for developers, or several extras together
FRAME_SOURCE = "class Frame:\n    columns = ['a']\n"
COLUMN_SOURCE = "class Column:\n    dtype = 'str'\n"

SCRIPTS = [
    (f"{FRAME_SOURCE}import limpet as lp; lp.Detector().process(Frame())", "dataframes"),
    (f"{FRAME_SOURCE}import limpet as lp; lp.Fleet(lp.Detector()).process(Frame(), key='a')", "dataframes"),
    (f"{COLUMN_SOURCE}import limpet as lp; lp.Fleet(lp.Detector()).update(Column(), [1.0])", "dataframes"),
    ("from limpet.plots._style import new_figure; new_figure(1.0, 1.0)", "plots"),
    ("from limpet.report.html import write_report; write_report('r.html', 'a', 'b', [])", "plots"),
    ("import limpet as lp; lp.run('some.csv', lp.Detector(), 'https://host/hook')", "webhook"),
    ("from limpet.streams.metrics import serve_metrics; serve_metrics('0', list)", "metrics"),
    ("import limpet as lp; lp.datasets.load_well_log()", "data"),
    ("import limpet as lp; lp.datasets.load_skab()", "data"),
    ("import limpet as lp; lp.datasets.load_smtp()", "data"),
    ("import limpet as lp; lp.datasets.load_thyroid()", "data"),
    ("import limpet as lp; lp.datasets.load_nab()", "data"),
    ("import limpet as lp; lp.drift.ADWIN()", "drift"),
    ("from limpet.adapters.river import AnomalyDetector, DriftDetector; AnomalyDetector()", "river"),
    ("from limpet.adapters.sklearn import OutlierDetector; OutlierDetector()", "sklearn"),
    ("from limpet.adapters.sktime import ChangePointDetector; ChangePointDetector()", "sktime"),
    ("import limpet as lp; lp.run('some.parquet', lp.Detector())", "files"),
    ("import limpet as lp; lp.run('some.csv', lp.Detector(), 'points.parquet')", "files"),
    ("import limpet as lp; lp.run('some.csv', lp.Detector(), 'nats://127.0.0.1/x')", "nats"),
    ("import limpet as lp; lp.run('some.csv', lp.Detector(), 'mqtt://127.0.0.1/x')", "mqtt"),
    ("import limpet as lp; lp.run('some.csv', lp.Detector(), 'kafka://127.0.0.1/x')", "kafka"),
    ("import limpet.server.app", "server"),
    ("from limpet.server.db import Store", "server"),
    ("from limpet.spark import session; session()", "spark"),
]
COMMANDS = [
    ("detect some.parquet", "files"),
    ("detect some.csv --points points.parquet", "files"),
    ("watch some.csv --no-follow --alarms alarms.parquet", "files"),
    ("watch nats://127.0.0.1/x", "nats"),
    ("watch mqtt://127.0.0.1/x", "mqtt"),
    ("watch kafka://127.0.0.1/x", "kafka"),
    ("watch some.csv --no-follow --alarms nats://127.0.0.1/x", "nats"),
    ("serve", "server"),
    ("serve --demo", "server"),
    ("serve --database postgresql://me@localhost/plant", "server"),
    ("spark score some.csv --key sensor --time time --out out --checkpoint state", "spark"),
]
EVERY_MODULE = """
import importlib, pkgutil, limpet
from limpet.exceptions import MissingExtraError

def check_error(name):
    import sys
    assert isinstance(sys.exc_info()[1], MissingExtraError), name

n = 0
for module in pkgutil.walk_packages(limpet.__path__, "limpet.", onerror=check_error):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except MissingExtraError as error:
            print(error)
        n += 1
assert n > 150
"""


def get_message(extra):
    """Return an expression for the message that names the extra to install."""
    return rf"[^\n]+ needs [^\n]+, which (is|are) not installed: pip install 'limpet\[{extra}\]'( \(or [^\n]+\))?\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "some.csv").write_text("time,sensor,level\n" + "".join(f"{i},a,{i % 7}\n" for i in range(60)))
    (tmp_path / "some.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    return tmp_path


@pytest.mark.parametrize(("script", "extra"), SCRIPTS, ids=[f"{extra}-{i}" for i, (_, extra) in enumerate(SCRIPTS)])
def test_python_use_names_the_missing_extra(core, folder, script, extra):
    completed = core.run(["python", "-c", script], folder, XDG_CACHE_HOME=str(folder), LIMPET_QUIET="1")
    assert completed.returncode == 1
    assert re.search(rf"\nlimpet\.exceptions\.MissingExtraError: {get_message(extra)}\Z", completed.stderr), (
        completed.stderr[-2000:]
    )


@pytest.mark.parametrize(("command", "extra"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_command_names_the_missing_extra(core, folder, command, extra):
    completed = core.run(["limpet", *command.split()], folder, XDG_CACHE_HOME=str(folder), LIMPET_QUIET="1")
    logged = r"(\S+ \S+ INFO [^\n]*\n)*"
    assert completed.returncode == 2
    assert re.fullmatch(rf"{logged}limpet: {get_message(extra)}", completed.stderr), completed.stderr[-2000:]


def test_every_module_can_be_imported_or_names_the_missing_extra(core, tmp_path):
    completed = core.run(["python", "-c", EVERY_MODULE], tmp_path)
    assert completed.returncode == 0, completed.stderr[-2000:]
    for line in set(completed.stdout.splitlines()):
        assert re.fullmatch(get_message(r"\w+"), line + "\n"), line


def test_every_extra_has_a_missing_case(wheel):
    missed = {extra for _, extra in SCRIPTS + COMMANDS} | {"postgres"}  # tested with `server`
    assert missed == read_extras(wheel) - GROUPS
