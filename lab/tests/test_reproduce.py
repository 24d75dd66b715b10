"""Test `limpet reproduce`: what the command writes, keeps and prints."""

import io
import json
import signal
import subprocess
import sys
import time
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import pytest
from rich.console import Console
from typer.testing import CliRunner

from limpet import _optional
from limpet.cli.main import app
from limpet.exceptions import InvalidInputError, MissingExtraError
from limpet.report.html import KeyFigures, Picture, Table
from limpet_lab.paper import _precompile, _provenance
from limpet_lab.paper._results import Result, get_parts_folder, read_part, write_part
from limpet_lab.paper.config import Plan
from limpet_lab.paper.methods import DETECTOR_NAME, LearnerMethod
from limpet_lab.paper.published import load_paper_tables
from limpet_lab.paper.runner import MODULE_BY_NAME, NAMES, reproduce

TABLE_KEYS = [key for key in load_paper_tables() if key != "_about"]


def make_quiet_console() -> Console:
    return Console(quiet=True)


def run_results(names, out, trials=1, **kwargs):
    assert reproduce(names, out, Plan(trials=trials), make_quiet_console(), **kwargs)
    return json.loads((out / "results.json").read_text())


def test_two_runs_give_equal_results(tmp_path):
    names = ["mse_univariate", "gamma_rho", "alpha"]
    first = run_results(names, tmp_path / "a")
    second = reproduce(names, tmp_path / "b", Plan(trials=1, workers=1), make_quiet_console()) and json.loads(
        (tmp_path / "b" / "results.json").read_text()
    )
    assert set(first.pop("seconds")) == set(second.pop("seconds")) == set(names)
    assert first == second
    paper = load_paper_tables()["mse_univariate"]
    for kind in ("abrupt", "gradual"):
        ours = first["mse_univariate"][kind]
        assert set(paper[kind]) <= set(ours)
        assert ours["Detector"][2][0] <= 0.001
        for i in range(3):
            assert ours["SRA"][i][0] < min(ours[name][i][0] for name in ("SDEM", "iEM", "sEM"))
    assert first["chosen"]["mse_univariate"]["abrupt"]["SRA"]["rho"] > 0.0
    for key, cells in (("against_paper", "SRA"), ("auto_against_paper", "Detector")):
        ours_by_cell = {(record["table"], record["cell"]): record["ours"] for record in first[key]}
        assert ours_by_cell == {
            (f"mse_univariate, {kind}", metric): first["mse_univariate"][kind][cells][i][0]
            for kind in ("abrupt", "gradual")
            for i, metric in enumerate(("S_bc", "S_ac", "S_tot"))
        }
    page = (tmp_path / "a" / "report.html").read_text()
    assert page.count("<img") == 2
    assert 'src="http' not in page
    assert "MSE of the means, univariate" in page


def test_interrupted_run_keeps_finished_results(tmp_path, monkeypatch):
    from limpet_lab.paper import fig_alpha, fig_illustration

    def interrupted(context):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fig_alpha, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reproduce(["illustration", "alpha"], tmp_path, Plan(trials=1), make_quiet_console())
    assert set(json.loads((tmp_path / "results.json").read_text())["seconds"]) == {"illustration"}
    assert "Robustness against adaptivity" in (tmp_path / "report.html").read_text()

    monkeypatch.setattr(fig_illustration, "run", interrupted)  # a second time it need not run
    results = run_results(["illustration", "alpha"], tmp_path, resume=True)
    assert set(results["seconds"]) == {"illustration", "alpha"}
    assert (tmp_path / "report.html").read_text().count("<img") == 2


def test_results_of_different_plans_are_separate(tmp_path):
    run_results(["illustration"], tmp_path, trials=1)
    assert set(run_results(["alpha"], tmp_path, trials=1)["seconds"]) == {"illustration", "alpha"}
    assert set(run_results(["alpha"], tmp_path, trials=2)["seconds"]) == {"alpha"}
    assert set(run_results(["alpha"], tmp_path, trials=1, resume=True)["seconds"]) == {"illustration", "alpha"}


def test_results_of_another_version_are_excluded_and_reported(tmp_path, monkeypatch):
    run_results(["illustration"], tmp_path)
    before = _provenance.make_stamp()
    monkeypatch.setattr(_provenance, "get_versions", lambda: {"limpet": "another"})
    assert _provenance.make_stamp() != before
    console = Console(record=True, file=io.StringIO())
    assert reproduce(["sample_streams"], tmp_path, Plan(trials=1), console)
    assert set(json.loads((tmp_path / "results.json").read_text())["seconds"]) == {"sample_streams"}
    assert "another version made it: illustration" in console.export_text()


def test_corrupted_part_is_not_finished(tmp_path):
    result = Result(
        "title", parts=["words", Table(["a"], [["b"]]), Picture(b"png", "seen"), KeyFigures([("1", "one")])]
    )
    write_part(tmp_path, "alpha", {"v": 1}, result, 1.5)
    kept, seconds = read_part(tmp_path, "alpha", {"v": 1})
    assert seconds == 1.5
    assert kept.parts[0] == "words"
    assert kept.parts[2] == Picture(b"png", "seen")
    assert read_part(tmp_path, "alpha", {"v": 2}) is None
    path = tmp_path / "alpha.json"
    whole = path.read_text()
    for damaged in (whole[:50], "5", "[]", "", "null"):
        path.write_text(damaged)
        assert read_part(tmp_path, "alpha", {"v": 1}) is None


