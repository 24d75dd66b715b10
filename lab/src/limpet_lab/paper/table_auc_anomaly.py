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
from limpet_lab.paper._real_tables import RealTable, picture_of_tuning
from limpet_lab.paper._results import Result, cell
from limpet_lab.paper._select import Choice
from limpet_lab.paper.context import Lab
from limpet_lab.paper.methods import (
    AUTO,
    FloatArray,
    Learner,
    Method,
    detectors,
    iem,
    limpet_detector,
    sdem,
    sem,
    shown_auto,
    sra,
)

TITLE = "SMTP and THYROID: AUC of anomaly scores"
KEY = "auc_anomaly"
COLUMNS = ["SMTP", "THYROID"]
LOADERS = {"SMTP": load_smtp, "THYROID": load_thyroid}
FIRST_SCORED = {"SMTP": 9_999, "THYROID": 999}  # the paper's t = 10 000 and 1000
TRAIN, TEST = 0, 1


def anomaly_methods(name: str, quick: bool = False) -> list[Method]:
    """Mixtures of one to three Gaussians (`quick`: as many as the paper chose); a rejected point keeps its score."""
    allowed = [grids.COMPONENTS_PRINTED[name]] if quick else grids.COMPONENTS
    settings = {
        "SRA": (grids.SRA_ANOMALY, sra),
        "SDEM": (grids.SDEM_ANOMALY[name], sdem),
        "iEM": (grid(n_components=grids.COMPONENTS), iem),
        "sEM": (grids.SEM_ANOMALY[name], sem),
    }
    learners = [
        Learner(who, [s for s in some if s["n_components"] in allowed], make, drawn=True, anomalies=True)
        for who, (some, make) in settings.items()
    ]
    methods = [*learners, limpet_detector(anomalies=True), *detectors(grids.KSWIN_ANOMALY, grids.PH_REAL, grids.ADWIN)]
    return shown_auto(methods, 3, quick)


def run(lab: Lab) -> Result:
    """Settings chosen on the training span; scored on the rest, with intervals for the few anomalies there."""
    table = RealTable(KEY, COLUMNS)
    streams = {column: LOADERS[column]() for column in COLUMNS}
    intervals: dict[str, dict[str, dict[str, list[float]]]] = {column: {} for column in COLUMNS}
    panels: dict[str, dict[str, FloatArray]] = {column: {} for column in COLUMNS}
    ours: dict[str, FloatArray] = {}  # SRA as chosen and as printed: (2, restarts, train or test)
    for column, stream in streams.items():
        test_scores: dict[str, FloatArray] = {}
        for method in anomaly_methods(column, lab.plan.quick):
            sweep = lab.sweep(method, [stream], partial(measure, method), lab.plan.restarts)
            values = sweep.values[:, 0]  # settings, restarts, variables, train or test
            restarts = range(values.shape[1])
            best = table.add(column, method, sweep, values[..., TRAIN], values[..., TEST])
            test_scores[method.name] = scores_on_test(method, best, stream, restarts)
            if isinstance(method, Learner):
                panels[column][method.name] = values[:, :, 0].mean(axis=1)
            if method.name == "SRA":
                named = table.choices[column]["SRA-printed"]
                test_scores["SRA-printed"] = scores_on_test(method, named, stream, restarts)
                ours[column] = values[[best.row, named.row], :, 0]
        labels = labels_on_test(stream)
        forest = test_scores["IsolationForest"] = isolation_forest(stream, lab.plan.restarts)
        table.rows.setdefault("IsolationForest", []).append(cell([roc_auc(scores, labels) for scores in forest]))
        for name, scores in test_scores.items():
            replicates = 200 if lab.plan.quick else 2000
            for kind, together in (("rows", False), ("events", True)):
                interval = roc_auc_interval(scores, labels, replicates=replicates, by_event=together)
                intervals[column].setdefault(name, {})[kind] = list(interval)
    result = table.result(
        TITLE,
        f"Mean ± standard deviation over {lab.plan.restarts} restarts on the test span. Detector starts on the "
        "stream’s own first rows and has no restarts. Isolation Forest sees the whole training span at once: for scale "
        "only.",
    )
    result.intervals = {KEY: intervals}
    for name, records in (("SRA", result.verdicts), (AUTO, result.auto_verdicts)):
        for record in records:
            low, high = record["interval"] = intervals[record["cell"]][name]["events"]
            record["paper_inside_interval"] = low <= record["paper"] <= high
    labels_by_column = {column: labels_on_test(stream) for column, stream in streams.items()}
    counts = [
        f"{int(each.sum())} anomalies in {number_runs(each)[-1] + 1} runs in {column}"
        for column, each in labels_by_column.items()
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
        _why_smtp(panels["SMTP"]["SRA"], ours["SMTP"][1]),
        picture_of_tuning(KEY, panels),
        *_why_thyroid(result.verdicts[1], ours["THYROID"][0, :, TEST]),
        "Why the detectors differ from the paper’s: the paper’s Page–Hinkley with a large δ is zero but for outliers, "
        "which is what an anomaly score should be; its cells depend on the variable that training picks.",
        "THYROID lies in [0, 1], so that γ ∈ {5, 10, 15} never rejects a point: there SRA is sEM with other step "
        "sizes. On SMTP M = 1 makes ρ so small that the model stays where it started.",
    ]
    return result


