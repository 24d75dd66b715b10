"""The paper, reproduced: the protocol, and the command that runs it."""

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


# The paper's numbers and grids


def test_the_papers_numbers_are_those_handed_down():
    handed = SHARED / "paper" / "tables.json"
    if not handed.is_file():
        pytest.skip("the paper's tables are not beside the project (../shared/paper)")
    assert paper_tables() == json.loads(handed.read_text())


def test_appendix_b_has_the_papers_sixty_rows():
    rows = [tuple(row[:3]) for row in paper_tables()["appendix_b_auc_of_sra"]["rows"]]
    assert [tuple(setting.values()) for setting in grids.SRA_APPENDIX_B] == rows
    assert len(rows) == 60


def test_what_the_paper_says_it_chose_is_in_the_grids():
    for kind in ("abrupt", "gradual"):
        assert grids.SRA_PRINTED["mse_univariate"][kind] in grids.SRA_UNIVARIATE
        assert grids.SRA_PRINTED["auc_univariate"][kind] in grids.SRA_UNIVARIATE
        assert grids.SRA_PRINTED["mse_multivariate"][kind] in grids.SRA_MULTIVARIATE
        assert grids.SRA_PRINTED["auc_multivariate"][kind] in grids.SRA_MULTIVARIATE
    for printed in grids.SRA_PRINTED["auc_well_log"].values():
        assert printed in well_log_methods()[0].settings
    assert grids.SRA_WELL_LOG_FIGURE in grids.SRA_WELL_LOG
    for printed in grids.SRA_PRINTED["auc_skab"].values():
        assert printed in skab_methods()[0].settings
    for name, printed in grids.SRA_PRINTED["auc_anomaly"].items():
        assert printed in anomaly_methods(name)[0].settings
    assert len(grids.SRA_UNIVARIATE) == 100
    assert len(grids.SRA_MULTIVARIATE) == 120


def test_all_seven_methods_and_the_dummies_are_in_every_comparison():
    seven = {"SRA", "SDEM", "iEM", "sEM", "ADWIN", "KSWIN", "PH"}
    for methods in (
        synthetic_methods(1),
        synthetic_methods(3),
        well_log_methods(),
        skab_methods(),
        anomaly_methods("SMTP"),
    ):
        assert seven | {"constant", "random", "time", "PH-river"} == {method.name for method in methods}


# The protocol