def test_result_without_its_data_is_skipped_and_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("LIMPET_DATA", str(tmp_path / "nowhere"))
    out = tmp_path / "out"
    assert not reproduce(["illustration", "well_log_annotations"], out, Plan(trials=1), make_quiet_console())
    results = json.loads((out / "results.json").read_text())
    assert set(results["seconds"]) == {"illustration"}
    assert "LIMPET_DATA" in results["not_finished"]["well_log_annotations"]
    assert "Not finished" in (out / "report.html").read_text()
    result = CliRunner().invoke(app, ["reproduce", "dataset_summary", "--out", str(out)])
    assert result.exit_code == 1


def test_invalid_arguments_raise(tmp_path):
    with pytest.raises(InvalidInputError, match="got table_9"):
        reproduce(["table_9"], tmp_path, Plan(), make_quiet_console())
    with pytest.raises(InvalidInputError, match="Did you mean auc_well_log"):
        reproduce(["auc_welllog"], tmp_path, Plan(), make_quiet_console())
    with pytest.raises(InvalidInputError, match="trials"):
        Plan(trials=0)


@pytest.mark.parametrize("what", ["the folder", "parts", "results.json"])
def test_unwritable_paths_are_reported_before_any_work(tmp_path, what):
    out = tmp_path / "out"
    if what == "the folder":
        out.write_text("a file")
    elif what == "parts":
        out.mkdir()
        (out / "parts").write_text("a file")
    else:
        (out / "results.json").mkdir(parents=True)
    with pytest.raises(InvalidInputError, match="cannot"):
        reproduce(["illustration"], out, Plan(trials=1), make_quiet_console())


def test_all_missing_packages_are_reported_before_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(_optional, "find_spec", lambda name: None if name in ("river", "sklearn") else find_spec(name))
    with pytest.raises(MissingExtraError, match=r"river and scikit-learn.*pip install 'limpet-lab\[reproduce\]'"):
        reproduce([], tmp_path / "out", Plan(), make_quiet_console())
    monkeypatch.setattr(_optional, "find_spec", lambda name: None if name == "pooch" else find_spec(name))
    monkeypatch.setenv("LIMPET_DATA", "anywhere")
    _provenance.require_packages()
    monkeypatch.delenv("LIMPET_DATA")
    with pytest.raises(MissingExtraError, match="pooch"):
        _provenance.require_packages()


def test_interrupt_prints_how_to_resume(tmp_path):
    """The real command, interrupted as from the keyboard once its first result exists."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "limpet", "reproduce", "--trials", "3", "--out", str(out)]
    # Without `preexec_fn` the command would ignore the signal wherever the tests run in the background of a script.
    restore_interrupt = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=restore_interrupt) as running:
        part = get_parts_folder(out, Plan(trials=3)) / "illustration.json"
        deadline = time.monotonic() + 120.0
        while not part.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        output = running.communicate(timeout=60)[0]
    assert running.returncode == 130
    assert "finished and kept in" in output
    assert "--resume" in output
    assert "illustration" in json.loads((out / "results.json").read_text())["seconds"]


def test_the_list_has_names_and_titles():
    lines = CliRunner().invoke(app, ["reproduce", "--list"]).stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(NAMES)
    assert all(len(line.split()) > 2 for line in lines)


def test_a_quick_run_has_a_separate_folder_and_no_verdicts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["reproduce", "mse_univariate", "--quick"])
    assert result.exit_code == 0
    assert "Quick run" in result.stdout
    page = (tmp_path / "reproduction-quick" / "report.html").read_text()
    assert 'class="facts"' not in page
    assert ">reached<" not in page


def test_every_result_is_a_module_with_a_title():
    for name in NAMES:
        module = import_module(f"limpet_lab.paper.{MODULE_BY_NAME[name]}")
        assert module.TITLE
        assert callable(module.run)
    assert set(TABLE_KEYS) <= set(NAMES)


def test_process_that_compiles_ahead_is_terminated_after_the_work(monkeypatch):
    started = []

    class Started(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            started.append(self)

    monkeypatch.setattr(_precompile.subprocess, "Popen", Started)
    monkeypatch.setattr(_precompile, "n_threads", lambda: 2)
    for names in (["alpha", "gamma_rho"], ["auc_skab"]):
        with _precompile.compile_ahead(names, Plan(trials=1)):
            assert not started
    with _precompile.compile_ahead(["alpha", "auc_skab"], Plan(trials=1, quick=True)):
        assert started[0].args[-2:] == ["auc_skab", "--quick"]
        assert started[0].poll() is None
    assert started[0].poll() is not None


@pytest.mark.filterwarnings("ignore::limpet.exceptions.LimpetWarning")
def test_every_kind_of_learner_is_compiled_ahead():
    seen = []

    def record_run(self, setting, stream, restart, record=False):
        seen.append((self.name, stream.y.shape[1], setting.get("n_components", 1 if self.name == DETECTOR_NAME else 2)))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LearnerMethod, "run", record_run)
        _precompile.compile_methods(list(_precompile.METHODS_BY_RESULT), quick=True)
    assert {("SDEM", 1, 2), ("SRA", 3, 2), ("iEM", 3, 2), ("SRA", 1, 1), ("SDEM", 8, 1), ("SRA", 6, 3)} <= set(seen)
    # Of Detector no more than required.
    assert {each for each in seen if each[0] == DETECTOR_NAME} == {(DETECTOR_NAME, 1, 1)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LearnerMethod, "run", record_run)
        _precompile.compile_methods(list(_precompile.METHODS_BY_RESULT), quick=False)
    automatic = [
        (DETECTOR_NAME, 6, 1),
        (DETECTOR_NAME, 3, 1),
        (DETECTOR_NAME, 8, 1),
        (DETECTOR_NAME, 1, 1),
        (DETECTOR_NAME, 3, 2),
    ]
    at_last = [each for each in seen if each[0] == DETECTOR_NAME][1:]  # without the one of the quick run
    assert list(dict.fromkeys(at_last)) == automatic  # from the last result back
