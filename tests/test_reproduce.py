"""`holdfast reproduce`: what the command writes, keeps and says."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import holdfast as hf
from holdfast.cli import app
from holdfast.datasets import Stream, make_abrupt
from holdfast.errors import BadInputError, DataError
from holdfast.experiments import grids, running
from holdfast.experiments.auc_anomaly import anomaly_methods
from holdfast.experiments.auc_skab import skab_methods
from holdfast.experiments.auc_tables import oracle_auc
from holdfast.experiments.auc_well_log import well_log_methods
from holdfast.experiments.choosing import choose_setting
from holdfast.experiments.comparison import rivals_above, side_by_side, verdict
from holdfast.experiments.lab import AUC, S_EVAL, Lab, measure, synthetic_methods
from holdfast.experiments.methods import Drift, Learner, sem, sra
from holdfast.experiments.paper import paper_cells, paper_tables
from holdfast.experiments.parts import read_part, write_part
from holdfast.experiments.plan import Plan
from holdfast.experiments.result import Result
from holdfast.experiments.running import NAMES, reproduce
from holdfast.experiments.starts import drawn_start
from holdfast.metrics import benefit_auc, roc_auc, segment_mse
from holdfast.plots.report import Facts, Picture, Table
from holdfast.tuning import CannotRunError, Sweep

SHARED = Path(__file__).parents[2] / "shared"
needs_data = pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason="the real data sets are not beside the project (../shared/data)"
)
TABLES = [key for key in paper_tables() if key != "_about"]


def quiet() -> Console:
    return Console(quiet=True)


def run(names, out, trials=1, **kwargs):
    assert reproduce(names, out, Plan(trials=trials), quiet(), **kwargs)
    return json.loads((out / "results.json").read_text())


# The command


def test_a_slice_of_it_twice(tmp_path):
    names = ["mse_univariate", "gamma_rho", "alpha"]
    first = run(names, tmp_path / "a")
    second = reproduce(names, tmp_path / "b", Plan(trials=1, workers=1), quiet()) and json.loads(
        (tmp_path / "b" / "results.json").read_text()
    )
    assert set(first.pop("seconds")) == set(second.pop("seconds")) == set(names)
    assert first == second
    paper = paper_tables()["mse_univariate"]
    for kind in ("abrupt", "gradual"):
        ours = first["mse_univariate"][kind]
        assert set(paper[kind]) <= set(ours)
        for place in range(3):
            assert ours["SRA"][place][0] < min(ours[rival][place][0] for rival in ("SDEM", "iEM", "sEM"))
    assert first["chosen"]["mse_univariate"]["abrupt"]["SRA"]["rho"] > 0.0
    assert {record["cell"] for record in first["against_paper"]} == {"S_bc", "S_ac", "S_tot"}
    page = (tmp_path / "a" / "report.html").read_text()
    assert page.count("<img") == 2
    assert 'src="http' not in page
    assert "MSE of the means, univariate" in page


def test_an_interrupted_run_keeps_what_is_finished(tmp_path, monkeypatch):
    from holdfast.experiments import alpha, illustration

    def interrupted(lab):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(alpha, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reproduce(["illustration", "alpha"], tmp_path, Plan(trials=1), quiet())
    assert set(json.loads((tmp_path / "results.json").read_text())["seconds"]) == {"illustration"}
    assert "Robustness against adaptivity" in (tmp_path / "report.html").read_text()

    monkeypatch.setattr(illustration, "run", interrupted)  # a second time it need not run
    results = run(["illustration", "alpha"], tmp_path, resume=True)
    assert set(results["seconds"]) == {"illustration", "alpha"}
    assert (tmp_path / "report.html").read_text().count("<img") == 2


def test_results_of_another_plan_do_not_mix(tmp_path):
    run(["illustration"], tmp_path, trials=1)
    assert set(run(["alpha"], tmp_path, trials=1)["seconds"]) == {"illustration", "alpha"}
    assert set(run(["alpha"], tmp_path, trials=2)["seconds"]) == {"alpha"}


def test_a_damaged_part_counts_as_not_finished(tmp_path):
    result = Result("title", parts=["words", Table(["a"], [["b"]]), Picture(b"png", "seen"), Facts([("1", "one")])])
    write_part(tmp_path, "alpha", {"v": 1}, result, 1.5)
    kept, seconds = read_part(tmp_path, "alpha", {"v": 1})
    assert seconds == 1.5
    assert kept.parts[0] == "words"
    assert kept.parts[2] == Picture(b"png", "seen")
    assert read_part(tmp_path, "alpha", {"v": 2}) is None
    path = tmp_path / "parts" / "alpha.json"
    path.write_text(path.read_text()[:50])
    assert read_part(tmp_path, "alpha", {"v": 1}) is None


def test_without_its_data_a_result_is_passed_over_and_the_rest_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "nowhere"))
    out = tmp_path / "out"
    assert not reproduce(["illustration", "well_log_annotations"], out, Plan(trials=1), quiet())
    results = json.loads((out / "results.json").read_text())
    assert set(results["seconds"]) == {"illustration"}
    assert "HOLDFAST_DATA" in results["not_finished"]["well_log_annotations"]
    assert "Not finished" in (out / "report.html").read_text()
    answer = CliRunner().invoke(app, ["reproduce", "dataset_summary", "--out", str(out)])
    assert answer.exit_code == 1


def test_bad_arguments(tmp_path):
    with pytest.raises(BadInputError, match="no result is called table_9"):
        reproduce(["table_9"], tmp_path, Plan(), quiet())
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="cannot be made"):
        reproduce([], tmp_path / "file", Plan(), quiet())
    with pytest.raises(BadInputError, match="trials"):
        Plan(trials=0)
    assert CliRunner().invoke(app, ["reproduce", "--list"]).stdout.split() == list(NAMES)


def test_every_result_is_a_module_with_a_title():
    for name in NAMES:
        module = __import__(f"holdfast.experiments.{name}", fromlist=["run"])
        assert module.TITLE
        assert callable(module.run)
    assert set(TABLES) <= set(NAMES)