def measure(method: Method, setting: Setting, stream: Stream, restart: int) -> FloatArray:
    """(variables, 2): AUC on the training span and on the test span."""
    assert stream.labels is not None
    spans = (slice(FIRST_SCORED[stream.name], stream.split), slice(stream.split, None))
    scores = method.run(setting, stream, restart).scores
    return np.array([[roc_auc(column[span], stream.labels[span]) for span in spans] for column in scores.T])


def labels_on_test(stream: Stream) -> npt.NDArray[np.int64]:
    """Of the rows that are scored."""
    assert stream.labels is not None
    return stream.labels[stream.split :]


def scores_on_test(method: Method, choice: Choice, stream: Stream, restarts: range) -> FloatArray:
    """(restarts, test rows) of a choice."""
    return np.array([method.run(choice.setting, stream, r).scores[stream.split :, choice.variable] for r in restarts])


def _why_smtp(pairs: FloatArray, named: FloatArray) -> str:
    """Describe what SMTP's training span determines.

    pairs: (settings, 2), training and test AUC averaged over the restarts; the named setting's are (restarts, 2).
    """
    training, testing = pairs.T
    unsure = testing[training > training.max() - 0.001]
    rank = int((training > named[:, TRAIN].mean()).sum()) + 1
    lowest, highest = named.min(axis=0), named.max(axis=0)
    return (
        f"Information of the training span. On SMTP {len(unsure)} of the {len(training)} settings of SRA have a "
        f"training AUC within 0.001 of the best, {training.max():.5f}, and their test AUCs lie anywhere between "
        f"{unsure.min():.2f} and {unsure.max():.2f}: the training anomalies sit together around t = 15 000 and look "
        f"like nothing else, the test anomalies do not. The setting the paper names has rank {rank} here: from one "
        f"restart to another its training AUC varies between {lowest[TRAIN]:.5f} and {highest[TRAIN]:.5f}, its test "
        f"AUC between {lowest[TEST]:.3f} and {highest[TEST]:.3f}."
    )


def _why_thyroid(record: Mapping[str, Any], restarts: FloatArray) -> list[str]:
    """In words, if it falls short: test AUCs, one for each restart."""
    if record["verdict"] != SHORT:
        return []
    inside = "inside" if record["paper_inside_interval"] else "outside"
    return [
        "Why THYROID falls short: started on 20 points drawn at random in six dimensions, the three components end in "
        f"different places. From one restart to another the test AUC varies between {restarts.min():.3f} and "
        f"{restarts.max():.3f}; the paper reports no spread at all. Its value lies {inside} our interval."
    ]


def isolation_forest(stream: Stream, restarts: int) -> FloatArray:
    """Scores (restarts, test rows) of scikit-learn's forest, fitted on the training span in one batch."""
    with optional_import("Isolation Forest", "limpet-lab[reproduce]"):
        from sklearn.ensemble import IsolationForest
    train, test = stream.y[: stream.split], stream.y[stream.split :]
    forests = (IsolationForest(random_state=restart).fit(train) for restart in range(restarts))
    return np.array([-forest.score_samples(test) for forest in forests])
