"""SMTP and THYROID: how well anomalies are ranked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from limpet._optional import optional_import
from limpet.datasets import Stream, load_smtp, load_thyroid
from limpet.metrics import roc_auc, roc_auc_interval
from limpet.metrics.auc import number_runs
from limpet.report.html import Table
from limpet.tuning import Setting, grid
from limpet_lab.paper import grids
from limpet_lab.paper._compare import SHORT
from limpet_lab.paper._real_tables import RealTable, make_tuning_picture
from limpet_lab.paper._results import Result, compute_cell
from limpet_lab.paper._select import Choice
from limpet_lab.paper.context import ExperimentContext
from limpet_lab.paper.methods import (
    DETECTOR_NAME,
    FloatArray,
    LearnerMethod,
    Method,
    filter_detector,
    make_detector_method,
    make_drift_methods,
    make_iem,
    make_sdem,
    make_sem,
    make_sra,
)

TITLE = "SMTP and THYROID: AUC of anomaly scores"
KEY = "auc_anomaly"
COLUMNS = ["SMTP", "THYROID"]
LOADERS = {"SMTP": load_smtp, "THYROID": load_thyroid}
FIRST_SCORED_ROWS = {"SMTP": 9_999, "THYROID": 999}  # the paper's t = 10 000 and 1000
TRAIN_INDEX, TEST_INDEX = 0, 1


def make_anomaly_methods(name: str, quick: bool = False) -> list[Method]:
    """Return mixtures of one to three Gaussians (quick: as many as the paper chose); rejected points keep scores."""
    allowed = [grids.PRINTED_COMPONENT_COUNTS[name]] if quick else grids.COMPONENT_COUNTS
    settings = {
        "SRA": (grids.SRA_ANOMALY, make_sra),
        "SDEM": (grids.SDEM_ANOMALY[name], make_sdem),
        "iEM": (grid(n_components=grids.COMPONENT_COUNTS), make_iem),
        "sEM": (grids.SEM_ANOMALY[name], make_sem),
    }
    learners = [
        LearnerMethod(
            who,
            [s for s in some if s["n_components"] in allowed],
            make,
            starts_on_drawn_points=True,
            scores_rejected_points=True,
        )
        for who, (some, make) in settings.items()
    ]
    methods = [
        *learners,
        make_detector_method(scores_rejected_points=True),
        *make_drift_methods(grids.KSWIN_ANOMALY, grids.PH_REAL, grids.ADWIN),
    ]
    return filter_detector(methods, 3, quick)


def run(context: ExperimentContext) -> Result:
    """Settings chosen on the training span; scored on the rest, with intervals for the few anomalies there."""
    table = RealTable(KEY, COLUMNS)
    streams = {column: LOADERS[column]() for column in COLUMNS}
    intervals: dict[str, dict[str, dict[str, list[float]]]] = {column: {} for column in COLUMNS}
    panels: dict[str, dict[str, FloatArray]] = {column: {} for column in COLUMNS}
    ours: dict[str, FloatArray] = {}  # SRA as chosen and as printed: (2, restarts, train or test)
    for column, stream in streams.items():
        test_scores: dict[str, FloatArray] = {}
        for method in make_anomaly_methods(column, context.plan.quick):
            sweep = context.run_sweep(method, [stream], partial(measure, method), context.plan.restarts)
            values = sweep.values[:, 0]  # settings, restarts, variables, train or test
            restarts = range(values.shape[1])
            best = table.add_tuned(column, method, sweep, values[..., TRAIN_INDEX], values[..., TEST_INDEX])
            test_scores[method.name] = compute_test_scores(method, best, stream, restarts)
            if isinstance(method, LearnerMethod):
                panels[column][method.name] = values[:, :, 0].mean(axis=1)
            if method.name == "SRA":
                named = table.choices[column]["SRA-printed"]
                test_scores["SRA-printed"] = compute_test_scores(method, named, stream, restarts)
                ours[column] = values[[best.setting_index, named.setting_index], :, 0]
        labels = get_test_labels(stream)
        forest = test_scores["IsolationForest"] = score_isolation_forest(stream, context.plan.restarts)
        table.rows.setdefault("IsolationForest", []).append(
            compute_cell([roc_auc(scores, labels) for scores in forest])
        )
        for name, scores in test_scores.items():
            replicates = 200 if context.plan.quick else 2000
            for kind, by_event in (("rows", False), ("events", True)):
                interval = roc_auc_interval(scores, labels, replicates=replicates, by_event=by_event)
                intervals[column].setdefault(name, {})[kind] = list(interval)
    result = table.make_result(
        TITLE,
        f"Mean ± standard deviation over {context.plan.restarts} restarts on the test span. Detector starts on the "
        "stream’s own first rows and has no restarts. Isolation Forest sees the whole training span at once: for scale "
        "only.",
    )
    result.intervals = {KEY: intervals}
    for name, records in (("SRA", result.verdicts), (DETECTOR_NAME, result.auto_verdicts)):
        for record in records:
            low, high = record["interval"] = intervals[record["cell"]][name]["events"]
            record["paper_inside_interval"] = low <= record["paper"] <= high
    labels_by_column = {column: get_test_labels(stream) for column, stream in streams.items()}
    counts = [
        f"{int(labels_of_column.sum())} anomalies in {number_runs(labels_of_column)[-1] + 1} runs in {column}"
        for column, labels_of_column in labels_by_column.items()
    ]
    result.parts = [
        *result.parts,
        Table(
            ["95 % interval", *(f"{column}, {kind}" for column in COLUMNS for kind in ("rows", "events"))],
            [
                [name, *("{:.3f} – {:.3f}".format(*intervals[c][name][k]) for c in COLUMNS for k in ("rows", "events"))]
                for name in table.rows
            ],
            f"Bootstrap over the test span: {', '.join(counts)}. Rows: every anomaly is drawn separately. Events: "
            "adjacent anomalies are drawn together, for rows of one event are no independent witnesses; with so few "
            "events even this interval is rough.",
        ),
        _explain_smtp(panels["SMTP"]["SRA"], ours["SMTP"][1]),
        make_tuning_picture(KEY, panels),
        *_explain_thyroid(result.verdicts[1], ours["THYROID"][0, :, TEST_INDEX]),
        "Why the detectors differ from the paper’s: the paper’s Page–Hinkley with a large δ is zero but for outliers, "
        "which is what an anomaly score should be; its cells depend on the variable that training picks.",
        "THYROID lies in [0, 1], so that γ ∈ {5, 10, 15} never rejects a point: there SRA is sEM with other step "
        "sizes. On SMTP M = 1 makes ρ so small that the model stays where it started.",
    ]
    return result


def measure(method: Method, setting: Setting, stream: Stream, restart: int) -> FloatArray:
    """Return (variables, 2): AUC on the training span and on the test span."""
    assert stream.labels is not None
    spans = (slice(FIRST_SCORED_ROWS[stream.name], stream.split), slice(stream.split, None))
    scores = method.run(setting, stream, restart).scores
    return np.array([[roc_auc(column[span], stream.labels[span]) for span in spans] for column in scores.T])


def get_test_labels(stream: Stream) -> npt.NDArray[np.int64]:
    """Return the labels of the scored rows."""
    assert stream.labels is not None
    return stream.labels[stream.split :]


def compute_test_scores(method: Method, choice: Choice, stream: Stream, restarts: range) -> FloatArray:
    """Return the scores of a choice: (restarts, test rows)."""
    return np.array([method.run(choice.setting, stream, r).scores[stream.split :, choice.variable] for r in restarts])


def _explain_smtp(pairs: FloatArray, named: FloatArray) -> str:
    """Describe what SMTP's training span determines.

    pairs: (settings, 2), training and test AUC averaged over the restarts; the named setting's are (restarts, 2).
    """
    training, testing = pairs.T
    unsure = testing[training > training.max() - 0.001]
    rank = int((training > named[:, TRAIN_INDEX].mean()).sum()) + 1
    lowest, highest = named.min(axis=0), named.max(axis=0)
    return (
        f"Information of the training span. On SMTP {len(unsure)} of the {len(training)} settings of SRA have a "
        f"training AUC within 0.001 of the best, {training.max():.5f}, and their test AUCs lie anywhere between "
        f"{unsure.min():.2f} and {unsure.max():.2f}: the training anomalies sit together around t = 15 000 and look "
        f"like nothing else, the test anomalies do not. The setting the paper names has rank {rank} here: from one "
        f"restart to another its training AUC varies between {lowest[TRAIN_INDEX]:.5f} and {highest[TRAIN_INDEX]:.5f}, "
        f"its test AUC between {lowest[TEST_INDEX]:.3f} and {highest[TEST_INDEX]:.3f}."
    )


def _explain_thyroid(record: Mapping[str, Any], restarts: FloatArray) -> list[str]:
    """Explain a cell that falls short by the test AUCs of the restarts."""
    if record["verdict"] != SHORT:
        return []
    inside = "inside" if record["paper_inside_interval"] else "outside"
    return [
        "Why THYROID falls short: started on 20 points drawn at random in six dimensions, the three components end in "
        f"different places. From one restart to another the test AUC varies between {restarts.min():.3f} and "
        f"{restarts.max():.3f}; the paper reports no spread at all. Its value lies {inside} our interval."
    ]


def score_isolation_forest(stream: Stream, restarts: int) -> FloatArray:
    """Return scores (restarts, test rows) of scikit-learn's forest, fitted on the training span in one batch."""
    with optional_import("Isolation Forest", "limpet-lab[reproduce]"):
        from sklearn.ensemble import IsolationForest
    train, test = stream.y[: stream.split], stream.y[stream.split :]
    forests = (IsolationForest(random_state=restart).fit(train) for restart in range(restarts))
    return np.array([-forest.score_samples(test) for forest in forests])