@pytest.mark.filterwarnings("ignore::holdfast.errors.HoldfastWarning")
@pytest.mark.parametrize("anomalies", [False, True])
def test_no_score_looks_ahead(anomalies):
    """Whatever comes later, the scores of the rows before stay the same, bit for bit, for every method."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(600, 3)) + np.where(np.arange(600) < 300, 0.0, 2.0)[:, None]
    other = y.copy()
    other[400:] = 50.0
    methods = anomaly_methods("SMTP") if anomalies else synthetic_methods(3)
    for method in methods:
        setting = method.settings[-1]  # a KSWIN that can run
        if method.name == "random":
            continue  # its seed is taken from the stream
        first, second = (method.run(setting, Stream(values), 0).scores for values in (y, other))
        assert np.array_equal(first[:400], second[:400], equal_nan=True), method.name
        assert first.shape == (600, 3 if isinstance(method, Drift) else 1)


def test_a_dropped_point_has_no_change_score_but_keeps_its_anomaly_score():
    y = np.random.default_rng(0).normal(size=(300, 1))
    y[200] = 40.0
    setting = {"n_components": 1, "gamma": 5.0, "rho": 0.01}
    for_changes = Learner("SRA", [setting], sra).run(setting, Stream(y), 0).scores[:, 0]
    for_anomalies = Learner("SRA", [setting], sra, anomalies=True).run(setting, Stream(y), 0).scores[:, 0]
    assert math.isnan(for_changes[200])
    assert np.nanargmax(for_anomalies) == 200


def test_rivals_start_exactly_as_sra_does():
    """With the same step size and no threshold in reach, SRA and sEM are the same, to the last bit."""
    stream = make_abrupt(n=1000, seed=3)
    for drawn in (False, True):
        ours = Learner("SRA", [], sra, drawn=drawn).run({"gamma": 1e9, "rho": 0.01}, stream, 4).scores
        theirs = Learner("sEM", [], sem, drawn=drawn).run({"rho": 0.01}, stream, 4).scores
        assert np.array_equal(ours, theirs, equal_nan=True)


def test_sem_is_the_learner_of_that_name():
    stream = make_abrupt(n=1000, seed=3)
    theirs = hf.SEM(2, rho=0.01).process(stream.y).score
    assert np.array_equal(sem(rho=0.01).process(stream.y).score, theirs, equal_nan=True)


def test_points_to_start_from_are_drawn_in_the_range_of_the_first():
    y = np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 1000.0]
    points = drawn_start(y, 0)
    assert points.shape == (20, 2)
    assert (points >= y[19:40].min(axis=0)).all()
    assert (points <= y[19:40].max(axis=0)).all()
    assert not np.array_equal(points, drawn_start(y, 1))


def test_a_window_shorter_than_two_samples_is_reported():
    methods = {method.name: method for method in synthetic_methods(1)}
    with pytest.raises(CannotRunError, match="half of window"):
        methods["KSWIN"].run({"alpha": 0.01, "window": 20, "stat": 15}, make_abrupt(n=100), 0)


def test_a_sweep_measures_what_a_single_run_gives():
    lab = Lab(Plan(trials=1))
    method = synthetic_methods(1)[0]
    method = Learner("SRA", [{"gamma": 3.0, "beta": 0.1, "M": 5.0}], method.make)
    values = lab.synthetic(method, "abrupt", 1, "printed").values[0, 0, 0, 0]
    stream = make_abrupt(seed=0)
    trace = sra(gamma=3.0, beta=0.1, M=5.0).process(stream.y, record="means")
    assert values[AUC] == benefit_auc(trace.change_score, 10000, 100)
    assert values[S_EVAL:].tolist() == list(segment_mse(trace.means, stream.means, 10000))
    assert measure(method, method.settings[0], stream, errors=False).shape == (1, 1)


def test_held_out_streams_are_never_scored():
    plan = Plan(trials=10)
    assert not set(plan.seeds) & set(plan.held_out_seeds)
    lab = Lab(Plan(trials=1))
    assert not np.array_equal(
        lab.streams("abrupt", 1, "printed")[0].y, lab.streams("abrupt", 1, "printed", held_out=True)[0].y
    )


def test_a_detectors_variable_is_chosen_with_its_setting():
    method = Drift("PH", [{"delta": 1.0}, {"delta": 2.0}], None)
    areas = np.zeros((2, 4, 3))  # settings, streams, variables
    areas[1, :, 2] = 0.9
    best = choose_setting(method, Sweep(method.settings, areas), areas)
    assert (best.setting, best.variable, best.written) == (1, 2, {"delta": 2.0, "variable": 3})


def test_the_oracle_is_near_what_an_honest_score_can_reach():
    assert 0.65 < oracle_auc(make_abrupt(seed=0)) < 0.78


# In words


def test_verdicts():
    assert verdict(0.7165, [0.717, 0.021]) == "at or above"  # at the paper's three digits
    assert verdict(0.6965, [0.717, 0.021]) == "equal"
    assert verdict(0.696, [0.717, 0.021]) == "short"
    assert verdict(0.971, [0.972, 0.0]) == "short"
    assert verdict(0.0106, [0.01, 0.001], largest=False) == "short"
    assert verdict(0.0103, [0.01, 0.001], largest=False) == "at or above"


def test_rivals_above_are_named_and_dummies_are_not():
    table = {"SRA": [[0.5, 0.0]], "sEM": [[0.6, 0.0]], "KSWIN": [[0.4, 0.0]], "random": [[0.7, 0.0]]}
    assert rivals_above(["Tb_20"], table) == "Honest rivals above SRA: sEM in Tb_20 (0.600 against 0.500)."
    assert "KSWIN" in rivals_above(["S_bc"], table, largest=False)


def test_a_table_has_ours_the_papers_and_the_difference():
    table = side_by_side(["a"], {"SRA": [[0.75, 0.02]], "oracle": [[0.8, 0.0]]}, {"SRA": [[0.717, 0.021]]})
    assert table.rows[:2] == [["SRA", "0.750 ± 0.020"], ["paper", "0.717 ± 0.021"]]
    assert table.rows[2:] == [["difference", "+0.033"], ["oracle", "0.800 ± 0.000"]]
    assert table.aside == [1, 2]


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
    assert issubclass(DataError, running.DataError)


# The real data, one restart of everything


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOLDFAST_DATA", str(SHARED / "data"))
        names = ["auc_well_log", "auc_skab", "auc_anomaly", "dataset_summary", "skab_sample", "well_log_estimates"]
        yield run(names, tmp_path_factory.mktemp("real"))


@needs_data
def test_the_real_tables_have_the_papers_keys_and_values_that_make_sense(real):
    for key in ("auc_well_log", "auc_skab", "auc_anomaly"):
        paper = paper_tables()[key]
        assert real[key]["metrics"] == paper["metrics"]
        assert set(paper) <= set(real[key])
        assert all(cell[0] == 0.5 for cell in real[key]["constant"])
        assert any("window=20, stat=15" in why for why in real["cannot_run"][key]["KSWIN"])
        for method in paper_cells(key):
            assert all(0.0 <= mean <= 1.0 and std >= 0.0 for mean, std in real[key][method])
    low, high = real["intervals"]["auc_anomaly"]["SMTP"]["SRA"]
    assert low < real["auc_anomaly"]["SRA"][0][0] < high
    assert real["dataset_summary"]["SMTP"] == [95156, 3, 30]
    assert real["not_finished"] == {}


@needs_data
def test_the_figures_setting_gives_what_an_independent_trial_gave_on_well_log(real):
    figure = [mean for mean, _ in real["auc_well_log"]["SRA-figure"]]
    assert figure == pytest.approx([0.870, 0.836, 0.836, 0.722, 0.702], abs=0.002)


WELL_LOG_RATES, SKAB_RATES = ([setting["rho"] for setting in g] for g in (grids.SEM_WELL_LOG, grids.SEM_SKAB))


def scores_of(learner, y, kind="change_score"):
    """Those of a learner started on the drawn points of restart 0."""
    learner.process(drawn_start(y, 0))
    return getattr(learner.process(y), kind)


@needs_data
@pytest.mark.filterwarnings("ignore::holdfast.errors.HoldfastWarning")
def test_well_log_is_tuned_on_the_first_part_and_scored_on_the_rest(real):
    y = np.loadtxt(SHARED / "data" / "well_log" / "well.txt").reshape(-1, 1)
    times = json.loads((SHARED / "data" / "well_log" / "change_points.json").read_text())["paper_t"]
    for column, annotator in (("annotation_1", "6"), ("annotation_4", "12"), ("annotation_5", "13")):
        changes = [t - 1 for t in times[annotator]]
        scores = {rho: scores_of(hf.SEM(1, rho=rho, n_init=20), y) for rho in WELL_LOG_RATES}
        training = {rho: benefit_auc(each[:1550], changes_before(changes), 100, 19) for rho, each in scores.items()}
        best = max(training, key=training.get)
        assert real["chosen"]["auc_well_log"][column]["sEM"]["rho"] == best
        place = real["auc_well_log"]["metrics"].index(column)
        tested = benefit_auc(scores[best], changes, 100, 1550)
        assert real["auc_well_log"]["sEM"][place][0] == pytest.approx(tested)


def changes_before(changes):
    """Changes whose benefit reaches into the training part."""
    return [change for change in changes if change < 1650]


@needs_data
@pytest.mark.filterwarnings("ignore::holdfast.errors.HoldfastWarning")
def test_skab_is_tuned_on_even_files_and_scored_on_odd_ones(real):
    areas = {}
    for number in range(16):
        path = SHARED / "data" / "skab" / "valve1" / f"{number}.csv"
        table = np.genfromtxt(path, delimiter=";", skip_header=1, usecols=range(1, 11))
        y, marks = table[:, :8], np.flatnonzero(table[:, 9] == 1)
        y = (y - y[:20].mean(axis=0)) / y[:20].std(axis=0)
        changes = [marks[0], marks[2] if len(marks) == 4 else marks[1]]
        for rho in SKAB_RATES:
            scores = scores_of(hf.SEM(1, rho=rho, n_init=20), y)
            areas[number, rho] = [benefit_auc(scores, changes, tolerance, 19) for tolerance in (20, 50)]
    for place, column in enumerate(("Tb_20", "Tb_50")):
        training = {rho: np.mean([areas[n, rho][place] for n in range(0, 16, 2)]) for rho in SKAB_RATES}
        best = max(training, key=training.get)
        assert real["chosen"]["auc_skab"][column]["sEM"]["rho"] == best
        tested = [areas[n, best][place] for n in range(1, 16, 2)]
        assert real["auc_skab"]["sEM"][place] == pytest.approx([np.mean(tested), np.std(tested)])


@needs_data
@pytest.mark.filterwarnings("ignore::holdfast.errors.HoldfastWarning")
def test_anomalies_are_tuned_on_the_training_span_and_scored_on_the_rest(real):
    thyroid = pytest.importorskip("scipy.io").loadmat(SHARED / "data" / "thyroid" / "thyroid.mat")
    y, labels = thyroid["X"], thyroid["y"].ravel().astype(int)
    scores = {K: scores_of(hf.IEM(K, n_init=20), y, "score") for K in (1, 2, 3)}
    training = {K: roc_auc(each[999:2000], labels[999:2000]) for K, each in scores.items()}
    best = max(training, key=training.get)
    assert real["chosen"]["auc_anomaly"]["THYROID"]["iEM"]["n_components"] == best
    assert real["auc_anomaly"]["iEM"][1][0] == pytest.approx(roc_auc(scores[best][2000:], labels[2000:]))
